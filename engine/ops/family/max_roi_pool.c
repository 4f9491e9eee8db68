/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/ops/family/max_roi_pool.h"

#include <math.h>

static int64_t whole(double corner)
{
    return (int64_t)round(fmin(fmax(corner, -1e9), 1e9));
}

struct roi_span roi_span_of(double low, double high, int64_t limit, int64_t bins)
{
    struct roi_span span = {.limit = limit, .bins = bins};
    span.start = whole(low);
    span.size = whole(high) - span.start + 1;
    if (span.size < 1)
        span.size = 1;
    return span;
}

static int64_t clip(int64_t value, int64_t limit)
{
    return value < 0 ? 0 : value > limit ? limit : value;
}

/* In float, as Caffe and ONNX Runtime compute it: 7 (31 / 7) is above 31 there, so that the last
 * bin of such a region reaches one element further. */
void roi_bin_of(const struct roi_span *s, int64_t bin, int64_t *begin, int64_t *end)
{
    float size = (float)s->size / (float)s->bins;
    *begin = clip(s->start + (int64_t)floorf((float)bin * size), s->limit);
    *end = clip(s->start + (int64_t)ceilf((float)(bin + 1) * size), s->limit);
}
