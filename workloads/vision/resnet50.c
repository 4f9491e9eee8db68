/* SPDX-License-Identifier: Apache-2.0
 *
 * ResNet-50: He, Zhang, Ren, Sun, "Deep Residual Learning for Image Recognition", CVPR 2016. */
#include "workloads/lib/vision/classes.h"
#include "workloads/lib/vision/resnet_classifier.h"

static const int blocks[] = {3, 4, 6, 3};

static void build(struct graph *g, const struct workload_config *config)
{
    classes_end(g, config, resnet_classifier(g, config, blocks));
}

static const struct recipe recipe = CLASSES_RECIPE(0.03125);

static const struct training training = {
    .recipe = &recipe,
    CLASSES_LESSON,
    .tiny = "image=32,classes=4,thin=8",
    .tiny_batch = 32,
    .tiny_rate = 0.003,
    .tiny_steps = 60,
};

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
    .training = &training,
};
