/* SPDX-License-Identifier: Apache-2.0
 *
 * OneHot: a thread per element of the result compares its place on the new axis with the index, so
 * that all writes are to neighbouring memory. Where the new axis is the last one a thread has 16
 * bytes of it, which at most two indices are on. */
#include "engine/kernels/cuda/lib/query.h"

struct one_hot {
    const void *index, *values; /* off, on */
    void *y;
    unsigned count, depth;
    int dtype; /* of the index */
    struct divisor by_inner, by_depth;
};

/* Which element of the axis is on; the depth: none. */
static __device__ __forceinline__ unsigned slot_of(const struct one_hot &k, unsigned i)
{
    int64_t at = k.dtype == DTYPE_F32 ? (int64_t)((const float *)k.index)[i]
                                      : index_at(k.index, k.dtype == DTYPE_I64, i);
    at = at < 0 ? at + k.depth : at;
    return at >= 0 && at < k.depth ? (unsigned)at : k.depth;
}

template <class element>
__global__ void __launch_bounds__(BLOCK) one_hot_elements(const __grid_constant__ struct one_hot k)
{
    KERNEL_BEGIN();
    const element *values = (const element *)k.values;
    element off = values[0], on = values[1];
    unsigned step = gridDim.x * BLOCK;
    for (unsigned e = blockIdx.x * BLOCK + threadIdx.x; e < k.count; e += step) {
        unsigned line = divide(e, k.by_inner), inner = e - line * k.by_inner.d;
        unsigned outer = divide(line, k.by_depth), slot = line - outer * k.depth;
        ((element *)k.y)[e] = slot_of(k, outer * k.by_inner.d + inner) == slot ? on : off;
    }
}

/* Elements of the last axis, 16 bytes of them; lines are at least as long. */
template <class element>
__global__ void __launch_bounds__(BLOCK) one_hot_groups(const __grid_constant__ struct one_hot k)
{
    KERNEL_BEGIN();
    const unsigned width = 16 / sizeof(element);
    const element *values = (const element *)k.values;
    element off = values[0], on = values[1];
    unsigned step = gridDim.x * BLOCK, lines = k.count / k.depth;
    for (unsigned g = blockIdx.x * BLOCK + threadIdx.x; g < k.count / width; g += step) {
        unsigned line = divide(g * width, k.by_depth), first = g * width - line * k.depth;
        unsigned slot = slot_of(k, line), next = slot_of(k, min(line + 1, lines - 1));
        union {
            uint4 all;
            element each[16 / sizeof(element)];
        } group;
#pragma unroll
        for (unsigned e = 0; e < width; e++) {
            unsigned at = first + e;
            bool is_on = at < k.depth ? at == slot : at - k.depth == next;
            group.each[e] = is_on ? on : off;
        }
        ((uint4 *)k.y)[g] = group.all;
    }
}

/* ---- hooks ---- */

struct kernel_state {
    struct one_hot k; /* pointers are left open */
    int bytes;        /* of a result */
    bool groups;
    struct cuda_grid grid;
};

static enum status plan(const struct kernel_query *q, int, struct kernel_state *s,
                        struct error *why)
{
    TRY(plain_supported(q, why));
    if (!is_index(q->in[0].dtype) && q->in[0].dtype != DTYPE_F32)
        return REFUSE(why, "indices are neither i32, i64 nor f32");
    const struct shape *y = &q->out[0].shape;
    struct axis axis = axis_of(y, axis_from(q, "axis", y->rank, -1));
    s->k.count = (unsigned)shape_count(y);
    s->k.depth = (unsigned)axis.size;
    s->k.dtype = q->in[0].dtype;
    s->k.by_inner = divisor_of(axis.inner);
    s->k.by_depth = divisor_of(axis.size);
    s->bytes = element_bytes(q->out[0].dtype);
    int width = 16 / s->bytes;
    s->groups = axis.inner == 1 && axis.size >= width && s->k.count % (unsigned)width == 0;
    s->grid = grid_for(q, s->groups ? s->k.count / width : s->k.count);
    return STATUS_OK;
}

static void launch(const struct kernel_state *state, const struct kernel_args *args)
{
    struct one_hot k = state->k;
    k.index = args->in[0];
    k.values = args->in[2];
    k.y = args->out[0];
    if (state->groups)
        LAUNCH_WORDS(state->bytes, one_hot_groups<word>, state->grid, cuda_size(BLOCK), 0, &k,
                     args);
    else
        LAUNCH_WORDS(state->bytes, one_hot_elements<word>, state->grid, cuda_size(BLOCK), 0, &k,
                     args);
}

static const char *const ops[] = {"OneHot", NULL};

CUDA_KERNEL(one_hot) = {CUDA_NAME(one_hot), .ops = ops, CUDA_PLAN, CUDA_HOOK(launch)};
