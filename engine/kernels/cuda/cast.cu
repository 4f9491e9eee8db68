/* SPDX-License-Identifier: Apache-2.0
 *
 * Cast between f32, f16, bf16, i32, i64, u8 and bool, and from f8 to floats, of tensors that lie
 * alike. Floats that an integer type cannot hold give its nearest bound and NaN gives 0, as in the
 * reference; integers wrap. */
#include "engine/kernels/cuda/lib/query.h"

struct cast {
    const void *x;
    void *y;
    unsigned count;
    int from, to; /* enum dtype */
};

/* [least, end) is what the type holds. */
static __device__ __forceinline__ int64_t bounded(float x, float least, float end, int64_t most)
{
    if (x != x)
        return 0;
    return x >= end ? most : (int64_t)(x < least ? least : x);
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

static __device__ __forceinline__ void store(const struct cast &c, unsigned k)
{
    switch (c.to) {
    case DTYPE_F32:
    case DTYPE_F16:
    case DTYPE_BF16:
        group_store_as<1>(c.to, c.y, k, {{(float)integer_at(c, k)}});
        break;
    case DTYPE_I32:
        ((int32_t *)c.y)[k] = (int32_t)integer_at(c, k);
        break;
    case DTYPE_I64:
        ((int64_t *)c.y)[k] = integer_at(c, k);
        break;
    case DTYPE_BOOL:
        ((uint8_t *)c.y)[k] = integer_at(c, k) != 0;
        break;
    default:
        ((uint8_t *)c.y)[k] = (uint8_t)integer_at(c, k);
    }
}

__global__ void __launch_bounds__(BLOCK) cast_each(const __grid_constant__ struct cast c)
{
    for (unsigned k = blockIdx.x * BLOCK + threadIdx.x; k < c.count; k += gridDim.x * BLOCK)
        store(c, k);
}

template <int width>
__global__ void __launch_bounds__(BLOCK) cast_floats(const __grid_constant__ struct cast c)
{
    for (unsigned k = blockIdx.x * BLOCK + threadIdx.x; k < c.count; k += gridDim.x * BLOCK)
        group_store_as<width>(c.to, c.y, (size_t)k * width,
                              group_as<width>(c.from, c.x, (size_t)k * width));
}

__global__ void __launch_bounds__(BLOCK) cast_f8(const __grid_constant__ struct cast c)
{
    for (unsigned k = blockIdx.x * BLOCK + threadIdx.x; k < c.count; k += gridDim.x * BLOCK)
        group_store_as<1>(c.to, c.y, k, {{to_float(((const struct float8 *)c.x)[k])}});
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

static enum status supports(const struct kernel_query *q, struct error *why)
{
    bool f8 = q->in[0].dtype == DTYPE_F8E4M3 && is_float(q->out[0].dtype);
    if (!f8 && (!is_known(q->in[0].dtype) || !is_known(q->out[0].dtype)))
        return REFUSE(why, "only f32, f16, bf16, i32, i64, u8, bool, and f8 to floats");
    if (!lie_alike(&q->in[0], q->out[0]) || !fits_index(&q->in[0]))
        return REFUSE(why, "input and output lie differently");
    return q->node->post_count ? REFUSE(why, "no fused epilogue") : STATUS_OK;
}

static void launch(const struct kernel_state *state, const struct kernel_query *q,
                   const struct kernel_args *args)
{
    (void)state;
    struct cast c = {args->in[0], args->out[0], (unsigned)shape_count(&q->in[0].shape),
                     (int)q->in[0].dtype, (int)q->out[0].dtype};
    bool floats = is_float(q->in[0].dtype) && is_float(q->out[0].dtype);
    bool by_four = floats && c.count % 4 == 0;
    c.count /= by_four ? 4 : 1;
    struct cuda_grid grid = grid_for(q, c.count), block = cuda_size(BLOCK);
    if (c.count == 0)
        return;
    if (q->in[0].dtype == DTYPE_F8E4M3)
        LAUNCH(cast_f8, grid, block, 0, &c, args);
    else if (by_four)
        LAUNCH(cast_floats<4>, grid, block, 0, &c, args);
    else if (floats)
        LAUNCH(cast_floats<1>, grid, block, 0, &c, args);
    else
        LAUNCH(cast_each, grid, block, 0, &c, args);
}

static const char *const ops[] = {"Cast", NULL};

CUDA_KERNEL(cast) = {CUDA_NAME(cast), .ops = ops, .supports = supports, .launch = launch};
