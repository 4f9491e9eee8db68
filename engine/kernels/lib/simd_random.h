/* SPDX-License-Identifier: Apache-2.0
 *
 * random_words_run of base/numbers/random.h in vectors: counters lie in the low halves of 64-bit
 * lanes, where a product of 32 bits has room. What gathers in the high halves is never read. Two
 * vectors go side by side, for each round waits for the one before it.
 */
#ifndef ENGINE_KERNELS_LIB_SIMD_RANDOM_H
#define ENGINE_KERNELS_LIB_SIMD_RANDOM_H

#include "base/numbers/random.h"
#include "engine/kernels/lib/simd.h"

#if defined(__AVX512F__)

/* clang-format off */
SIMD_INLINE vi words_set(uint64_t x) { return _mm512_set1_epi64((int64_t)x); }
SIMD_INLINE vi words_count(uint64_t x)
{ return _mm512_add_epi64(words_set(x), _mm512_setr_epi64(0, 1, 2, 3, 4, 5, 6, 7)); }
SIMD_INLINE vi words_product(vi a, vi b) { return _mm512_mul_epu32(a, b); }
SIMD_INLINE vi words_high(vi a) { return _mm512_srli_epi64(a, 32); }
SIMD_INLINE vi words_xor(vi a, vi b, vi c) { return _mm512_ternarylogic_epi64(a, b, c, 0x96); }
/* The low halves of a below those of b. */
SIMD_INLINE vi words_pair(vi a, vi b)
{ return _mm512_mask_blend_epi32(0xaaaa, a, _mm512_slli_epi64(b, 32)); }
/* clang-format on */

SIMD_INLINE void words_store(uint32_t *to, vi even, vi odd)
{
    vi first = _mm512_setr_epi64(0, 8, 1, 9, 2, 10, 3, 11);
    vi last = _mm512_setr_epi64(4, 12, 5, 13, 6, 14, 7, 15);
    _mm512_storeu_si512(to, _mm512_permutex2var_epi64(even, first, odd));
    _mm512_storeu_si512(to + VL, _mm512_permutex2var_epi64(even, last, odd));
}

#elif defined(__AVX2__)

/* clang-format off */
SIMD_INLINE vi words_set(uint64_t x) { return _mm256_set1_epi64x((int64_t)x); }
SIMD_INLINE vi words_count(uint64_t x)
{ return _mm256_add_epi64(words_set(x), _mm256_setr_epi64x(0, 1, 2, 3)); }
SIMD_INLINE vi words_product(vi a, vi b) { return _mm256_mul_epu32(a, b); }
SIMD_INLINE vi words_high(vi a) { return _mm256_srli_epi64(a, 32); }
SIMD_INLINE vi words_xor(vi a, vi b, vi c) { return _mm256_xor_si256(a, _mm256_xor_si256(b, c)); }
SIMD_INLINE vi words_pair(vi a, vi b)
{ return _mm256_blend_epi32(a, _mm256_slli_epi64(b, 32), 0xaa); }
/* clang-format on */

SIMD_INLINE void words_store(uint32_t *to, vi even, vi odd)
{
    vi low = _mm256_unpacklo_epi64(even, odd), high = _mm256_unpackhi_epi64(even, odd);
    _mm256_storeu_si256((__m256i *)(void *)to, _mm256_permute2x128_si256(low, high, 0x20));
    _mm256_storeu_si256((__m256i *)(void *)(to + VL), _mm256_permute2x128_si256(low, high, 0x31));
}

#endif

#if defined(__AVX2__)

enum { WORDS_ROUNDS = 10, WORDS_LANES = VL / 2, WORDS_SIDE_BY_SIDE = 2 };

/* 4 words for each of WORDS_SIDE_BY_SIDE * WORDS_LANES counters. */
SIMD_INLINE void words_of_vectors(uint64_t seed, uint64_t first, uint32_t *words)
{
    vi c[WORDS_SIDE_BY_SIDE][4];
    uint32_t key0 = (uint32_t)seed, key1 = (uint32_t)(seed >> 32);
    for (int v = 0; v < WORDS_SIDE_BY_SIDE; v++) {
        c[v][0] = words_count(first + (uint64_t)(v * WORDS_LANES));
        c[v][1] = words_high(c[v][0]);
        c[v][2] = c[v][3] = words_set(0);
    }
    for (int round = 0; round < WORDS_ROUNDS; round++) {
        for (int v = 0; v < WORDS_SIDE_BY_SIDE; v++) {
            vi p0 = words_product(c[v][0], words_set(0xD2511F53u));
            vi p1 = words_product(c[v][2], words_set(0xCD9E8D57u));
            c[v][0] = words_xor(words_high(p1), c[v][1], words_set(key0));
            c[v][2] = words_xor(words_high(p0), c[v][3], words_set(key1));
            c[v][1] = p1;
            c[v][3] = p0;
        }
        key0 += 0x9E3779B9u;
        key1 += 0xBB67AE85u;
    }
    for (int v = 0; v < WORDS_SIDE_BY_SIDE; v++)
        words_store(words + 4 * v * WORDS_LANES, words_pair(c[v][0], c[v][1]),
                    words_pair(c[v][2], c[v][3]));
}

/* random_words_run. */
SIMD_INLINE void simd_random_words(uint64_t seed, uint64_t first, int64_t count, uint32_t *words)
{
    int64_t i = 0, step = WORDS_SIDE_BY_SIDE * WORDS_LANES;
    for (; i + step <= count; i += step)
        words_of_vectors(seed, first + (uint64_t)i, words + 4 * i);
    random_words_run(seed, first + (uint64_t)i, count - i, words + 4 * i);
}

#else

SIMD_INLINE void simd_random_words(uint64_t seed, uint64_t first, int64_t count, uint32_t *words)
{
    random_words_run(seed, first, count, words);
}

#endif

#endif
