/* SPDX-License-Identifier: Apache-2.0
 *
 * The batched matrix product in double behind the references of MatMul and its integer forms.
 */
#ifndef ENGINE_OPS_COMPUTE_REF_MATMUL_H
#define ENGINE_OPS_COMPUTE_REF_MATMUL_H

#include "engine/graph/op.h"

/* A row-major tensor of doubles. */
struct ref_matrix {
    const struct shape *shape;
    const double *data;
};

/* y += a b by numpy's rules; y is row-major and of the shape of output 0. */
enum status ref_matmul(const struct ref_call *call, const struct ref_matrix *a,
                       const struct ref_matrix *b, double *y, struct error *err);

#endif
