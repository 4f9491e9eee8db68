/* SPDX-License-Identifier: Apache-2.0
 *
 * EmbeddingBag: rows of a table of floats summed or averaged per bag. Neighbouring threads have
 * neighbouring columns of a bag, 16 bytes each, so that a row is read in whole sectors; four rows
 * are asked for before the first is needed. Where there are few bags, rows of a block's threads
 * share the indices of each, and long ones are split over blocks: what the parts gave is added up
 * by a second launch. */
#include "engine/kernels/cuda/lib/lines.h"

enum { AHEAD = 4 };

struct bags {
    const void *table;
    const char *index;
    void *y;
    int type;
    float *parts;             /* [result][split]; NULL: results go to y */
    unsigned work, bag, rows; /* work: groups of columns; bag: indices each; rows of the table */
    struct divisor columns;   /* groups per row */
    unsigned lanes;           /* groups beside each other in a block */
    struct divisor splits;
    unsigned chunk, tasks; /* indices per split; tiles of `lanes`, times splits */
    float factor;
    bool wide; /* 64-bit indices */
};

/* Out of range reads row 0: the reference, which ran before, has refused such a table. */
static __device__ __forceinline__ unsigned row_at(const struct bags &b, unsigned k)
{
    int64_t at = b.wide ? ((const int64_t *)b.index)[k] : ((const int32_t *)b.index)[k];
    return at >= 0 && at < b.rows ? (unsigned)at : 0;
}

/* Indices first, first + step ... of the bag at `from`. */
template <int width, class element>
static __device__ __forceinline__ struct group<width>
sum_of_rows(const struct bags &b, unsigned from, unsigned column, unsigned first, unsigned end,
            unsigned step) {
    const element *table = (const element *)b.table;
    group<width> sum = {};
    for (unsigned i = first; i < end; i += AHEAD * step) {
        size_t row[AHEAD];
        group<width> v[AHEAD] = {};
#pragma unroll
        for (unsigned a = 0; a < AHEAD; a++)
            row[a] = i + a * step < end ? row_at(b, from + i + a * step) : 0;
#pragma unroll
        for (unsigned a = 0; a < AHEAD; a++)
            if (i + a * step < end)
                v[a] = group_at(table + (row[a] * b.columns.d + column) * width, v[a]);
#pragma unroll
        for (int e = 0; e < width; e++)
            sum.v[e] += (v[0].v[e] + v[1].v[e]) + (v[2].v[e] + v[3].v[e]);
    }
    return sum;
}

/* Over the block's rows of threads; the first row gets the sum. */
template <int width>
static __device__ __forceinline__ void add_rows(unsigned lanes, struct group<width> &sum,
                                                float *part)
{
    unsigned row = threadIdx.x / lanes;
    if (lanes == BLOCK)
        return;
#pragma unroll
    for (int e = 0; e < width; e++)
        part[e * BLOCK + threadIdx.x] = sum.v[e];
    for (unsigned half = BLOCK / lanes / 2; half > 0; half /= 2) {
        __syncthreads();
#pragma unroll
        for (int e = 0; row < half && e < width; e++) {
            sum.v[e] += part[e * BLOCK + threadIdx.x + half * lanes];
            part[e * BLOCK + threadIdx.x] = sum.v[e];
        }
    }
    __syncthreads();
}

template <int width>
__global__ void __launch_bounds__(BLOCK) embedding_bags(const __grid_constant__ struct bags b)
{
    KERNEL_BEGIN();
    __shared__ float part[BLOCK * width];
    unsigned lane = threadIdx.x % b.lanes, row = threadIdx.x / b.lanes;
    for (unsigned task = blockIdx.x; task < b.tasks; task += gridDim.x) {
        unsigned tile = divide(task, b.splits), split = task - tile * b.splits.d;
        unsigned k = tile * b.lanes + lane, bag = divide(k, b.columns);
        unsigned first = split * b.chunk, end = k < b.work ? min(first + b.chunk, b.bag) : 0;
        struct group<width> sum;
        WITH_ELEMENT(b.type, width,
                     (sum = sum_of_rows<width, element>(b, bag * b.bag, k - bag * b.columns.d,
                                                        first + row, end, BLOCK / b.lanes)));
        add_rows<width>(b.lanes, sum, part);
        if (row > 0 || k >= b.work)
            continue;
        for (int e = 0; b.parts && e < width; e++)
            b.parts[(k * width + e) * b.splits.d + split] = sum.v[e];
        for (int e = 0; e < width; e++)
            sum.v[e] *= b.factor;
        if (!b.parts)
            group_store_as<width>(b.type, b.y, (size_t)k * width, sum);
    }
}

/* A block per result. */
__global__ void __launch_bounds__(BLOCK) embedding_join(const __grid_constant__ struct bags b)
{
    KERNEL_BEGIN();
    __shared__ float part[WARP];
    for (unsigned k = blockIdx.x; k < b.work; k += gridDim.x) {
        float sum = 0;
        for (unsigned s = threadIdx.x; s < b.splits.d; s += BLOCK)
            sum += b.parts[k * b.splits.d + s];
        sum = block_sum(sum, part);
        if (threadIdx.x == 0)
            group_store_as<1>(b.type, b.y, k, {{sum * b.factor}});
    }
}

/* ---- hooks ---- */

struct kernel_state {
    struct bags b; /* pointers are left open */
    int width;
    struct cuda_grid grid, join;
};

static enum status check(const struct kernel_query *q, struct error *why)
{
    TRY(floats_supported(q, 0, 1, why));
    if (!is_index(q->in[1].dtype))
        return REFUSE(why, "indices are neither i32 nor i64");
    if (q->node->post_count)
        return REFUSE(why, "no fused epilogue");
    if (!cuda_host->desc_is_plain(&q->in[0]) || !cuda_host->desc_is_plain(&q->in[1]) ||
        !cuda_host->desc_is_plain(&q->out[0]))
        return REFUSE(why, "only plain tensors");
    if (!fits_index(&q->in[1]) || !fits_index(&q->out[0]))
        return REFUSE(why, "more than 2^31 elements");
    if (q->in[0].shape.dim[0] >= INT32_MAX)
        return REFUSE(why, "more than 2^31 rows");
    return STATUS_OK;
}

/* Who does what. A thread keeps AHEAD indices at least. */
static void share(const struct kernel_query *q, struct bags *b)
{
    unsigned sharers = 1;
    int64_t units = q->device->properties.units, threads = 12 * units * BLOCK;
    while (sharers < BLOCK / 8 && (int64_t)b->work * sharers < threads &&
           b->bag >= 2 * sharers * AHEAD)
        sharers *= 2;
    b->lanes = BLOCK / sharers;
    int64_t tiles = div_up(b->work, b->lanes), least = 4 * (int64_t)AHEAD * sharers;
    unsigned splits = splits_for(q, tiles, b->bag / least);
    b->chunk = (unsigned)(b->bag > 0 ? div_up(b->bag, splits) : 1);
    b->splits = divisor_of(b->bag > 0 ? div_up(b->bag, b->chunk) : 1);
    b->tasks = (unsigned)tiles * b->splits.d;
}

static enum status plan(const struct kernel_query *q, int, struct kernel_state *s,
                        struct error *why)
{
    TRY(check(q, why));
    const struct shape *table = &q->in[0].shape, *index = &q->in[1].shape;
    bool mean = strcmp(cuda_host->node_string(q->node, "mode", "sum"), "mean") == 0;
    struct bags *b = &s->b;
    b->type = q->in[0].dtype;
    s->width = group_width(q->in[0].dtype, table->dim[1]);
    b->bag = (unsigned)index->dim[1];
    b->rows = (unsigned)table->dim[0];
    b->work = (unsigned)(index->dim[0] * table->dim[1] / s->width);
    b->columns = divisor_of(table->dim[1] / s->width);
    b->factor = mean ? 1.0f / (float)index->dim[1] : 1.0f;
    b->wide = q->in[1].dtype == DTYPE_I64;
    share(q, b);
    s->grid = grid_for(q, (int64_t)b->tasks * BLOCK);
    s->join = grid_for(q, b->splits.d > 1 ? (int64_t)b->work * s->width * BLOCK : 0);
    return STATUS_OK;
}

static size_t workspace(const struct kernel_state *state)
{
    const struct bags *b = &state->b;
    int64_t parts = b->splits.d > 1 ? (int64_t)b->work * state->width * b->splits.d : 0;
    return padded_bytes(parts, sizeof(float));
}

static void launch(const struct kernel_state *state, const struct kernel_args *args)
{
    struct bags b = state->b;
    b.table = args->in[0];
    b.index = (const char *)args->in[1];
    b.y = args->out[0];
    b.parts = b.splits.d > 1 ? (float *)args->workspace : NULL;
    LAUNCH_WIDTH(state->width, embedding_bags<width>, state->grid, cuda_size(BLOCK), 0, &b, args);
    b.work *= (unsigned)state->width;
    LAUNCH(embedding_join, state->join, cuda_size(BLOCK), 0, &b, args);
}

static const char *const ops[] = {"EmbeddingBag", NULL};

CUDA_KERNEL(embedding_bag) = {CUDA_NAME(embedding_bag), .ops = ops, CUDA_PLAN, CUDA_HOOK(workspace),
                              CUDA_HOOK(launch)};
