/* SPDX-License-Identifier: Apache-2.0
 *
 * The loops of an elementwise kernel: tensors of different layout and shape, broadcast to operand
 * 0, walked together in the memory order of operand 0. Dimensions that all operands step through
 * alike are joined, so that equal layouts give one dimension, a bias per channel gives two.
 */
#ifndef ENGINE_OPS_LIB_STRIDED_H
#define ENGINE_OPS_LIB_STRIDED_H

#include "engine/graph/tensor.h"

enum { STRIDED_OPERANDS = 16 };

struct strided {
    int rank, operands; /* rank >= 1 */
    int64_t dim[RANK_MAX];
    int64_t stride[STRIDED_OPERANDS][RANK_MAX]; /* elements; 0: broadcast */
    int64_t row, rows;                          /* innermost dimension; product of the others */
};

/* descs[0] gives the iteration space, in which no two elements are one; NULL counts as a scalar. */
void strided_init(struct strided *s, const struct desc *const *descs, int operands);
/* The strides of a tensor in a space of `rank` dimensions that it is broadcast to: 0 where it is.
 * NULL counts as a scalar. */
void strided_broadcast(const struct desc *desc, int rank, int64_t *stride);
/* Where operand k stands at the start of a row. */
int64_t strided_at(const struct strided *s, int k, int64_t row);
/* Element i of the operand belongs to element i of the space. */
bool strided_is_full(const struct strided *s, int k);
bool strided_is_scalar(const struct strided *s, int k);
/* The same contiguous row for every row of the space. */
bool strided_is_vector(const struct strided *s, int k);

#endif
