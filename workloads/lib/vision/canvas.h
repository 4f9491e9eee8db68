/* SPDX-License-Identifier: Apache-2.0
 *
 * What made-up pictures have in common: what lies under and over that which is to be learnt. A
 * picture is [channels, height, width], dimensions 1 to 3 of the shape of a batch. */
#ifndef WORKLOADS_LIB_VISION_CANVAS_H
#define WORKLOADS_LIB_VISION_CANVAS_H

#include "workloads/lib/lessons.h"

enum { CANVAS_CHANNELS = 3 };

/* Faint waves of some direction. */
void canvas_ground(struct draw *draw, const struct shape *shape, float *image);
/* Added to `count` elements: uniform within +-0.1. */
void canvas_noise(const struct draw *draw, int64_t count, float *image);

/* A line with round ends from one point to another, both x, y in pixels. */
struct canvas_line {
    double from[2], to[2], radius;
    float colour[CANVAS_CHANNELS];
};
void canvas_draw(const struct canvas_line *line, const struct shape *shape, float *image);
/* The colour of a hue in [0, 1), of three waves a third of a turn apart. */
void canvas_hue(double hue, float colour[CANVAS_CHANNELS]);

#endif
