/* SPDX-License-Identifier: Apache-2.0
 * What SSD321 and DSSD321 on ResNet-101 share (Fu et al., "DSSD: Deconvolutional Single Shot
 * Detector", 2017): the trunk with its extra residual blocks, prediction modules, priors. */
#ifndef WORKLOADS_LIB_VISION_DSSD_H
#define WORKLOADS_LIB_VISION_DSSD_H

#include "workloads/lib/layers.h"
#include "workloads/workload.h"

enum { DSSD_MAPS = 6 };
#define DSSD_EPSILON 1e-3 /* of the batch norms */

/* Image and trunk: res3b3 (40 x 40), res5c (20), res6 (10), res7 (5), res8 (3), res9 (1). */
void dssd_trunk(struct graph *g, const struct workload_config *config, int maps[DSSD_MAPS]);

/* Convolution, batch norm, ReLU. */
int dssd_conv(struct graph *g, int x, const struct conv2d *c);
/* A prediction module on each map, then heads, priors (parameters ssd_offsets) and detection
 * output or loss (ssd_end). names are those of the maps: "5c" gives head_5c. */
void dssd_end(struct graph *g, const struct workload_config *config, const int maps[DSSD_MAPS],
              const char *const names[DSSD_MAPS]);

#endif
