/* SPDX-License-Identifier: Apache-2.0
 *
 * A MatMulNBits node as its native kernels see it: rows of A, one after the other, times rows of
 * weights (engine/ops/lib/block_codes.h), and an epilogue, which begins with the node's bias. */
#ifndef ENGINE_KERNELS_LIB_MATMUL_CODES_H
#define ENGINE_KERNELS_LIB_MATMUL_CODES_H

#include "engine/kernels/lib/block_codes_read.h"
#include "engine/kernels/lib/matmul_product.h"

enum { CODES_A, CODES_B, CODES_SCALES, CODES_ZEROS, CODES_ORDER, CODES_BIAS };

struct matmul_codes {
    struct block_codes codes;
    struct matmul_shape shape; /* batches only where the epilogue needs them */
    struct gemm_post post;
    int64_t rows; /* of A, in all batches */
    bool bf16;    /* A, scales and the result; else f32 */
    bool has_zeros;
};

/* UNSUPPORTED with a reason unless all is f32, or bf16, and plain. */
#define matmul_codes_from SIMD_FN(matmul_codes_from)
enum status matmul_codes_from(const struct kernel_query *q, struct matmul_codes *m,
                              struct error *why);

SIMD_INLINE struct block_code_arrays matmul_codes_arrays(const struct matmul_codes *m,
                                                         const struct kernel_args *args)
{
    return (struct block_code_arrays){.codes = args->in[CODES_B],
                                      .zeros = m->has_zeros ? args->in[CODES_ZEROS] : NULL,
                                      .scales = args->in[CODES_SCALES]};
}

/* Part of the result; rows are those of all batches. */
struct matmul_codes_area {
    int64_t row, rows, column, columns;
};

/* The epilogue of sums that are stored at y, row by row. */
#define matmul_codes_steps SIMD_FN(matmul_codes_steps)
void matmul_codes_steps(const struct matmul_codes *m, const struct kernel_args *args,
                        const struct matmul_codes_area *area, float *y, int64_t y_row);

#endif
