/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/ops/compute/ref_matmul.h"

#include <stdlib.h>

#include "engine/ops/compute/ref_gemm.h"
#include "engine/ops/lib/matmul_shape.h"

enum status ref_matmul(const struct ref_call *call, const struct ref_matrix *a,
                       const struct ref_matrix *b, double *y, struct error *err)
{
    struct desc desc_a = desc_dense(DTYPE_F64, a->shape, LAYOUT_PLAIN);
    struct desc desc_b = desc_dense(DTYPE_F64, b->shape, LAYOUT_PLAIN);
    struct desc desc_y = desc_dense(DTYPE_F64, &call->out[0]->shape, LAYOUT_PLAIN);
    struct matmul_shape s = matmul_shape_from(call->node, &desc_a, &desc_b, &desc_y);
    struct ref_gemm *items = calloc((size_t)s.batch + 1, sizeof(*items));
    if (!items)
        return FAIL_NO_MEMORY(err);
    for (int64_t t = 0; t < s.batch; t++) {
        struct matmul_offset at = matmul_offset_of(&s, t);
        items[t] = (struct ref_gemm){.m = s.m,
                                     .n = s.n,
                                     .k = s.k,
                                     .a = a->data + at.a,
                                     .a_row = s.a_row,
                                     .a_col = s.a_col,
                                     .b = b->data + at.b,
                                     .b_row = s.b_row,
                                     .b_col = s.b_col,
                                     .c = y + at.c,
                                     .c_row = s.c_row};
    }
    ref_gemm_run(call->pool, items, s.batch);
    free(items);
    return STATUS_OK;
}
