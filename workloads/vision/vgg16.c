/* SPDX-License-Identifier: Apache-2.0
 *
 * VGG16: Simonyan, Zisserman, "Very Deep Convolutional Networks for Large-Scale Image Recognition",
 * ICLR 2015, configuration D. Dropout is gone at inference. */
#include "workloads/lib/vision/vgg.h"
#include "workloads/workload.h"

static void build(struct graph *g, const struct workload_config *config)
{
    int x = graph_input(g, "image", DTYPE_F32, shape_of(config->batch, 3, 224, 224),
                        (struct fill){.kind = FILL_IMAGE, .a = 0, .b = 0.6});
    x = vgg16_stages(g, x, 1, 5);
    x = flatten(g, vgg16_pool(g, x));
    x = relu(g, dense(g, x, "fc6", 4096));
    x = relu(g, dense(g, x, "fc7", 4096));
    x = dense(g, x, "fc8", 1000);
    graph_rename(g, x, "logits");
    graph_output(g, x);
}

REGISTER(workload, vgg16) = {
    .name = "vgg16",
    .domain = "vision",
    .task = "image classification",
    .summary = "VGG16 (configuration D) on 224x224 images, 1000 classes",
    .source = "Simonyan and Zisserman, ICLR 2015; AI Matrix nvcnn.py",
    .params = NULL,
    .batch = 1,
    .build = build,
};
