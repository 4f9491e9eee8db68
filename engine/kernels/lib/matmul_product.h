/* SPDX-License-Identifier: Apache-2.0
 *
 * A MatMul or Gemm node as its native kernels see it: strided products
 * (engine/ops/lib/matmul_shape.h) and an epilogue, which holds Gemm's C as its first step. */
#ifndef ENGINE_KERNELS_LIB_MATMUL_PRODUCT_H
#define ENGINE_KERNELS_LIB_MATMUL_PRODUCT_H

#include "engine/kernels/lib/gemm.h"
#include "engine/ops/lib/matmul_shape.h"

struct matmul_product {
    struct matmul_shape shape;
    struct gemm_axes axes;
    struct gemm_post post;
    float alpha;
};

/* The epilogue, which begins with Gemm's C. Takes batches that were folded into rows out again
 * where only so its operands follow rows and columns. */
struct matmul_posts {
    struct gemm_axes axes;
    struct gemm_post post;
};
#define matmul_posts_from SIMD_FN(matmul_posts_from)
enum status matmul_posts_from(const struct kernel_query *q, struct matmul_shape *shape,
                              struct matmul_posts *posts, struct error *why);

/* UNSUPPORTED with a reason unless all is `floats`, not empty, and the epilogue follows rows and
 * columns of the result. Batches are folded into rows where the epilogue allows it. */
#define matmul_product_of SIMD_FN(matmul_product_of)
enum status matmul_product_of(const struct kernel_query *q, enum dtype floats,
                              struct matmul_product *product, struct error *why);
/* Of f32. */
#define matmul_product_from SIMD_FN(matmul_product_from)
enum status matmul_product_from(const struct kernel_query *q, struct matmul_product *product,
                                struct error *why);

/* Whether rows of the left operand are columns in memory, for gemm_size.turn; UNSUPPORTED where
 * they are neither dense nor neighbours. */
#define matmul_turns SIMD_FN(matmul_turns)
enum status matmul_turns(const struct matmul_shape *shape, bool *turn, struct error *why);

/* Rows of the left operand where they lie, for gemm_call.rows. */
struct matmul_rows_source {
    const float *a;
    const struct matmul_shape *shape;
};
#define matmul_rows SIMD_FN(matmul_rows)
void matmul_rows(const struct gemm_rows *wanted, const float **to, int64_t step);

#endif
