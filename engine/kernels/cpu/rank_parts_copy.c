/* SPDX-License-Identifier: Apache-2.0
 *
 * Tensors cut into the parts of ranks, and put together again: copies of whole runs, one tile of
 * them at a time. */
#include <string.h>

#include "engine/graph/kernel.h"
#include "engine/graph/op.h"
#include "engine/kernels/lib/copy_bytes.h"
#include "engine/ops/lib/rank_parts.h"

enum { TILE_BYTES = 128 << 10 };

/* The plan; a launch completes a copy of it. */
struct kernel_state {
    const struct kernel_query *q;
    bool joins;
    int64_t ranks, first, rows; /* that the cut form has: `rows` from rank `first` on */
    int64_t row_bytes;
    size_t size; /* of an element */
    const char *from;
    char *to;
    int64_t count, before, tiles; /* of one tensor; tiles: of each part */
};

static enum status plan(const struct kernel_query *q, int variant, struct kernel_state *s,
                        struct error *why)
{
    (void)variant;
    bool joins = strcmp(q->node->op->name, "JoinOfRanks") == 0;
    const struct desc *cut = joins ? &q->in[0] : &q->out[0];
    if (q->node->post_count)
        return UNSUPPORTED(why, "no fused epilogue");
    for (int k = 0; k < q->in_count; k++)
        if (!desc_is_plain(&q->in[k]))
            return UNSUPPORTED(why, "only plain tensors");
    for (int k = 0; k < q->out_count; k++)
        if (q->out[k].dtype == DTYPE_NONE || !desc_is_plain(&q->out[k]))
            return UNSUPPORTED(why, "only plain tensors, all of which are wanted");
    bool alone = node_attr(q->node, "rank");
    *s = (struct kernel_state){.q = q,
                               .joins = joins,
                               .ranks = node_int(q->node, "ranks", 1),
                               .first = node_int(q->node, "rank", 0),
                               .size = dtype_size(cut->dtype)};
    s->rows = alone ? 1 : s->ranks;
    s->row_bytes = (int64_t)desc_bytes(cut) / s->rows;
    return STATUS_OK;
}

static void copy_tile(void *context, int64_t index, int thread)
{
    (void)thread;
    const struct kernel_state *s = context;
    int64_t row = index / s->tiles, at = index % s->tiles * TILE_BYTES;
    int64_t part = rank_part(s->count, s->ranks) * (int64_t)s->size;
    int64_t there = rank_part_there(s->count, s->ranks, s->first + row) * (int64_t)s->size;
    int64_t end = at + TILE_BYTES < part ? at + TILE_BYTES : part;
    int64_t full = there < at ? at : there < end ? there : end;
    int64_t in_cut = row * s->row_bytes + s->before * (int64_t)s->size;
    int64_t in_whole = (s->first + row) * part;
    int64_t from = s->joins ? in_cut : in_whole, to = s->joins ? in_whole : in_cut;
    copy_run(s->to + to + at, s->from + from + at, full - at);
    if (!s->joins)
        memset(s->to + to + full, 0, (size_t)(end - full));
}

static void launch(const struct kernel_state *s, const struct kernel_args *args)
{
    struct kernel_state job = *s;
    int tensors = s->joins ? s->q->out_count : s->q->in_count;
    job.before = 0;
    for (int k = 0; k < tensors; k++) {
        const struct desc *desc = s->joins ? &s->q->out[k] : &s->q->in[k];
        job.from = args->in[s->joins ? 0 : k];
        job.to = args->out[s->joins ? k : 0];
        job.count = shape_count(&desc->shape);
        int64_t part = rank_part(job.count, s->ranks);
        job.tiles = (part * (int64_t)s->size + TILE_BYTES - 1) / TILE_BYTES;
        if (job.tiles)
            pool_run(args->pool, job.tiles * s->rows, copy_tile, &job);
        job.before += part;
    }
}

REGISTER_KERNEL(rank_parts_copy) = {
    NATIVE(rank_parts_copy),
    .ops = OPS("CutForRanks", "JoinOfRanks"),
    .state_size = sizeof(struct kernel_state),
    .plan = plan,
    .launch = launch,
};
