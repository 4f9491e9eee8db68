/* SPDX-License-Identifier: Apache-2.0
 *
 * What the two forms of a matrix product share: the epilogue. */
#ifndef ENGINE_KERNELS_CUDNN_LIB_MATMUL_H
#define ENGINE_KERNELS_CUDNN_LIB_MATMUL_H

#include "engine/kernels/cudnn/lib/work.h"

/* Gemm's C and the node's posts. */
enum status matmul_epilogue(const struct kernel_query *q, operand_from *operand,
                            struct epilogue *epilogue, struct error *why);
/* Rows of the result may be several dimensions of the node: an operand is a row, all, or one
 * number. columns: the dimension of y that they lie along. */
enum status matmul_operand(const struct kernel_query *q, int input, const struct tensor *y,
                           int columns, struct tensor *operand, struct error *why);
double matmul_alpha(const struct kernel_query *q);

#endif
