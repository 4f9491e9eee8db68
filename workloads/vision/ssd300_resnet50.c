/* SPDX-License-Identifier: Apache-2.0
 *
 * SSD300 on ResNet-50 v1.5, the version of the NVIDIA examples and of MLPerf's training suite: the
 * trunk ends with stage 4, which keeps the resolution; 81 classes (COCO), 8732 priors. */
#include <string.h>

#include "workloads/lib/vision/resnet.h"
#include "workloads/lib/vision/ssd.h"
#include "workloads/workload.h"

static const char *const depths[] = {"18", "34", "50", "101", "152", NULL};
static const struct param params[] = {
    {"depth", "50", depths, "layers of the ResNet"},
    {"thin", "1", thin_choices, "what all channels of the trunk are divided by"},
    {.name = NULL},
};

struct backbone {
    const char *depth;
    int blocks[3];
    bool basic;
    int64_t channels[4]; /* of the last four extra layers' results */
};

static const struct backbone backbones[] = {
    {"18", {2, 2, 2}, true, {512, 256, 256, 128}},
    {"34", {3, 4, 6}, true, {512, 256, 256, 256}},
    {"50", {3, 4, 6}, false, {512, 256, 256, 256}},
    {"101", {3, 4, 23}, false, {512, 256, 256, 256}},
    {"152", {3, 8, 36}, false, {512, 256, 256, 256}},
};

static const struct ssd ssd = {
    .image = 300,
    .classes = 81,
    .ratio = {2, 3},
    .score_threshold = 0.05,
    .top_k = 200,
    .maps = 6,
    .map = {{"map0", 21, 45, .step = 8, .offset = 0.5, .ratios = 1, .kernel = 3},
            {"map1", 45, 99, .step = 16, .offset = 0.5, .ratios = 2, .kernel = 3},
            {"map2", 99, 153, .step = 32, .offset = 0.5, .ratios = 2, .kernel = 3},
            {"map3", 153, 207, .step = 64, .offset = 0.5, .ratios = 2, .kernel = 3},
            {"map4", 207, 261, .step = 100, .offset = 0.5, .ratios = 1, .kernel = 3},
            {"map5", 261, 315, .step = 300, .offset = 0.5, .ratios = 1, .kernel = 3}},
};

static const struct backbone *backbone_of(const char *depth)
{
    const struct backbone *b = backbones;
    while (strcmp(b->depth, depth) != 0)
        b++;
    return b;
}

/* 1x1 and 3x3, each with batch norm and ReLU. */
static int additional(struct graph *g, int x, int number, int64_t middle, struct conv2d last)
{
    struct conv2d first = {name_of(g, "add%d.0", number), .out = middle, .kernel = 1};
    last.name = name_of(g, "add%d.1", number);
    x = relu(g, conv_bn(g, x, &first, 1e-5, 1.0));
    return relu(g, conv_bn(g, x, &last, 1e-5, 1.0));
}

static void maps_of(struct graph *g, const struct workload_config *config, int map[6])
{
    const struct backbone *b = backbone_of(config_text(config, "depth"));
    struct resnet trunk = {.basic = b->basic,
                           .stride_in_3x3 = true,
                           .epsilon = 1e-5,
                           .last_stride = 1,
                           .pool = {3, 2, 1, 1, 1, 1},
                           .thin = config_int(config, "thin")};
    memcpy(trunk.blocks, b->blocks, sizeof(b->blocks));
    struct conv2d halve = {.kernel = 3, .stride = 2, .pad = 1}, shrink = {.kernel = 3};
    int x = image_input(g, config->batch, 300, 300);
    map[0] = resnet_trunk(g, x, &trunk); /* 38 x 38 */
    for (int k = 0; k < 5; k++) {
        struct conv2d last = k < 3 ? halve : shrink;
        last.out = (k == 0 ? 512 : b->channels[k - 1]) / trunk.thin;
        map[k + 1] = additional(g, map[k], k, (k < 2 ? 256 : 128) / trunk.thin, last);
    }
}

static void build(struct graph *g, const struct workload_config *config)
{
    int map[6];
    maps_of(g, config, map);
    ssd_end(g, config, &ssd, map);
}

/* Steps of 32 of COCO's 117266 images: the rate falls after epochs 43 and 54 of 65. */
static const struct recipe recipe = {
    .optimiser = "momentum",
    .attrs = {{.name = "momentum", .kind = ATTR_FLOAT, .f = 0.9}},
    .decay = 5e-4,
    .schedule = {.kind = SCHEDULE_MULTISTEP,
                 .rate = 2.6e-3,
                 .factor = 0.1,
                 .at = {157595, 197910},
                 .warm_up = 3665,
                 .steps = 238225},
    .source = "AI Matrix SSD_ResNet50_PyTorch (NVIDIA)",
};

static const struct training training = {
    .recipe = &recipe,
    SCENES_LESSON,
    .tiny = "depth=18,thin=8",
    .tiny_batch = 2,
    .tiny_rate = 0.005,
    .tiny_steps = 40,
};

REGISTER(workload, ssd300_resnet50) = {
    .name = "ssd300_resnet50",
    .domain = "vision",
    .task = "object detection",
    .summary = "SSD300 on ResNet-50, 81 classes (COCO), with detection output",
    .source = "Liu et al., ECCV 2016; AI Matrix SSD_ResNet50_PyTorch (NVIDIA)",
    .params = params,
    .batch = 1,
    .build = build,
    .training = &training,
};
