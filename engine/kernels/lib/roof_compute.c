/* SPDX-License-Identifier: Apache-2.0
 *
 * Arithmetic loops: chains of dependent operations, more of them than latency times ports (4 x 2
 * on today's cores of x86, 6 x 2 for the dot products; 4 x 4 on Arm's Neoverse V1 and V2), so that
 * the units never wait. */
#include "engine/kernels/lib/roof.h"

#include "engine/kernels/lib/simd.h"

#if defined(__aarch64__) /* 32 registers */
enum { CHAINS = 20, UNROLL = 8 };
#else
enum { CHAINS = 12, UNROLL = 8 };
#endif

/* sum[c] becomes `next` for each chain, so many rounds. The sums are registers: nothing but
 * unrolled loops may touch them. */
#define EACH_CHAIN _Pragma("GCC unroll 20") for (int c = 0; c < CHAINS; c++)
#define ROUNDS(rounds, sum, next)                                                                  \
    for (int64_t r = 0; r < (rounds); r++)                                                         \
        for (int u = 0; u < UNROLL; u++)                                                           \
            EACH_CHAIN                                                                             \
            {                                                                                      \
                (sum)[c] = (next);                                                                 \
            }

#if defined(__AVX512F__)

enum { LANES_F64 = 8, LANES_F32 = 16 };
typedef __m512d vd;
typedef __m512 vs;

SIMD_INLINE vd vd_set1(double x)
{
    return _mm512_set1_pd(x);
}

SIMD_INLINE vd vd_fma(vd a, vd b, vd c)
{
    return _mm512_fmadd_pd(a, b, c);
}

SIMD_INLINE vs vs_set1(float x)
{
    return _mm512_set1_ps(x);
}

SIMD_INLINE vs vs_fma(vs a, vs b, vs c)
{
    return _mm512_fmadd_ps(a, b, c);
}

/* 64 products of bytes, added to 16 sums of 32 bits. Without the barrier the compiler would see
 * that both factors are constant and compute the products once. */
SIMD_INLINE vi vi_dot_bytes(vi sum, vi a, vi b)
{
    __asm__ volatile("" : "+v"(a));
    vi pairs = _mm512_maddubs_epi16(a, b);
    return _mm512_add_epi32(sum, _mm512_madd_epi16(pairs, _mm512_set1_epi16(1)));
}

#elif defined(__AVX2__)

enum { LANES_F64 = 4, LANES_F32 = 8 };
typedef __m256d vd;
typedef __m256 vs;

SIMD_INLINE vd vd_set1(double x)
{
    return _mm256_set1_pd(x);
}

SIMD_INLINE vd vd_fma(vd a, vd b, vd c)
{
    return _mm256_fmadd_pd(a, b, c);
}

SIMD_INLINE vs vs_set1(float x)
{
    return _mm256_set1_ps(x);
}

SIMD_INLINE vs vs_fma(vs a, vs b, vs c)
{
    return _mm256_fmadd_ps(a, b, c);
}

SIMD_INLINE vi vi_dot_bytes(vi sum, vi a, vi b)
{
    __asm__ volatile("" : "+x"(a));
    vi pairs = _mm256_maddubs_epi16(a, b);
    return _mm256_add_epi32(sum, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
}

#else

/* The 128 bits that every CPU of this architecture has, with its fused multiply-add. x86 has none
 * there. ISO C lets no compiler fuse a * b + c by itself. */
enum { LANES_F64 = 2, LANES_F32 = 4 };
typedef double vd __attribute__((vector_size(16)));
typedef float vs __attribute__((vector_size(16)));

SIMD_INLINE vd vd_set1(double x)
{
    return (vd){x, x};
}

SIMD_INLINE vs vs_set1(float x)
{
    return (vs){x, x, x, x};
}

#if defined(__aarch64__)

#include <arm_neon.h>

/* The instruction overwrites what it adds to, so that is what has to be the chain: any other one
 * would cost a move. */
SIMD_INLINE vd vd_fma(vd sum, vd a, vd b)
{
    return vfmaq_f64(sum, a, b);
}

SIMD_INLINE vs vs_fma(vs sum, vs a, vs b)
{
    return vfmaq_f32(sum, a, b);
}

#else

SIMD_INLINE vd vd_fma(vd a, vd b, vd c)
{
    return a * b + c;
}

SIMD_INLINE vs vs_fma(vs a, vs b, vs c)
{
    return a * b + c;
}

#endif

#endif

#define FMA_ROOF(name, vector, element, prefix, lane_count)                                        \
    double SIMD_FN(name)(int64_t rounds, float *sink)                                              \
    {                                                                                              \
        vector sum[CHAINS], a = prefix##_set1((element)0.999), b = prefix##_set1((element)1e-3);   \
        element lanes[lane_count], total = 0;                                                      \
        EACH_CHAIN sum[c] = prefix##_set1((element)c);                                             \
        ROUNDS(rounds, sum, prefix##_fma(sum[c], a, b));                                           \
        EACH_CHAIN                                                                                 \
        {                                                                                          \
            memcpy(lanes, &sum[c], sizeof(lanes));                                                 \
            for (int k = 0; k < (lane_count); k++)                                                 \
                total += lanes[k];                                                                 \
        }                                                                                          \
        *sink = (float)total;                                                                      \
        return (double)rounds * UNROLL * CHAINS * (lane_count)*2;                                  \
    }
FMA_ROOF(roof_fma_f32, vs, float, vs, LANES_F32)
FMA_ROOF(roof_fma_f64, vd, double, vd, LANES_F64)

#if defined(__AVX2__)

double SIMD_FN(roof_dot_i8)(int64_t rounds, float *sink)
{
    vi sum[CHAINS];
    vi a = vi_set1(0x01020304), b = vi_set1(0x01010101);
    EACH_CHAIN sum[c] = vi_set1(c);
    ROUNDS(rounds, sum, vi_dot_bytes(sum[c], a, b));
#pragma GCC unroll 12
    for (int c = 1; c < CHAINS; c++)
        sum[0] = vi_add(sum[0], sum[c]);
    *sink = vf_sum(vf_from_vi(sum[0]));
    return (double)rounds * UNROLL * CHAINS * VL * 4 * 2;
}

#endif

#if defined(__AVX512F__)
#define VNNI                   "avx512vnni"
#define vi_dot_vnni(sum, a, b) _mm512_dpbusd_epi32(sum, a, b)
#elif defined(__AVX2__)
#define VNNI                   "avxvnni"
#define vi_dot_vnni(sum, a, b) _mm256_dpbusd_avx_epi32(sum, a, b)
#endif

#if defined(VNNI)

__attribute__((target(VNNI))) double SIMD_FN(roof_dot_i8_vnni)(int64_t rounds, float *sink)
{
    vi sum[CHAINS];
    vi a = vi_set1(0x01020304), b = vi_set1(0x01010101);
    EACH_CHAIN sum[c] = vi_set1(c);
    ROUNDS(rounds, sum, vi_dot_vnni(sum[c], a, b));
#pragma GCC unroll 12
    for (int c = 1; c < CHAINS; c++)
        sum[0] = vi_add(sum[0], sum[c]);
    *sink = vf_sum(vf_from_vi(sum[0]));
    return (double)rounds * UNROLL * CHAINS * VL * 4 * 2;
}

#endif

#if defined(__AVX512F__)

__attribute__((target("avx512bf16"))) double roof_dot_bf16_avx512(int64_t rounds, float *sink)
{
    __m512 sum[CHAINS];
    __m512bh a = (__m512bh)_mm512_set1_epi16(0x3f80); /* 1 */
    __m512bh b = (__m512bh)_mm512_set1_epi16(0x3a80); /* 2^-10 */
    EACH_CHAIN sum[c] = _mm512_set1_ps((float)c);
    ROUNDS(rounds, sum, _mm512_dpbf16_ps(sum[c], a, b));
#pragma GCC unroll 12
    for (int c = 1; c < CHAINS; c++)
        sum[0] = _mm512_add_ps(sum[0], sum[c]);
    *sink = _mm512_reduce_add_ps(sum[0]);
    return (double)rounds * UNROLL * CHAINS * 32 * 2;
}

#endif
