/* SPDX-License-Identifier: Apache-2.0
 *
 * Products of short numbers, VL lanes of 32-bit words at a time: a word holds two bf16 or four
 * bytes. vf_dot_bf16 and vf_to_bf16_one are single instructions of AVX512-BF16, vi_dot_bytes
 * is one of AVX512-VNNI or AVX-VNNI; whoever calls them has asked for it (engine/graph/kernel.h,
 * cpu_has_bf16). They are written in assembly so that one file can hold them beside code for CPUs
 * without. The other functions take words apart for what every CPU has: bf16 is the upper half of a
 * float, and bytes widened to 16 bits cannot saturate in vpmaddwd as they would in vpmaddubsw
 * (255 x 127 x 2 is above 32767).
 */
#ifndef ENGINE_KERNELS_LIB_SIMD_DOT_H
#define ENGINE_KERNELS_LIB_SIMD_DOT_H

#include "engine/graph/kernel.h"
#include "engine/kernels/lib/simd.h"

/* Which channel element i of word r of words_of_rows is. */
SIMD_INLINE int channel_of_word(int r, int i)
{
    return VL == 1 ? r : i / 4 * 16 + r * 4 + i % 4;
}

#if defined(__AVX512F__)

#define cpu_has_byte_dots cpu_has_vnni

/* clang-format off */
SIMD_INLINE vf vf_dot_bf16(vf sum, vf a, vf b)
{ __asm__("vdpbf16ps %2, %1, %0" : "+v"(sum) : "v"(a), "v"(b)); return sum; }
/* a: unsigned bytes, b: signed ones */
SIMD_INLINE vi vi_dot_bytes(vi sum, vi a, vi b)
{ __asm__("vpdpbusd %2, %1, %0" : "+v"(sum) : "v"(a), "v"(b)); return sum; }
SIMD_INLINE vf word_bf16(vf w, int half) /* 0: the lower one */
{ return _mm512_castsi512_ps(half ? _mm512_and_si512(vi_bits(w), vi_set1((int)0xffff0000))
                                  : _mm512_slli_epi32(vi_bits(w), 16)); }
SIMD_INLINE vi word_unsigned(vi w, int odd) /* bytes 0 and 2, or 1 and 3, as 16 bits */
{ return odd ? _mm512_srli_epi16(w, 8) : _mm512_and_si512(w, vi_set1(0x00ff00ff)); }
SIMD_INLINE vi word_signed(vi w, int odd)
{ return _mm512_srai_epi16(odd ? w : _mm512_slli_epi16(w, 8), 8); }
SIMD_INLINE vi vi_dot_shorts(vi sum, vi a, vi b)
{ return _mm512_add_epi32(sum, _mm512_madd_epi16(a, b)); }
/* The first `count` lanes, of bytes; the others are 0. */
SIMD_INLINE vi vi_load_u8(const uint8_t *p, int64_t count)
{ return _mm512_cvtepu8_epi32(_mm_maskz_loadu_epi8(vm_first(count), p)); }
SIMD_INLINE vi vi_load_i8(const uint8_t *p, int64_t count)
{ return _mm512_cvtepi8_epi32(_mm_maskz_loadu_epi8(vm_first(count), p)); }
/* VL halves of bytes, from half `at` on, a multiple of VL; the lower half of a byte is first. */
SIMD_INLINE vi vi_load_nibbles(const uint8_t *p, int64_t at)
{
    vi bytes = _mm512_cvtepu8_epi64(_mm_loadl_epi64((const __m128i *)(const void *)(p + at / 2)));
    return vi_and(_mm512_or_si512(bytes, _mm512_slli_epi64(bytes, 28)), vi_set1(15));
}
/* The lowest bytes of the first `count` lanes. */
SIMD_INLINE void vi_store_bytes(uint8_t *p, int64_t count, vi v)
{ _mm512_mask_cvtepi32_storeu_epi8(p, vm_first(count), v); }
SIMD_INLINE vi vi_xor(vi a, vi b) { return _mm512_xor_si512(a, b); }
/* The first `count` bytes of 4 VL; the others are 0. */
SIMD_INLINE vi vi_load_all(const uint8_t *p, int64_t count)
{
    __mmask64 mask = count < 4 * VL ? (1ull << count) - 1 : ~0ull;
    return _mm512_maskz_loadu_epi8(mask, p);
}
SIMD_INLINE void vi_store_all(uint8_t *p, int64_t count, vi v)
{ _mm512_mask_storeu_epi8(p, count < 4 * VL ? (1ull << count) - 1 : ~0ull, v); }
SIMD_INLINE vi vi_max_bytes(vi a, vi b, bool is_signed)
{ return is_signed ? _mm512_max_epi8(a, b) : _mm512_max_epu8(a, b); }
/* Four rows of bytes as words, a byte of each: channel_of_word says which. */
SIMD_INLINE void words_of_rows(vi a, vi b, vi c, vi d, vi words[4])
{
    vi ab = _mm512_unpacklo_epi8(a, b), cd = _mm512_unpacklo_epi8(c, d);
    words[0] = _mm512_unpacklo_epi16(ab, cd);
    words[1] = _mm512_unpackhi_epi16(ab, cd);
    ab = _mm512_unpackhi_epi8(a, b), cd = _mm512_unpackhi_epi8(c, d);
    words[2] = _mm512_unpacklo_epi16(ab, cd);
    words[3] = _mm512_unpackhi_epi16(ab, cd);
}
/* Words in that order, which hold unsigned or signed bytes, as the first `count` of 4 VL. */
SIMD_INLINE void words_store(uint8_t *p, int64_t count, const vi words[4], bool is_signed)
{
    vi low = _mm512_packs_epi32(words[0], words[1]), high = _mm512_packs_epi32(words[2], words[3]);
    vi all = is_signed ? _mm512_packs_epi16(low, high) : _mm512_packus_epi16(low, high);
    _mm512_mask_storeu_epi8(p, count < 4 * VL ? (1ull << count) - 1 : ~0ull, all);
}
SIMD_INLINE vi vi_mul(vi a, vi b) { return _mm512_mullo_epi32(a, b); }
SIMD_INLINE vi vi_shift_by(vi a, vi n) { return _mm512_srlv_epi32(a, n); } /* to the right */
/* To nearest even; a NaN must not round to infinity. */
SIMD_INLINE __m256i vf_to_bf16(vf v)
{
    vi bits = vi_bits(v), odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), vi_set1(1));
    vi rounded = vi_add(vi_add(bits, vi_set1(0x7fff)), odd);
    rounded = _mm512_mask_or_epi32(rounded, vf_is_nan(v), bits, vi_set1(0x400000));
    return _mm512_cvtepi32_epi16(_mm512_srli_epi32(rounded, 16));
}
SIMD_INLINE void vf_store_bf16(uint16_t *p, vf v)
{ _mm256_storeu_si256((__m256i *)(void *)p, vf_to_bf16(v)); }
SIMD_INLINE void vf_store_bf16_m(uint16_t *p, vm m, vf v)
{ _mm256_mask_storeu_epi16(p, m, vf_to_bf16(v)); }
SIMD_INLINE vf vf_from_bf16(__m256i v)
{ return vf_bits(_mm512_slli_epi32(_mm512_cvtepu16_epi32(v), 16)); }
SIMD_INLINE vf vf_load_bf16(const uint16_t *p)
{ return vf_from_bf16(_mm256_loadu_si256((const __m256i *)(const void *)p)); }
SIMD_INLINE vf vf_load_bf16_m(const uint16_t *p, vm m)
{ return vf_from_bf16(_mm256_maskz_loadu_epi16(m, p)); }
/* The same by AVX512-BF16, which takes what is too small for a normal number as 0. */
SIMD_INLINE __m256i vf_to_bf16_one(vf v)
{ __m256i y; __asm__("vcvtneps2bf16 %1, %0" : "=v"(y) : "v"(v)); return y; }
/* By the one instruction where the CPU has it. */
SIMD_INLINE __m256i vf_to_bf16_fast(vf v)
{ return __builtin_cpu_supports("avx512bf16") ? vf_to_bf16_one(v) : vf_to_bf16(v); }
SIMD_INLINE void vf_stream_bf16(uint16_t *p, vf v) /* p aligned to 2 VL bytes; simd_fence */
{ _mm256_stream_si256((__m256i *)(void *)p, vf_to_bf16_fast(v)); }
SIMD_INLINE void vf_store_bf16_fast(uint16_t *p, vf v)
{ _mm256_storeu_si256((__m256i *)(void *)p, vf_to_bf16_fast(v)); }
SIMD_INLINE void vf_store_bf16_fast_m(uint16_t *p, vm m, vf v)
{ _mm256_mask_storeu_epi16(p, m, vf_to_bf16_fast(v)); }
SIMD_INLINE void vf_store_bf16_one(uint16_t *p, vf v)
{ _mm256_storeu_si256((__m256i *)(void *)p, vf_to_bf16_one(v)); }
SIMD_INLINE void vf_store_bf16_one_m(uint16_t *p, vm m, vf v)
{ _mm256_mask_storeu_epi16(p, m, vf_to_bf16_one(v)); }
/* clang-format on */

#elif defined(__AVX2__)

#define cpu_has_byte_dots cpu_has_avx_vnni

/* clang-format off */
SIMD_INLINE vi vi_dot_bytes(vi sum, vi a, vi b) /* AVX-VNNI */
{ __asm__("%{vex%} vpdpbusd %2, %1, %0" : "+x"(sum) : "x"(a), "x"(b)); return sum; }
SIMD_INLINE vf word_bf16(vf w, int half)
{ return _mm256_castsi256_ps(half ? _mm256_and_si256(vi_bits(w), vi_set1((int)0xffff0000))
                                  : _mm256_slli_epi32(vi_bits(w), 16)); }
SIMD_INLINE vi word_unsigned(vi w, int odd)
{ return odd ? _mm256_srli_epi16(w, 8) : _mm256_and_si256(w, vi_set1(0x00ff00ff)); }
SIMD_INLINE vi word_signed(vi w, int odd)
{ return _mm256_srai_epi16(odd ? w : _mm256_slli_epi16(w, 8), 8); }
SIMD_INLINE vi vi_dot_shorts(vi sum, vi a, vi b)
{ return _mm256_add_epi32(sum, _mm256_madd_epi16(a, b)); }
SIMD_INLINE __m128i load_bytes(const uint8_t *p, int64_t count)
{
    int64_t bytes = 0;
    memcpy(&bytes, p, count < VL ? (size_t)count : (size_t)VL);
    return _mm_cvtsi64_si128(bytes);
}
SIMD_INLINE vi vi_load_u8(const uint8_t *p, int64_t count)
{ return _mm256_cvtepu8_epi32(load_bytes(p, count)); }
SIMD_INLINE vi vi_load_i8(const uint8_t *p, int64_t count)
{ return _mm256_cvtepi8_epi32(load_bytes(p, count)); }
SIMD_INLINE vi vi_load_nibbles(const uint8_t *p, int64_t at)
{
    vi bytes = _mm256_cvtepu8_epi64(load_bytes(p + at / 2, VL / 2));
    return vi_and(_mm256_or_si256(bytes, _mm256_slli_epi64(bytes, 28)), vi_set1(15));
}
SIMD_INLINE void vi_store_bytes(uint8_t *p, int64_t count, vi v)
{
    const vi lowest = _mm256_setr_epi8(0, 4, 8, 12, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1,
                                       -1, -1, -1, -1, 0, 4, 8, 12, -1, -1, -1, -1, -1, -1, -1, -1);
    vi halves = _mm256_shuffle_epi8(v, lowest);
    __m128i all = _mm_or_si128(_mm256_castsi256_si128(halves), _mm256_extracti128_si256(halves, 1));
    int64_t bytes = _mm_cvtsi128_si64(all);
    memcpy(p, &bytes, count < VL ? (size_t)count : (size_t)VL);
}
SIMD_INLINE vi vi_xor(vi a, vi b) { return _mm256_xor_si256(a, b); }
SIMD_INLINE vi vi_load_all(const uint8_t *p, int64_t count)
{
    uint8_t bytes[4 * VL] = {0};
    if (count >= 4 * VL)
        return vi_load((const int32_t *)(const void *)p);
    memcpy(bytes, p, (size_t)count);
    return vi_load((const int32_t *)(const void *)bytes);
}
SIMD_INLINE void vi_store_all(uint8_t *p, int64_t count, vi v)
{
    uint8_t bytes[4 * VL];
    vi_store((int32_t *)(void *)bytes, v);
    memcpy(p, bytes, count < 4 * VL ? (size_t)count : sizeof(bytes));
}
SIMD_INLINE vi vi_max_bytes(vi a, vi b, bool is_signed)
{ return is_signed ? _mm256_max_epi8(a, b) : _mm256_max_epu8(a, b); }
SIMD_INLINE void words_of_rows(vi a, vi b, vi c, vi d, vi words[4])
{
    vi ab = _mm256_unpacklo_epi8(a, b), cd = _mm256_unpacklo_epi8(c, d);
    words[0] = _mm256_unpacklo_epi16(ab, cd);
    words[1] = _mm256_unpackhi_epi16(ab, cd);
    ab = _mm256_unpackhi_epi8(a, b), cd = _mm256_unpackhi_epi8(c, d);
    words[2] = _mm256_unpacklo_epi16(ab, cd);
    words[3] = _mm256_unpackhi_epi16(ab, cd);
}
SIMD_INLINE void words_store(uint8_t *p, int64_t count, const vi words[4], bool is_signed)
{
    uint8_t bytes[4 * VL];
    vi low = _mm256_packs_epi32(words[0], words[1]), high = _mm256_packs_epi32(words[2], words[3]);
    vi all = is_signed ? _mm256_packs_epi16(low, high) : _mm256_packus_epi16(low, high);
    vi_store((int32_t *)(void *)bytes, all);
    memcpy(p, bytes, count < 4 * VL ? (size_t)count : sizeof(bytes));
}
SIMD_INLINE vi vi_mul(vi a, vi b) { return _mm256_mullo_epi32(a, b); }
SIMD_INLINE vi vi_shift_by(vi a, vi n) { return _mm256_srlv_epi32(a, n); }
SIMD_INLINE __m128i vf_to_bf16(vf v)
{
    vi bits = vi_bits(v), odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), vi_set1(1));
    vi rounded = vi_add(vi_add(bits, vi_set1(0x7fff)), odd);
    vi nan = _mm256_or_si256(bits, vi_set1(0x400000));
    rounded = _mm256_srli_epi32(_mm256_blendv_epi8(rounded, nan, vf_is_nan(v)), 16);
    return _mm_packus_epi32(_mm256_castsi256_si128(rounded), _mm256_extracti128_si256(rounded, 1));
}
SIMD_INLINE void vf_store_bf16(uint16_t *p, vf v)
{ _mm_storeu_si128((__m128i *)(void *)p, vf_to_bf16(v)); }
SIMD_INLINE void vf_stream_bf16(uint16_t *p, vf v)
{ _mm_stream_si128((__m128i *)(void *)p, vf_to_bf16(v)); }
SIMD_INLINE void vf_store_bf16_m(uint16_t *p, vm m, vf v)
{
    uint16_t all[VL];
    vf_store_bf16(all, v);
    memcpy(p, all, sizeof(*p) * (size_t)__builtin_popcount(vm_bits(m)));
}
SIMD_INLINE vf vf_load_bf16(const uint16_t *p)
{
    __m128i bits = _mm_loadu_si128((const __m128i *)(const void *)p);
    return vf_bits(_mm256_slli_epi32(_mm256_cvtepu16_epi32(bits), 16));
}
SIMD_INLINE vf vf_load_bf16_m(const uint16_t *p, vm m)
{
    uint16_t all[VL] = {0};
    memcpy(all, p, sizeof(*p) * (size_t)__builtin_popcount(vm_bits(m)));
    return vf_load_bf16(all);
}
/* clang-format on */

#else

#define cpu_has_byte_dots() true

/* clang-format off */
SIMD_INLINE vf word_bf16(vf w, int half)
{
    uint32_t bits = (uint32_t)vi_bits(w);
    return vf_bits((vi)(half ? bits & 0xffff0000u : bits << 16));
}
/* Two numbers of 16 bits in a word, as vi_dot_shorts takes them. */
SIMD_INLINE vi word_shorts(int low, int high)
{ return (vi)(((uint32_t)low & 0xffffu) | (uint32_t)high << 16); }
SIMD_INLINE vi word_unsigned(vi w, int odd)
{ return word_shorts((w >> 8 * odd) & 0xff, (w >> (16 + 8 * odd)) & 0xff); }
SIMD_INLINE vi word_signed(vi w, int odd)
{ return word_shorts((int8_t)(w >> 8 * odd), (int8_t)(w >> (16 + 8 * odd))); }
SIMD_INLINE vi vi_dot_shorts(vi sum, vi a, vi b)
{ return vi_add(sum, vi_add((int16_t)a * (int16_t)b, (int16_t)(a >> 16) * (int16_t)(b >> 16))); }
SIMD_INLINE vi vi_load_u8(const uint8_t *p, int64_t count) { (void)count; return *p; }
SIMD_INLINE vi vi_load_i8(const uint8_t *p, int64_t count) { (void)count; return (int8_t)*p; }
SIMD_INLINE vi vi_load_nibbles(const uint8_t *p, int64_t at)
{ return p[at / 2] >> 4 * (at & 1) & 15; }
SIMD_INLINE void vi_store_bytes(uint8_t *p, int64_t count, vi v)
{ (void)count; *p = (uint8_t)v; }
SIMD_INLINE vi vi_xor(vi a, vi b) { return a ^ b; }
SIMD_INLINE vi vi_load_all(const uint8_t *p, int64_t count)
{
    vi word = 0;
    memcpy(&word, p, count < 4 ? (size_t)count : sizeof(word));
    return word;
}
SIMD_INLINE vi vi_dot_bytes(vi sum, vi a, vi b)
{
    for (int k = 0; k < 32; k += 8)
        sum = vi_add(sum, (a >> k & 0xff) * (int8_t)(b >> k));
    return sum;
}
SIMD_INLINE void vi_store_all(uint8_t *p, int64_t count, vi v)
{ memcpy(p, &v, count < 4 ? (size_t)count : sizeof(v)); }
SIMD_INLINE vi vi_max_bytes(vi a, vi b, bool is_signed)
{
    uint32_t most = 0, flip = is_signed ? 0x80 : 0;
    for (int k = 0; k < 32; k += 8) {
        uint32_t x = ((uint32_t)a >> k & 0xff) ^ flip, y = ((uint32_t)b >> k & 0xff) ^ flip;
        most |= ((x > y ? x : y) ^ flip) << k;
    }
    return (vi)most;
}
SIMD_INLINE void words_of_rows(vi a, vi b, vi c, vi d, vi words[4])
{
    for (int r = 0; r < 4; r++)
        words[r] = (vi)((uint32_t)(a >> 8 * r & 0xff) | (uint32_t)(b >> 8 * r & 0xff) << 8 |
                        (uint32_t)(c >> 8 * r & 0xff) << 16 | (uint32_t)(d >> 8 * r & 0xff) << 24);
}
SIMD_INLINE void words_store(uint8_t *p, int64_t count, const vi words[4], bool is_signed)
{
    (void)is_signed;
    for (int64_t k = 0; k < 4 && k < count; k++)
        p[k] = (uint8_t)words[k];
}
SIMD_INLINE vi vi_mul(vi a, vi b) { return (vi)((uint32_t)a * (uint32_t)b); }
SIMD_INLINE vi vi_shift_by(vi a, vi n) { return (vi)((uint32_t)a >> n); }
SIMD_INLINE void vf_store_bf16(uint16_t *p, vf v) { *p = bfloat_from_float(v); }
SIMD_INLINE void vf_stream_bf16(uint16_t *p, vf v) { vf_store_bf16(p, v); }
SIMD_INLINE void vf_store_bf16_m(uint16_t *p, vm m, vf v) { if (m) vf_store_bf16(p, v); }
SIMD_INLINE vf vf_load_bf16(const uint16_t *p) { return bfloat_to_float(*p); }
SIMD_INLINE vf vf_load_bf16_m(const uint16_t *p, vm m) { return m ? vf_load_bf16(p) : 0; }
/* clang-format on */

#endif

#if !defined(__AVX512F__)
#define vf_store_bf16_fast   vf_store_bf16
#define vf_store_bf16_fast_m vf_store_bf16_m
#endif

#endif
