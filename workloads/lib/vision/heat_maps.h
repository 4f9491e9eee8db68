/* SPDX-License-Identifier: Apache-2.0
 * Heat maps of joints: from maps to the places of their peaks, and from places to the maps that a
 * network is to give. An element of a map is HEAT_STRIDE pixels wide, and at its middle. */
#ifndef WORKLOADS_LIB_VISION_HEAT_MAPS_H
#define WORKLOADS_LIB_VISION_HEAT_MAPS_H

#include "engine/graph/graph.h"

enum { HEAT_STRIDE = 4, HEAT_PEAK = 255 };

/* Columns in reverse order: of images, or of maps. */
int heat_maps_flipped(struct graph *g, int x);
/* Maps [2 N, POSE_JOINTS, H, W] of crops and then of their mirror images: the mean of both, the
 * mirrored ones turned back: flipped, left and right joints exchanged. */
int heat_maps_averaged(struct graph *g, int maps);

/* maps [N, JOINTS, H, W], smoothed by a Gaussian of 21 taps. Each joint is at the largest element,
 * moved a quarter of an element towards the second largest. */
struct joints {
    int joints; /* [N, JOINTS, 3]: x and y in pixels, score */
    int scores; /* [N, JOINTS, 1] */
};
struct joints heat_maps_read(struct graph *g, int maps);

/* Maps like those of `like` for x and y [N, JOINTS, 1] in pixels: at most HEAT_PEAK, a Gaussian cut
 * off after `taps` elements with the deviation that OpenCV gives it, round the nearest element. */
int heat_maps_drawn(struct graph *g, int x, int y, int like, int64_t taps);

#endif
