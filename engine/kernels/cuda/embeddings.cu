/* SPDX-License-Identifier: Apache-2.0
 *
 * Embeddings: rows of several tables side by side, or summed in the order of the pairs. A thread
 * has 16 bytes of neighbouring results, or one of them. Side by side it finds the pair that they
 * belong to by bisection; neighbouring threads nearly always have the same one. An index outside
 * its table gives zeros; the reference reports it as an error. */
#include "engine/kernels/cuda/lib/query.h"

enum { PAIRS_MAX = 64 };

struct embeddings {
    const void *table[PAIRS_MAX];  /* NULL: rows are one-hot */
    const void *index[PAIRS_MAX];  /* NULL: the table is taken as it is */
    unsigned size[PAIRS_MAX];      /* rows of the table, or elements of a one-hot row */
    unsigned start[PAIRS_MAX + 1]; /* side by side: first column of each pair, and after the last */
    void *y;
    int type;
    unsigned count;         /* of groups of `width` results */
    struct divisor columns; /* groups per row */
    unsigned pairs;
    uint64_t wide; /* bit k: 64-bit indices */
};

/* Columns [column, column + width) of a pair's row, of `own` columns. */
template <int width>
static __device__ __forceinline__ struct group<width>
row_part(const struct embeddings &k, unsigned pair, unsigned row, unsigned column, unsigned own) {
    struct group<width> v = {
    };
    int64_t size = k.size[pair], at = row;
    if (k.index[pair]) {
        at = index_at(k.index[pair], k.wide >> pair & 1, row);
        at += at < 0 ? size : 0;
        if (at < 0 || at >= size)
            return v;
    }
    if (k.table[pair])
        return group_as<width>(k.type, k.table[pair], (size_t)at *own + column);
    for (int e = 0; e < width; e++)
        v.v[e] = at == column + e ? 1.0f : 0.0f;
    return v;
}

template <int width>
__global__ void __launch_bounds__(BLOCK)
    embeddings_joined(const __grid_constant__ struct embeddings k)
{
    KERNEL_BEGIN();
    unsigned step = gridDim.x * BLOCK;
    for (unsigned g = blockIdx.x * BLOCK + threadIdx.x; g < k.count; g += step) {
        unsigned row = divide(g, k.columns), column = (g - row * k.columns.d) * width;
        unsigned pair = part_of(k.start, k.pairs, column), first = k.start[pair];
        group_store_as<width>(
            k.type, k.y, (size_t)g * width,
            row_part<width>(k, pair, row, column - first, k.start[pair + 1] - first));
    }
}

template <int width>
__global__ void __launch_bounds__(BLOCK)
    embeddings_summed(const __grid_constant__ struct embeddings k)
{
    KERNEL_BEGIN();
    unsigned step = gridDim.x * BLOCK, own = k.columns.d * width;
    for (unsigned g = blockIdx.x * BLOCK + threadIdx.x; g < k.count; g += step) {
        unsigned row = divide(g, k.columns), column = (g - row * k.columns.d) * width;
        struct group<width> sum = row_part<width>(k, 0, row, column, own);
        for (unsigned pair = 1; pair < k.pairs; pair++) {
            struct group<width> v = row_part<width>(k, pair, row, column, own);
#pragma unroll
            for (int e = 0; e < width; e++)
                sum.v[e] += v.v[e];
        }
        group_store_as<width>(k.type, k.y, (size_t)g * width, sum);
    }
}

/* ---- hooks ---- */

struct kernel_state {
    struct embeddings k;            /* pointers are left open */
    unsigned char given[PAIRS_MAX]; /* the pair of the node that each is */
    uint64_t has_table, has_index;  /* bit k */
    int width;
    bool sums;
    struct cuda_grid grid;
};

static enum status check(const struct kernel_query *q, struct error *why)
{
    int count = q->node->op_inputs;
    if (!is_float(q->out[0].dtype))
        return REFUSE(why, "only f32, f16 and bf16");
    if (count > 2 * PAIRS_MAX)
        return REFUSE(why, "more than %d tables", PAIRS_MAX);
    for (int k = 0; k < count; k++) {
        if (!input_given(q, k))
            continue;
        if (k % 2 ? !is_index(q->in[k].dtype) : q->in[k].dtype != q->out[0].dtype)
            return REFUSE(why, "input %d is of another type", k);
        if (k % 2 == 0 && shape_count(&q->in[k].shape) > 0 && q->in[k].shape.dim[0] >= INT32_MAX)
            return REFUSE(why, "more than 2^31 rows");
    }
    for (int k = 0; k < q->in_count; k++)
        if (q->in[k].dtype != DTYPE_NONE && !cuda_host->desc_is_plain(&q->in[k]))
            return REFUSE(why, "only plain tensors");
    if (q->node->post_count)
        return REFUSE(why, "no fused epilogue");
    if (!cuda_host->desc_is_plain(&q->out[0]) || !fits_index(&q->out[0]))
        return REFUSE(why, "only a plain result of less than 2^31 elements");
    return STATUS_OK;
}

/* Notes a pair that has columns; how many they are. */
static int64_t add_pair(const struct kernel_query *q, int pair, int64_t depth,
                        struct kernel_state *s)
{
    bool table = input_given(q, 2 * pair), index = input_given(q, 2 * pair + 1);
    const struct shape *shape = &q->in[2 * pair].shape;
    int64_t own = table ? shape->dim[shape->rank - 1] : depth;
    if (own == 0)
        return 0;
    struct embeddings *k = &s->k;
    s->given[k->pairs] = (unsigned char)pair;
    s->has_table |= (uint64_t)table << k->pairs;
    s->has_index |= (uint64_t)index << k->pairs;
    k->wide |= (uint64_t)(index && q->in[2 * pair + 1].dtype == DTYPE_I64) << k->pairs;
    k->size[k->pairs] = (unsigned)(table ? shape->dim[0] : depth);
    k->start[k->pairs + 1] = k->start[k->pairs] + (unsigned)own;
    k->pairs++;
    return own;
}

static enum status plan(const struct kernel_query *q, int, struct kernel_state *s,
                        struct error *why)
{
    TRY(check(q, why));
    int64_t depths[PAIRS_MAX] = {0};
    const struct shape *y = &q->out[0].shape;
    cuda_host->node_ints(q->node, "depths", depths, PAIRS_MAX);
    s->sums = strcmp(cuda_host->node_string(q->node, "mode", "concat"), "sum") == 0;
    s->k.type = q->out[0].dtype;
    s->width = group_width(q->out[0].dtype, 0);
    for (int k = 0; k < q->node->op_inputs / 2; k++) {
        int own = group_width(q->out[0].dtype, add_pair(q, k, depths[k], s));
        s->width = own < s->width ? own : s->width;
    }
    s->k.count = (unsigned)(shape_count(y) / s->width);
    s->k.columns = divisor_of(y->dim[y->rank - 1] / s->width);
    s->grid = grid_for(q, s->k.count);
    return STATUS_OK;
}

static void launch(const struct kernel_state *state, const struct kernel_args *args)
{
    struct embeddings k = state->k;
    for (unsigned i = 0; i < k.pairs; i++) {
        k.table[i] = state->has_table >> i & 1 ? args->in[2 * state->given[i]] : NULL;
        k.index[i] = state->has_index >> i & 1 ? args->in[2 * state->given[i] + 1] : NULL;
    }
    k.y = args->out[0];
    if (state->sums)
        LAUNCH_WIDTH(state->width, embeddings_summed<width>, state->grid, cuda_size(BLOCK), 0, &k,
                     args);
    else
        LAUNCH_WIDTH(state->width, embeddings_joined<width>, state->grid, cuda_size(BLOCK), 0, &k,
                     args);
}

static const char *const ops[] = {"Embeddings", NULL};

CUDA_KERNEL(embeddings) = {CUDA_NAME(embeddings), .ops = ops, CUDA_PLAN, CUDA_HOOK(launch)};
