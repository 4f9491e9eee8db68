/* SPDX-License-Identifier: Apache-2.0
 *
 * Where RoiAlign takes its samples, for its reference and that of its gradient.
 */
#ifndef ENGINE_OPS_FAMILY_ROI_ALIGN_H
#define ENGINE_OPS_FAMILY_ROI_ALIGN_H

#include "engine/graph/op.h"

struct roi_align {
    bool max, half_pixel;
    int64_t out_height, out_width, ratio, height, width;
    double scale;
};

/* x: the map's shape. */
enum status roi_align_settings(const struct node *node, const struct shape *x, struct roi_align *r,
                               struct error *err);

/* One region along one axis. */
struct roi_side {
    double start, bin;
    int64_t grid;
};

struct roi_side roi_side_of(const struct roi_align *r, double low, double high, int64_t out);
/* The coordinate of a bin's sample. */
double roi_sample(const struct roi_side *side, int64_t bin, int64_t sample);

/* The two elements round a sample, their weights; false when it lies outside. */
struct roi_pair {
    int64_t at[2];
    double weight[2];
};

bool roi_pair_at(double at, int64_t size, struct roi_pair *pair);

#endif
