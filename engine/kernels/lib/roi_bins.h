/* SPDX-License-Identifier: Apache-2.0
 *
 * Which elements the bins of MaxRoiPool hold, along one axis.
 */
#ifndef ENGINE_KERNELS_LIB_ROI_BINS_H
#define ENGINE_KERNELS_LIB_ROI_BINS_H

#include <math.h>
#include <stdint.h>

/* One axis of a region, cut into bins. */
struct roi_span {
    int64_t start, limit;
    float bin;
};

static inline struct roi_span roi_span_of(float low, float high, int64_t limit, int64_t bins)
{
    float begin = roundf(fminf(fmaxf(low, -1e9f), 1e9f));
    float end = roundf(fminf(fmaxf(high, -1e9f), 1e9f));
    float size = fmaxf(end - begin + 1, 1);
    return (struct roi_span){(int64_t)begin, limit, size / (float)bins};
}

struct roi_bin {
    int64_t begin, end;
};

static inline int64_t roi_clip(int64_t value, int64_t limit)
{
    return value < 0 ? 0 : value > limit ? limit : value;
}

static inline struct roi_bin roi_bin_of(const struct roi_span *s, int64_t bin)
{
    return (struct roi_bin){
        roi_clip(s->start + (int64_t)floorf((float)bin * s->bin), s->limit),
        roi_clip(s->start + (int64_t)ceilf((float)(bin + 1) * s->bin), s->limit)};
}

#endif
