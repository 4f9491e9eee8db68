/* SPDX-License-Identifier: Apache-2.0
 *
 * ResNet-101: He, Zhang, Ren, Sun, "Deep Residual Learning for Image Recognition", CVPR 2016. */
#include "workloads/lib/vision/resnet_classifier.h"

static void build(struct graph *g, const struct workload_config *config)
{
    resnet_classifier(g, config, (const int[]){3, 4, 23, 3});
}

REGISTER(workload, resnet101) = {
    .name = "resnet101",
    .domain = "vision",
    .task = "image classification",
    .summary = "ResNet-101 on 224x224 images, 1000 classes",
    .source = "He et al., CVPR 2016; AI Matrix nvcnn.py (v1); v1.5 as in TF-slim",
    .params = resnet_params,
    .batch = 1,
    .build = build,
};
