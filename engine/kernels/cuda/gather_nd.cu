/* SPDX-License-Identifier: Apache-2.0
 *
 * GatherND: a thread per element of the result; those of one row
 * read the same indices and neighbouring data. */
#include "engine/kernels/cuda/lib/query.h"

struct gather_nd {
    const void *x, *index;
    void *y;
    unsigned count, depth;
    bool wide;                         /* i64 indices */
    struct divisor by_inner, by_batch; /* elements that a row names; rows of a batch */
    int64_t size[RANK_MAX];            /* of the axes that indices go along */
};

/* An index out of range reads the first element: the reference has refused it. */
static __device__ __forceinline__ size_t place_of(const struct gather_nd &k, unsigned e)
{
    unsigned row = divide(e, k.by_inner), inner = e - row * k.by_inner.d;
    size_t at = divide(row, k.by_batch);
    for (unsigned d = 0; d < k.depth; d++) {
        int64_t along = index_at(k.index, k.wide, row * k.depth + d);
        along = along < 0 ? along + k.size[d] : along;
        along = along >= 0 && along < k.size[d] ? along : 0;
        at = at * (size_t)k.size[d] + (size_t)along;
    }
    return at * k.by_inner.d + inner;
}

template <class element>
__global__ void __launch_bounds__(BLOCK) gather_rows(const __grid_constant__ struct gather_nd k)
{
    KERNEL_BEGIN();
    unsigned step = gridDim.x * BLOCK;
    for (unsigned e = blockIdx.x * BLOCK + threadIdx.x; e < k.count; e += step)
        ((element *)k.y)[e] = ((const element *)k.x)[place_of(k, e)];
}

/* ---- hooks ---- */

struct kernel_state {
    struct gather_nd k; /* pointers are left open */
    int bytes;          /* of an element */
    struct cuda_grid grid;
};

static enum status plan(const struct kernel_query *q, int, struct kernel_state *s,
                        struct error *why)
{
    TRY(indices_supported(q, why));
    const struct shape *x = &q->in[0].shape, *index = &q->in[1].shape;
    int batch = (int)cuda_host->node_int(q->node, "batch_dims", 0);
    int64_t inner = 1, rows = 1;
    struct gather_nd *k = &s->k;
    k->count = (unsigned)shape_count(&q->out[0].shape);
    k->depth = (unsigned)index->dim[index->rank - 1];
    k->wide = q->in[1].dtype == DTYPE_I64;
    for (int d = batch; d < x->rank; d++)
        if (d < batch + (int)k->depth)
            k->size[d - batch] = x->dim[d];
        else
            inner *= x->dim[d];
    for (int d = batch; d < index->rank - 1; d++)
        rows *= index->dim[d];
    k->by_inner = divisor_of(inner);
    k->by_batch = divisor_of(rows);
    s->bytes = element_bytes(q->out[0].dtype);
    s->grid = grid_for(q, k->count);
    return STATUS_OK;
}

static void launch(const struct kernel_state *state, const struct kernel_args *args)
{
    struct gather_nd k = state->k;
    k.x = args->in[0];
    k.index = args->in[1];
    k.y = args->out[0];
    LAUNCH_WORDS(state->bytes, gather_rows<word>, state->grid, cuda_size(BLOCK), 0, &k, args);
}

static const char *const ops[] = {"GatherND", NULL};

CUDA_KERNEL(gather_nd) = {CUDA_NAME(gather_nd), .ops = ops, CUDA_PLAN, CUDA_HOOK(launch)};
