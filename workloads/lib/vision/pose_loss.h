/* SPDX-License-Identifier: Apache-2.0
 * The loss of the Cascaded Pyramid Network (Chen et al., CVPR 2018), of heat maps
 * [N, POSE_JOINTS, H, W]. */
#ifndef WORKLOADS_LIB_VISION_POSE_LOSS_H
#define WORKLOADS_LIB_VISION_POSE_LOSS_H

#include "engine/graph/graph.h"

enum { POSE_LEVELS = 4 };

/* With the input "joints" (workloads/lib/vision/poses.h). maps: of each level of the pyramid, the
 * finest first; refined: the result. height: of the crop. */
int pose_loss(struct graph *g, const int maps[POSE_LEVELS], int refined, int64_t height);

#endif
