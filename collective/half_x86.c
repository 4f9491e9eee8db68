/* SPDX-License-Identifier: Apache-2.0
 *
 * Eight elements at a time in AVX2 with F16C; the last ones through zeroed memory. */
#include "collective/half_x86.h"

#if defined(__x86_64__)

#include <immintrin.h>
#include <string.h>

enum { WIDTH = 8 };

#define CODE     static inline __attribute__((always_inline, target("avx2,f16c")))
#define FUNCTION static __attribute__((target("avx2,f16c")))

CODE __m256 f16_load(const uint16_t *from)
{
    return _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)from));
}

CODE void f16_store(uint16_t *to, __m256 values)
{
    _mm_storeu_si128((__m128i *)(void *)to, _mm256_cvtps_ph(values, _MM_FROUND_TO_NEAREST_INT));
}

CODE __m256 bf16_load(const uint16_t *from)
{
    __m128i halves = _mm_loadu_si128((const __m128i *)(const void *)from);
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(halves), 16));
}

/* To nearest even; a NaN stays one. */
CODE void bf16_store(uint16_t *to, __m256 values)
{
    __m256i words = _mm256_castps_si256(values), upper = _mm256_srli_epi32(words, 16);
    __m256i odd = _mm256_and_si256(upper, _mm256_set1_epi32(1));
    __m256i round = _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff));
    __m256i rounded = _mm256_srli_epi32(_mm256_add_epi32(words, round), 16);
    __m256i quiet = _mm256_or_si256(upper, _mm256_set1_epi32(0x40));
    __m256i nan = _mm256_castps_si256(_mm256_cmp_ps(values, values, _CMP_UNORD_Q));
    __m256i halves = _mm256_blendv_epi8(rounded, quiet, nan);
    halves = _mm256_packus_epi32(halves, halves); /* of each half of the vector, twice */
    halves = _mm256_permute4x64_epi64(halves, 0x08);
    _mm_storeu_si128((__m128i *)(void *)to, _mm256_castsi256_si128(halves));
}

CODE __m256 sum_of(__m256 x, __m256 y)
{
    return _mm256_add_ps(x, y);
}

/* Equal numbers differ in the sign of a zero only; a NaN makes the result one. */
CODE __m256 chosen(__m256 better, __m256 same, __m256 x, __m256 y)
{
    __m256 result = _mm256_blendv_ps(better, same, _mm256_cmp_ps(x, y, _CMP_EQ_OQ));
    return _mm256_blendv_ps(result, _mm256_add_ps(x, y), _mm256_cmp_ps(x, y, _CMP_UNORD_Q));
}

CODE __m256 max_of(__m256 x, __m256 y)
{
    return chosen(_mm256_max_ps(x, y), _mm256_and_ps(x, y), x, y);
}

CODE __m256 min_of(__m256 x, __m256 y)
{
    return chosen(_mm256_min_ps(x, y), _mm256_or_ps(x, y), x, y);
}

/* Both operands are halves. */
#define DEFINE_COMBINE(type, how)                                                                  \
    FUNCTION void combine_##type##_##how(void *to, const void *operand, const void *message,       \
                                         int64_t count)                                            \
    {                                                                                              \
        uint16_t *result = to, x[WIDTH] = {0}, y[WIDTH] = {0};                                     \
        const uint16_t *a = operand, *b = message;                                                 \
        int64_t k = 0;                                                                             \
        for (; k + WIDTH <= count; k += WIDTH)                                                     \
            type##_store(result + k, how##_of(type##_load(a + k), type##_load(b + k)));            \
        size_t rest = (size_t)(count - k) * sizeof(*x);                                            \
        memcpy(x, a + k, rest);                                                                    \
        memcpy(y, b + k, rest);                                                                    \
        type##_store(x, how##_of(type##_load(x), type##_load(y)));                                 \
        memcpy(result + k, x, rest);                                                               \
    }

/* The operand is f32, and rounded like the message. */
#define DEFINE_WIRE_COMBINE(type, how)                                                             \
    FUNCTION void wire_##type##_##how(float *to, const float *operand, const uint16_t *message,    \
                                      int64_t count)                                               \
    {                                                                                              \
        float a[WIDTH] = {0};                                                                      \
        uint16_t x[WIDTH], y[WIDTH] = {0};                                                         \
        int64_t k = 0;                                                                             \
        for (; k + WIDTH <= count; k += WIDTH) {                                                   \
            type##_store(x, _mm256_loadu_ps(operand + k));                                         \
            _mm256_storeu_ps(to + k, how##_of(type##_load(x), type##_load(message + k)));          \
        }                                                                                          \
        memcpy(a, operand + k, (size_t)(count - k) * sizeof(*a));                                  \
        memcpy(y, message + k, (size_t)(count - k) * sizeof(*y));                                  \
        type##_store(x, _mm256_loadu_ps(a));                                                       \
        _mm256_storeu_ps(a, how##_of(type##_load(x), type##_load(y)));                             \
        memcpy(to + k, a, (size_t)(count - k) * sizeof(*a));                                       \
    }

#define DEFINE_CONVERSIONS(type)                                                                   \
    FUNCTION void type##_narrow(uint16_t *to, const float *from, int64_t count)                    \
    {                                                                                              \
        float a[WIDTH] = {0};                                                                      \
        uint16_t x[WIDTH];                                                                         \
        int64_t k = 0;                                                                             \
        for (; k + WIDTH <= count; k += WIDTH)                                                     \
            type##_store(to + k, _mm256_loadu_ps(from + k));                                       \
        memcpy(a, from + k, (size_t)(count - k) * sizeof(*a));                                     \
        type##_store(x, _mm256_loadu_ps(a));                                                       \
        memcpy(to + k, x, (size_t)(count - k) * sizeof(*x));                                       \
    }                                                                                              \
    FUNCTION void type##_widen(float *to, const uint16_t *from, int64_t count)                     \
    {                                                                                              \
        float a[WIDTH];                                                                            \
        uint16_t x[WIDTH] = {0};                                                                   \
        int64_t k = 0;                                                                             \
        for (; k + WIDTH <= count; k += WIDTH)                                                     \
            _mm256_storeu_ps(to + k, type##_load(from + k));                                       \
        memcpy(x, from + k, (size_t)(count - k) * sizeof(*x));                                     \
        _mm256_storeu_ps(a, type##_load(x));                                                       \
        memcpy(to + k, a, (size_t)(count - k) * sizeof(*a));                                       \
    }                                                                                              \
    FUNCTION void type##_round(float *values, int64_t count)                                       \
    {                                                                                              \
        uint16_t x[WIDTH];                                                                         \
        for (int64_t k = 0; k < count; k += WIDTH) {                                               \
            int64_t here = count - k < WIDTH ? count - k : WIDTH;                                  \
            type##_narrow(x, values + k, here);                                                    \
            type##_widen(values + k, x, here);                                                     \
        }                                                                                          \
    }

#define DEFINE_ALL(type)                                                                           \
    DEFINE_COMBINE(type, sum)                                                                      \
    DEFINE_COMBINE(type, max)                                                                      \
    DEFINE_COMBINE(type, min)                                                                      \
    DEFINE_WIRE_COMBINE(type, sum)                                                                 \
    DEFINE_WIRE_COMBINE(type, max)                                                                 \
    DEFINE_WIRE_COMBINE(type, min)                                                                 \
    DEFINE_CONVERSIONS(type)                                                                       \
    static const struct wire type##_wire = {                                                       \
        type##_narrow,                                                                             \
        type##_widen,                                                                              \
        {wire_##type##_sum, wire_##type##_max, wire_##type##_min},                                 \
        type##_round,                                                                              \
    };

DEFINE_ALL(f16)
DEFINE_ALL(bf16)

/* Every CPU with AVX2 has F16C, too, which clang before 15 does not know by name. */
static bool can(void)
{
    return __builtin_cpu_supports("avx2");
}

combine_elements *half_combine_x86(enum dtype dtype, enum comm_reduction reduction)
{
    static combine_elements *const table[2][COMM_REDUCTION_COUNT] = {
        {combine_f16_sum, combine_f16_max, combine_f16_min},
        {combine_bf16_sum, combine_bf16_max, combine_bf16_min},
    };
    if (!can() || (dtype != DTYPE_F16 && dtype != DTYPE_BF16))
        return NULL;
    return table[dtype == DTYPE_BF16][reduction];
}

const struct wire *half_wire_x86(enum dtype wire)
{
    if (!can())
        return NULL;
    return wire == DTYPE_F16 ? &f16_wire : wire == DTYPE_BF16 ? &bf16_wire : NULL;
}

#else

combine_elements *half_combine_x86(enum dtype dtype, enum comm_reduction reduction)
{
    (void)dtype;
    (void)reduction;
    return NULL;
}

const struct wire *half_wire_x86(enum dtype wire)
{
    (void)wire;
    return NULL;
}

#endif
