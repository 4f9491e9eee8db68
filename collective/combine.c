/* SPDX-License-Identifier: Apache-2.0
 *
 * Each function works on blocks of a fixed number of elements, whose results lie in a local array
 * first: then the compiler knows the length and that nothing overlaps, and makes vector code. */
#include "collective/combine.h"

#include <string.h>

#include "base/clones.h"
#include "collective/half.h"
#include "collective/half_x86.h"

enum { BLOCK = 64 };

/* One element: x and y combined. Integers are unsigned for sums, which wrap. */
#define DEFINE_SUM(name, type)                                                                     \
    static inline type name(type x, type y)                                                        \
    {                                                                                              \
        return x + y;                                                                              \
    }

/* Equal numbers differ in the sign of a zero only, which decides then. */
#define DEFINE_FLOAT_CHOICE(name, type, word, better, both)                                        \
    static inline type name(type x, type y)                                                        \
    {                                                                                              \
        word a, b;                                                                                 \
        memcpy(&a, &x, sizeof(a));                                                                 \
        memcpy(&b, &y, sizeof(b));                                                                 \
        word same = a both b;                                                                      \
        word other = x == y ? same : b;                                                            \
        a = x better y || x != x ? a : other;                                                      \
        memcpy(&x, &a, sizeof(x));                                                                 \
        return x;                                                                                  \
    }

#define DEFINE_INTEGER_CHOICE(name, type, better)                                                  \
    static inline type name(type x, type y)                                                        \
    {                                                                                              \
        return x better y ? x : y;                                                                 \
    }

DEFINE_SUM(sum_f32, float)
DEFINE_FLOAT_CHOICE(max_f32, float, uint32_t, >, &)
DEFINE_FLOAT_CHOICE(min_f32, float, uint32_t, <, |)
DEFINE_SUM(sum_f64, double)
DEFINE_FLOAT_CHOICE(max_f64, double, uint64_t, >, &)
DEFINE_FLOAT_CHOICE(min_f64, double, uint64_t, <, |)
DEFINE_SUM(sum_u32, uint32_t)
DEFINE_INTEGER_CHOICE(max_i32, int32_t, >)
DEFINE_INTEGER_CHOICE(min_i32, int32_t, <)
DEFINE_SUM(sum_u64, uint64_t)
DEFINE_INTEGER_CHOICE(max_i64, int64_t, >)
DEFINE_INTEGER_CHOICE(min_i64, int64_t, <)

#define DEFINE_NARROW(type, operation)                                                             \
    static inline uint16_t operation##_##type(uint16_t x, uint16_t y)                              \
    {                                                                                              \
        return type##_narrow(operation##_f32(type##_widen(x), type##_widen(y)));                   \
    }

DEFINE_NARROW(f16, sum)
DEFINE_NARROW(f16, max)
DEFINE_NARROW(f16, min)
DEFINE_NARROW(bf16, sum)
DEFINE_NARROW(bf16, max)
DEFINE_NARROW(bf16, min)

/* All elements; the last block through zeroed ones. */
#define DEFINE_COMBINE(one, type)                                                                  \
    static inline __attribute__((always_inline)) void one##_block(type *to, const type *operand,   \
                                                                  const type *message)             \
    {                                                                                              \
        type results[BLOCK];                                                                       \
        for (int i = 0; i < BLOCK; i++)                                                            \
            results[i] = one(operand[i], message[i]);                                              \
        memcpy(to, results, sizeof(results));                                                      \
    }                                                                                              \
    VECTOR_CLONES static void one##_all(void *to, const void *operand, const void *message,        \
                                        int64_t count)                                             \
    {                                                                                              \
        int64_t k = 0;                                                                             \
        for (; k + BLOCK <= count; k += BLOCK)                                                     \
            one##_block((type *)to + k, (const type *)operand + k, (const type *)message + k);     \
        if (k == count)                                                                            \
            return;                                                                                \
        type x[BLOCK] = {0}, y[BLOCK] = {0};                                                       \
        size_t bytes = (size_t)(count - k) * sizeof(type);                                         \
        memcpy(x, (const type *)operand + k, bytes);                                               \
        memcpy(y, (const type *)message + k, bytes);                                               \
        one##_block(x, x, y);                                                                      \
        memcpy((type *)to + k, x, bytes);                                                          \
    }

DEFINE_COMBINE(sum_f32, float)
DEFINE_COMBINE(max_f32, float)
DEFINE_COMBINE(min_f32, float)
DEFINE_COMBINE(sum_f64, double)
DEFINE_COMBINE(max_f64, double)
DEFINE_COMBINE(min_f64, double)
DEFINE_COMBINE(sum_f16, uint16_t)
DEFINE_COMBINE(max_f16, uint16_t)
DEFINE_COMBINE(min_f16, uint16_t)
DEFINE_COMBINE(sum_bf16, uint16_t)
DEFINE_COMBINE(max_bf16, uint16_t)
DEFINE_COMBINE(min_bf16, uint16_t)
DEFINE_COMBINE(sum_u32, uint32_t)
DEFINE_COMBINE(max_i32, int32_t)
DEFINE_COMBINE(min_i32, int32_t)
DEFINE_COMBINE(sum_u64, uint64_t)
DEFINE_COMBINE(max_i64, int64_t)
DEFINE_COMBINE(min_i64, int64_t)

combine_elements *combine_of(enum dtype dtype, enum comm_reduction reduction)
{
    static combine_elements *const table[DTYPE_COUNT][COMM_REDUCTION_COUNT] = {
        [DTYPE_F32] = {sum_f32_all, max_f32_all, min_f32_all},
        [DTYPE_F64] = {sum_f64_all, max_f64_all, min_f64_all},
        [DTYPE_F16] = {sum_f16_all, max_f16_all, min_f16_all},
        [DTYPE_BF16] = {sum_bf16_all, max_bf16_all, min_bf16_all},
        [DTYPE_I32] = {sum_u32_all, max_i32_all, min_i32_all},
        [DTYPE_I64] = {sum_u64_all, max_i64_all, min_i64_all},
    };
    combine_elements *fast = half_combine_x86(dtype, reduction);
    return fast ? fast : table[dtype][reduction];
}
