/* SPDX-License-Identifier: Apache-2.0
 *
 * ScatterElements, Scatter and ScatterND: the data is copied, then a thread per update puts or
 * combines it in place; several updates of one element meet in an atomic operation. Without a
 * reduction such updates have no defined winner (as in ONNX). Sums and products of floats, whose
 * order is not known, are made in f64, in the workspace, and rounded once at the end: so they are
 * the same from run to run, but where a sum of f64 lies within its rounding of the middle between
 * two floats. What else is done with floats of 16 bits is done there, too. */
#include "engine/kernels/cuda/lib/query.h"

enum reduction { REDUCE_NONE, REDUCE_ADD, REDUCE_MUL, REDUCE_MAX, REDUCE_MIN };

typedef unsigned long long wide_word;

struct scatter {
    const void *x, *index, *updates;
    void *y;         /* or the workspace, of f64 */
    void *rounded;   /* what the workspace becomes */
    unsigned count;  /* updates */
    unsigned size_x; /* elements of the data */
    int reduction, dtype;
    bool wide;   /* i64 indices */
    bool in_f64; /* reduced in the workspace */
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

/* Sums are the memory's own operation: many updates of one element do not wait for each other.
 * Other results are put in only where nobody else was in between. */
static __device__ __forceinline__ void update(const struct scatter &k, unsigned to, unsigned from)
{
    unsigned *at = (unsigned *)k.y + to, bits = ((const unsigned *)k.updates)[from];
    if (k.reduction == REDUCE_NONE) {
        *at = bits;
        return;
    }
    if (k.reduction == REDUCE_ADD) { /* integers: floats are added in f64 */
        atomicAdd(at, bits);
        return;
    }
    unsigned old = *(volatile unsigned *)at, seen = ~old;
    while (seen != old) {
        unsigned next =
            k.dtype == DTYPE_I32
                ? (unsigned)combine(k.reduction, (int)old, (int)bits)
                : (unsigned)__float_as_int(
                      combine(k.reduction, __int_as_float((int)old), __int_as_float((int)bits)));
        seen = old;
        old = atomicCAS(at, seen, next);
    }
}

static __device__ __forceinline__ void update_f64(const struct scatter &k, unsigned to,
                                                  unsigned from)
{
    double value = (double)group_as<1>(k.dtype, k.updates, from).v[0];
    if (k.reduction == REDUCE_ADD) {
        atomicAdd((double *)k.y + to, value);
        return;
    }
    wide_word *at = (wide_word *)k.y + to;
    wide_word old = *(volatile wide_word *)at, seen = ~old;
    while (seen != old) {
        double next = combine(k.reduction, __longlong_as_double((long long)old), value);
        seen = old;
        old = atomicCAS(at, seen, (wide_word)__double_as_longlong(next));
    }
}

static __device__ __forceinline__ void update_wide(const struct scatter &k, unsigned to,
                                                   unsigned from)
{
    wide_word *at = (wide_word *)k.y + to;
    wide_word bits = ((const wide_word *)k.updates)[from];
    if (k.reduction == REDUCE_NONE) {
        *at = bits;
        return;
    }
    if (k.reduction == REDUCE_ADD) {
        atomicAdd(at, bits);
        return;
    }
    wide_word old = *(volatile wide_word *)at, seen = ~old;
    while (seen != old) {
        wide_word next = (wide_word)combine(k.reduction, (long long)old, (long long)bits);
        seen = old;
        old = atomicCAS(at, seen, next);
    }
}

template <class word>
__global__ void __launch_bounds__(BLOCK) scatter_copy(const __grid_constant__ struct scatter k)
{
    KERNEL_BEGIN();
    unsigned step = gridDim.x * BLOCK;
    for (unsigned e = blockIdx.x * BLOCK + threadIdx.x; e < k.size_x; e += step)
        ((word *)k.y)[e] = ((const word *)k.x)[e];
}

template <class element>
__global__ void __launch_bounds__(BLOCK) scatter_widen(const __grid_constant__ struct scatter k)
{
    KERNEL_BEGIN();
    unsigned step = gridDim.x * BLOCK;
    for (unsigned e = blockIdx.x * BLOCK + threadIdx.x; e < k.size_x; e += step)
        ((double *)k.y)[e] = (double)float_at((const element *)k.x + e);
}

template <class element>
__global__ void __launch_bounds__(BLOCK) scatter_round(const __grid_constant__ struct scatter k)
{
    KERNEL_BEGIN();
    unsigned step = gridDim.x * BLOCK;
    for (unsigned e = blockIdx.x * BLOCK + threadIdx.x; e < k.size_x; e += step)
        float_put((element *)k.rounded + e, (float)((const double *)k.y)[e]);
}

__global__ void __launch_bounds__(BLOCK) scatter_updates(const __grid_constant__ struct scatter k)
{
    KERNEL_BEGIN();
    unsigned step = gridDim.x * BLOCK, to;
    bool is_wide = k.dtype == DTYPE_I64;
    bool is_half = k.dtype == DTYPE_F16 || k.dtype == DTYPE_BF16;
    for (unsigned e = blockIdx.x * BLOCK + threadIdx.x; e < k.count; e += step) {
        if (!(k.depth ? place_of_run(k, e, &to) : place_of(k, e, &to)))
            continue;
        if (k.in_f64)
            update_f64(k, to, e);
        else if (is_wide)
            update_wide(k, to, e);
        else if (is_half)
            ((uint16_t *)k.y)[to] = ((const uint16_t *)k.updates)[e];
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

struct kernel_state {
    struct scatter k; /* pointers are left open */
    struct cuda_grid data, updates;
};

/* Where updates go. */
static void find_places(const struct kernel_query *q, struct scatter *k)
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
    if (k->depth > 0)
        k->by_inner = divisor_of(k->stride[k->depth - 1]);
}

static enum status plan(const struct kernel_query *q, int, struct kernel_state *s,
                        struct error *why)
{
    enum dtype dtype = q->out[0].dtype;
    struct scatter *k = &s->k;
    TRY(plain_supported(q, why));
    if (!is_index(q->in[1].dtype))
        return REFUSE(why, "indices are neither i32 nor i64");
    if (!is_float(dtype) && dtype != DTYPE_I32 && dtype != DTYPE_I64)
        return REFUSE(why, "only f32, f16, bf16, i32 and i64");
    k->reduction = reduction_of(q);
    if (k->reduction == NONE)
        return REFUSE(why, "unknown reduction");
    k->size_x = (unsigned)shape_count(&q->in[0].shape);
    k->count = k->size_x ? (unsigned)shape_count(&q->in[2].shape) : 0;
    k->dtype = dtype;
    k->wide = q->in[1].dtype == DTYPE_I64;
    find_places(q, k);
    bool ordered = k->reduction != REDUCE_ADD && k->reduction != REDUCE_MUL;
    k->in_f64 =
        is_float(dtype) && k->reduction != REDUCE_NONE && (!ordered || element_bytes(dtype) == 2);
    s->data = grid_for(q, k->size_x);
    s->updates = grid_for(q, k->count);
    return STATUS_OK;
}

static size_t workspace(const struct kernel_state *state)
{
    return state->k.in_f64 ? padded_bytes(state->k.size_x, sizeof(double)) : 0;
}

static void launch(const struct kernel_state *state, const struct kernel_args *args)
{
    struct scatter k = state->k;
    enum dtype dtype = (enum dtype)k.dtype;
    struct cuda_grid block = cuda_size(BLOCK);
    k.x = args->in[0];
    k.index = args->in[1];
    k.updates = args->in[2];
    k.y = k.in_f64 ? args->workspace : args->out[0];
    k.rounded = args->out[0];
    if (k.in_f64)
        LAUNCH_FLOATS(dtype, scatter_widen<element>, state->data, block, 0, &k, args);
    else if (k.x != k.y)
        LAUNCH_WORDS(element_bytes(dtype), scatter_copy<word>, state->data, block, 0, &k, args);
    LAUNCH(scatter_updates, state->updates, block, 0, &k, args);
    if (k.in_f64)
        LAUNCH_FLOATS(dtype, scatter_round<element>, state->data, block, 0, &k, args);
}

static const char *const ops[] = {"ScatterElements", "Scatter", "ScatterND", NULL};

CUDA_KERNEL(scatter) = {CUDA_NAME(scatter), .ops = ops, CUDA_PLAN, CUDA_HOOK(workspace),
                        CUDA_HOOK(launch)};
