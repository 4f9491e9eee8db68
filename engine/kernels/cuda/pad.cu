/* SPDX-License-Identifier: Apache-2.0
 *
 * Pad with a constant, any layout: a thread per element of the
 * result, in the order of its memory. */
#include "engine/kernels/cuda/lib/query.h"

struct pad {
    const void *x, *value; /* value NULL: `bits` */
    void *y;
    unsigned count;
    unsigned bits; /* of a value of f32; others are 0 */
    int rank;      /* dimensions in the order of y's memory, the innermost last */
    struct divisor dim[RANK_MAX];
    int begin[RANK_MAX], size[RANK_MAX], stride[RANK_MAX]; /* of x in y; of x */
    int64_t start;                                         /* first element taken of x */
};

/* Where x has the element; -1: it is the constant. */
static __device__ __forceinline__ int64_t source_of(const struct pad &k, unsigned e)
{
    int64_t at = k.start;
    for (int d = k.rank - 1; d >= 0; d--) {
        unsigned next = divide(e, k.dim[d]);
        int i = (int)(e - next * k.dim[d].d) - k.begin[d];
        if (i < 0 || i >= k.size[d])
            return -1;
        at += (int64_t)i * k.stride[d];
        e = next;
    }
    return at;
}

template <class element>
__global__ void __launch_bounds__(BLOCK) pad_elements(const __grid_constant__ struct pad k)
{
    unsigned step = gridDim.x * BLOCK;
    element value = k.value ? *(const element *)k.value : (element)k.bits;
    for (unsigned e = blockIdx.x * BLOCK + threadIdx.x; e < k.count; e += step) {
        int64_t from = source_of(k, e);
        ((element *)k.y)[e] = from >= 0 ? ((const element *)k.x)[from] : value;
    }
}

/* ---- hooks ---- */

static enum status plan(const struct kernel_query *q, struct pad *k, struct error *why)
{
    struct move move;
    struct flat_move flat;
    const struct desc *x = &q->in[0], *y = &q->out[0];
    int order[RANK_MAX];
    TRY(cuda_host->move(q, 0, &move, &flat, why));
    k->rank = y->shape.rank;
    k->count = (unsigned)shape_count(&y->shape);
    for (int d = 0; d < k->rank; d++) {
        int at = d;
        for (; at > 0 && y->stride[order[at - 1]] < y->stride[d]; at--)
            order[at] = order[at - 1];
        order[at] = d;
    }
    for (int d = 0; d < k->rank && k->count; d++) {
        int axis = order[d];
        k->dim[d] = divisor_of(y->shape.dim[axis]);
        k->begin[d] = (int)move.out_start[axis];
        k->size[d] = (int)move.loops[axis].extent;
        k->stride[d] = (int)x->stride[axis];
        k->start += move.in_start[axis] * x->stride[axis];
    }
    float value = (float)cuda_host->node_float(q->node, "value", 0);
    if (x->dtype == DTYPE_F32)
        memcpy(&k->bits, &value, sizeof(value));
    return STATUS_OK;
}

static enum status supports(const struct kernel_query *q, struct error *why)
{
    struct pad k = {};
    const struct desc *x = &q->in[0], *y = &q->out[0];
    bool given = input_given(q, 2);
    if (q->node->post_count)
        return REFUSE(why, "no fused epilogue");
    if (!fits_index(x) || !fits_index(y))
        return REFUSE(why, "more than 2^31 elements");
    if (!cuda_host->desc_is_dense(y))
        return REFUSE(why, "the output is not dense");
    if (given && (q->in[2].dtype != x->dtype || shape_count(&q->in[2].shape) > 1))
        return REFUSE(why, "the value is not one element of the input's type");
    if (!given && x->dtype != DTYPE_F32 && cuda_host->node_float(q->node, "value", 0) != 0)
        return REFUSE(why, "a value attribute for another type than f32");
    return plan(q, &k, why);
}

static void launch(const struct kernel_state *state, const struct kernel_query *q,
                   const struct kernel_args *args)
{
    (void)state;
    struct pad k = {};
    if (plan(q, &k, NULL) != STATUS_OK || k.count == 0)
        return;
    bool given = input_given(q, 2) && shape_count(&q->in[2].shape);
    k.x = args->in[0];
    k.value = given ? args->in[2] : NULL;
    k.y = args->out[0];
    LAUNCH_WORDS(element_bytes(q->in[0].dtype), pad_elements<word>, grid_for(q, k.count),
                 cuda_size(BLOCK), 0, &k, args);
}

static const char *const ops[] = {"Pad", NULL};

CUDA_KERNEL(pad) = {CUDA_NAME(pad), .ops = ops, .supports = supports, .old_launch = launch};
