/* SPDX-License-Identifier: Apache-2.0
 *
 * Loops over blocks of a fixed length, as in combine.c, for the same reason. */
#include "collective/wire.h"

#include "base/clones.h"
#include "collective/half.h"
#include "collective/half_x86.h"

enum { BLOCK = 64 };

static inline float f32_sum(float x, float y)
{
    return x + y;
}

/* Like combine.c: equal numbers differ in the sign of a zero only, and a NaN makes the result one.
 */
static inline float f32_max(float x, float y)
{
    return x != x || x > y || (x == y && y == 0 && 1 / y < 0) ? x : y;
}

static inline float f32_min(float x, float y)
{
    return x != x || x < y || (x == y && y == 0 && 1 / y > 0) ? x : y;
}

#define DEFINE_CONVERSIONS(type)                                                                   \
    VECTOR_CLONES static void type##_narrow_all(uint16_t *to, const float *from, int64_t count)    \
    {                                                                                              \
        int64_t k = 0;                                                                             \
        for (; k + BLOCK <= count; k += BLOCK) {                                                   \
            uint16_t results[BLOCK];                                                               \
            for (int i = 0; i < BLOCK; i++)                                                        \
                results[i] = type##_narrow(from[k + i]);                                           \
            memcpy(to + k, results, sizeof(results));                                              \
        }                                                                                          \
        for (; k < count; k++)                                                                     \
            to[k] = type##_narrow(from[k]);                                                        \
    }                                                                                              \
    VECTOR_CLONES static void type##_widen_all(float *to, const uint16_t *from, int64_t count)     \
    {                                                                                              \
        int64_t k = 0;                                                                             \
        for (; k + BLOCK <= count; k += BLOCK) {                                                   \
            float results[BLOCK];                                                                  \
            for (int i = 0; i < BLOCK; i++)                                                        \
                results[i] = type##_widen(from[k + i]);                                            \
            memcpy(to + k, results, sizeof(results));                                              \
        }                                                                                          \
        for (; k < count; k++)                                                                     \
            to[k] = type##_widen(from[k]);                                                         \
    }                                                                                              \
    VECTOR_CLONES static void type##_round_all(float *values, int64_t count)                       \
    {                                                                                              \
        int64_t k = 0;                                                                             \
        for (; k + BLOCK <= count; k += BLOCK) {                                                   \
            float results[BLOCK];                                                                  \
            for (int i = 0; i < BLOCK; i++)                                                        \
                results[i] = type##_widen(type##_narrow(values[k + i]));                           \
            memcpy(values + k, results, sizeof(results));                                          \
        }                                                                                          \
        for (; k < count; k++)                                                                     \
            values[k] = type##_widen(type##_narrow(values[k]));                                    \
    }

#define DEFINE_COMBINE(type, how)                                                                  \
    VECTOR_CLONES static void type##_##how##_all(float *to, const float *operand,                  \
                                                 const uint16_t *message, int64_t count)           \
    {                                                                                              \
        int64_t k = 0;                                                                             \
        for (; k + BLOCK <= count; k += BLOCK) {                                                   \
            float results[BLOCK];                                                                  \
            for (int i = 0; i < BLOCK; i++)                                                        \
                results[i] = f32_##how(type##_widen(type##_narrow(operand[k + i])),                \
                                       type##_widen(message[k + i]));                              \
            memcpy(to + k, results, sizeof(results));                                              \
        }                                                                                          \
        for (; k < count; k++)                                                                     \
            to[k] = f32_##how(type##_widen(type##_narrow(operand[k])), type##_widen(message[k]));  \
    }

#define DEFINE_WIRE(type)                                                                          \
    DEFINE_CONVERSIONS(type)                                                                       \
    DEFINE_COMBINE(type, sum)                                                                      \
    DEFINE_COMBINE(type, max)                                                                      \
    DEFINE_COMBINE(type, min)                                                                      \
    static const struct wire type##_wire = {type##_narrow_all,                                     \
                                            type##_widen_all,                                      \
                                            {type##_sum_all, type##_max_all, type##_min_all},      \
                                            type##_round_all};

DEFINE_WIRE(f16)
DEFINE_WIRE(bf16)

const struct wire *wire_of(const struct comm_call *call)
{
    const struct wire *fast = half_wire_x86(call->wire);
    if (fast)
        return fast;
    return call->wire == DTYPE_F16 ? &f16_wire : call->wire == DTYPE_BF16 ? &bf16_wire : NULL;
}
