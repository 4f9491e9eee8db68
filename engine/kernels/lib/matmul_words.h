/* SPDX-License-Identifier: Apache-2.0
 *
 * Matrix products of bf16 and of bytes: everything but what the node says. Two or four elements
 * make a word of engine/kernels/lib/gemm.h. B is packed once when it is known at preparation, else
 * by all threads together at the start of a launch.
 *
 * Bytes are multiplied as unsigned (A) times signed (B); the others are moved by 128, which is
 * turning over a bit, and their zero points with them. With a' = a - za and b' = b - zb taken as
 * bytes, sum (a' b') = sum (a b) - za sum(b) - zb (sum(a) - k za): a row's numbers times a column's
 * twice, from which the micro-kernel starts its sums. So the result is exact, modulo 2^32.
 */
#ifndef ENGINE_KERNELS_LIB_MATMUL_WORDS_H
#define ENGINE_KERNELS_LIB_MATMUL_WORDS_H

#include "engine/kernels/lib/gemm.h"
#include "engine/ops/lib/matmul_shape.h"

/* What a kernel reads from its node. */
struct matmul_words {
    struct matmul_shape shape; /* in elements */
    int element;               /* bytes of an element of A and B */
    bool signed_a, signed_b;   /* bytes */
    int zero_a, zero_b;        /* inputs, one number or one per row (column); NONE: 0 */
    int bias;                  /* bf16: input with a row of n bf16; NONE: there is none */
    struct gemm_post post;     /* light steps without operands */
};

typedef enum status matmul_words_from(const struct kernel_query *q, struct matmul_words *words,
                                      struct error *why);

/* What all kernels refuse: an empty product, rows of the result that are not dense. */
#define matmul_words_check SIMD_FN(matmul_words_check)
enum status matmul_words_check(const struct matmul_words *words, struct error *why);

/* The hooks of a kernel. */
#define words_variants  SIMD_FN(words_variants)
#define words_describe  SIMD_FN(words_describe)
#define words_workspace SIMD_FN(words_workspace)
#define words_prepare   SIMD_FN(words_prepare)
#define words_launch    SIMD_FN(words_launch)
#define words_release   SIMD_FN(words_release)
int words_variants(matmul_words_from *from, const struct kernel_query *q);
void words_describe(matmul_words_from *from, const struct kernel_query *q, int variant, char *text,
                    size_t size);
size_t words_workspace(matmul_words_from *from, const struct kernel_query *q, int variant);
enum status words_prepare(matmul_words_from *from, const struct kernel_query *q, int variant,
                          struct kernel_state **state, size_t *state_bytes, struct error *err);
void words_launch(const struct kernel_state *state, const struct kernel_query *q,
                  const struct kernel_args *args);
void words_release(struct kernel_state *state);

/* Defines kernel `symbol`, which reads its nodes with `from`. */
#define MATMUL_WORDS_KERNEL(symbol, from, ...)                                                     \
    static enum status supports(const struct kernel_query *q, struct error *why)                   \
    {                                                                                              \
        struct matmul_words words;                                                                 \
        return from(q, &words, why);                                                               \
    }                                                                                              \
    static int variants(const struct kernel_query *q)                                              \
    {                                                                                              \
        return words_variants(from, q);                                                            \
    }                                                                                              \
    static void describe(const struct kernel_query *q, int variant, char *text, size_t size)       \
    {                                                                                              \
        words_describe(from, q, variant, text, size);                                              \
    }                                                                                              \
    static size_t workspace(const struct kernel_query *q, int variant)                             \
    {                                                                                              \
        return words_workspace(from, q, variant);                                                  \
    }                                                                                              \
    static enum status prepare(const struct kernel_query *q, int variant,                          \
                               struct kernel_state **state, size_t *state_bytes,                   \
                               struct error *err)                                                  \
    {                                                                                              \
        return words_prepare(from, q, variant, state, state_bytes, err);                           \
    }                                                                                              \
    REGISTER_KERNEL(symbol) = {NATIVE(symbol),           .packs = 1u << 1,                         \
                               .supports = supports,     .old_variants = variants,                 \
                               .old_describe = describe, .old_workspace = workspace,               \
                               .old_prepare = prepare,   .old_launch = words_launch,               \
                               .release = words_release, __VA_ARGS__}

#endif
