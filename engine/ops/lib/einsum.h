/* SPDX-License-Identifier: Apache-2.0
 *
 * An Einsum equation resolved against the shapes of its operands: one loop per label. The labels of
 * the result come first, in its order; the others are summed over. A label that an operand has
 * twice walks its diagonal, one that it lacks (or has with size 1) does not move it.
 */
#ifndef ENGINE_OPS_LIB_EINSUM_H
#define ENGINE_OPS_LIB_EINSUM_H

#include "engine/graph/op.h"

enum { EINSUM_OPERANDS_MAX = 8, EINSUM_LABELS_MAX = 24 };

struct einsum {
    int operands, labels, out_labels;
    int64_t size[EINSUM_LABELS_MAX];
    int64_t stride[EINSUM_OPERANDS_MAX][EINSUM_LABELS_MAX]; /* row-major operands, in elements */
    unsigned char label[EINSUM_OPERANDS_MAX][RANK_MAX];     /* of each axis of an operand */
};

enum status einsum_from(const struct node *node, const struct shape *const *in, int in_count,
                        struct einsum *einsum, struct error *err);
int64_t einsum_span(const struct einsum *einsum, int first, int last); /* product of sizes */

#endif
