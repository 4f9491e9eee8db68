/* SPDX-License-Identifier: Apache-2.0
 *
 * The sparse matrix of SpMM and of its gradient: values, their columns, and the offsets at which
 * rows begin. Indices out of range read what is there: the reference has refused such a matrix.
 */
#ifndef ENGINE_KERNELS_LIB_SPARSE_ROWS_H
#define ENGINE_KERNELS_LIB_SPARSE_ROWS_H

#include "engine/graph/kernel.h"

enum { SPARSE_VALUES, SPARSE_COLUMNS, SPARSE_OFFSETS }; /* inputs */

struct sparse_rows {
    const void *values;
    const void *columns, *offsets;
    bool wide_columns, wide_offsets; /* i64 */
    bool bf16;                       /* values, and all that is not sparse */
    int64_t rows, entries;
};

/* For plan: numbers of one type, f32 or, where `narrow` allows it, bf16; plain tensors throughout.
 */
static inline enum status sparse_rows_from(const struct kernel_query *q, bool narrow,
                                           struct sparse_rows *s, struct error *why)
{
    if (q->node->post_count)
        return UNSUPPORTED(why, "no fused epilogue");
    s->bf16 = narrow && q->in[SPARSE_VALUES].dtype == DTYPE_BF16;
    for (int k = 0; k < q->in_count; k++) {
        bool index = k == SPARSE_COLUMNS || k == SPARSE_OFFSETS;
        enum dtype dtype = q->in[k].dtype, number = s->bf16 ? DTYPE_BF16 : DTYPE_F32;
        if (!desc_is_plain(&q->in[k]))
            return UNSUPPORTED(why, "input %d is not plain", k);
        if (index ? dtype != DTYPE_I32 && dtype != DTYPE_I64 : dtype != number)
            return UNSUPPORTED(why, "input %d is %s", k, dtype_name(dtype));
    }
    if (!desc_is_plain(&q->out[0]))
        return UNSUPPORTED(why, "the output is not plain");
    s->wide_columns = q->in[SPARSE_COLUMNS].dtype == DTYPE_I64;
    s->wide_offsets = q->in[SPARSE_OFFSETS].dtype == DTYPE_I64;
    s->rows = q->in[SPARSE_OFFSETS].shape.dim[0] - 1;
    s->entries = q->in[SPARSE_VALUES].shape.dim[0];
    return STATUS_OK;
}

/* For launch. */
static inline void sparse_rows_take(struct sparse_rows *s, const struct kernel_args *args)
{
    s->values = args->in[SPARSE_VALUES];
    s->columns = args->in[SPARSE_COLUMNS];
    s->offsets = args->in[SPARSE_OFFSETS];
}

static inline int64_t sparse_index(const void *list, bool wide, int64_t i)
{
    return wide ? ((const int64_t *)list)[i] : ((const int32_t *)list)[i];
}

static inline int64_t sparse_column(const struct sparse_rows *s, int64_t entry)
{
    return sparse_index(s->columns, s->wide_columns, entry);
}

/* The first entry of a row, and of the one after the last. */
static inline int64_t sparse_offset(const struct sparse_rows *s, int64_t row)
{
    int64_t at = sparse_index(s->offsets, s->wide_offsets, row);
    return at < 0 ? 0 : at > s->entries ? s->entries : at;
}

#endif
