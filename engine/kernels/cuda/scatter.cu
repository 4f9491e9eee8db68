/* SPDX-License-Identifier: Apache-2.0
 *
 * ScatterElements, Scatter and ScatterND: the data is copied, then a thread per update puts or
 * combines it in place; several updates of one element meet in an atomic operation. Without a
 * reduction such updates have no defined winner (as in ONNX). */
#include "engine/kernels/cuda/lib/query.h"

enum reduction { REDUCE_NONE, REDUCE_ADD, REDUCE_MUL, REDUCE_MAX, REDUCE_MIN };

typedef unsigned long long wide_word;

struct scatter {
    const void *x, *index, *updates;
    void *y;
    unsigned count, words; /* updates; 32-bit words of the data */
    int reduction, dtype;
    bool wide; /* i64 indices */
    /* ScatterElements: the result's axis and where an update's indices lie in it. */
    int rank, axis;
    struct divisor dim[RANK_MAX];
    unsigned stride[RANK_MAX];
    int64_t size[RANK_MAX];
    /* ScatterND: `depth` indices name a run of `inner` elements; depth 0: ScatterElements. */
    int depth;
    struct divisor by_inner;
};

/* False: out of range, which the reference has refused. */
static __device__ __forceinline__ bool wrap(int64_t *at, int64_t size)
{
    *at = *at < 0 ? *at + size : *at;
    return *at >= 0 && *at < size;
}

static __device__ __forceinline__ bool place_of(const struct scatter &k, unsigned e, unsigned *to)
{
    unsigned rest = e;
    int64_t along = index_at(k.index, k.wide, e);
    if (!wrap(&along, k.size[k.axis]))
        return false;
    *to = 0;
    for (int d = k.rank - 1; d >= 0; d--) {
        unsigned next = divide(rest, k.dim[d]);
        *to += (d == k.axis ? (unsigned)along : rest - next * k.dim[d].d) * k.stride[d];
        rest = next;
    }
    return true;
}

static __device__ __forceinline__ bool place_of_run(const struct scatter &k, unsigned e,
                                                    unsigned *to)
{
    unsigned row = divide(e, k.by_inner);
    *to = e - row * k.by_inner.d;
    for (int d = 0; d < k.depth; d++) {
        int64_t at = index_at(k.index, k.wide, row * (unsigned)k.depth + (unsigned)d);
        if (!wrap(&at, k.size[d]))
            return false;
        *to += (unsigned)at * k.stride[d];
    }
    return true;
}

template <class number>
static __device__ __forceinline__ number combine(int reduction, number a, number b)
{
    switch (reduction) {
    case REDUCE_ADD:
        return a + b;
    case REDUCE_MUL:
        return a * b;
    case REDUCE_MAX:
        return b > a ? b : a;
    case REDUCE_MIN:
        return b < a ? b : a;
    default:
        return b;
    }
}

/* The result of a reduction is put in only where nobody else was in between. */
static __device__ __forceinline__ void update(const struct scatter &k, unsigned to, unsigned from)
{
    unsigned *at = (unsigned *)k.y + to;
    unsigned bits = ((const unsigned *)k.updates)[from], old = *at, seen = ~old;
    if (k.reduction == REDUCE_NONE)
        *at = bits;
    for (; k.reduction != REDUCE_NONE && seen != old;) {
        unsigned next = k.dtype == DTYPE_F32
                            ? (unsigned)__float_as_int(combine(
                                  k.reduction, __int_as_float((int)old), __int_as_float((int)bits)))
                            : (unsigned)combine(k.reduction, (int)old, (int)bits);
        seen = old;
        old = atomicCAS(at, seen, next);
    }
}

static __device__ __forceinline__ void update_wide(const struct scatter &k, unsigned to,
                                                   unsigned from)
{
    wide_word *at = (wide_word *)k.y + to;
    wide_word bits = ((const wide_word *)k.updates)[from], old = *at, seen = ~old;
    if (k.reduction == REDUCE_NONE)
        *at = bits;
    for (; k.reduction != REDUCE_NONE && seen != old;) {
        wide_word next = (wide_word)combine(k.reduction, (long long)old, (long long)bits);
        seen = old;
        old = atomicCAS(at, seen, next);
    }
}

__global__ void __launch_bounds__(BLOCK) scatter_copy(const __grid_constant__ struct scatter k)
{
    unsigned step = gridDim.x * BLOCK;
    for (unsigned e = blockIdx.x * BLOCK + threadIdx.x; e < k.words; e += step)
        ((unsigned *)k.y)[e] = ((const unsigned *)k.x)[e];
}

__global__ void __launch_bounds__(BLOCK) scatter_updates(const __grid_constant__ struct scatter k)
{
    unsigned step = gridDim.x * BLOCK, to;
    bool is_wide = k.dtype == DTYPE_I64;
    for (unsigned e = blockIdx.x * BLOCK + threadIdx.x; e < k.count; e += step) {
        if (!(k.depth ? place_of_run(k, e, &to) : place_of(k, e, &to)))
            continue;
        if (is_wide)
            update_wide(k, to, e);
        else
            update(k, to, e);
    }
}

/* ---- hooks ---- */

static int reduction_of(const struct kernel_query *q)
{
    static const char *const names[] = {"none", "add", "mul", "max", "min"};
    const char *wanted = cuda_host->node_string(q->node, "reduction", "none");
    for (int k = 0; k < ARRAY_COUNT(names); k++)
        if (strcmp(names[k], wanted) == 0)
            return k;
    return NONE;
}

static enum status supports(const struct kernel_query *q, struct error *why)
{
    enum dtype dtype = q->out[0].dtype;
    TRY(plain_supported(q, why));
    if (!is_index(q->in[1].dtype))
        return REFUSE(why, "indices are neither i32 nor i64");
    if (dtype != DTYPE_F32 && dtype != DTYPE_I32 && dtype != DTYPE_I64)
        return REFUSE(why, "only f32, i32 and i64");
    return reduction_of(q) == NONE ? REFUSE(why, "unknown reduction") : STATUS_OK;
}

static void fill(const struct kernel_query *q, struct scatter *k)
{
    const struct shape *x = &q->in[0].shape, *index = &q->in[1].shape;
    bool runs = strcmp(cuda_host->node_op(q->node), "ScatterND") == 0;
    k->rank = x->rank;
    k->axis = runs ? 0 : axis_from(q, "axis", x->rank, 0);
    k->depth = runs ? (int)index->dim[index->rank - 1] : 0;
    for (int d = x->rank - 1, stride = 1; d >= 0; stride *= (int)x->dim[d--]) {
        k->size[d] = x->dim[d];
        k->stride[d] = (unsigned)stride;
        if (!runs)
            k->dim[d] = divisor_of(index->dim[d]);
    }
    if (runs)
        k->by_inner = divisor_of(k->stride[k->depth - 1]);
}

static void launch(const struct kernel_state *state, const struct kernel_query *q,
                   const struct kernel_args *args)
{
    (void)state;
    struct scatter k = {};
    k.x = args->in[0];
    k.index = args->in[1];
    k.updates = args->in[2];
    k.y = args->out[0];
    k.words = (unsigned)(count_of(&q->in[0].shape) * element_bytes(q->in[0].dtype) / 4);
    k.count = (unsigned)count_of(&q->in[2].shape);
    k.reduction = reduction_of(q);
    k.dtype = q->in[0].dtype;
    k.wide = q->in[1].dtype == DTYPE_I64;
    if (k.words && k.x != k.y)
        LAUNCH(scatter_copy, grid_for(q, k.words), cuda_size(BLOCK), 0, &k, args);
    if (k.words == 0 || k.count == 0)
        return;
    fill(q, &k);
    LAUNCH(scatter_updates, grid_for(q, k.count), cuda_size(BLOCK), 0, &k, args);
}

static const char *const ops[] = {"ScatterElements", "Scatter", "ScatterND", NULL};

CUDA_KERNEL(scatter) = {CUDA_NAME(scatter), .ops = ops, .supports = supports, .launch = launch};
