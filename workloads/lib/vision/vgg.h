/* SPDX-License-Identifier: Apache-2.0
 * The thirteen 3x3 convolutions of VGG16 (configuration D), which four detectors share. */
#ifndef WORKLOADS_LIB_VISION_VGG_H
#define WORKLOADS_LIB_VISION_VGG_H

#include "workloads/lib/layers.h"

/* Convolution of width `kernel`, bias and ReLU; no padding but that of an odd kernel. */
int vgg_conv(struct graph *g, int x, const char *name, int64_t out, int64_t kernel);

enum {
    VGG_FIRST = 64
}; /* channels of stage 1, as published; stages 4 and 5 have eight times that */

/* Stage 1 to 5: its two or three convolutions "conv3_1" ..., each with ReLU; no pooling. */
int vgg16_stage(struct graph *g, int x, int stage, int64_t first);
/* Stages 1 to last with 2x2 max pooling between them, none after the last. */
int vgg16_stages(struct graph *g, int x, int last, int64_t first);
/* max, 2x2/2; an odd row or column counts as half a window: Caffe's rounding and TensorFlow's SAME
 * are one here. */
int vgg16_pool(struct graph *g, int x);

#endif
