/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/compile/passes/mask.h"

#include <math.h>
#include <stdlib.h>

/* From here on exp() of a difference of scores is 0. */
static const double BIG = -1e4;

/* Of a fixed value with so many queries and keys as its last axes; NULL: it is none. Free it. */
static void *contents(const struct graph *g, int mask, enum dtype dtype, int64_t queries,
                      int64_t keys)
{
    const struct value *v = &g->values[mask];
    int rank = v->shape.rank;
    if (!value_is_fixed(v) || v->dtype != dtype || rank < 2 || v->shape.dim[rank - 2] != queries ||
        v->shape.dim[rank - 1] != keys || keys < queries)
        return NULL;
    void *data = malloc((size_t)shape_count(&v->shape) * dtype_size(dtype) + 1);
    if (data)
        value_materialise(v, data);
    return data;
}

/* Whether a query sees the key of element i. */
static bool is_seen(int64_t i, int64_t queries, int64_t keys)
{
    return i % keys <= i / keys % queries + keys - queries;
}

enum mask_kind mask_of_sum(const struct graph *g, int mask, int64_t queries, int64_t keys)
{
    float *x = contents(g, mask, DTYPE_F32, queries, keys);
    int64_t count = x ? shape_count(&g->values[mask].shape) : 0;
    bool causal = count > 0, finite = false;
    for (int64_t i = 0; causal && i < count; i++) {
        bool seen = is_seen(i, queries, keys);
        causal = seen ? x[i] == 0 : (double)x[i] <= BIG;
        finite = finite || (!seen && isfinite(x[i]));
    }
    free(x);
    return !causal ? MASK_OTHER : finite ? MASK_CAUSAL_BIG : MASK_CAUSAL;
}

enum mask_kind mask_of_choice(const struct graph *g, int choice, bool hides, double number,
                              int64_t queries, int64_t keys)
{
    bool *x = number <= BIG ? contents(g, choice, DTYPE_BOOL, queries, keys) : NULL;
    int64_t count = x ? shape_count(&g->values[choice].shape) : 0;
    bool causal = count > 0;
    for (int64_t i = 0; causal && i < count; i++)
        causal = x[i] == (is_seen(i, queries, keys) != hides);
    free(x);
    return !causal ? MASK_OTHER : isfinite(number) ? MASK_CAUSAL_BIG : MASK_CAUSAL;
}

bool mask_may_leave_nothing(const struct graph *g, int mask)
{
    const struct value *v = mask == NONE ? NULL : &g->values[mask];
    int64_t count = v ? shape_count(&v->shape) : 0;
    if (count == 0)
        return false;
    float *x =
        value_is_fixed(v) && v->dtype == DTYPE_F32 ? malloc((size_t)count * sizeof(*x)) : NULL;
    if (!x)
        return true;
    int64_t line = v->shape.rank ? v->shape.dim[v->shape.rank - 1] : 1;
    bool empty = false, finite = false;
    value_materialise(v, x);
    for (int64_t i = 0; i < count; i++) {
        finite = (i % line && finite) || isfinite(x[i]);
        empty = empty || ((i + 1) % line == 0 && !finite);
    }
    free(x);
    return empty;
}
