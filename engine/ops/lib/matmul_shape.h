/* SPDX-License-Identifier: Apache-2.0
 *
 * What MatMul and Gemm multiply, seen as `batch` products C[m, n] = A[m, k] B[k, n] of strided
 * matrices. Numpy's rules for 1-D operands and broadcast batches, and transA and transB (Gemm's
 * own; of the others passes set them, engine/compile/passes/absorb_transpose.c) are in the strides.
 * Batches that only continue the rows of A and C (B is the same) are folded into m.
 */
#ifndef ENGINE_OPS_LIB_MATMUL_SHAPE_H
#define ENGINE_OPS_LIB_MATMUL_SHAPE_H

#include "engine/graph/op.h"

struct matmul_shape {
    int64_t batch, m, n, k;
    int64_t a_row, a_col, b_row, b_col, c_row, c_col; /* strides, elements */
    int batch_rank;
    int64_t batch_dim[RANK_MAX]; /* outermost first; their product is batch */
    int64_t a_batch[RANK_MAX], b_batch[RANK_MAX], c_batch[RANK_MAX]; /* strides; 0: broadcast */
};

/* Element offsets of one of the batch products. */
struct matmul_offset {
    int64_t a, b, c;
};

/* The shape of the result. node: MatMul or Gemm. */
enum status matmul_infer(const struct node *node, const struct shape *a, const struct shape *b,
                         struct shape *c, struct error *err);
/* Of a MatMul of inputs 0 and 1. */
void matmul_cost(const struct infer *c, struct cost *cost);
/* From the descs of input 0, input 1 and output 0 of a node that was inferred. */
struct matmul_shape matmul_shape_from(const struct node *node, const struct desc *a,
                                      const struct desc *b, const struct desc *c);
struct matmul_offset matmul_offset_of(const struct matmul_shape *shape, int64_t index);

#endif
