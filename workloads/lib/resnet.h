/* SPDX-License-Identifier: Apache-2.0
 * The bottleneck ResNets (50, 101, 152 layers) from image to last feature map. */
#ifndef WORKLOADS_LIB_RESNET_H
#define WORKLOADS_LIB_RESNET_H

#include "workloads/lib/layers.h"

struct resnet {
    int blocks[4];      /* per stage */
    bool stride_in_3x3; /* v1.5 */
    double epsilon;     /* of the batch norms */
    bool bias;          /* convolutions have one beside the norm */
    bool pool_centred;  /* the first pooling pads before and after, not only after */
};

/* [N, 3, S, S] -> [N, 2048, S/32, S/32] */
int resnet_trunk(struct graph *g, int image, const struct resnet *net);
/* The maps that stages 2 to 5 end with: 256, 512, 1024 and 2048 channels. */
void resnet_stages(struct graph *g, int image, const struct resnet *net, int maps[4]);

#endif
