/* SPDX-License-Identifier: Apache-2.0
 *
 * ResNet-50: He, Zhang, Ren, Sun, "Deep Residual Learning for Image Recognition", CVPR 2016.
 * v1 halves the image in the first 1x1 convolution of a stage, v1.5 in its 3x3. */
#include <string.h>

#include "workloads/lib/resnet.h"
#include "workloads/workload.h"

static const char *const versions[] = {"1", "1.5", NULL};
static const struct param params[] = {
    {"version", "1", versions, "where a stage halves the image: 1 in the 1x1, 1.5 in the 3x3"},
    {"image", "224", NULL, "height and width of the image"},
    {.name = NULL},
};

static void build(struct graph *g, const struct workload_config *config)
{
    int64_t size = config_int(config, "image");
    struct resnet net = {.blocks = {3, 4, 6, 3},
                         .stride_in_3x3 = strcmp(config_text(config, "version"), "1.5") == 0};
    net.epsilon = net.stride_in_3x3 ? 1e-5 : 1e-4;
    int x = graph_input(g, "image", DTYPE_F32, shape_of(config->batch, 3, size, size),
                        (struct fill){.kind = FILL_IMAGE, .a = 0, .b = 0.6});
    x = resnet_trunk(g, x, &net);
    x = flatten(g, global_average_pool(g, x));
    x = dense(g, x, "fc", 1000);
    graph_rename(g, x, "logits");
    graph_output(g, x);
}

REGISTER(workload, resnet50) = {
    .name = "resnet50",
    .domain = "vision",
    .task = "image classification",
    .summary = "ResNet-50 on 224x224 images, 1000 classes",
    .source = "He et al., CVPR 2016; AI Matrix nvcnn.py (v1), RN50v1.5 (v1.5)",
    .params = params,
    .table1_batch = 32,
    .batch = 1,
    .build = build,
};
