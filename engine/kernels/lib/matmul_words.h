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
#include "engine/ops/family/rescale.h"
#include "engine/ops/lib/matmul_shape.h"

/* What a kernel reads from its node. */
struct matmul_words {
    struct matmul_shape shape; /* in elements */
    int element;               /* bytes of an element of A and B */
    bool signed_a, signed_b;   /* bytes */
    int zero_a, zero_b;        /* inputs, one number or one per row (column); NONE: 0 */
    bool rescales;             /* bytes: sums end as `rescale` says, by inputs 2 and 3 */
    struct rescale rescale;
    struct gemm_post post;
};

/* Memory of a launch: bytes from the start of the workspace. */
struct scratch {
    size_t packed;       /* B, unless it is fixed */
    size_t columns;      /* bytes: per column of all batches the sums of B */
    size_t shift_by;     /* per column: zero points of B */
    size_t scale, shift; /* per row of all batches */
    size_t turned;       /* per thread: rows of A that were columns */
    size_t gemm, bytes;
};

struct kernel_state {
    struct matmul_words words;
    struct gemm_plan plan;
    struct gemm_post post;
    struct scratch scratch;
    bool is_bytes, shifts;              /* shifts: B has zero points, or is unsigned */
    bool zero_per_row, zero_per_column; /* not one for all */
    bool turn;
    int64_t line;          /* words between turned rows */
    size_t turned_bytes;   /* per thread */
    int64_t packed_floats; /* of one batch */
    int64_t columns;       /* of one batch, padded */
    bool shared;           /* all batches have the same B */
    float *packed;         /* fixed B; NULL: comes with each launch */
    int32_t *sums;         /* with it */
    float *scale, *offset; /* rescaling: of the columns, padded */
    float *bias;           /* of bf16, padded; NULL: none that is known at preparation */
};

typedef enum status matmul_words_from(const struct kernel_query *q, struct matmul_words *words,
                                      struct error *why);

/* What all kernels refuse: an empty product, rows of the result that are not dense. */
#define matmul_words_check SIMD_FN(matmul_words_check)
enum status matmul_words_check(const struct matmul_words *words, struct error *why);

/* The hooks of a kernel. */
#define words_plan      SIMD_FN(words_plan)
#define words_variants  SIMD_FN(words_variants)
#define words_describe  SIMD_FN(words_describe)
#define words_workspace SIMD_FN(words_workspace)
#define words_prepare   SIMD_FN(words_prepare)
#define words_launch    SIMD_FN(words_launch)
#define words_release   SIMD_FN(words_release)
enum status words_plan(matmul_words_from *from, const struct kernel_query *q, int variant,
                       struct kernel_state *state, struct error *why);
int words_variants(const struct kernel_state *state);
void words_describe(const struct kernel_state *state, char *text, size_t size);
size_t words_workspace(const struct kernel_state *state);
enum status words_prepare(const struct kernel_query *q, struct kernel_state *state,
                          size_t *packed_bytes, struct error *err);
void words_launch(const struct kernel_state *state, const struct kernel_args *args);
void words_release(struct kernel_state *state);

/* Defines kernel `symbol`, which reads its nodes with `from`. */
#define MATMUL_WORDS_KERNEL(symbol, from, ...)                                                     \
    static enum status plan(const struct kernel_query *q, int variant, struct kernel_state *state, \
                            struct error *why)                                                     \
    {                                                                                              \
        return words_plan(from, q, variant, state, why);                                           \
    }                                                                                              \
    REGISTER_KERNEL(symbol) = {NATIVE(symbol),                                                     \
                               .packs = 1u << 1,                                                   \
                               .state_size = sizeof(struct kernel_state),                          \
                               .plan = plan,                                                       \
                               .variants = words_variants,                                         \
                               .describe = words_describe,                                         \
                               .workspace = words_workspace,                                       \
                               .prepare = words_prepare,                                           \
                               .launch = words_launch,                                             \
                               .release = words_release,                                           \
                               __VA_ARGS__}

#endif
