/* SPDX-License-Identifier: Apache-2.0
 *
 * Results that may lie inside larger ones (engine/compile/parts.c): rows that are dense each, and
 * evenly spaced. */
#ifndef ENGINE_KERNELS_LIB_ROW_PITCH_H
#define ENGINE_KERNELS_LIB_ROW_PITCH_H

#include "engine/graph/kernel.h"

/* Elements from one row of the last `inner` dimensions to the next; UNSUPPORTED where rows have
 * gaps or are not evenly spaced. */
static inline enum status row_pitch(const struct desc *desc, int inner, int64_t *pitch,
                                    struct error *why)
{
    int64_t next = 1;
    int d = desc->shape.rank - 1;
    for (; d >= desc->shape.rank - inner; d--) {
        if (desc->shape.dim[d] > 1 && desc->stride[d] != next)
            return UNSUPPORTED(why, "rows of the result are not dense");
        next *= desc->shape.dim[d];
    }
    *pitch = next;
    bool first = true;
    for (; d >= 0; d--) {
        if (desc->shape.dim[d] <= 1)
            continue;
        if (first)
            *pitch = next = desc->stride[d];
        else if (desc->stride[d] != next)
            return UNSUPPORTED(why, "rows of the result are not evenly spaced");
        first = false;
        next *= desc->shape.dim[d];
    }
    return STATUS_OK;
}

/* UNSUPPORTED unless every result is plain. */
static inline enum status query_plain_results(const struct kernel_query *q, struct error *why)
{
    for (int k = 0; k < q->out_count; k++)
        if (q->out[k].dtype != DTYPE_NONE && !desc_is_plain(&q->out[k]))
            return UNSUPPORTED(why, "output %d is not plain", k);
    return STATUS_OK;
}

#endif
