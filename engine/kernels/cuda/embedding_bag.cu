/* SPDX-License-Identifier: Apache-2.0
 *
 * EmbeddingBag: rows of a table of floats summed or averaged per bag. A thread has one or four
 * columns of a bag and walks its indices; neighbouring threads have neighbouring columns, so that a
 * row is read in whole sectors. */
#include "engine/kernels/cuda/lib/query.h"

struct bags {
    const void *table;
    const char *index;
    void *y;
    unsigned work, bag, rows; /* work: groups of columns; bag: indices each; rows of the table */
    struct divisor columns;   /* groups per row */
    float factor;
    bool wide; /* 64-bit indices */
};

/* Out of range reads row 0: the reference, which ran before, has refused such a table. */
static __device__ __forceinline__ unsigned row_at(const struct bags &b, unsigned k)
{
    int64_t at = b.wide ? ((const int64_t *)b.index)[k] : ((const int32_t *)b.index)[k];
    return at >= 0 && at < b.rows ? (unsigned)at : 0;
}

template <int width, class element>
__global__ void __launch_bounds__(BLOCK) embedding_bags(const __grid_constant__ struct bags b)
{
    for (unsigned k = blockIdx.x * BLOCK + threadIdx.x; k < b.work; k += gridDim.x * BLOCK) {
        unsigned bag = divide(k, b.columns), column = k - bag * b.columns.d;
        struct group<width> sum = {}, row = {
        };
        for (unsigned i = 0; i < b.bag; i++) {
            size_t at = (size_t)row_at(b, bag * b.bag + i) * b.columns.d + column;
            row = group_at((const element *)b.table + at * width, row);
            for (int e = 0; e < width; e++)
                sum.v[e] += row.v[e];
        }
        for (int e = 0; e < width; e++)
            sum.v[e] *= b.factor;
        group_store((element *)b.y + (size_t)k * width, sum);
    }
}

static enum status supports(const struct kernel_query *q, struct error *why)
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
    return STATUS_OK;
}

static void launch(const struct kernel_state *state, const struct kernel_query *q,
                   const struct kernel_args *args)
{
    (void)state;
    const struct shape *table = &q->in[0].shape, *index = &q->in[1].shape;
    int64_t width = table->dim[1], count = index->dim[0] * width;
    bool mean = strcmp(cuda_host->node_string(q->node, "mode", "sum"), "mean") == 0;
    int each = width % 4 == 0 ? 4 : 1;
    if (count == 0)
        return;
    struct bags b = {args->in[0],
                     (const char *)args->in[1],
                     args->out[0],
                     (unsigned)(count / each),
                     (unsigned)index->dim[1],
                     (unsigned)table->dim[0],
                     divisor_of(width / each),
                     mean ? 1.0f / (float)index->dim[1] : 1.0f,
                     q->in[1].dtype == DTYPE_I64};
    if (each == 4)
        LAUNCH_FLOATS(q->in[0].dtype, (embedding_bags<4, element>), grid_for(q, b.work),
                      cuda_size(BLOCK), 0, &b, args);
    else
        LAUNCH_FLOATS(q->in[0].dtype, (embedding_bags<1, element>), grid_for(q, b.work),
                      cuda_size(BLOCK), 0, &b, args);
}

static const char *const ops[] = {"EmbeddingBag", NULL};

CUDA_KERNEL(embedding_bag) = {CUDA_NAME(embedding_bag), .ops = ops, .supports = supports,
                              .launch = launch};
