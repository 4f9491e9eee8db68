/* SPDX-License-Identifier: Apache-2.0
 *
 * Which elements the bins of MaxRoiPool hold, for its reference and that of its gradient.
 */
#ifndef ENGINE_OPS_FAMILY_MAX_ROI_POOL_H
#define ENGINE_OPS_FAMILY_MAX_ROI_POOL_H

#include "engine/graph/op.h"

/* One dimension of a region. */
struct roi_span {
    int64_t start, size, limit, bins;
};

struct roi_span roi_span_of(double low, double high, int64_t limit, int64_t bins);
/* Elements [*begin, *end) of a bin; none where that is empty. */
void roi_bin_of(const struct roi_span *s, int64_t bin, int64_t *begin, int64_t *end);

#endif
