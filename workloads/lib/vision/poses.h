/* SPDX-License-Identifier: Apache-2.0
 *
 * Made-up persons: figures of coloured limbs in some posture, size and place on a ground of waves
 * under noise. Some joints are hidden by a blot, some lie outside of the picture. */
#ifndef WORKLOADS_LIB_VISION_POSES_H
#define WORKLOADS_LIB_VISION_POSES_H

#include "workloads/lib/lessons.h"

/* COCO's joints: nose, eyes, ears, shoulders, elbows, wrists, hips, knees, ankles; of each pair the
 * left one first. Of a joint: x, y in pixels, and 2 where it is seen, 1 where it is hidden, 0 where
 * it is not in the picture. */
enum { POSE_JOINTS = 17, POSE_NUMBERS = 3 };

#define POSES_LESSON "where the joints of a figure of coloured limbs are"

/* Inputs "crop" [N, 3, H, W] and "joints" [N, POSE_JOINTS, POSE_NUMBERS]. */
void poses_fill(const struct batch *batch);

/* The share of joints in the picture that are found: answers [N, POSE_JOINTS, 3], x and y first,
 * are off by at most a tenth of the longer side of the box round all joints (Yang and Ramanan,
 * TPAMI 2013: PCK). */
extern const struct quality quality_pck;

#endif
