/* SPDX-License-Identifier: Apache-2.0
 *
 * SSD321 on ResNet-18, as AI Matrix builds it with the network scripts of DSSD: heads directly on
 * the last maps of stages 3 to 5 and on one extra layer, 8 priors per cell, 17000 in all. */
#include <string.h>

#include "workloads/lib/vision/resnet.h"
#include "workloads/lib/vision/ssd.h"
#include "workloads/workload.h"

static const struct ssd ssd = {
    .image = 321,
    .classes = 21,
    .ratio = {1.6, 2, 3},
    .whole_sides = true,
    .score_threshold = 0.01,
    .top_k = 400,
    .maps = 4,
    .map = {{"res3b", 32.1, 64.2, .step = 8, .offset = 2.5, .ratios = 3, .kernel = 3},
            {"res4b", 64.2, 182.97, .step = 16, .offset = 2.5, .ratios = 3, .kernel = 3},
            {"res5b", 182.97, 301.74, .step = 32, .offset = 10.5, .ratios = 3, .kernel = 3},
            {"conv7", 301.74, 420.51, .step = 64, .offset = 26.5, .ratios = 3, .kernel = 3}},
};

/* The four feature maps. */
static struct ssd maps_of(struct graph *g, const struct workload_config *config, int map[4])
{
    struct resnet trunk = {.blocks = {2, 2, 2, 2},
                           .basic = true,
                           .project_all = true,
                           .epsilon = 1e-3,
                           .pool = {.kernel = 3, .stride = 2},
                           .thin = config_int(config, "thin")};
    struct ssd net = ssd;
    ssd_set_offsets(&net, config);
    int stage[RESNET_STAGES];
    int64_t many = 512 / trunk.thin;
    int x = image_input(g, config->batch, 321, 321);
    x = resnet_taps(g, x, &trunk, stage);
    struct conv2d conv6 = {"conv6", .out = many / 2, .kernel = 1};
    struct conv2d conv7 = {"conv7", .out = many, .kernel = 3, .stride = 2, .pad = 1};
    x = relu(g, conv_bn(g, x, &conv6, trunk.epsilon, 1.0));
    map[3] = relu(g, conv_bn(g, x, &conv7, trunk.epsilon, 1.0));
    memcpy(map, stage + 1, 3 * sizeof(*map));
    return net;
}

static void build(struct graph *g, const struct workload_config *config)
{
    int map[4];
    struct ssd net = maps_of(g, config, map);
    ssd_end(g, config, &net, map);
}

static const struct recipe recipe = SSD_RECIPE(1e-3, 120000, 80000, 100000, 120000);

static const struct training training = {
    .recipe = &recipe,
    SCENES_LESSON,
    .tiny = "thin=8,offsets=centre",
    .tiny_batch = 2,
    .tiny_rate = 0.002,
    .tiny_steps = 30,
};

REGISTER(workload, ssd321_resnet18) = {
    .name = "ssd321_resnet18",
    .domain = "vision",
    .task = "object detection",
    .summary = "SSD321 on ResNet-18, 21 classes (PASCAL VOC), with detection output",
    .source = "Liu et al., ECCV 2016; AI Matrix SSD_ResNet18_Caffe",
    .params = ssd_offsets,
    .batch = 1,
    .build = build,
    .training = &training,
};
