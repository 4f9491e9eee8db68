/* SPDX-License-Identifier: Apache-2.0
 *
 * Which axes MeanVarianceNormalization takes together: for the operator and its kernel.
 */
#ifndef ENGINE_OPS_LIB_MEAN_VARIANCE_H
#define ENGINE_OPS_LIB_MEAN_VARIANCE_H

#include "engine/ops/lib/reduce.h"

static inline enum status mean_variance_axes(const struct node *node, const struct shape *x,
                                             bool chosen[RANK_MAX], struct error *err)
{
    static const int64_t usual[] = {0, 2, 3};
    bool given = node_attr(node, "axes") != NULL;
    return reduce_axes(node, x, given ? 0 : ARRAY_COUNT(usual), given ? NULL : usual, chosen, err);
}

#endif
