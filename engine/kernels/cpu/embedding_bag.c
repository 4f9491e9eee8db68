/* SPDX-License-Identifier: Apache-2.0
 *
 * EmbeddingBag: rows of a table summed or averaged per bag. Rows lie at random in memory, so what
 * counts is how many cache misses are under way: rows are prefetched 32 indices ahead, also past
 * the end of a bag, and the usual row widths get loops of constant length with the sum in
 * registers. Rows of bf16 are summed in f32, too, and rounded at the end of a bag.
 */
#include <string.h>

#include "base/numbers/integers.h"
#include "engine/graph/kernel.h"
#include "engine/kernels/lib/row_pitch.h"
#include "engine/kernels/lib/simd_floats.h"
#include "engine/kernels/lib/tiles.h"

enum {
    AHEAD = 32,             /* indices; twice as far as memory latency at full bandwidth needs */
    LINE = 64,              /* bytes of a cache line */
    TILE_BYTES = 128 << 10, /* of rows that a thread sums at a time, and of the sums */
};

/* The plan; a launch completes a copy of it with its addresses. */
struct kernel_state {
    const void *table;
    const char *indices;
    int64_t index_bytes;
    bool bf16; /* table and result */
    void *y;
    int64_t bags, bag, width, last_row, bags_per_tile;
    int64_t pitch; /* elements from row to row of the result */
    float factor;
};

static enum status plan(const struct kernel_query *q, int variant, struct kernel_state *s,
                        struct error *why)
{
    (void)variant;
    s->bf16 = q->in[0].dtype == DTYPE_BF16;
    if (!s->bf16 && q->in[0].dtype != DTYPE_F32)
        return UNSUPPORTED(why, "only a table of f32 or bf16");
    if (q->in[1].dtype != DTYPE_I32 && q->in[1].dtype != DTYPE_I64)
        return UNSUPPORTED(why, "only i32 or i64 indices");
    if (q->node->post_count)
        return UNSUPPORTED(why, "no fused epilogue");
    if (!desc_is_plain(&q->in[0]) || !desc_is_plain(&q->in[1]))
        return UNSUPPORTED(why, "only plain tables and indices");
    TRY(row_pitch(&q->out[0], 1, &s->pitch, why));
    const struct shape *table = &q->in[0].shape, *indices = &q->in[1].shape;
    if (table->dim[0] > UINT32_MAX)
        return UNSUPPORTED(why, "more than 2^32 rows");
    bool mean = strcmp(node_string(q->node, "mode", "sum"), "mean") == 0;
    s->index_bytes = (int64_t)dtype_size(q->in[1].dtype);
    s->bags = indices->dim[0];
    s->bag = indices->dim[1];
    s->width = table->dim[1];
    s->last_row = larger(table->dim[0], 1) - 1;
    s->factor = mean ? 1.0f / (float)s->bag : 1.0f;
    int64_t row_bytes = larger(s->width * (int64_t)dtype_size(q->in[0].dtype), LINE);
    s->bags_per_tile = rows_of_tile(s->bags, (s->bag + 1) * row_bytes, TILE_BYTES, q->threads);
    return STATUS_OK;
}

/* The lower half of an index of 64 bits says all of a row that there is. Out of range reads the
 * last row: the reference, which ran before, has refused such an index. */
SIMD_INLINE const char *row_at(const struct kernel_state *job, int64_t i, int64_t width, bool bf16)
{
    uint32_t row;
    memcpy(&row, job->indices + i * job->index_bytes, sizeof(row));
    return float_at(job->table, smaller(row, job->last_row) * width, bf16);
}

SIMD_INLINE void prefetch_row(const char *row, int64_t width, bool bf16)
{
    for (int64_t k = 0; k < width * (bf16 ? 2 : 4); k += LINE)
        simd_prefetch(row + k);
}

/* Constant width: at most 8 vectors of sums, which the compiler keeps in registers. What follows
 * index `end` is the work of others, who would fetch it a second time. */
SIMD_INLINE void sum_bag(const struct kernel_state *job, int64_t bag, int64_t end, int64_t width,
                         bool bf16)
{
    enum { VECTORS_MAX = 128 / VL > 8 ? 8 : 128 / VL };
    int64_t first = bag * job->bag, last = first + job->bag;
    int64_t to = bag * job->pitch;
    vf factor = vf_set1(job->factor);
    for (int64_t part = 0; part < width; part += (int64_t)VECTORS_MAX * VL) {
        vf sum[VECTORS_MAX];
        for (int v = 0; v < VECTORS_MAX; v++)
            sum[v] = vf_zero();
        for (int64_t i = first; i < last; i++) {
            const void *row = float_at(row_at(job, i, width, bf16), part, bf16);
            if (part == 0 && i + AHEAD < end)
                prefetch_row(row_at(job, i + AHEAD, width, bf16), width, bf16);
            for (int v = 0; v < VECTORS_MAX && part + v * VL < width; v++) {
                vm m = vm_first(width - part - v * VL);
                sum[v] = vf_add(sum[v], vf_read_m(row, v * VL, m, bf16));
            }
        }
        for (int v = 0; v < VECTORS_MAX && part + v * VL < width; v++) {
            vm m = vm_first(width - part - v * VL);
            vf_write_m(job->y, to + part + v * VL, m, vf_mul(sum[v], factor), bf16);
        }
    }
}

/* The copy of the job is at hand: a store to y could change *plan for all that the compiler knows.
 */
SIMD_INLINE void sum_bags(const struct kernel_state *plan, int64_t first, int64_t last,
                          int64_t width, bool bf16)
{
    const struct kernel_state job = *plan;
    int64_t end = last * job.bag;
    for (int64_t i = first * job.bag; i < end && i < first * job.bag + AHEAD; i++)
        prefetch_row(row_at(&job, i, width, bf16), width, bf16);
    for (int64_t bag = first; bag < last; bag++)
        sum_bag(&job, bag, end, width, bf16);
}

SIMD_INLINE void sum_any(const struct kernel_state *job, int64_t first, int64_t last, bool bf16)
{
    switch (job->width) {
    case 8:
        sum_bags(job, first, last, 8, bf16);
        break;
    case 16:
        sum_bags(job, first, last, 16, bf16);
        break;
    case 32:
        sum_bags(job, first, last, 32, bf16);
        break;
    case 64:
        sum_bags(job, first, last, 64, bf16);
        break;
    case 128:
        sum_bags(job, first, last, 128, bf16);
        break;
    default:
        sum_bags(job, first, last, job->width, bf16);
    }
}

static void run_tile(void *context, int64_t tile, int thread)
{
    (void)thread;
    const struct kernel_state *job = context;
    int64_t first = tile * job->bags_per_tile;
    int64_t last = smaller(first + job->bags_per_tile, job->bags);
    if (job->bf16)
        sum_any(job, first, last, true);
    else
        sum_any(job, first, last, false);
}

static void launch(const struct kernel_state *plan, const struct kernel_args *args)
{
    struct kernel_state job = *plan;
    job.table = args->in[0];
    job.indices = args->in[1];
    job.y = args->out[0];
    pool_run(args->pool, divide_up(job.bags, job.bags_per_tile), run_tile, &job);
}

REGISTER_KERNEL(embedding_bag) = {
    NATIVE(embedding_bag), .ops = OPS("EmbeddingBag"), .state_size = sizeof(struct kernel_state),
    .plan = plan,          .launch = launch,
};
