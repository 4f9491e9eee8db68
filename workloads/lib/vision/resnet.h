/* SPDX-License-Identifier: Apache-2.0
 * ResNets from image to last feature map: bottleneck blocks (50, 101, 152 layers) or basic ones
 * (18, 34), and the changes that detectors make to them. */
#ifndef WORKLOADS_LIB_VISION_RESNET_H
#define WORKLOADS_LIB_VISION_RESNET_H

#include "workloads/lib/layers.h"

enum { RESNET_STAGES = 4 };

struct resnet {
    int blocks[RESNET_STAGES]; /* stages 2 to 5; 0: the net ends before */
    bool stride_in_3x3;        /* v1.5 */
    double epsilon;            /* of the batch norms */
    double branch_gain;        /* mean scale of each block's last norm; 0: 0.4 */
    bool basic;                /* two 3x3 convolutions per block */
    bool project_all;          /* a projection even where a basic stage keeps its channels */
    bool bias;                 /* convolutions have one beside the norm */
    struct window2d pool;      /* kernel 0: 3x3/2, one more pixel at the bottom and right */
    int64_t last_stride;       /* of the last stage; 0: 2 */
    int64_t last_dilation;     /* of the 3x3 convolutions of the last stage; 0: 1 */
    int64_t thin;              /* what all channels are divided by; 0: 1 */
};

/* [N, 3, S, S] -> [N, 2048, S/32, S/32] */
int resnet_trunk(struct graph *g, int image, const struct resnet *net);
/* The same; taps[k] is the result of stage k + 2. */
int resnet_taps(struct graph *g, int image, const struct resnet *net, int taps[RESNET_STAGES]);

/* Convolution and batch norm; the norm's scale weights average `gain`. */
int conv_bn(struct graph *g, int x, const struct conv2d *c, double epsilon, double gain);

#endif
