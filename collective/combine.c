/* SPDX-License-Identifier: Apache-2.0
 *
 * Each function works on blocks of a fixed number of elements in local arrays: then the compiler
 * knows the length and that nothing overlaps, and makes vector code of every loop. */
#include "collective/combine.h"

#include <string.h>

#include "base/clones.h"

enum { BLOCK = 64 };

/* x or y, whose bits are a and b. Equal numbers differ in the sign of a zero only. */
#define LARGER(nan, x, y, a, b)  (x) > (y) || nan(x) ? (a) : (x) == (y) ? (a) & (b) : (b)
#define SMALLER(nan, x, y, a, b) (x) < (y) || nan(x) ? (a) : (x) == (y) ? (a) | (b) : (b)
#define FLOAT_NAN(x)             ((x) != (x))
#define NO_NAN(x)                0

/* Calls part(to, operand, message, elements) for blocks; the last one through zeroed ones. */
#define IN_BLOCKS(type, part)                                                                      \
    int64_t k = 0;                                                                                 \
    for (; k + BLOCK <= count; k += BLOCK)                                                         \
        part((type *)to + k, (const type *)operand + k, (const type *)message + k);                \
    if (k < count) {                                                                               \
        type x[BLOCK] = {0}, y[BLOCK] = {0};                                                       \
        size_t bytes = (size_t)(count - k) * sizeof(type);                                         \
        memcpy(x, (const type *)operand + k, bytes);                                               \
        memcpy(y, (const type *)message + k, bytes);                                               \
        part(x, x, y);                                                                             \
        memcpy((type *)to + k, x, bytes);                                                          \
    }

/* Integers are unsigned here: their sums wrap. */
#define DEFINE_SUM(name, type)                                                                     \
    static inline __attribute__((always_inline)) void name##_block(type *to, const type *operand,  \
                                                                   const type *message)            \
    {                                                                                              \
        type x[BLOCK], y[BLOCK];                                                                   \
        memcpy(x, operand, sizeof(x));                                                             \
        memcpy(y, message, sizeof(y));                                                             \
        for (int i = 0; i < BLOCK; i++)                                                            \
            x[i] += y[i];                                                                          \
        memcpy(to, x, sizeof(x));                                                                  \
    }                                                                                              \
    VECTOR_CLONES static void name(void *to, const void *operand, const void *message,             \
                                   int64_t count)                                                  \
    {                                                                                              \
        IN_BLOCKS(type, name##_block)                                                              \
    }

#define DEFINE_CHOICE(name, type, word, CHOOSE, nan)                                               \
    static inline __attribute__((always_inline)) void name##_block(type *to, const type *operand,  \
                                                                   const type *message)            \
    {                                                                                              \
        type x[BLOCK], y[BLOCK];                                                                   \
        word a[BLOCK], b[BLOCK];                                                                   \
        memcpy(x, operand, sizeof(x));                                                             \
        memcpy(y, message, sizeof(y));                                                             \
        memcpy(a, operand, sizeof(a));                                                             \
        memcpy(b, message, sizeof(b));                                                             \
        for (int i = 0; i < BLOCK; i++)                                                            \
            a[i] = CHOOSE(nan, x[i], y[i], a[i], b[i]);                                            \
        memcpy(to, a, sizeof(a));                                                                  \
    }                                                                                              \
    VECTOR_CLONES static void name(void *to, const void *operand, const void *message,             \
                                   int64_t count)                                                  \
    {                                                                                              \
        IN_BLOCKS(type, name##_block)                                                              \
    }

#define DEFINE_WIDE(name, type, word, added, nan)                                                  \
    DEFINE_SUM(name##_sum, added)                                                                  \
    DEFINE_CHOICE(name##_max, type, word, LARGER, nan)                                             \
    DEFINE_CHOICE(name##_min, type, word, SMALLER, nan)

DEFINE_WIDE(f32, float, uint32_t, float, FLOAT_NAN)
DEFINE_WIDE(f64, double, uint64_t, double, FLOAT_NAN)
DEFINE_WIDE(i32, int32_t, uint32_t, uint32_t, NO_NAN)
DEFINE_WIDE(i64, int64_t, uint64_t, uint64_t, NO_NAN)

/* half_to_float and half_from_float of engine/graph/tensor.h without branches on the value, and on
 * words, so that loops over them become vectors. */
static inline uint32_t half_widen(uint16_t half)
{
    uint32_t size = (uint32_t)(half & 0x7fffu) << 13, word;
    float scaled;
    memcpy(&scaled, &size, sizeof(scaled));
    scaled *= 0x1p112f; /* exact, also for subnormals */
    memcpy(&word, &scaled, sizeof(word));
    word = size >= 0x0f800000u ? size | 0x7f800000u : word;
    return word | (uint32_t)(half & 0x8000u) << 16;
}

static inline uint16_t half_narrow(uint32_t word)
{
    uint32_t sign = word >> 16 & 0x8000u, size = word & 0x7fffffffu, small;
    float magnitude;
    memcpy(&magnitude, &size, sizeof(magnitude));
    magnitude += 0.5f; /* its last bit is that of the smallest half */
    memcpy(&small, &magnitude, sizeof(small));
    small -= 0x3f000000u;
    uint32_t normal = (size - 0x38000000u + 0xfffu + (size >> 13 & 1)) >> 13;
    uint32_t half = size < 0x38800000u ? small : normal;
    half = size >= 0x477ff000u ? 0x7c00u : half;
    half = size > 0x7f800000u ? 0x7e00u : half;
    return (uint16_t)(half | sign);
}

static inline uint32_t bfloat_widen(uint16_t bits)
{
    return (uint32_t)bits << 16;
}

static inline uint16_t bfloat_narrow(uint32_t word)
{
    uint32_t rounded = (word + 0x7fffu + (word >> 16 & 1)) >> 16;
    return (uint16_t)((word & 0x7fffffffu) > 0x7f800000u ? word >> 16 | 0x40u : rounded);
}

static inline __attribute__((always_inline)) void sum_words(uint32_t *a, const uint32_t *b)
{
    float x[BLOCK], y[BLOCK];
    memcpy(x, a, sizeof(x));
    memcpy(y, b, sizeof(y));
    for (int i = 0; i < BLOCK; i++)
        x[i] += y[i];
    memcpy(a, x, sizeof(x));
}

static inline __attribute__((always_inline)) void max_words(uint32_t *a, const uint32_t *b)
{
    f32_max_block((float *)a, (const float *)a, (const float *)b);
}

static inline __attribute__((always_inline)) void min_words(uint32_t *a, const uint32_t *b)
{
    f32_min_block((float *)a, (const float *)a, (const float *)b);
}

#define DEFINE_NARROW(name, widen, narrow, words)                                                  \
    static inline __attribute__((always_inline)) void name##_block(                                \
        uint16_t *to, const uint16_t *operand, const uint16_t *message)                            \
    {                                                                                              \
        uint16_t x[BLOCK], y[BLOCK];                                                               \
        uint32_t a[BLOCK], b[BLOCK];                                                               \
        memcpy(x, operand, sizeof(x));                                                             \
        memcpy(y, message, sizeof(y));                                                             \
        for (int i = 0; i < BLOCK; i++)                                                            \
            a[i] = widen(x[i]);                                                                    \
        for (int i = 0; i < BLOCK; i++)                                                            \
            b[i] = widen(y[i]);                                                                    \
        words(a, b);                                                                               \
        for (int i = 0; i < BLOCK; i++)                                                            \
            x[i] = narrow(a[i]);                                                                   \
        memcpy(to, x, sizeof(x));                                                                  \
    }                                                                                              \
    VECTOR_CLONES static void name(void *to, const void *operand, const void *message,             \
                                   int64_t count)                                                  \
    {                                                                                              \
        IN_BLOCKS(uint16_t, name##_block)                                                          \
    }

DEFINE_NARROW(f16_sum, half_widen, half_narrow, sum_words)
DEFINE_NARROW(f16_max, half_widen, half_narrow, max_words)
DEFINE_NARROW(f16_min, half_widen, half_narrow, min_words)
DEFINE_NARROW(bf16_sum, bfloat_widen, bfloat_narrow, sum_words)
DEFINE_NARROW(bf16_max, bfloat_widen, bfloat_narrow, max_words)
DEFINE_NARROW(bf16_min, bfloat_widen, bfloat_narrow, min_words)

combine_elements *combine_of(enum dtype dtype, enum comm_reduction reduction)
{
    static combine_elements *const table[DTYPE_COUNT][COMM_REDUCTION_COUNT] = {
        [DTYPE_F32] = {f32_sum, f32_max, f32_min}, [DTYPE_F64] = {f64_sum, f64_max, f64_min},
        [DTYPE_I32] = {i32_sum, i32_max, i32_min}, [DTYPE_I64] = {i64_sum, i64_max, i64_min},
        [DTYPE_F16] = {f16_sum, f16_max, f16_min}, [DTYPE_BF16] = {bf16_sum, bf16_max, bf16_min},
    };
    return table[dtype][reduction];
}
