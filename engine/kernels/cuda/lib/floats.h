/* SPDX-License-Identifier: Apache-2.0
 *
 * Floats in memory: float, half and bfloat; in registers all are f32. Kernels that are bound by
 * arithmetic are templates over `element`, read with float_at, write with float_put, and are
 * launched by LAUNCH_FLOATS. Those that are bound by memory are told the type at run time
 * (group_as, WITH_ELEMENT), which costs them a branch that all threads take alike.
 *
 * The 16-bit types are our own: of CUDA's headers three instructions would be used, and they add
 * half a second to the compilation of each file and chip. */
#ifndef ENGINE_KERNELS_CUDA_LIB_FLOATS_H
#define ENGINE_KERNELS_CUDA_LIB_FLOATS_H

#include <stdint.h>

struct half {
    uint16_t bits;
};

struct bfloat {
    uint16_t bits;
};

/* e4m3, only ever read. */
struct float8 {
    uint8_t bits;
};

/* On the host tests/gpu/host/cuda_arithmetic.h has these six. */
#ifndef FLOATS_OF_HOST
static __device__ __forceinline__ float half_bits_to_float(uint16_t bits)
{
    float x;
    asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(bits));
    return x;
}

static __device__ __forceinline__ uint16_t half_bits_of_float(float x)
{
    uint16_t bits;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(x));
    return bits;
}

static __device__ __forceinline__ uint16_t bfloat_bits_of_float(float x)
{
    uint16_t bits;
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(bits) : "f"(x));
    return bits;
}

/* NaN if either is. */
static __device__ __forceinline__ float max_or_nan(float a, float b)
{
    float larger;
    asm("max.NaN.f32 %0, %1, %2;" : "=f"(larger) : "f"(a), "f"(b));
    return larger;
}

/* The same of two pairs; the first argument only names the type. From sm_80 on. */
static __device__ __forceinline__ unsigned max_or_nan_of_pairs(struct half, unsigned a, unsigned b)
{
    unsigned larger;
    asm("max.NaN.f16x2 %0, %1, %2;" : "=r"(larger) : "r"(a), "r"(b));
    return larger;
}

static __device__ __forceinline__ unsigned max_or_nan_of_pairs(struct bfloat, unsigned a,
                                                               unsigned b)
{
    unsigned larger;
    asm("max.NaN.bf16x2 %0, %1, %2;" : "=r"(larger) : "r"(a), "r"(b));
    return larger;
}
#endif

/* ---- one element ---- */

static __device__ __forceinline__ float to_float(float x)
{
    return x;
}

static __device__ __forceinline__ float to_float(struct half x)
{
    return half_bits_to_float(x.bits);
}

static __device__ __forceinline__ float to_float(struct bfloat x)
{
    return __int_as_float((int)((unsigned)x.bits << 16));
}

/* As f8_to_float of engine/graph/tensor.c. */
static __device__ __forceinline__ float to_float(struct float8 x)
{
    unsigned size = x.bits & 0x7fu;
    float value = __int_as_float(size == 0x7fu ? 0x7fc00000 : (int)(size << 20)) * 0x1p120f;
    return x.bits & 0x80u ? -value : value;
}

template <class element> static __device__ __forceinline__ float float_at(const element *x)
{
    return to_float(*x);
}

/* Rounded to nearest even. */
static __device__ __forceinline__ void float_put(float *y, float x)
{
    *y = x;
}

static __device__ __forceinline__ void float_put(struct half *y, float x)
{
    y->bits = half_bits_of_float(x);
}

static __device__ __forceinline__ void float_put(struct bfloat *y, float x)
{
    y->bits = bfloat_bits_of_float(x);
}

/* ---- groups: `width` neighbouring elements ---- */

template <int width> struct group {
    float v[width];
};

/* 16 bytes of f32, 8 of the others. */
static __device__ __forceinline__ struct group<4> group_at(const float *x, struct group<4> r) {
    float4 v = *(const float4 *)x;
    r = {{v.x, v.y, v.z, v.w}};
    return r;
}

template <class element>
static __device__ __forceinline__ struct group<4> group_at(const element *x, struct group<4> r) {
    uint2 v = *(const uint2 *)x;
    r.v[0] = to_float(element{(uint16_t)v.x});
    r.v[1] = to_float(element{(uint16_t)(v.x >> 16)});
    r.v[2] = to_float(element{(uint16_t)v.y});
    r.v[3] = to_float(element{(uint16_t)(v.y >> 16)});
    return r;
}

static __device__ __forceinline__ struct group<8>
group_at(const float *x, struct group<8> r) {
    struct group<4> low = group_at(x, group<4>{}), high = group_at(x + 4, group<4>{});
    for (int i = 0; i < 4; i++) {
        r.v[i] = low.v[i];
        r.v[i + 4] = high.v[i];
    }
    return r;
}

template <class element>
static __device__ __forceinline__ struct group<8> group_at(const element *x, struct group<8> r) {
    uint4 v = *(const uint4 *)x;
    const unsigned pair[4] = {v.x, v.y, v.z, v.w};
    for (int i = 0; i < 4; i++) {
        r.v[2 * i] = to_float(element{(uint16_t)pair[i]});
        r.v[2 * i + 1] = to_float(element{(uint16_t)(pair[i] >> 16)});
    }
    return r;
}

template <class element>
static __device__ __forceinline__ struct group<1> group_at(const element *x, struct group<1> r) {
    r.v[0] = to_float(*x);
    return r;
}

static __device__ __forceinline__ void
group_store(float *y, const struct group<4> &r)
{
    *(float4 *)y = make_float4(r.v[0], r.v[1], r.v[2], r.v[3]);
}

template <class element>
static __device__ __forceinline__ void group_store(element *y, const struct group<4> &r)
{
    element e[4];
    for (int i = 0; i < 4; i++)
        float_put(&e[i], r.v[i]);
    *(uint2 *)y =
        make_uint2(e[0].bits | (unsigned)e[1].bits << 16, e[2].bits | (unsigned)e[3].bits << 16);
}

static __device__ __forceinline__ void group_store(float *y, const struct group<8> &r)
{
    *(float4 *)y = make_float4(r.v[0], r.v[1], r.v[2], r.v[3]);
    *(float4 *)(y + 4) = make_float4(r.v[4], r.v[5], r.v[6], r.v[7]);
}

template <class element>
static __device__ __forceinline__ void group_store(element *y, const struct group<8> &r)
{
    element e[8];
    for (int i = 0; i < 8; i++)
        float_put(&e[i], r.v[i]);
    *(uint4 *)y =
        make_uint4(e[0].bits | (unsigned)e[1].bits << 16, e[2].bits | (unsigned)e[3].bits << 16,
                   e[4].bits | (unsigned)e[5].bits << 16, e[6].bits | (unsigned)e[7].bits << 16);
}

template <class element>
static __device__ __forceinline__ void group_store(element *y, const struct group<1> &r)
{
    float_put(y, r.v[0]);
}

/* ---- groups of a type that is known at run time only (enum dtype) ---- */

template <int width>
static __device__ __forceinline__ struct group<width> group_as(int type, const void *x, size_t at) {
    struct group<width> r = {
    };
    if (type == DTYPE_F32)
        return group_at((const float *)x + at, r);
    return type == DTYPE_F16 ? group_at((const struct half *)x + at, r)
                             : group_at((const struct bfloat *)x + at, r);
}

template <int width>
static __device__ __forceinline__ void group_store_as(int type, void *y, size_t at,
                                                      const struct group<width> &r)
{
    if (type == DTYPE_F32)
        group_store((float *)y + at, r);
    else if (type == DTYPE_F16)
        group_store((struct half *)y + at, r);
    else
        group_store((struct bfloat *)y + at, r);
}

/* A statement that names `element`, for a type that is known at run time only. Groups of 8 are
 * never f32. */
#define WITH_ELEMENT(type, width, ...)                                                             \
    do {                                                                                           \
        if ((width) < 8 && (type) == DTYPE_F32) {                                                  \
            using element = float;                                                                 \
            __VA_ARGS__;                                                                           \
        } else if ((type) == DTYPE_F16) {                                                          \
            using element = struct half;                                                           \
            __VA_ARGS__;                                                                           \
        } else {                                                                                   \
            using element = struct bfloat;                                                         \
            __VA_ARGS__;                                                                           \
        }                                                                                          \
    } while (0)

/* ---- launching ---- */

/* LAUNCH of a kernel that names `element`, for the type of floats: f32, f16 or bf16. */
#define LAUNCH_FLOATS(type, kernel, grid_size, block_size, bytes, parameters, args)                \
    do {                                                                                           \
        if ((type) == DTYPE_F16) {                                                                 \
            using element = struct half;                                                           \
            LAUNCH(kernel, grid_size, block_size, bytes, parameters, args);                        \
        } else if ((type) == DTYPE_BF16) {                                                         \
            using element = struct bfloat;                                                         \
            LAUNCH(kernel, grid_size, block_size, bytes, parameters, args);                        \
        } else {                                                                                   \
            using element = float;                                                                 \
            LAUNCH(kernel, grid_size, block_size, bytes, parameters, args);                        \
        }                                                                                          \
    } while (0)

/* LAUNCH of a kernel that names `width`: 8 (of 16 bits only), 4 or 1. For kernels that are told the
 * type (group_as): where memory is the limit a branch per group costs nothing, and there are three
 * kernels to compile instead of eight. */
#define LAUNCH_WIDTH(group_size, kernel, grid_size, block_size, bytes, parameters, args)           \
    do {                                                                                           \
        if ((group_size) == 8) {                                                                   \
            constexpr int width = 8;                                                               \
            LAUNCH(kernel, grid_size, block_size, bytes, parameters, args);                        \
        } else if ((group_size) == 4) {                                                            \
            constexpr int width = 4;                                                               \
            LAUNCH(kernel, grid_size, block_size, bytes, parameters, args);                        \
        } else {                                                                                   \
            constexpr int width = 1;                                                               \
            LAUNCH(kernel, grid_size, block_size, bytes, parameters, args);                        \
        }                                                                                          \
    } while (0)

#endif
