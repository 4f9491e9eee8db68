/* SPDX-License-Identifier: Apache-2.0
 * The bottleneck ResNets (50, 101, 152 layers) from image to last feature map. */
#ifndef WORKLOADS_LIB_RESNET_H
#define WORKLOADS_LIB_RESNET_H

#include "workloads/lib/layers.h"

struct resnet {
    int blocks[4];      /* per stage */
    bool stride_in_3x3; /* v1.5 */
    double epsilon;     /* of the batch norms */
};

/* [N, 3, S, S] -> [N, 2048, S/32, S/32] */
int resnet_trunk(struct graph *g, int image, const struct resnet *net);

#endif
