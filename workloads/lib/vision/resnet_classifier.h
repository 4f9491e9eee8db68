/* SPDX-License-Identifier: Apache-2.0
 * ResNet-50, -101 and -152 on ImageNet: trunk, average over space, 1000 classes. */
#ifndef WORKLOADS_LIB_VISION_RESNET_CLASSIFIER_H
#define WORKLOADS_LIB_VISION_RESNET_CLASSIFIER_H

#include "workloads/workload.h"

extern const struct param resnet_params[]; /* version, image, classes */

/* Logits, [N, classes]. */
int resnet_classifier(struct graph *g, const struct workload_config *config, const int blocks[4]);

#endif
