/* SPDX-License-Identifier: Apache-2.0
 *
 * SSD321 on ResNet-18, as AI Matrix builds it with the network scripts of DSSD: heads directly on
 * the last maps of stages 3 to 5 and on one extra layer, 8 priors per cell, 17000 in all. */
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

static void build(struct graph *g, const struct workload_config *config)
{
    static const struct resnet trunk = {.blocks = {2, 2, 2, 2},
                                        .basic = true,
                                        .project_all = true,
                                        .epsilon = 1e-3,
                                        .pool = {.kernel = 3, .stride = 2}};
    struct ssd net = ssd;
    ssd_set_offsets(&net, config);
    int stage[RESNET_STAGES];
    int x = graph_input(g, "image", DTYPE_F32, shape_of(config->batch, 3, 321, 321),
                        (struct fill){.kind = FILL_IMAGE, .a = 0, .b = 0.6});
    x = resnet_taps(g, x, &trunk, stage);
    struct conv2d conv6 = {"conv6", .out = 256, .kernel = 1};
    struct conv2d conv7 = {"conv7", .out = 512, .kernel = 3, .stride = 2, .pad = 1};
    x = relu(g, conv_bn(g, x, &conv6, trunk.epsilon, 1.0));
    x = relu(g, conv_bn(g, x, &conv7, trunk.epsilon, 1.0));
    ssd_detect(g, &net, (int[]){stage[1], stage[2], stage[3], x});
}

REGISTER(workload, ssd321_resnet18) = {
    .name = "ssd321_resnet18",
    .domain = "vision",
    .task = "object detection",
    .summary = "SSD321 on ResNet-18, 21 classes (PASCAL VOC), with detection output",
    .source = "Liu et al., ECCV 2016; AI Matrix SSD_ResNet18_Caffe",
    .params = ssd_offsets,
    .batch = 1,
    .build = build,
};
