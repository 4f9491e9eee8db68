/* SPDX-License-Identifier: Apache-2.0
 *
 * Pictures of bytes as input of a network: a part of one, resized by linear interpolation, each
 * channel brought to mean 0 and deviation 1. */
#ifndef WORKLOADS_DATA_PICTURES_H
#define WORKLOADS_DATA_PICTURES_H

#include "workloads/data/data.h"
#include "workloads/lib/lessons.h"

enum { PICTURE_MAX = 2048 }; /* height and width of a network's image */

struct picture {
    const uint8_t *pixels;
    int width, height;
    int64_t pixel, row, plane; /* distances; plane 0: grey, the same in every channel */
};

/* What is taken of it, in pixels; it may reach over the edge, where the image is 0. */
struct picture_part {
    double x, y, width, height;
    bool mirrored;
};

/* Of values between 0 and 1, per channel. */
struct picture_scale {
    float mean[3], deviation[3];
};

/* The same part in every direction but for a shift of at most `pad` pixels, and mirrored or not;
 * held out: all of it. */
struct picture_part picture_shifted(const struct batch *batch, int64_t row,
                                    const struct picture *picture, int pad, bool mirrors);
/* What networks for ImageNet are trained on: 8 to 100 % of the picture in a shape of 3:4 to 4:3,
 * mirrored or not; held out: the middle 7/8 of the shorter side. */
struct picture_part picture_resized(const struct batch *batch, int64_t row, int width, int height);

/* Row `row` of the input "image", [N, C, H, W]. */
void picture_put(const struct batch *batch, int64_t row, const struct picture *picture,
                 const struct picture_part *part, const struct picture_scale *scale);

/* The inputs "image" and "label" of a classifier. classes: how many labels it must tell apart; 0:
 * any number. */
enum status pictures_check(const struct data_set *set, const struct graph *graph, int64_t classes,
                           struct error *err);

#endif
