/* SPDX-License-Identifier: Apache-2.0
 *
 * ResNet-50: He, Zhang, Ren, Sun, "Deep Residual Learning for Image Recognition", CVPR 2016. */
#include "workloads/lib/vision/resnet_classifier.h"

static void build(struct graph *g, const struct workload_config *config)
{
    resnet_classifier(g, config, (const int[]){3, 4, 6, 3});
}

REGISTER(workload, resnet50) = {
    .name = "resnet50",
    .domain = "vision",
    .task = "image classification",
    .summary = "ResNet-50 on 224x224 images, 1000 classes",
    .source = "He et al., CVPR 2016; AI Matrix nvcnn.py (v1), RN50v1.5 (v1.5)",
    .params = resnet_params,
    .table1_batch = 32,
    .batch = 1,
    .build = build,
};
