/* SPDX-License-Identifier: Apache-2.0
 *
 * What happens to the sums of a matrix product before they are stored: a node's posts as steps
 * over rows and columns of C. Steps up to `light` are done by the micro-kernels in registers; from
 * the first one that needs an exponential on, they are done in a second pass over the tile while
 * it is in the first cache (one load and store more, against 20 or more multiply-adds).
 */
#ifndef ENGINE_KERNELS_LIB_GEMM_POST_H
#define ENGINE_KERNELS_LIB_GEMM_POST_H

#include "engine/graph/kernel.h"
#include "engine/kernels/lib/simd.h"

enum { GEMM_STEP_MAX = POST_MAX + 1 };

enum gemm_step_kind {
    GEMM_ADD, /* c += a * operand */
    GEMM_MUL, /* c *= operand */
    GEMM_RELU,
    GEMM_CLAMP, /* min(max(c, a), b) */
    GEMM_LEAKY, /* c < 0 ? a c : c */
    GEMM_ACT,   /* any other activation */
};

struct gemm_step {
    enum gemm_step_kind kind;
    enum function act;
    float a, b;
    int input;           /* index into kernel_args.in */
    bool bf16;           /* the operand is, behind a pointer to floats; else f32 */
    int64_t row, column; /* operand strides; column is 0 or 1 */
    int64_t batch[RANK_MAX];
};

/* An operand so many elements further on; NULL stays so. */
SIMD_INLINE const float *gemm_operand_at(const struct gemm_step *step, const void *operand,
                                         int64_t elements)
{
    int64_t bytes = elements * (step->bf16 ? 2 : 4);
    return operand ? (const float *)(const void *)((const char *)operand + bytes) : NULL;
}

/* How far a batch's part of the operand lies from the first one's, in elements. */
SIMD_INLINE int64_t gemm_step_of_batch(const struct gemm_step *step, int rank, const int64_t *dim,
                                       int64_t batch)
{
    int64_t at = 0;
    for (int d = rank - 1; d >= 0; d--) {
        at += batch % dim[d] * step->batch[d];
        batch /= dim[d];
    }
    return at;
}

struct gemm_post {
    int count, light; /* the first `light` happen in registers */
    struct gemm_step steps[GEMM_STEP_MAX];
};

/* How the output's dimensions lie on the matrices C: which ones, outermost first, count batches
 * and rows, and which one is the column (NONE: there is one column only). */
struct gemm_axes {
    int batch_count, row_count, column;
    int batch[RANK_MAX], row[RANK_MAX];
};

/* Translates the posts of the query's node. UNSUPPORTED when an operand does not lie linearly
 * under rows and columns. */
#define gemm_post_from SIMD_FN(gemm_post_from)
enum status gemm_post_from(const struct kernel_query *q, const struct gemm_axes *axes,
                           struct gemm_post *post, struct error *why);
/* Puts a step in front of the others: the addition of `scale` times input `input`. */
#define gemm_post_bias SIMD_FN(gemm_post_bias)
enum status gemm_post_bias(const struct kernel_query *q, const struct gemm_axes *axes, int input,
                           float scale, struct gemm_post *post, struct error *why);
/* When the first step adds a vector known now (one number per column), takes it off the steps and
 * writes it to bias[0 .. columns). */
#define gemm_post_take_bias SIMD_FN(gemm_post_take_bias)
bool gemm_post_take_bias(const struct kernel_query *q, struct gemm_post *post, float *bias,
                         int64_t columns);

/* Steps [light, count) over a stored tile; operands: one pointer per step, for element (0, 0). */
#define gemm_post_heavy SIMD_FN(gemm_post_heavy)
void gemm_post_heavy(const struct gemm_post *post, const float *const *operands, float *c,
                     int64_t c_row, int64_t rows, int64_t columns);

/* Columns of rows of floats as bf16, the rows from_row and to_row elements apart. */
#define gemm_round_rows SIMD_FN(gemm_round_rows)
void gemm_round_rows(const float *from, int64_t from_row, uint16_t *to, int64_t to_row,
                     int64_t rows, int64_t columns);

#endif
