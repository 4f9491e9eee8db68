/* SPDX-License-Identifier: Apache-2.0
 * What the losses of detectors are made of. P is the number of places that say something: priors,
 * anchors, regions. */
#ifndef WORKLOADS_LIB_VISION_DETECTOR_LOSS_H
#define WORKLOADS_LIB_VISION_DETECTOR_LOSS_H

#include "engine/graph/graph.h"

/* Cross-entropy of the softmax of logits [N, P, C] for classes i64 [N, P]: [N, P]; 0 where the
 * class is -1. */
int class_losses(struct graph *g, int logits, int classes);
/* The losses [N, P] of positive classes and of the worst of class 0, `ratio` for each positive one,
 * summed up. */
int sum_of_hard(struct graph *g, int losses, int classes, double ratio);
/* 1 where the class is positive, else 0: f32 of the same shape. */
int is_positive(struct graph *g, int classes);
/* Smooth L1 of what is said of boxes [N, P, 4] less what is true, summed up over the positive
 * places [N, P]. */
int place_loss(struct graph *g, int said, int offsets, int positive);

#endif
