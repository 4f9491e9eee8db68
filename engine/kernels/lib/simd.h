/* SPDX-License-Identifier: Apache-2.0
 *
 * The room engine/kernels/lib/ holds what the CPU's own kernels share: vectors (this header), GEMM
 * blocking, convolution tiles, copies. All of it is compiled once per instruction set.
 *
 * One vector of floats, as wide as the instruction set this file is compiled for: VL = 16 with
 * AVX-512, 8 with AVX2 + FMA, 1 otherwise. Kernels are written once against these names; another
 * instruction set (NEON) is one more block here. vm is a mask of VL lanes.
 */
#ifndef ENGINE_KERNELS_LIB_SIMD_H
#define ENGINE_KERNELS_LIB_SIMD_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "engine/graph/tensor.h"

#define SIMD_INLINE static inline __attribute__((always_inline, unused))

/* A function of kernels/lib that is compiled once per instruction set: SIMD_FN(gemm_pack)(...). */
#define SIMD_CAT_(a, b) a##b
#define SIMD_CAT(a, b)  SIMD_CAT_(a, b)
#define SIMD_FN(name)   SIMD_CAT(name, SIMD_SUFFIX)

#if defined(__AVX512F__)

#include <immintrin.h>

#define SIMD_SUFFIX _avx512

enum { VL = 16 };
typedef __m512 vf;
typedef __m512i vi;
typedef __mmask16 vm;

/* clang-format off */
SIMD_INLINE vf vf_zero(void) { return _mm512_setzero_ps(); }
SIMD_INLINE vf vf_set1(float x) { return _mm512_set1_ps(x); }
SIMD_INLINE vf vf_load(const float *p) { return _mm512_loadu_ps(p); }
/* lane i: a[from[i]] */
SIMD_INLINE vf vf_permute(vf a, vi from) { return _mm512_permutexvar_ps(from, a); }
SIMD_INLINE void vf_store(float *p, vf v) { _mm512_storeu_ps(p, v); }
SIMD_INLINE void vf_stream(float *p, vf v) { _mm512_stream_ps(p, v); } /* p aligned to 64 */
SIMD_INLINE void simd_fence(void) { _mm_sfence(); } /* after vf_stream, before others read */
SIMD_INLINE void simd_prefetch(const void *p) { _mm_prefetch((const char *)p, _MM_HINT_T0); }
SIMD_INLINE void simd_prefetch_second(const void *p) { _mm_prefetch((const char *)p, _MM_HINT_T1); }
SIMD_INLINE vm vm_first(int64_t n)
{ return n >= 16 ? (vm)0xffff : n <= 0 ? (vm)0 : (vm)((1u << n) - 1u); }
SIMD_INLINE vf vf_load_m(const float *p, vm m) { return _mm512_maskz_loadu_ps(m, p); }
SIMD_INLINE void vf_store_m(float *p, vm m, vf v) { _mm512_mask_storeu_ps(p, m, v); }
SIMD_INLINE vf vf_add(vf a, vf b) { return _mm512_add_ps(a, b); }
SIMD_INLINE vf vf_sub(vf a, vf b) { return _mm512_sub_ps(a, b); }
SIMD_INLINE vf vf_mul(vf a, vf b) { return _mm512_mul_ps(a, b); }
SIMD_INLINE vf vf_div(vf a, vf b) { return _mm512_div_ps(a, b); }
SIMD_INLINE vf vf_fma(vf a, vf b, vf c) { return _mm512_fmadd_ps(a, b, c); }   /*  a b + c */
SIMD_INLINE vf vf_fnma(vf a, vf b, vf c) { return _mm512_fnmadd_ps(a, b, c); } /* -a b + c */
SIMD_INLINE vf vf_min(vf a, vf b) { return _mm512_min_ps(a, b); } /* b where either is NaN */
SIMD_INLINE vf vf_max(vf a, vf b) { return _mm512_max_ps(a, b); }
SIMD_INLINE vf vf_sqrt(vf a) { return _mm512_sqrt_ps(a); }
SIMD_INLINE vf vf_abs(vf a) { return _mm512_abs_ps(a); }
SIMD_INLINE vf vf_neg(vf a)
{ return _mm512_castsi512_ps(_mm512_xor_si512(_mm512_castps_si512(a),
  _mm512_set1_epi32(INT32_MIN))); }
SIMD_INLINE vf vf_round(vf a)
{ return _mm512_roundscale_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); }
SIMD_INLINE vf vf_floor(vf a)
{ return _mm512_roundscale_ps(a, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC); }
SIMD_INLINE vf vf_ceil(vf a)
{ return _mm512_roundscale_ps(a, _MM_FROUND_TO_POS_INF | _MM_FROUND_NO_EXC); }
SIMD_INLINE vm vf_lt(vf a, vf b) { return _mm512_cmp_ps_mask(a, b, _CMP_LT_OQ); }
SIMD_INLINE vm vf_le(vf a, vf b) { return _mm512_cmp_ps_mask(a, b, _CMP_LE_OQ); }
SIMD_INLINE vm vf_eq(vf a, vf b) { return _mm512_cmp_ps_mask(a, b, _CMP_EQ_OQ); }
SIMD_INLINE vm vf_is_nan(vf a) { return _mm512_cmp_ps_mask(a, a, _CMP_UNORD_Q); }
SIMD_INLINE vf vf_select(vm m, vf yes, vf no) { return _mm512_mask_blend_ps(m, no, yes); }
SIMD_INLINE vi vi_from_vf(vf a) { return _mm512_cvtps_epi32(a); }      /* round to nearest */
SIMD_INLINE vf vf_from_vi(vi a) { return _mm512_cvtepi32_ps(a); }
/* 2^n, n in [-126, 127] */
SIMD_INLINE vf vf_exp2i(vi n)
{ return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_add_epi32(n, _mm512_set1_epi32(127)), 23)); }
SIMD_INLINE vi vi_bits(vf a) { return _mm512_castps_si512(a); }
SIMD_INLINE vf vf_bits(vi a) { return _mm512_castsi512_ps(a); }
SIMD_INLINE vi vi_set1(int32_t x) { return _mm512_set1_epi32(x); }
SIMD_INLINE vi vi_add(vi a, vi b) { return _mm512_add_epi32(a, b); }
SIMD_INLINE vi vi_sub(vi a, vi b) { return _mm512_sub_epi32(a, b); }
SIMD_INLINE vi vi_and(vi a, vi b) { return _mm512_and_si512(a, b); }
SIMD_INLINE vi vi_or(vi a, vi b) { return _mm512_or_si512(a, b); }
SIMD_INLINE vi vi_shift_right(vi a, int n) { return _mm512_srai_epi32(a, (unsigned)n); }
SIMD_INLINE vi vi_shift_left(vi a, int n) { return _mm512_slli_epi32(a, (unsigned)n); }
SIMD_INLINE float vf_sum(vf a) { return _mm512_reduce_add_ps(a); }
SIMD_INLINE float vf_max_of(vf a) { return _mm512_reduce_max_ps(a); }
SIMD_INLINE float vf_min_of(vf a) { return _mm512_reduce_min_ps(a); }
/* a 2^n, n integral, any finite n */
SIMD_INLINE vf vf_scale(vf a, vf n) { return _mm512_scalef_ps(a, n); }
SIMD_INLINE vi vi_load(const int32_t *p) { return _mm512_loadu_si512(p); }
SIMD_INLINE void vi_store(int32_t *p, vi v) { _mm512_storeu_si512(p, v); }
SIMD_INLINE vm vm_and(vm a, vm b) { return (vm)(a & b); }
SIMD_INLINE unsigned vm_bits(vm m) { return m; } /* bit i: lane i */
SIMD_INLINE void vm_store_bool(uint8_t *p, vm m)
{ _mm_storeu_si128((__m128i *)(void *)p, _mm_maskz_set1_epi8(m, 1)); }
SIMD_INLINE vf vf_load_half(const uint16_t *p)
{ return _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)(const void *)p)); }
SIMD_INLINE void vf_store_half(uint16_t *p, vf v)
{ _mm256_storeu_si256((__m256i *)(void *)p, _mm512_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT)); }
/* clang-format on */

#elif defined(__AVX2__)

#include <immintrin.h>

#define SIMD_SUFFIX _avx2

enum { VL = 8 };
typedef __m256 vf;
typedef __m256i vi;
typedef __m256i vm;

/* clang-format off */
SIMD_INLINE vf vf_zero(void) { return _mm256_setzero_ps(); }
SIMD_INLINE vf vf_set1(float x) { return _mm256_set1_ps(x); }
SIMD_INLINE vf vf_load(const float *p) { return _mm256_loadu_ps(p); }
SIMD_INLINE vf vf_permute(vf a, vi from) { return _mm256_permutevar8x32_ps(a, from); }
SIMD_INLINE void vf_store(float *p, vf v) { _mm256_storeu_ps(p, v); }
SIMD_INLINE void vf_stream(float *p, vf v) { _mm256_stream_ps(p, v); } /* p aligned to 32 */
SIMD_INLINE void simd_fence(void) { _mm_sfence(); }
SIMD_INLINE void simd_prefetch(const void *p) { _mm_prefetch((const char *)p, _MM_HINT_T0); }
SIMD_INLINE void simd_prefetch_second(const void *p) { _mm_prefetch((const char *)p, _MM_HINT_T1); }
SIMD_INLINE vm vm_first(int64_t n)
{ return _mm256_cmpgt_epi32(_mm256_set1_epi32(n > 8 ? 8 : n < 0 ? 0 : (int)n),
  _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7)); }
SIMD_INLINE vf vf_load_m(const float *p, vm m) { return _mm256_maskload_ps(p, m); }
SIMD_INLINE void vf_store_m(float *p, vm m, vf v) { _mm256_maskstore_ps(p, m, v); }
SIMD_INLINE vf vf_add(vf a, vf b) { return _mm256_add_ps(a, b); }
SIMD_INLINE vf vf_sub(vf a, vf b) { return _mm256_sub_ps(a, b); }
SIMD_INLINE vf vf_mul(vf a, vf b) { return _mm256_mul_ps(a, b); }
SIMD_INLINE vf vf_div(vf a, vf b) { return _mm256_div_ps(a, b); }
SIMD_INLINE vf vf_fma(vf a, vf b, vf c) { return _mm256_fmadd_ps(a, b, c); }
SIMD_INLINE vf vf_fnma(vf a, vf b, vf c) { return _mm256_fnmadd_ps(a, b, c); }
SIMD_INLINE vf vf_min(vf a, vf b) { return _mm256_min_ps(a, b); }
SIMD_INLINE vf vf_max(vf a, vf b) { return _mm256_max_ps(a, b); }
SIMD_INLINE vf vf_sqrt(vf a) { return _mm256_sqrt_ps(a); }
SIMD_INLINE vf vf_abs(vf a) { return _mm256_andnot_ps(_mm256_set1_ps(-0.0f), a); }
SIMD_INLINE vf vf_neg(vf a) { return _mm256_xor_ps(_mm256_set1_ps(-0.0f), a); }
SIMD_INLINE vf vf_round(vf a)
{ return _mm256_round_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); }
SIMD_INLINE vf vf_floor(vf a) { return _mm256_floor_ps(a); }
SIMD_INLINE vf vf_ceil(vf a) { return _mm256_ceil_ps(a); }
SIMD_INLINE vm vf_lt(vf a, vf b) { return _mm256_castps_si256(_mm256_cmp_ps(a, b, _CMP_LT_OQ)); }
SIMD_INLINE vm vf_le(vf a, vf b) { return _mm256_castps_si256(_mm256_cmp_ps(a, b, _CMP_LE_OQ)); }
SIMD_INLINE vm vf_eq(vf a, vf b) { return _mm256_castps_si256(_mm256_cmp_ps(a, b, _CMP_EQ_OQ)); }
SIMD_INLINE vm vf_is_nan(vf a) { return _mm256_castps_si256(_mm256_cmp_ps(a, a, _CMP_UNORD_Q)); }
SIMD_INLINE vf vf_select(vm m, vf yes, vf no)
{ return _mm256_blendv_ps(no, yes, _mm256_castsi256_ps(m)); }
SIMD_INLINE vi vi_from_vf(vf a) { return _mm256_cvtps_epi32(a); }
SIMD_INLINE vf vf_from_vi(vi a) { return _mm256_cvtepi32_ps(a); }
SIMD_INLINE vf vf_exp2i(vi n)
{ return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_add_epi32(n, _mm256_set1_epi32(127)), 23)); }
SIMD_INLINE vi vi_bits(vf a) { return _mm256_castps_si256(a); }
SIMD_INLINE vf vf_bits(vi a) { return _mm256_castsi256_ps(a); }
SIMD_INLINE vi vi_set1(int32_t x) { return _mm256_set1_epi32(x); }
SIMD_INLINE vi vi_add(vi a, vi b) { return _mm256_add_epi32(a, b); }
SIMD_INLINE vi vi_sub(vi a, vi b) { return _mm256_sub_epi32(a, b); }
SIMD_INLINE vi vi_and(vi a, vi b) { return _mm256_and_si256(a, b); }
SIMD_INLINE vi vi_or(vi a, vi b) { return _mm256_or_si256(a, b); }
SIMD_INLINE vi vi_shift_right(vi a, int n) { return _mm256_srai_epi32(a, n); }
SIMD_INLINE vi vi_shift_left(vi a, int n) { return _mm256_slli_epi32(a, n); }
SIMD_INLINE __m128 simd_fold_add(vf a)
{ return _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1)); }
SIMD_INLINE float vf_sum(vf a)
{ __m128 s = simd_fold_add(a); s = _mm_add_ps(s, _mm_movehl_ps(s, s)); return
  _mm_cvtss_f32(_mm_add_ss(s, _mm_shuffle_ps(s, s, 1))); }
SIMD_INLINE float vf_max_of(vf a)
{ __m128 s = _mm_max_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1)); s =
  _mm_max_ps(s, _mm_movehl_ps(s, s)); return _mm_cvtss_f32(_mm_max_ss(s, _mm_shuffle_ps(s, s,
  1))); }
SIMD_INLINE float vf_min_of(vf a)
{ __m128 s = _mm_min_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1)); s =
  _mm_min_ps(s, _mm_movehl_ps(s, s)); return _mm_cvtss_f32(_mm_min_ss(s, _mm_shuffle_ps(s, s,
  1))); }
SIMD_INLINE vf vf_scale(vf a, vf n)
{
    __m256i whole = _mm256_cvtps_epi32(n), half = _mm256_srai_epi32(whole, 1); /* |n| <= 252 */
    __m256i bias = _mm256_set1_epi32(127);
    __m256 low = _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_add_epi32(half, bias), 23));
    half = _mm256_sub_epi32(whole, half);
    __m256 high = _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_add_epi32(half, bias), 23));
    return _mm256_mul_ps(_mm256_mul_ps(a, low), high);
}
SIMD_INLINE vi vi_load(const int32_t *p)
{ return _mm256_loadu_si256((const __m256i *)(const void *)p); }
SIMD_INLINE void vi_store(int32_t *p, vi v) { _mm256_storeu_si256((__m256i *)(void *)p, v); }
SIMD_INLINE vm vm_and(vm a, vm b) { return _mm256_and_si256(a, b); }
SIMD_INLINE unsigned vm_bits(vm m) { return (unsigned)_mm256_movemask_ps(_mm256_castsi256_ps(m)); }
SIMD_INLINE void vm_store_bool(uint8_t *p, vm m)
{
    __m128i words = _mm_packs_epi32(_mm256_castsi256_si128(m), _mm256_extracti128_si256(m, 1));
    __m128i bytes = _mm_and_si128(_mm_packs_epi16(words, words), _mm_set1_epi8(1));
    _mm_storel_epi64((__m128i *)(void *)p, bytes);
}
SIMD_INLINE vf vf_load_half(const uint16_t *p)
{ return _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)p)); }
SIMD_INLINE void vf_store_half(uint16_t *p, vf v)
{ _mm_storeu_si128((__m128i *)(void *)p, _mm256_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT)); }
/* clang-format on */

#else

#define SIMD_SUFFIX _scalar

enum { VL = 1 };
typedef float vf;
typedef int32_t vi;
typedef int32_t vm; /* 0 or -1 */

/* clang-format off */
SIMD_INLINE vf vf_zero(void) { return 0.0f; }
SIMD_INLINE vf vf_set1(float x) { return x; }
SIMD_INLINE vf vf_load(const float *p) { return *p; }
SIMD_INLINE vf vf_permute(vf a, vi from) { (void)from; return a; }
SIMD_INLINE void vf_store(float *p, vf v) { *p = v; }
SIMD_INLINE void vf_stream(float *p, vf v) { *p = v; }
SIMD_INLINE void simd_fence(void) {}
SIMD_INLINE void simd_prefetch(const void *p) { (void)p; }
SIMD_INLINE void simd_prefetch_second(const void *p) { (void)p; }
SIMD_INLINE vm vm_first(int64_t n) { return n > 0 ? -1 : 0; }
SIMD_INLINE vf vf_load_m(const float *p, vm m) { return m ? *p : 0.0f; }
SIMD_INLINE void vf_store_m(float *p, vm m, vf v) { if (m) *p = v; }
SIMD_INLINE vf vf_add(vf a, vf b) { return a + b; }
SIMD_INLINE vf vf_sub(vf a, vf b) { return a - b; }
SIMD_INLINE vf vf_mul(vf a, vf b) { return a * b; }
SIMD_INLINE vf vf_div(vf a, vf b) { return a / b; }
#if defined(__aarch64__) /* one instruction, which ISO C lets no compiler make of a * b + c */
SIMD_INLINE vf vf_fma(vf a, vf b, vf c) { return fmaf(a, b, c); }
SIMD_INLINE vf vf_fnma(vf a, vf b, vf c) { return fmaf(-a, b, c); }
#else
SIMD_INLINE vf vf_fma(vf a, vf b, vf c) { return a * b + c; }
SIMD_INLINE vf vf_fnma(vf a, vf b, vf c) { return c - a * b; }
#endif
SIMD_INLINE vf vf_min(vf a, vf b) { return a < b ? a : b; }
SIMD_INLINE vf vf_max(vf a, vf b) { return a > b ? a : b; }
SIMD_INLINE vf vf_sqrt(vf a) { return sqrtf(a); }
SIMD_INLINE vf vf_abs(vf a) { return fabsf(a); }
SIMD_INLINE vf vf_neg(vf a) { return -a; }
SIMD_INLINE vf vf_round(vf a) { return nearbyintf(a); }
SIMD_INLINE vf vf_floor(vf a) { return floorf(a); }
SIMD_INLINE vf vf_ceil(vf a) { return ceilf(a); }
SIMD_INLINE vm vf_lt(vf a, vf b) { return -(a < b); }
SIMD_INLINE vm vf_le(vf a, vf b) { return -(a <= b); }
SIMD_INLINE vm vf_eq(vf a, vf b) { return -(a == b); }
SIMD_INLINE vm vf_is_nan(vf a) { return -(a != a); }
SIMD_INLINE vf vf_select(vm m, vf yes, vf no) { return m ? yes : no; }
SIMD_INLINE vi vi_from_vf(vf a) { return (vi)lrintf(a); }
SIMD_INLINE vf vf_from_vi(vi a) { return (vf)a; }
SIMD_INLINE vi vi_bits(vf a) { vi bits; memcpy(&bits, &a, sizeof(bits)); return bits; }
SIMD_INLINE vf vf_bits(vi a) { vf value; memcpy(&value, &a, sizeof(value)); return value; }
SIMD_INLINE vf vf_exp2i(vi n) { return vf_bits((vi)((uint32_t)(n + 127) << 23)); }
SIMD_INLINE vi vi_set1(int32_t x) { return x; }
SIMD_INLINE vi vi_add(vi a, vi b) { return (vi)((uint32_t)a + (uint32_t)b); }
SIMD_INLINE vi vi_sub(vi a, vi b) { return (vi)((uint32_t)a - (uint32_t)b); }
SIMD_INLINE vi vi_and(vi a, vi b) { return a & b; }
SIMD_INLINE vi vi_or(vi a, vi b) { return a | b; }
SIMD_INLINE vi vi_shift_right(vi a, int n) { return a >> n; }
SIMD_INLINE vi vi_shift_left(vi a, int n) { return (vi)((uint32_t)a << n); }
SIMD_INLINE float vf_sum(vf a) { return a; }
SIMD_INLINE float vf_max_of(vf a) { return a; }
SIMD_INLINE float vf_min_of(vf a) { return a; }
SIMD_INLINE vf vf_scale(vf a, vf n)
{ vi whole = vi_from_vf(n), half = whole >> 1; return a * vf_exp2i(half) * vf_exp2i(whole - half); }
SIMD_INLINE vi vi_load(const int32_t *p) { return *p; }
SIMD_INLINE void vi_store(int32_t *p, vi v) { *p = v; }
SIMD_INLINE vm vm_and(vm a, vm b) { return a & b; }
SIMD_INLINE unsigned vm_bits(vm m) { return (unsigned)m & 1u; }
SIMD_INLINE void vm_store_bool(uint8_t *p, vm m) { *p = m ? 1 : 0; }
SIMD_INLINE vf vf_load_half(const uint16_t *p) { return half_to_float(*p); }
SIMD_INLINE void vf_store_half(uint16_t *p, vf v) { *p = half_from_float(v); }
/* clang-format on */

#endif

#endif
