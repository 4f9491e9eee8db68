/* SPDX-License-Identifier: Apache-2.0
 *
 * RoiAlign by means: the samples of a bin form a grid and bilinear weights are products, so a bin
 * is a sum over rows and columns of the image, with one weight for each row and one for each
 * column.
 */
#ifndef ENGINE_KERNELS_LIB_ROI_PARTS_H
#define ENGINE_KERNELS_LIB_ROI_PARTS_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>

/* How the operator cuts regions. */
struct roi_cut {
    float scale;
    bool half_pixel;
    int64_t ratio;
};

/* Elements of an axis that a bin takes part of; different ones, at most all. */
struct roi_part {
    int32_t at;
    float weight;
};

struct roi_parts {
    int count;
    struct roi_part *list;
};

/* One region along one axis of `size` elements, cut into bins. */
struct roi_axis {
    float start, bin;
    int64_t grid, size;
};

static inline struct roi_axis roi_axis_of(const struct roi_cut *cut, float low, float high,
                                          int64_t bins, int64_t size)
{
    float length = (high - low) * cut->scale;
    if (!cut->half_pixel && length < 1)
        length = 1;
    float bin = length / (float)bins;
    int64_t grid = cut->ratio ? cut->ratio : (int64_t)ceilf(bin);
    return (struct roi_axis){low * cut->scale - (cut->half_pixel ? 0.5f : 0), bin, grid, size};
}

/* Samples follow one another along the axis: an element already met is one of the last two. */
static inline void roi_add_part(struct roi_parts *parts, int64_t at, float weight)
{
    for (int k = parts->count - 1; k >= 0 && k >= parts->count - 2; k--) {
        if (parts->list[k].at == at) {
            parts->list[k].weight += weight;
            return;
        }
    }
    parts->list[parts->count++] = (struct roi_part){(int32_t)at, weight};
}

/* The elements under the samples of one bin; all weights together are 1. */
static inline struct roi_parts roi_weigh(const struct roi_axis *axis, int64_t bin,
                                         struct roi_part *list)
{
    struct roi_parts parts = {0, list};
    float each = 1 / (float)axis->grid;
    for (int64_t k = 0; k < axis->grid; k++) {
        float at = axis->start + axis->bin * ((float)bin + ((float)k + 0.5f) * each);
        if (!(at >= -1 && at <= (float)axis->size))
            continue;
        at = at < 0 ? 0 : at;
        int64_t low = (int64_t)at < axis->size - 1 ? (int64_t)at : axis->size - 1;
        float t = low == axis->size - 1 ? 0 : at - (float)low;
        roi_add_part(&parts, low, (1 - t) * each);
        if (t > 0)
            roi_add_part(&parts, low + 1, t * each);
    }
    return parts;
}

#endif
