/* SPDX-License-Identifier: Apache-2.0
 *
 * Cast between f32, f16, bf16, i32, i64, u8 and bool, and from f8 to floats, of tensors that lie
 * alike. Floats that an integer type cannot hold give its nearest bound and NaN gives 0, as in the
 * reference; integers wrap. */
#include "engine/kernels/cuda/lib/query.h"

enum { AHEAD = 4 };

struct cast {
    const void *x;
    void *y;
    unsigned count;
    int from, to; /* enum dtype */
};

/* [least, end) is what the type holds. */
static __device__ __forceinline__ int64_t bounded(float x, float least, float end, int64_t largest)
{
    if (x != x)
        return 0;
    return x >= end ? largest : (int64_t)(x < least ? least : x);
}

static __device__ __forceinline__ int64_t from_float(float x, int to)
{
    switch (to) {
    case DTYPE_BOOL:
        return x != 0;
    case DTYPE_U8:
        return bounded(x, 0, 256.0f, 255);
    case DTYPE_I32:
        return bounded(x, -2147483648.0f, 2147483648.0f, INT32_MAX);
    default:
        return bounded(x, -9223372036854775808.0f, 9223372036854775808.0f, INT64_MAX);
    }
}

static __device__ __forceinline__ int64_t integer_at(const struct cast &c, unsigned k)
{
    switch (c.from) {
    case DTYPE_F32:
    case DTYPE_F16:
    case DTYPE_BF16:
        return from_float(group_as<1>(c.from, c.x, k).v[0], c.to);
    case DTYPE_I32:
        return ((const int32_t *)c.x)[k];
    case DTYPE_I64:
        return ((const int64_t *)c.x)[k];
    default:
        return ((const uint8_t *)c.x)[k];
    }
}

static __device__ __forceinline__ void store(const struct cast &c, unsigned k, int64_t value)
{
    switch (c.to) {
    case DTYPE_F32:
    case DTYPE_F16:
    case DTYPE_BF16:
        group_store_as<1>(c.to, c.y, k, {{(float)value}});
        break;
    case DTYPE_I32:
        ((int32_t *)c.y)[k] = (int32_t)value;
        break;
    case DTYPE_I64:
        ((int64_t *)c.y)[k] = value;
        break;
    case DTYPE_BOOL:
        ((uint8_t *)c.y)[k] = value != 0;
        break;
    default:
        ((uint8_t *)c.y)[k] = (uint8_t)value;
    }
}

/* AHEAD elements are read before the first is written: each alone moves few bytes. */
__global__ void __launch_bounds__(BLOCK) cast_each(const __grid_constant__ struct cast c)
{
    KERNEL_BEGIN();
    unsigned step = gridDim.x * BLOCK;
    for (unsigned k = blockIdx.x * BLOCK + threadIdx.x; k < c.count; k += AHEAD * step) {
        int64_t value[AHEAD];
#pragma unroll
        for (unsigned a = 0; a < AHEAD; a++)
            value[a] = k + a * step < c.count ? integer_at(c, k + a * step) : 0;
#pragma unroll
        for (unsigned a = 0; a < AHEAD; a++)
            if (k + a * step < c.count)
                store(c, k + a * step, value[a]);
    }
}

template <int width>
__global__ void __launch_bounds__(BLOCK) cast_floats(const __grid_constant__ struct cast c)
{
    KERNEL_BEGIN();
    for (unsigned k = blockIdx.x * BLOCK + threadIdx.x; k < c.count; k += gridDim.x * BLOCK)
        group_store_as<width>(c.to, c.y, (size_t)k * width,
                              group_as<width>(c.from, c.x, (size_t)k * width));
}

static __device__ __forceinline__ struct group<1> f8_at(const struct float8 *x, struct group<1> r) {
    r.v[0] = to_float(*x);
    return r;
}

static __device__ __forceinline__ struct group<4>
f8_at(const struct float8 *x, struct group<4> r) {
    unsigned four = *(const unsigned *)x;
    for (int i = 0; i < 4; i++)
        r.v[i] = to_float(float8{(uint8_t)(four >> 8 * i)});
    return r;
}

template <int width>
__global__ void __launch_bounds__(BLOCK) cast_f8(const __grid_constant__ struct cast c)
{
    KERNEL_BEGIN();
    for (unsigned k = blockIdx.x * BLOCK + threadIdx.x; k < c.count; k += gridDim.x * BLOCK) {
        group<width> r = {};
        r = f8_at((const struct float8 *)c.x + (size_t)k * width, r);
        group_store_as<width>(c.to, c.y, (size_t)k * width, r);
    }
}

static bool is_known(enum dtype type)
{
    return is_float(type) || type == DTYPE_I32 || type == DTYPE_I64 || type == DTYPE_U8 ||
           type == DTYPE_BOOL;
}

/* Equal strides, whatever the types. */
static bool lie_alike(const struct desc *a, struct desc b)
{
    b.dtype = a->dtype;
    return cuda_host->desc_same_memory(a, &b) && cuda_host->desc_is_dense(a);
}

struct kernel_state {
    struct cast c; /* pointers are left open */
    int width;     /* elements that a thread converts at a time */
    bool f8, floats;
    struct cuda_grid grid;
};

static enum status plan(const struct kernel_query *q, int, struct kernel_state *s,
                        struct error *why)
{
    enum dtype from = q->in[0].dtype, to = q->out[0].dtype;
    s->f8 = from == DTYPE_F8E4M3 && is_float(to);
    if (!s->f8 && (!is_known(from) || !is_known(to)))
        return REFUSE(why, "only f32, f16, bf16, i32, i64, u8, bool, and f8 to floats");
    if (!lie_alike(&q->in[0], q->out[0]) || !fits_index(&q->in[0]))
        return REFUSE(why, "input and output lie differently");
    if (q->node->post_count)
        return REFUSE(why, "no fused epilogue");
    unsigned count = (unsigned)shape_count(&q->in[0].shape);
    s->floats = s->f8 || (is_float(from) && is_float(to));
    /* By four where one side has 32 bits: wider groups would leave gaps between its lanes. */
    bool narrow = element_bytes(from) == 2 && element_bytes(to) == 2;
    s->width = !s->floats || count % 4 ? 1 : narrow && count % 8 == 0 ? 8 : 4;
    s->c.from = (int)from;
    s->c.to = (int)to;
    s->c.count = count / (unsigned)s->width;
    s->grid = grid_for(q, s->floats ? s->c.count : div_up(count, AHEAD));
    return STATUS_OK;
}

static void launch(const struct kernel_state *state, const struct kernel_args *args)
{
    struct cast c = state->c;
    struct cuda_grid grid = state->grid, block = cuda_size(BLOCK);
    c.x = args->in[0];
    c.y = args->out[0];
    if (state->f8 && state->width == 4)
        LAUNCH(cast_f8<4>, grid, block, 0, &c, args);
    else if (state->f8)
        LAUNCH(cast_f8<1>, grid, block, 0, &c, args);
    else if (state->width == 8)
        LAUNCH(cast_floats<8>, grid, block, 0, &c, args);
    else if (state->width == 4)
        LAUNCH(cast_floats<4>, grid, block, 0, &c, args);
    else if (state->floats)
        LAUNCH(cast_floats<1>, grid, block, 0, &c, args);
    else
        LAUNCH(cast_each, grid, block, 0, &c, args);
}

static const char *const ops[] = {"Cast", NULL};

CUDA_KERNEL(cast) = {CUDA_NAME(cast), .ops = ops, CUDA_PLAN, CUDA_HOOK(launch)};
