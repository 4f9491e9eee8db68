/* SPDX-License-Identifier: Apache-2.0
 * Feature pyramid network (Lin et al., CVPR 2017) and what runs on all of its levels. */
#ifndef WORKLOADS_LIB_VISION_FPN_H
#define WORKLOADS_LIB_VISION_FPN_H

#include "workloads/lib/layers.h"

enum { FPN_LEVELS = 5 };

/* Maps of stages 2 to 5 -> P2 to P6 of `width` channels each, 256 as published. */
void feature_pyramid(struct graph *g, const int stage[4], int64_t width, int maps[FPN_LEVELS]);

/* A convolution with bias that runs on every level with the same weights. */
struct shared {
    int weight, bias;
    int64_t kernel;
};
/* shape: channels out, channels in, kernel. */
struct shared shared_conv(struct graph *g, const char *name, const int64_t shape[3], double gain);
int apply_shared(struct graph *g, int x, const struct shared *s);

#endif
