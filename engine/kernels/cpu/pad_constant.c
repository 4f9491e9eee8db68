/* SPDX-License-Identifier: Apache-2.0
 *
 * Pad with a constant: every line of the result is written once, front to back: value, input,
 * value. Dimensions are taken in memory order and merged where nothing is padded between them, so
 * that a line of a channels-last image is W x C long.
 */
#include "base/numbers/integers.h"
#include "engine/kernels/lib/copy_bytes.h"
#include "engine/ops/lib/move.h"

enum { TILE_BYTES = 64 << 10 };

/* One dimension of the result: `size` elements of the input from `begin` on; strides in bytes. */
struct side {
    int64_t extent, begin, size, src, dst;
};

struct kernel_state {
    int count, elem;
    struct side sides[RANK_MAX]; /* outermost first; the last is the line */
    int64_t start;               /* first byte taken of the input */
    int64_t lines, lines_per_tile, tiles;
    bool value_given; /* as input 2 */
    char value[8];
};

static void sort_by_destination(struct side *sides, int count)
{
    for (int k = 1; k < count; k++) {
        struct side side = sides[k];
        int slot = k;
        for (; slot > 0 && sides[slot - 1].dst < side.dst; slot--)
            sides[slot] = sides[slot - 1];
        sides[slot] = side;
    }
}

/* Joins a side that is not padded with the one outside of it. */
static int merge(struct side *sides, int count)
{
    int kept = 0;
    for (int k = 0; k < count; k++) {
        struct side *outer = &sides[kept - (kept > 0)], *inner = &sides[k];
        int64_t n = inner->extent;
        bool fits = kept > 0 && inner->size == n && outer->dst == inner->dst * n &&
                    (outer->src == inner->src * n || outer->size <= 1);
        if (!fits) {
            sides[kept++] = *inner;
            continue;
        }
        *outer = (struct side){outer->extent * n, outer->begin * n, outer->size * n, inner->src,
                               inner->dst};
    }
    return kept;
}

static enum status read_sides(const struct kernel_query *q, struct kernel_state *s,
                              struct error *why)
{
    struct op_args args = args_of_query(q);
    struct move move;
    const struct desc *in = &q->in[0], *out = &q->out[0];
    TRY(q->node->op->move(&args, 0, &move, why));
    s->elem = (int)dtype_size(in->dtype);
    for (int k = 0; k < move.loop_count; k++) {
        s->sides[s->count] =
            (struct side){out->shape.dim[k], move.out_start[k], move.loops[k].extent,
                          in->stride[k] * s->elem, out->stride[k] * s->elem};
        s->count += out->shape.dim[k] != 1 || move.loops[k].extent != 1;
        s->start += move.in_start[k] * in->stride[k] * s->elem;
    }
    sort_by_destination(s->sides, s->count);
    s->count = merge(s->sides, s->count);
    if (s->count == 0) /* a single element */
        s->sides[s->count++] = (struct side){1, 0, 1, s->elem, s->elem};
    struct side *line = &s->sides[s->count - 1];
    if (line->dst != s->elem || (line->src != s->elem && line->size > 1))
        return UNSUPPORTED(why, "no axis whose elements lie together in input and output");
    s->lines = 1;
    for (int k = 0; k < s->count - 1; k++)
        s->lines *= s->sides[k].extent;
    int64_t bytes = line->extent * s->elem;
    s->lines_per_tile = bytes ? TILE_BYTES / bytes + 1 : 1;
    s->tiles = bytes ? divide_up(s->lines, s->lines_per_tile) : 0;
    return STATUS_OK;
}

static enum status plan(const struct kernel_query *q, int variant, struct kernel_state *s,
                        struct error *why)
{
    (void)variant;
    if (q->node->post_count)
        return UNSUPPORTED(why, "no fused epilogue");
    const struct desc *value = q->node->op_inputs > 2 ? query_in(q, 2) : NULL;
    if (value && (value->dtype != q->in[0].dtype || shape_count(&value->shape) > 1))
        return UNSUPPORTED(why, "the value is not one element of the input's type");
    if (!value && q->in[0].dtype != DTYPE_F32 && node_float(q->node, "value", 0) != 0)
        return UNSUPPORTED(why, "a value attribute for type %s", dtype_name(q->in[0].dtype));
    float attribute = (float)node_float(q->node, "value", 0);
    s->value_given = value && shape_count(&value->shape);
    if (q->in[0].dtype == DTYPE_F32)
        memcpy(s->value, &attribute, sizeof(attribute));
    return read_sides(q, s, why);
}

struct job {
    const struct kernel_state *state;
    const char *src;
    char *dst;
    char value[LINE_BYTES];
};

/* Where a line is; src counts from the first element taken and may point outside. */
struct cursor {
    int64_t index[RANK_MAX], src, dst;
    int outside; /* sides on which it is padding */
};

static bool is_padding(const struct side *side, int64_t at)
{
    return at < side->begin || at >= side->begin + side->size;
}

static void cursor_init(struct cursor *c, const struct kernel_state *s, int64_t line)
{
    for (int k = s->count - 2; k >= 0; k--) {
        const struct side *side = &s->sides[k];
        c->index[k] = line % side->extent;
        line /= side->extent;
        c->src += (c->index[k] - side->begin) * side->src;
        c->dst += c->index[k] * side->dst;
        c->outside += is_padding(side, c->index[k]);
    }
}

static void cursor_next(struct cursor *c, const struct kernel_state *s)
{
    for (int k = s->count - 2; k >= 0; k--) {
        const struct side *side = &s->sides[k];
        c->outside -= is_padding(side, c->index[k]);
        c->src += side->src;
        c->dst += side->dst;
        if (++c->index[k] == side->extent) {
            c->src -= side->extent * side->src;
            c->dst -= side->extent * side->dst;
            c->index[k] = 0;
        }
        c->outside += is_padding(side, c->index[k]);
        if (c->index[k])
            return;
    }
}

static void tile_work(void *context, int64_t tile, int thread)
{
    (void)thread;
    const struct job *job = context;
    const struct kernel_state *s = job->state;
    const struct side *line = &s->sides[s->count - 1];
    int64_t first = tile * s->lines_per_tile, last = first + s->lines_per_tile;
    int64_t before = line->begin * s->elem, size = line->size * s->elem;
    int64_t total = line->extent * s->elem;
    struct cursor c = {.src = s->start};
    cursor_init(&c, s, first);
    for (int64_t k = first; k < last && k < s->lines; k++) {
        char *dst = job->dst + c.dst;
        if (c.outside || !size) {
            copy_fill(dst, job->value, total);
        } else {
            copy_fill(dst, job->value, before);
            copy_run(dst + before, job->src + c.src, size);
            copy_fill(dst + before + size, job->value, total - before - size);
        }
        cursor_next(&c, s);
    }
}

static void launch(const struct kernel_state *state, const struct kernel_args *args)
{
    struct job job = {.state = state, .src = args->in[0], .dst = args->out[0]};
    copy_pattern(job.value, state->value_given ? args->in[2] : state->value, state->elem);
    pool_run(args->pool, state->tiles, tile_work, &job);
}

REGISTER_KERNEL(pad_constant) = {
    NATIVE(pad_constant), .ops = OPS("Pad"), .state_size = sizeof(struct kernel_state),
    .plan = plan,         .launch = launch,
};
