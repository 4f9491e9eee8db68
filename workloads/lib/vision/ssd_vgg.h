/* SPDX-License-Identifier: Apache-2.0
 * VGG16 as the trunk of SSD: fully connected layers 6 and 7 turned into convolutions, the first of
 * them dilated so that pooling can keep the resolution. */
#ifndef WORKLOADS_LIB_VISION_SSD_VGG_H
#define WORKLOADS_LIB_VISION_SSD_VGG_H

#include "workloads/lib/layers.h"

/* Writes the first two feature maps: conv4_3, normalised, and fc7. All channels are divided by
 * thin.
 */
void ssd_vgg_trunk(struct graph *g, int image, int64_t thin, int features[2]);

/* "conv6_1": 1x1, "conv6_2": what c says, each with bias and ReLU. */
int ssd_vgg_extra(struct graph *g, int x, int number, int64_t reduce, const struct conv2d *c);
#define ssd_extra(g, x, number, reduce, ...)                                                       \
    ssd_vgg_extra((g), (x), (number), (reduce), &(const struct conv2d){__VA_ARGS__})

#endif
