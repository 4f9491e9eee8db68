/* SPDX-License-Identifier: Apache-2.0
 *
 * Pad that repeats the input (edge, reflect, wrap): every line of the result is written once, front
 * to back. Where each element of an axis comes from is a table, made once. Axes that are not padded
 * and lie innermost are one run of bytes, so that a pixel of a channels-last image is moved as a
 * whole; the part of a line that is the input itself is moved at once.
 */
#include "base/memory.h"
#include "base/numbers/integers.h"
#include "engine/kernels/lib/copy_bytes.h"
#include "engine/ops/lib/pad.h"

enum { TILE_BYTES = 64 << 10 };

/* One axis of the result; strides in bytes. */
struct side {
    struct pad_span span;
    int64_t src, dst;
    int64_t table; /* where its part of the tables begins */
};

struct kernel_state {
    enum pad_mode mode;
    int count;
    struct side sides[RANK_MAX]; /* outermost first; the last is the line */
    int64_t run;                 /* bytes that are moved together */
    int64_t lines, lines_per_tile, tiles;
    int64_t entries;
    int64_t *from; /* per axis and element of it: the distance in the input, in bytes */
};

static bool is_whole(const struct side *side)
{
    return side->span.total == side->span.size && side->span.first == 0;
}

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

/* Joins neighbours neither of which is padded. */
static int merge(struct side *sides, int count)
{
    int kept = 0;
    for (int k = 0; k < count; k++) {
        struct side *outer = &sides[kept - (kept > 0)], *inner = &sides[k];
        int64_t n = inner->span.size;
        if (kept == 0 || !is_whole(inner) || !is_whole(outer) || outer->dst != inner->dst * n ||
            outer->src != inner->src * n) {
            sides[kept++] = *inner;
            continue;
        }
        outer->span.size = outer->span.total = outer->span.size * n;
        outer->src = inner->src;
        outer->dst = inner->dst;
    }
    return kept;
}

static void measure(struct kernel_state *s)
{
    const struct side *last = s->count ? &s->sides[s->count - 1] : NULL;
    if (last && is_whole(last) && last->dst == s->run && last->src == s->run) {
        s->run *= last->span.size;
        s->count--;
    }
    if (s->count == 0)
        s->sides[s->count++] = (struct side){.span = {.size = 1, .total = 1}};
    int64_t bytes = s->run * s->sides[s->count - 1].span.total;
    s->lines = 1;
    for (int k = 0; k < s->count; k++) {
        s->sides[k].table = s->entries;
        s->entries += s->sides[k].span.total;
        s->lines *= k < s->count - 1 ? s->sides[k].span.total : 1;
    }
    s->lines_per_tile = bytes ? TILE_BYTES / bytes + 1 : 1;
    s->tiles = bytes ? divide_up(s->lines, s->lines_per_tile) : 0;
}

static enum status plan(const struct kernel_query *q, int variant, struct kernel_state *s,
                        struct error *why)
{
    (void)variant;
    struct op_args args = args_of_query(q);
    struct pad_span spans[RANK_MAX] = {{0}};
    const struct desc *in = &q->in[0], *out = &q->out[0];
    if (q->node->post_count)
        return UNSUPPORTED(why, "no fused epilogue");
    TRY(pad_mode_of(q->node, &s->mode, why));
    if (s->mode == PAD_CONSTANT)
        return UNSUPPORTED(why, "mode constant");
    TRY(pad_spans_of(&args, spans, why));
    s->run = (int64_t)dtype_size(in->dtype);
    for (int k = 0; k < in->shape.rank; k++)
        if (in->shape.dim[k] != 1 || out->shape.dim[k] != 1)
            s->sides[s->count++] = (struct side){
                .span = spans[k], .src = in->stride[k] * s->run, .dst = out->stride[k] * s->run};
    sort_by_destination(s->sides, s->count);
    s->count = merge(s->sides, s->count);
    measure(s);
    return STATUS_OK;
}

static enum status prepare(const struct kernel_query *q, struct kernel_state *s,
                           size_t *packed_bytes, struct error *err)
{
    (void)q;
    *packed_bytes = (size_t)s->entries * sizeof(*s->from);
    s->from = memory_alloc(*packed_bytes + sizeof(*s->from));
    if (!s->from)
        return FAIL_NO_MEMORY(err);
    for (int k = 0; k < s->count; k++) {
        const struct side *side = &s->sides[k];
        const struct pad_span *span = &side->span;
        for (int64_t i = 0; i < span->total; i++)
            s->from[side->table + i] =
                (span->first + pad_source(s->mode, i - span->begin, span->size)) * side->src;
    }
    return STATUS_OK;
}

struct job {
    const struct kernel_state *state;
    const char *src;
    char *dst;
};

/* Elements [first, last) of a line, one by one. */
static void copy_each(const struct kernel_state *s, const char *src, char *dst, int64_t first,
                      int64_t last)
{
    const struct side *line = &s->sides[s->count - 1];
    const int64_t *from = s->from + line->table;
    for (int64_t k = first; k < last; k++)
        copy_run(dst + k * line->dst, src + from[k], s->run);
}

static void copy_line(const struct kernel_state *s, const char *src, char *dst)
{
    const struct side *line = &s->sides[s->count - 1];
    const struct pad_span *span = &line->span;
    if (line->src != s->run || line->dst != s->run) {
        copy_each(s, src, dst, 0, span->total);
        return;
    }
    copy_each(s, src, dst, 0, span->begin);
    copy_run(dst + span->begin * s->run, src + span->first * s->run, span->size * s->run);
    copy_each(s, src, dst, span->begin + span->size, span->total);
}

static void tile_work(void *context, int64_t tile, int thread)
{
    (void)thread;
    const struct job *job = context;
    const struct kernel_state *s = job->state;
    int64_t first = tile * s->lines_per_tile, last = smaller(first + s->lines_per_tile, s->lines);
    for (int64_t k = first; k < last; k++) {
        int64_t rest = k, src = 0, dst = 0;
        for (int d = s->count - 2; d >= 0; d--) {
            const struct side *side = &s->sides[d];
            int64_t at = rest % side->span.total;
            src += s->from[side->table + at];
            dst += at * side->dst;
            rest /= side->span.total;
        }
        copy_line(s, job->src + src, job->dst + dst);
    }
}

static void launch(const struct kernel_state *state, const struct kernel_args *args)
{
    struct job job = {.state = state, .src = args->in[0], .dst = args->out[0]};
    pool_run(args->pool, state->tiles, tile_work, &job);
}

static void release(struct kernel_state *state)
{
    memory_free(state->from);
}

REGISTER_KERNEL(pad_repeat) = {
    NATIVE(pad_repeat), .ops = OPS("Pad"),  .state_size = sizeof(struct kernel_state),
    .plan = plan,       .prepare = prepare, .launch = launch,
    .release = release,
};
