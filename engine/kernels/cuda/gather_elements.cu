/* SPDX-License-Identifier: Apache-2.0
 *
 * GatherElements: a thread per element of the result, whose
 * indices it takes apart to know where along the axis to read. */
#include "engine/kernels/cuda/lib/query.h"

struct gather_elements {
    const void *x, *index;
    void *y;
    unsigned count;
    int rank, axis;
    bool wide;                    /* i64 indices */
    int64_t size;                 /* of the axis in x */
    struct divisor dim[RANK_MAX]; /* of the result */
    unsigned stride[RANK_MAX];    /* of x */
};

/* An index out of range reads the first element: the reference has refused it. */
static __device__ __forceinline__ unsigned place_of(const struct gather_elements &k, unsigned e)
{
    int64_t along = index_at(k.index, k.wide, e);
    unsigned at = 0, rest = e;
    along = along < 0 ? along + k.size : along;
    along = along >= 0 && along < k.size ? along : 0;
    for (int d = k.rank - 1; d >= 0; d--) {
        unsigned next = divide(rest, k.dim[d]);
        at += (d == k.axis ? (unsigned)along : rest - next * k.dim[d].d) * k.stride[d];
        rest = next;
    }
    return at;
}

template <class element>
__global__ void __launch_bounds__(BLOCK)
    gather_each(const __grid_constant__ struct gather_elements k)
{
    KERNEL_BEGIN();
    unsigned step = gridDim.x * BLOCK;
    for (unsigned e = blockIdx.x * BLOCK + threadIdx.x; e < k.count; e += step)
        ((element *)k.y)[e] = ((const element *)k.x)[place_of(k, e)];
}

/* ---- hooks ---- */

struct kernel_state {
    struct gather_elements k; /* pointers are left open */
    int bytes;                /* of an element */
    struct cuda_grid grid;
};

static enum status plan(const struct kernel_query *q, int, struct kernel_state *s,
                        struct error *why)
{
    TRY(indices_supported(q, why));
    const struct shape *x = &q->in[0].shape, *y = &q->out[0].shape;
    struct gather_elements *k = &s->k;
    k->count = (unsigned)shape_count(y);
    k->rank = x->rank;
    k->axis = axis_from(q, "axis", x->rank, 0);
    k->wide = q->in[1].dtype == DTYPE_I64;
    k->size = x->dim[k->axis];
    for (int d = x->rank - 1, stride = 1; d >= 0; stride *= (int)x->dim[d--]) {
        k->dim[d] = divisor_of(y->dim[d]);
        k->stride[d] = (unsigned)stride;
    }
    s->bytes = element_bytes(q->out[0].dtype);
    s->grid = grid_for(q, k->count);
    return STATUS_OK;
}

static void launch(const struct kernel_state *state, const struct kernel_args *args)
{
    struct gather_elements k = state->k;
    k.x = args->in[0];
    k.index = args->in[1];
    k.y = args->out[0];
    LAUNCH_WORDS(state->bytes, gather_each<word>, state->grid, cuda_size(BLOCK), 0, &k, args);
}

static const char *const ops[] = {"GatherElements", NULL};

CUDA_KERNEL(gather_elements) = {CUDA_NAME(gather_elements), .ops = ops, CUDA_PLAN,
                                CUDA_HOOK(launch)};
