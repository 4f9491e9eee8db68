/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/kernels/lib/copy_plan.h"

#include <stdlib.h>

#include "base/numbers/integers.h"
#include "engine/kernels/lib/copy_bytes.h"

enum {
    TILE_BYTES = 64 << 10,  /* what a thread takes at a time, at least */
    CHUNK_BYTES = 64 << 10, /* runs longer than four of these are cut */
    BLOCK = 64,             /* side of a transposed block, elements */
    BLOCK_LEAST = 16,       /* a rest smaller than this goes to the block before it */
    BLOCK_ELEMENTS = 4096,  /* of a block with one short side */
};

/* ---- from a move to loops ---- */

static void sort_by_destination(struct copy_loop *loops, int count)
{
    for (int k = 1; k < count; k++) {
        struct copy_loop loop = loops[k];
        int slot = k;
        for (; slot > 0 && loops[slot - 1].dst < loop.dst; slot--)
            loops[slot] = loops[slot - 1];
        loops[slot] = loop;
    }
}

static int merge(struct copy_loop *loops, int count)
{
    int kept = 0;
    for (int k = 0; k < count; k++) {
        struct copy_loop *outer = &loops[kept - (kept > 0)], *inner = &loops[k];
        bool fits = kept > 0 && outer->dst == inner->dst * inner->extent &&
                    outer->src == inner->src * inner->extent;
        if (!fits) {
            loops[kept++] = *inner;
            continue;
        }
        *outer = (struct copy_loop){outer->extent * inner->extent, inner->src, inner->dst};
    }
    return kept;
}

static struct copy_loop take(struct copy_plan *plan, int index)
{
    struct copy_loop loop = plan->loops[index];
    plan->loop_count--;
    for (int k = index; k < plan->loop_count; k++)
        plan->loops[k] = plan->loops[k + 1];
    return loop;
}

static int source_run(const struct copy_plan *plan)
{
    for (int k = 0; k < plan->loop_count; k++)
        if (plan->loops[k].src == plan->elem)
            return k;
    return -1;
}

/* Cuts inner part `side` into chunks, counted by a new innermost loop. */
static void cut(struct copy_plan *plan, int side, int64_t chunk, int64_t least)
{
    struct copy_inner *inner = &plan->inner[side];
    int64_t count = (inner->extent + chunk - least) / chunk;
    inner->chunk = inner->extent;
    if (count <= 1)
        return;
    inner->chunk = chunk;
    inner->chunk_loop = plan->loop_count;
    plan->loops[plan->loop_count++] =
        (struct copy_loop){count, inner->src * chunk, inner->dst * chunk};
}

static struct copy_inner whole(struct copy_loop loop)
{
    return (struct copy_inner){loop.extent, loop.src, loop.dst, loop.extent, -1};
}

static void plan_run(struct copy_plan *plan, int64_t bytes)
{
    plan->how = COPY_RUN;
    plan->inner[0] = (struct copy_inner){bytes, 1, 1, bytes, -1};
    if (bytes > 4 * CHUNK_BYTES)
        cut(plan, 0, CHUNK_BYTES, 1);
}

static void plan_transpose(struct copy_plan *plan, int along_source)
{
    plan->how = COPY_TRANSPOSE;
    plan->inner[0] = whole(take(plan, plan->loop_count - 1));
    plan->inner[1] = whole(take(plan, along_source));
    int64_t a = plan->inner[0].extent, b = plan->inner[1].extent;
    int64_t side_a = b < BLOCK ? BLOCK_ELEMENTS / b : BLOCK;
    int64_t side_b = a < BLOCK ? BLOCK_ELEMENTS / a : BLOCK;
    cut(plan, 1, side_b / 16 * 16, BLOCK_LEAST);
    cut(plan, 0, side_a / 16 * 16, BLOCK_LEAST);
}

static void plan_fill(struct copy_plan *plan)
{
    plan->how = COPY_FILL;
    plan->inner[0] = whole(take(plan, plan->loop_count - 1));
    cut(plan, 0, CHUNK_BYTES / plan->elem, 1);
}

/* Element by element: the innermost loop should be a long one. */
static void plan_elements(struct copy_plan *plan)
{
    struct copy_loop *last = &plan->loops[plan->loop_count - 1];
    if (plan->loop_count > 1 && last->extent < 8 && last[-1].extent > last->extent) {
        struct copy_loop swap = *last;
        *last = last[-1];
        last[-1] = swap;
    }
    plan_run(plan, plan->elem);
}

static void choose(struct copy_plan *plan)
{
    int last = plan->loop_count - 1;
    if (last < 0) {
        plan_run(plan, plan->elem);
        return;
    }
    const struct copy_loop *inner = &plan->loops[last];
    if (inner->dst != plan->elem)
        plan_elements(plan);
    else if (inner->src == plan->elem)
        plan_run(plan, take(plan, last).extent * plan->elem);
    else if (source_run(plan) >= 0)
        plan_transpose(plan, source_run(plan));
    else if (inner->src == 0)
        plan_fill(plan);
    else
        plan_elements(plan);
}

void copy_plan_for(const struct flat_move *move, int elem, bool stream, struct copy_plan *plan)
{
    *plan = (struct copy_plan){.elem = elem,
                               .stream = stream,
                               .src = move->in_start * elem,
                               .dst = move->out_start * elem,
                               .units = 1,
                               .unit_bytes = elem};
    for (int k = 0; k < move->loop_count; k++) {
        const struct flat_loop *loop = &move->loops[k];
        if (loop->extent == 0)
            plan->units = 0;
        if (loop->extent > 1)
            plan->loops[plan->loop_count++] =
                (struct copy_loop){loop->extent, loop->in_stride * elem, loop->out_stride * elem};
    }
    if (!plan->units)
        return;
    sort_by_destination(plan->loops, plan->loop_count);
    plan->loop_count = merge(plan->loops, plan->loop_count);
    choose(plan);
    for (int k = 0; k < plan->loop_count; k++)
        plan->units *= plan->loops[k].extent;
    plan->unit_bytes = plan->inner[0].chunk * (plan->how == COPY_RUN ? 1 : elem);
    if (plan->how == COPY_TRANSPOSE)
        plan->unit_bytes *= plan->inner[1].chunk;
}

/* ---- from a query to plans ---- */

/* Operators without a rule of their own that keep every element where it is: Dropout. */
static enum status identity_move(const struct op_args *args, int part, struct move *move,
                                 struct error *why)
{
    if (!args->node->op->alias || args->out_count != 1)
        return UNSUPPORTED(why, "more than a copy of input 0");
    bool same = shape_equal(args_in(args, 0), args_out(args, 0));
    return same ? move_same(args, part, move, why) : move_flat(args, part, move, why);
}

static enum status move_of(const struct op_args *args, int part, struct move *move,
                           struct error *why)
{
    return args->node->op->move ? args->node->op->move(args, part, move, why)
                                : identity_move(args, part, move, why);
}

static bool streams(const struct kernel_query *q)
{
    size_t bytes = 0;
    for (int k = 0; k < q->out_count; k++)
        bytes += desc_bytes(&q->out[k]);
    return bytes > STREAM_BYTES;
}

static enum status plan_part(const struct kernel_query *q, int part, struct copy_plan *plan,
                             struct error *why)
{
    struct op_args args = args_of_query(q);
    struct move move;
    struct flat_move flat;
    TRY(move_of(&args, part, &move, why));
    const struct desc *in = &q->in[move.input], *out = &q->out[move.output];
    *plan = (struct copy_plan){0};
    if (out->dtype == DTYPE_NONE)
        return STATUS_OK;
    if (in->dtype == DTYPE_NONE || in->dtype != out->dtype)
        return UNSUPPORTED(why, "input %d and output %d differ in type", move.input, move.output);
    TRY(move_flatten(&move, in, out, &flat, why));
    copy_plan_for(&flat, (int)dtype_size(in->dtype), streams(q), plan);
    plan->input = move.input;
    plan->output = move.output;
    return STATUS_OK;
}

enum status copy_plan_hook(const struct kernel_query *q, int variant, struct kernel_state *state,
                           struct error *why)
{
    (void)variant;
    (void)state;
    struct op_args args = args_of_query(q);
    struct copy_plan plan;
    if (q->node->post_count)
        return UNSUPPORTED(why, "no fused epilogue");
    int parts = move_parts(&args);
    for (int part = 0; part < parts; part++)
        TRY(plan_part(q, part, &plan, why));
    return STATUS_OK;
}

/* Whether unit u of both writes into the same row of the same output. */
static bool same_rows(const struct copy_plan *a, const struct copy_plan *b)
{
    if (a->how != COPY_RUN || b->how != COPY_RUN || a->output != b->output ||
        a->loop_count != b->loop_count || a->inner[0].chunk_loop >= 0 ||
        b->inner[0].chunk_loop >= 0)
        return false;
    for (int k = 0; k < a->loop_count; k++)
        if (a->loops[k].extent != b->loops[k].extent || a->loops[k].dst != b->loops[k].dst)
            return false;
    return true;
}

/* Tiles of TILE_BYTES, fewer bytes when there would not be four for each thread. */
static void cut_tiles(struct kernel_state *s, int threads)
{
    int64_t unit_bytes = 0, total = 0;
    s->together = s->count > 1;
    for (int k = 1; k < s->count; k++)
        s->together = s->together && same_rows(&s->plans[0], &s->plans[k]);
    for (int k = 0; k < s->count; k++) {
        const struct copy_plan *plan = &s->plans[k];
        total += plan->units * plan->unit_bytes;
        s->units = s->together ? plan->units : s->units + plan->units;
        unit_bytes = s->together || plan->unit_bytes > unit_bytes ? plan->unit_bytes : unit_bytes;
    }
    if (s->together && s->units)
        unit_bytes = total / s->units;
    int64_t tile_bytes = total / (threads * 4 + 1);
    tile_bytes = tile_bytes > 4 * TILE_BYTES   ? 4 * TILE_BYTES
                 : tile_bytes < TILE_BYTES / 4 ? TILE_BYTES / 4
                                               : tile_bytes;
    s->units_per_tile = unit_bytes ? divide_up(tile_bytes, unit_bytes) : 1;
    s->tiles = divide_up(s->units, s->units_per_tile);
}

enum status copy_prepare(const struct kernel_query *q, struct kernel_state *state,
                         size_t *packed_bytes, struct error *err)
{
    struct op_args args = args_of_query(q);
    int parts = move_parts(&args);
    *packed_bytes = (size_t)parts * sizeof(*state->plans);
    state->plans = calloc(1, *packed_bytes + 1);
    if (!state->plans)
        return FAIL_NO_MEMORY(err);
    for (int part = 0; part < parts; part++) {
        TRY(plan_part(q, part, &state->plans[state->count], err));
        state->count += state->plans[state->count].units > 0;
    }
    cut_tiles(state, q->threads);
    return STATUS_OK;
}

void copy_release(struct kernel_state *state)
{
    free(state->plans);
}
