/* SPDX-License-Identifier: Apache-2.0
 *
 * OneHot along a new last axis, four-byte elements, whatever their type: a thread per element. */
#include "engine/kernels/cuda/lib/kernel.h"

struct one_hot {
    const char *index;
    const unsigned *values; /* off, on */
    unsigned *y;
    unsigned count;
    struct divisor depth;
    bool wide; /* 64-bit indices */
};

__global__ void __launch_bounds__(BLOCK) one_hot_each(const __grid_constant__ struct one_hot h)
{
    unsigned off = h.values[0], on = h.values[1];
    for (unsigned k = blockIdx.x * BLOCK + threadIdx.x; k < h.count; k += gridDim.x * BLOCK) {
        unsigned row = divide(k, h.depth);
        int64_t at = h.wide ? ((const int64_t *)h.index)[row] : ((const int32_t *)h.index)[row];
        at += at < 0 ? h.depth.d : 0;
        h.y[k] = at == k - row * h.depth.d ? on : off;
    }
}

static enum status supports(const struct kernel_query *q, struct error *why)
{
    int64_t axis = cuda_host->node_int(q->node, "axis", -1);
    enum dtype type = q->out[0].dtype, index = q->in[0].dtype;
    if (axis != -1 && axis != q->out[0].shape.rank - 1)
        return REFUSE(why, "the new axis is not the last");
    if (type != DTYPE_F32 && type != DTYPE_I32 && type != DTYPE_U32)
        return REFUSE(why, "only elements of four bytes");
    if (index != DTYPE_I32 && index != DTYPE_I64)
        return REFUSE(why, "indices are neither i32 nor i64");
    if (!cuda_host->desc_is_plain(&q->in[0]) || !cuda_host->desc_is_plain(&q->out[0]) ||
        !fits_index(&q->out[0]))
        return REFUSE(why, "only plain memory of less than 2^31 elements");
    return q->node->post_count ? REFUSE(why, "no fused epilogue") : STATUS_OK;
}

static void launch(const struct kernel_state *state, const struct kernel_query *q,
                   const struct kernel_args *args)
{
    (void)state;
    const struct shape *y = &q->out[0].shape;
    struct one_hot h = {(const char *)args->in[0],
                        (const unsigned *)args->in[2],
                        (unsigned *)args->out[0],
                        (unsigned)count_of(y),
                        {},
                        q->in[0].dtype == DTYPE_I64};
    if (h.count == 0)
        return;
    h.depth = divisor_of(y->dim[y->rank - 1]);
    LAUNCH(one_hot_each, grid_for(q, h.count), cuda_size(BLOCK), 0, &h, args);
}

static const char *const ops[] = {"OneHot", NULL};

CUDA_KERNEL(one_hot) = {CUDA_NAME(one_hot), .ops = ops, .supports = supports, .launch = launch};
