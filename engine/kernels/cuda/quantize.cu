/* SPDX-License-Identifier: Apache-2.0
 *
 * QuantizeLinear and DequantizeLinear between floats and integers of 8 and 16 bits, the latter from
 * i32 too: a scale for all, or one per index of an axis. Quotients are rounded to f32 and then to
 * the nearest even integer, as in the reference: bit for bit its results. A thread has 16 bytes of
 * floats, whose scales are one where the axis is not the last, and neighbours where it is. */
#include "engine/kernels/cuda/lib/query.h"

struct quantize {
    const void *x, *scale, *zero; /* zero: NULL, or of the integers' type */
    void *y;
    unsigned count;                   /* of groups of `width` */
    struct divisor by_inner, by_size; /* in groups: of a line that has one scale; of scales */
    int floats, integers, scales;     /* enum dtype */
    float low, high;                  /* of the integers */
    bool along;                       /* each element of a group has a scale of its own */
};

/* ---- integers in memory ---- */

/* Words of `width` integers of so many bytes, at most 4, and back. */
template <int width>
static __device__ __forceinline__ void words_read(const void *from, size_t at, int bytes,
                                                  unsigned *words)
{
    const char *x = (const char *)from + at * bytes;
    if (width == 1) {
        words[0] = bytes == 1   ? *(const uint8_t *)x
                   : bytes == 2 ? *(const uint16_t *)x
                                : *(const unsigned *)x;
    } else if (width * bytes == 4) {
        words[0] = *(const unsigned *)x;
    } else if (width * bytes == 8) {
        uint2 two = *(const uint2 *)x;
        words[0] = two.x;
        words[1] = two.y;
    } else {
#pragma unroll
        for (int w = 0; w < width; w += 4) {
            if (w > 0 && w * 4 >= width * bytes)
                break;
            uint4 four = ((const uint4 *)x)[w / 4];
            words[w] = four.x;
            words[w + 1] = four.y;
            words[w + 2] = four.z;
            words[w + 3] = four.w;
        }
    }
}

/* Integer e of words, which are in registers: its place is known at compile time for each size. */
static __device__ __forceinline__ int integer_in(const unsigned *words, int e, int type)
{
    switch (type) {
    case DTYPE_I8:
        return (int8_t)(words[e / 4] >> e % 4 * 8);
    case DTYPE_U8:
        return (uint8_t)(words[e / 4] >> e % 4 * 8);
    case DTYPE_I16:
        return (int16_t)(words[e / 2] >> e % 2 * 16);
    case DTYPE_U16:
        return (uint16_t)(words[e / 2] >> e % 2 * 16);
    default:
        return (int)words[e];
    }
}

static __device__ __forceinline__ int bytes_of(int type)
{
    return type == DTYPE_I8 || type == DTYPE_U8 ? 1 : type == DTYPE_I32 ? 4 : 2;
}

template <int width>
static __device__ __forceinline__ void integers_store(void *to, size_t at, int bytes,
                                                      const int *values)
{
    char *y = (char *)to + at * bytes;
    unsigned words[width] = {};
#pragma unroll
    for (int e = 0; e < width; e++)
        if (bytes == 1)
            words[e / 4] |= ((unsigned)values[e] & 0xff) << e % 4 * 8;
        else
            words[e / 2] |= ((unsigned)values[e] & 0xffff) << e % 2 * 16;
    if (width == 1 && bytes == 1)
        *(uint8_t *)y = (uint8_t)words[0];
    else if (width == 1)
        *(uint16_t *)y = (uint16_t)words[0];
    else if (width * bytes == 4)
        *(unsigned *)y = words[0];
    else if (width * bytes == 8)
        *(uint2 *)y = make_uint2(words[0], words[width > 1 ? 1 : 0]);
    else
        *(uint4 *)y = make_uint4(words[0], words[width > 1 ? 1 : 0], words[width > 2 ? 2 : 0],
                                 words[width > 3 ? 3 : 0]);
}

/* ---- what a group is scaled by ---- */

template <int width> struct rule {
    float scale[width];
    int zero[width];
};

template <int width>
static __device__ __forceinline__ struct rule<width> rule_of(const struct quantize &k, unsigned g) {
    struct rule<width> r;
    unsigned line = divide(g, k.by_inner), at = line - divide(line, k.by_size) * k.by_size.d;
    if (k.along) {
        struct group<width> scales = group_as<width>(k.scales, k.scale, (size_t)at * width);
        unsigned words[width] = {};
        if (k.zero)
            words_read<width>(k.zero, (size_t)at * width, bytes_of(k.integers), words);
#pragma unroll
        for (int e = 0; e < width; e++) {
            r.scale[e] = scales.v[e];
            r.zero[e] = integer_in(words, e, k.integers);
        }
        return r;
    }
    float scale = group_as<1>(k.scales, k.scale, at).v[0];
    unsigned word = 0;
    if (k.zero)
        words_read<1>(k.zero, at, bytes_of(k.integers), &word);
#pragma unroll
    for (int e = 0; e < width; e++) {
        r.scale[e] = scale;
        r.zero[e] = integer_in(&word, 0, k.integers);
    }
    return r;
}

/* What is not a number becomes 0, whatever the zero point. */
static __device__ __forceinline__ int
quantized(const struct quantize &k, float quotient, int zero)
{
    float sum = rintf(quotient) + (float)zero;
    return sum != sum ? 0 : (int)(sum < k.low ? k.low : sum > k.high ? k.high : sum);
}

template <int width>
__global__ void __launch_bounds__(BLOCK) quantize_groups(const __grid_constant__ struct quantize k)
{
    KERNEL_BEGIN();
    for (unsigned g = blockIdx.x * BLOCK + threadIdx.x; g < k.count; g += gridDim.x * BLOCK) {
        struct group<width> v = group_as<width>(k.floats, k.x, (size_t)g * width);
        struct rule<width> r = rule_of<width>(k, g);
        int values[width];
#pragma unroll
        for (int e = 0; e < width; e++)
            values[e] = quantized(k, v.v[e] / r.scale[e], r.zero[e]);
        integers_store<width>(k.y, (size_t)g * width, bytes_of(k.integers), values);
    }
}

/* Differences of the small types are exact in f32, those of i32 are made in f64. */
static __device__ __forceinline__ float dequantized(int type, int x, int zero, float scale)
{
    if (type == DTYPE_I32)
        return (float)(((double)x - (double)zero) * (double)scale);
    return (float)(x - zero) * scale;
}

template <int width>
__global__ void __launch_bounds__(BLOCK)
    dequantize_groups(const __grid_constant__ struct quantize k)
{
    KERNEL_BEGIN();
    for (unsigned g = blockIdx.x * BLOCK + threadIdx.x; g < k.count; g += gridDim.x * BLOCK) {
        unsigned words[width] = {};
        words_read<width>(k.x, (size_t)g * width, bytes_of(k.integers), words);
        struct rule<width> r = rule_of<width>(k, g);
        struct group<width> v;
#pragma unroll
        for (int e = 0; e < width; e++)
            v.v[e] =
                dequantized(k.integers, integer_in(words, e, k.integers), r.zero[e], r.scale[e]);
        group_store_as<width>(k.floats, k.y, (size_t)g * width, v);
    }
}

/* ---- hooks ---- */

struct kernel_state {
    struct quantize k; /* pointers are left open */
    int width;
    bool back, has_zeros; /* back: from integers to floats */
    struct cuda_grid grid;
};

static enum status check_types(const struct kernel_query *q, struct kernel_state *s,
                               struct error *why)
{
    enum dtype integers = s->back ? q->in[0].dtype : q->out[0].dtype;
    enum dtype floats = s->back ? q->out[0].dtype : q->in[0].dtype;
    bool small = integers == DTYPE_I8 || integers == DTYPE_U8 || integers == DTYPE_I16 ||
                 integers == DTYPE_U16;
    if (!small && !(s->back && integers == DTYPE_I32))
        return REFUSE(why, "only integers of 8 and 16 bits, and from i32");
    if (!is_float(floats) || !is_float(q->in[1].dtype))
        return REFUSE(why, "only f32, f16 and bf16");
    if (s->has_zeros && q->in[2].dtype != integers)
        return REFUSE(why, "zero points of another type");
    s->k.floats = floats;
    s->k.integers = integers;
    s->k.scales = q->in[1].dtype;
    s->k.high = (float)((1 << (integers == DTYPE_I8    ? 7
                               : integers == DTYPE_U8  ? 8
                               : integers == DTYPE_I16 ? 15
                                                       : 16)) -
                        1);
    s->k.low = integers == DTYPE_I8 || integers == DTYPE_I16 ? -s->k.high - 1 : 0;
    return STATUS_OK;
}

static enum status plan(const struct kernel_query *q, int, struct kernel_state *s,
                        struct error *why)
{
    struct quantize *k = &s->k;
    const struct shape *x = &q->in[0].shape, *scale = &q->in[1].shape;
    s->back = strcmp(cuda_host->node_op(q->node), "DequantizeLinear") == 0;
    s->has_zeros = input_given(q, 2);
    if (!cuda_host->desc_is_dense(&q->in[0]) || !fits_index(&q->in[0]) ||
        !cuda_host->desc_same_memory(&q->in[0], &q->out[0]))
        return REFUSE(why, "only dense tensors that lie alike, of less than 2^31 elements");
    if (q->node->post_count)
        return REFUSE(why, "no fused epilogue");
    TRY(check_types(q, s, why));
    if (scale->rank > 1)
        return REFUSE(why, "scales of blocks");
    int64_t count = shape_count(x), scales = shape_count(scale);
    struct axis axis = {1, 1, count};
    if (scales != 1)
        axis = axis_of(x, axis_from(q, "axis", x->rank, 1));
    if (scales != 1 && axis.size > 1)
        axis.inner = q->in[0].stride[axis_from(q, "axis", x->rank, 1)];
    if (count == 0)
        return STATUS_OK; /* no groups */
    k->along = axis.inner == 1 && axis.size > 1;
    s->width = group_width((enum dtype)k->floats, k->along ? axis.size : axis.inner);
    k->count = (unsigned)(count / s->width);
    k->by_inner = divisor_of(k->along ? 1 : axis.inner / s->width);
    k->by_size = divisor_of(k->along ? axis.size / s->width : axis.size);
    s->grid = grid_for(q, k->count);
    return STATUS_OK;
}

static void launch(const struct kernel_state *state, const struct kernel_args *args)
{
    struct quantize k = state->k;
    k.x = args->in[0];
    k.scale = args->in[1];
    k.zero = state->has_zeros ? args->in[2] : NULL;
    k.y = args->out[0];
    if (state->back)
        LAUNCH_WIDTH(state->width, dequantize_groups<width>, state->grid, cuda_size(BLOCK), 0, &k,
                     args);
    else
        LAUNCH_WIDTH(state->width, quantize_groups<width>, state->grid, cuda_size(BLOCK), 0, &k,
                     args);
}

static const char *const ops[] = {"DequantizeLinear", "QuantizeLinear", NULL};

CUDA_KERNEL(quantize) = {CUDA_NAME(quantize), .ops = ops, CUDA_PLAN, CUDA_HOOK(launch)};
