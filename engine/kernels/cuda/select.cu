/* SPDX-License-Identifier: Apache-2.0
 *
 * Where, comparisons and logic, any layout and broadcast: a thread per result. Values are picked by
 * their size, compared as f32, i32 or i64. IsNaN and IsInf of floats that lie like their results:
 * 16 bytes a thread. */
#include "engine/kernels/cuda/lib/query.h"

enum { OPERANDS = 3 };

enum what {
    IS_EQUAL,
    IS_GREATER,
    IS_GREATER_EQUAL,
    IS_LESS,
    IS_LESS_EQUAL,
    AND,
    OR,
    XOR,
    NOT,
    WHERE,
    IS_NAN,
    IS_INF
};

struct select {
    const void *in[OPERANDS];
    void *y;
    unsigned count;
    int rank, operands, what, type; /* type: of the values, enum dtype */
    struct divisor dim[RANK_MAX];
    int stride[OPERANDS][RANK_MAX]; /* elements, outermost first */
};

struct places {
    int at[OPERANDS];
};

static __device__ __forceinline__ struct places places_of(const struct select &s, unsigned k)
{
    struct places p = {{0, 0, 0}};
    for (int d = s.rank - 1; d >= 0; d--) {
        unsigned next = divide(k, s.dim[d]);
        int index = (int)(k - next * s.dim[d].d);
        for (int i = 0; i < OPERANDS; i++)
            p.at[i] += index * s.stride[i][d];
        k = next;
    }
    return p;
}

template <class T> static __device__ __forceinline__ bool holds(int what, T a, T b)
{
    switch (what) {
    case IS_EQUAL:
        return a == b;
    case IS_GREATER:
        return a > b;
    case IS_GREATER_EQUAL:
        return a >= b;
    case IS_LESS:
        return a < b;
    case IS_LESS_EQUAL:
        return a <= b;
    case AND:
        return a != 0 && b != 0;
    case OR:
        return a != 0 || b != 0;
    case XOR:
        return (a != 0) != (b != 0);
    default:
        return a == 0; /* NOT */
    }
}

template <class T>
__global__ void __launch_bounds__(BLOCK) compare_each(const __grid_constant__ struct select s)
{
    KERNEL_BEGIN();
    for (unsigned k = blockIdx.x * BLOCK + threadIdx.x; k < s.count; k += gridDim.x * BLOCK) {
        struct places p = places_of(s, k);
        T a = ((const T *)s.in[0])[p.at[0]], b = a;
        if (s.operands > 1)
            b = ((const T *)s.in[1])[p.at[1]];
        ((uint8_t *)s.y)[k] = holds<T>(s.what, a, b);
    }
}

template <class T>
__global__ void __launch_bounds__(BLOCK) where_each(const __grid_constant__ struct select s)
{
    KERNEL_BEGIN();
    for (unsigned k = blockIdx.x * BLOCK + threadIdx.x; k < s.count; k += gridDim.x * BLOCK) {
        struct places p = places_of(s, k);
        bool yes = ((const uint8_t *)s.in[0])[p.at[0]] != 0;
        ((T *)s.y)[k] = yes ? ((const T *)s.in[1])[p.at[1]] : ((const T *)s.in[2])[p.at[2]];
    }
}

struct special {
    const void *x;
    void *y;
    unsigned count; /* of groups of `width` */
    int type;
    bool nan, positive, negative; /* which are looked for; positive: infinity */
};

static __device__ __forceinline__ unsigned is_special(const struct special &k, float x)
{
    return (k.nan && x != x) || (k.positive && x == INFINITY) || (k.negative && x == -INFINITY);
}

template <int width>
__global__ void __launch_bounds__(BLOCK) special_groups(const __grid_constant__ struct special k)
{
    KERNEL_BEGIN();
    for (unsigned g = blockIdx.x * BLOCK + threadIdx.x; g < k.count; g += gridDim.x * BLOCK) {
        struct group<width> v = group_as<width>(k.type, k.x, (size_t)g * width);
        unsigned words[2] = {0, 0};
#pragma unroll
        for (int e = 0; e < width; e++)
            words[e / 4] |= is_special(k, v.v[e]) << e % 4 * 8;
        if (width == 8)
            ((uint2 *)k.y)[g] = make_uint2(words[0], words[1]);
        else if (width == 4)
            ((unsigned *)k.y)[g] = words[0];
        else
            ((uint8_t *)k.y)[g] = (uint8_t)words[0];
    }
}

/* ---- hooks ---- */

static const struct {
    const char *op;
    enum what what;
    int operands;
} table[] = {
    {"Equal", IS_EQUAL, 2},
    {"Greater", IS_GREATER, 2},
    {"GreaterOrEqual", IS_GREATER_EQUAL, 2},
    {"Less", IS_LESS, 2},
    {"LessOrEqual", IS_LESS_EQUAL, 2},
    {"And", AND, 2},
    {"Or", OR, 2},
    {"Xor", XOR, 2},
    {"Not", NOT, 1},
    {"Where", WHERE, 3},
    {"IsNaN", IS_NAN, 1},
    {"IsInf", IS_INF, 1},
};

static bool compares(enum dtype type)
{
    return type == DTYPE_F32 || type == DTYPE_I32 || type == DTYPE_I64 || type == DTYPE_BOOL;
}

struct kernel_state {
    struct select s; /* pointers are left open */
    int bytes;       /* of a result */
    struct special special;
    int width; /* of its groups */
    struct cuda_grid grid;
};

static enum status plan_special(const struct kernel_query *q, struct kernel_state *state,
                                struct error *why)
{
    struct special *k = &state->special;
    const struct desc *x = &q->in[0];
    struct desc y = q->out[0];
    bool nan = state->s.what == IS_NAN;
    y.dtype = x->dtype;
    if (!is_float(x->dtype))
        return REFUSE(why, "only f32, f16 and bf16");
    if (!cuda_host->desc_same_memory(x, &y) || !cuda_host->desc_is_dense(x))
        return REFUSE(why, "input and result lie differently");
    k->nan = nan;
    k->positive = !nan && cuda_host->node_int(q->node, "detect_positive", 1) != 0;
    k->negative = !nan && cuda_host->node_int(q->node, "detect_negative", 1) != 0;
    k->type = x->dtype;
    state->width = group_width(x->dtype, shape_count(&x->shape));
    k->count = (unsigned)(shape_count(&x->shape) / state->width);
    state->grid = grid_for(q, k->count);
    return STATUS_OK;
}

static enum status plan(const struct kernel_query *q, int, struct kernel_state *state,
                        struct error *why)
{
    struct select *s = &state->s;
    const struct desc *descs[OPERANDS + 1] = {&q->out[0]};
    struct strided space;
    for (int k = 0; k < ARRAY_COUNT(table); k++)
        if (strcmp(table[k].op, cuda_host->node_op(q->node)) == 0) {
            s->what = table[k].what;
            s->operands = table[k].operands;
        }
    s->type = q->in[s->operands - 1].dtype;
    if (q->node->post_count || q->in_count != s->operands)
        return REFUSE(why, "no fused epilogue");
    if (!cuda_host->desc_is_dense(&q->out[0]) || !fits_index(&q->out[0]))
        return REFUSE(why, "only a dense result of less than 2^31 elements");
    if (s->what == IS_NAN || s->what == IS_INF)
        return plan_special(q, state, why);
    if (s->what != WHERE && !compares(q->in[0].dtype))
        return REFUSE(why, "compares only f32, i32, i64 and bool");
    s->count = (unsigned)shape_count(&q->out[0].shape);
    if (s->count == 0)
        return STATUS_OK;
    for (int k = 0; k < s->operands; k++)
        descs[k + 1] = &q->in[k];
    strided_init(&space, descs, s->operands + 1);
    s->rank = space.rank;
    for (int d = 0; d < space.rank; d++) {
        s->dim[d] = divisor_of(space.dim[d]);
        for (int k = 0; k < s->operands; k++)
            s->stride[k][d] = (int)space.stride[k + 1][d];
    }
    state->bytes = element_bytes(q->out[0].dtype);
    state->grid = grid_for(q, s->count);
    return STATUS_OK;
}

static void launch_compare(const struct select *s, struct cuda_grid grid,
                           const struct kernel_args *args)
{
    struct cuda_grid block = cuda_size(BLOCK);
    if (s->type == DTYPE_F32)
        LAUNCH(compare_each<float>, grid, block, 0, s, args);
    else if (s->type == DTYPE_I32)
        LAUNCH(compare_each<int32_t>, grid, block, 0, s, args);
    else if (s->type == DTYPE_I64)
        LAUNCH(compare_each<int64_t>, grid, block, 0, s, args);
    else
        LAUNCH(compare_each<uint8_t>, grid, block, 0, s, args);
}

static void launch_special(const struct kernel_state *state, const struct kernel_args *args)
{
    struct special k = state->special;
    k.x = args->in[0];
    k.y = args->out[0];
    LAUNCH_WIDTH(state->width, special_groups<width>, state->grid, cuda_size(BLOCK), 0, &k, args);
}

static void launch(const struct kernel_state *state, const struct kernel_args *args)
{
    struct select s = state->s;
    if (s.what == IS_NAN || s.what == IS_INF) {
        launch_special(state, args);
        return;
    }
    for (int k = 0; k < s.operands; k++)
        s.in[k] = args->in[k];
    s.y = args->out[0];
    if (s.what == WHERE)
        LAUNCH_WORDS(state->bytes, where_each<word>, state->grid, cuda_size(BLOCK), 0, &s, args);
    else
        launch_compare(&s, state->grid, args);
}

static const char *const ops[] = {
    "And",         "Equal", "Greater", "GreaterOrEqual", "IsInf", "IsNaN", "Less",
    "LessOrEqual", "Not",   "Or",      "Where",          "Xor",   NULL};

CUDA_KERNEL(select) = {CUDA_NAME(select), .ops = ops, CUDA_PLAN, CUDA_HOOK(launch)};
