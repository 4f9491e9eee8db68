/* SPDX-License-Identifier: Apache-2.0
 * What the DenseNets share: pre-activated convolutions and blocks whose layers see all before. */
#ifndef WORKLOADS_LIB_VISION_DENSENET_H
#define WORKLOADS_LIB_VISION_DENSENET_H

#include "workloads/lib/layers.h"

int bn_relu(struct graph *g, int x, const char *name, double epsilon);

/* Adds the layer `name` on x; returns its new channels only. */
typedef int dense_layer(struct graph *g, int x, const char *name);

/* `layers` times x = concat(x, layer(x)); names "block2.layer11". */
int dense_block(struct graph *g, int x, int block, int layers, dense_layer *layer);

int halve_by_average(struct graph *g, int x); /* 2x2/2, VALID */

#endif
