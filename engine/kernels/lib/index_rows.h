/* SPDX-License-Identifier: Apache-2.0
 *
 * The indices of GatherND and ScatterND: each row of them names a run of the data by its place
 * along the first axes. */
#ifndef ENGINE_KERNELS_LIB_INDEX_ROWS_H
#define ENGINE_KERNELS_LIB_INDEX_ROWS_H

#include "engine/graph/kernel.h"
#include "engine/kernels/lib/simd.h"

struct index_rows {
    int64_t rows;
    int depth;
    int64_t size[RANK_MAX]; /* of the axes that they go along */
    bool wide;              /* i64 */
};

/* Input 1 of the query, into the axes of input 0 from `first` on. */
static inline enum status index_rows_plan(const struct kernel_query *q, int first,
                                          struct index_rows *r, struct error *why)
{
    const struct shape *x = &q->in[0].shape, *index = &q->in[1].shape;
    if (q->node->post_count)
        return UNSUPPORTED(why, "no fused epilogue");
    if (q->in[1].dtype != DTYPE_I32 && q->in[1].dtype != DTYPE_I64)
        return UNSUPPORTED(why, "indices of type %s", dtype_name(q->in[1].dtype));
    for (int k = 0; k < q->in_count; k++)
        if (!desc_is_plain(&q->in[k]))
            return UNSUPPORTED(why, "input %d is not plain", k);
    r->wide = q->in[1].dtype == DTYPE_I64;
    r->depth = (int)index->dim[index->rank - 1];
    r->rows = shape_span(index, 0, index->rank - 1);
    for (int k = 0; k < r->depth; k++)
        r->size[k] = x->dim[first + k];
    return STATUS_OK;
}

/* Which run a row names; NONE: it is outside. */
SIMD_INLINE int64_t index_rows_at(const struct index_rows *r, const void *index, int64_t row)
{
    int64_t place = 0;
    for (int k = 0; k < r->depth; k++) {
        int64_t from = row * r->depth + k, size = r->size[k];
        int64_t at = r->wide ? ((const int64_t *)index)[from] : ((const int32_t *)index)[from];
        at += at < 0 ? size : 0;
        if (at < 0 || at >= size)
            return NONE;
        place = place * size + at;
    }
    return place;
}

#endif
