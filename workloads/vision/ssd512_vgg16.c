/* SPDX-License-Identifier: Apache-2.0
 *
 * SSD512: Liu et al., "SSD: Single Shot MultiBox Detector", ECCV 2016, on VGG16, 24564 priors. */
#include "workloads/lib/vision/ssd.h"
#include "workloads/lib/vision/ssd_vgg.h"
#include "workloads/workload.h"

static const struct param params[] = {
    {"thin", "1", thin_choices, "what all channels of the trunk are divided by"},
    {.name = NULL},
};

static const struct ssd net = {
    .image = 512,
    .classes = 21,
    .ratio = {2, 3},
    .score_threshold = 0.01,
    .top_k = 400,
    .maps = 7,
    .map = {{"conv4_3_norm", 20.48, 51.2, .step = 8, .offset = 0.5, .ratios = 1, .kernel = 3},
            {"fc7", 51.2, 133.12, .step = 16, .offset = 0.5, .ratios = 2, .kernel = 3},
            {"conv8_2", 133.12, 215.04, .step = 32, .offset = 0.5, .ratios = 2, .kernel = 3},
            {"conv9_2", 215.04, 296.96, .step = 64, .offset = 0.5, .ratios = 2, .kernel = 3},
            {"conv10_2", 296.96, 378.88, .step = 128, .offset = 0.5, .ratios = 2, .kernel = 3},
            {"conv11_2", 378.88, 460.8, .step = 256, .offset = 0.5, .ratios = 1, .kernel = 3},
            {"conv12_2", 460.8, 542.72, .step = 512, .offset = 0.5, .ratios = 1, .kernel = 3}},
};

static void trunk(struct graph *g, const struct workload_config *config, int map[7])
{
    int64_t thin = config_int(config, "thin"), few = 128 / thin, many = 256 / thin;
    int x = image_input(g, config->batch, 512, 512);
    ssd_vgg_trunk(g, x, thin, map); /* 64 x 64, 32 x 32 */
    map[2] = ssd_extra(g, map[1], 8, many, .out = 2 * many, .kernel = 3, .stride = 2, .pad = 1);
    map[3] = ssd_extra(g, map[2], 9, few, .out = many, .kernel = 3, .stride = 2, .pad = 1);
    map[4] = ssd_extra(g, map[3], 10, few, .out = many, .kernel = 3, .stride = 2, .pad = 1);
    map[5] = ssd_extra(g, map[4], 11, few, .out = many, .kernel = 3, .stride = 2, .pad = 1);
    map[6] = ssd_extra(g, map[5], 12, few, .out = many, .kernel = 4, .pad = 1); /* 2 x 2 -> 1 x 1 */
}

static void build(struct graph *g, const struct workload_config *config)
{
    int map[7];
    trunk(g, config, map);
    ssd_end(g, config, &net, map);
}

static const struct recipe recipe = SSD_RECIPE(1e-3, 120000, 80000, 100000, 120000);

static const struct training training = {
    .recipe = &recipe,
    SCENES_LESSON,
    .tiny = "thin=16",
    .tiny_batch = 2,
    .tiny_rate = 0.002,
    .tiny_steps = 60,
};

REGISTER(workload, ssd512_vgg16) = {
    .name = "ssd512_vgg16",
    .domain = "vision",
    .task = "object detection",
    .summary = "SSD512 on VGG16, 21 classes (PASCAL VOC), with detection output",
    .source = "Liu et al., ECCV 2016; AI Matrix SSD_Tensorflow nets/ssd_vgg_512.py",
    .params = params,
    .batch = 1,
    .build = build,
    .training = &training,
};
