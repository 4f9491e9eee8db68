/* SPDX-License-Identifier: Apache-2.0
 *
 * SSD300: Liu et al., "SSD: Single Shot MultiBox Detector", ECCV 2016, on VGG16, 8732 priors. */
#include <string.h>

#include "workloads/lib/limits.h"
#include "workloads/lib/vision/ssd.h"
#include "workloads/lib/vision/ssd_vgg.h"
#include "workloads/workload.h"

static const char *const frameworks[] = {"caffe", "tensorflow", NULL};
static const struct param params[] = {
    {"priors", "caffe", frameworks, "sides of the priors as the Caffe or the TensorFlow code"},
    {"classes", "21", NULL, "with the background"},
    {"thin", "1", thin_choices, "what all channels of the trunk are divided by"},
    {.name = NULL},
};

static const struct ssd caffe = {
    .image = 300,
    .classes = 21,
    .ratio = {2, 3},
    .whole_sides = true,
    .score_threshold = 0.01,
    .top_k = 400,
    .maps = 6,
    .map = {{"conv4_3_norm", 30, 60, .step = 8, .offset = 0.5, .ratios = 1, .kernel = 3},
            {"fc7", 60, 111, .step = 16, .offset = 0.5, .ratios = 2, .kernel = 3},
            {"conv6_2", 111, 162, .step = 32, .offset = 0.5, .ratios = 2, .kernel = 3},
            {"conv7_2", 162, 213, .step = 64, .offset = 0.5, .ratios = 2, .kernel = 3},
            {"conv8_2", 213, 264, .step = 100, .offset = 0.5, .ratios = 1, .kernel = 3},
            {"conv9_2", 264, 315, .step = 300, .offset = 0.5, .ratios = 1, .kernel = 3}},
};

static const double tensorflow_sides[] = {21, 45, 99, 153, 207, 261, 315};

/* The feature maps, and what the heads on them need to know. */
static struct ssd trunk(struct graph *g, const struct workload_config *config, int map[6])
{
    struct ssd net = caffe;
    bool tensorflow = strcmp(config_text(config, "priors"), "tensorflow") == 0;
    int64_t thin = config_int(config, "thin");
    if (tensorflow)
        for (int k = 0; k < net.maps; k++) {
            net.map[k].least = tensorflow_sides[k];
            net.map[k].largest = tensorflow_sides[k + 1];
        }
    net.classes = config_int(config, "classes");
    int x = image_input(g, config->batch, 300, 300);
    if (!at_least(g, "classes", net.classes, 2))
        return net;
    int64_t few = 128 / thin, many = 256 / thin;
    ssd_vgg_trunk(g, x, thin, map); /* 38 x 38, 19 x 19 */
    map[2] = ssd_extra(g, map[1], 6, many, .out = 2 * many, .kernel = 3, .stride = 2, .pad = 1);
    map[3] = ssd_extra(g, map[2], 7, few, .out = many, .kernel = 3, .stride = 2, .pad = 1);
    map[4] = ssd_extra(g, map[3], 8, few, .out = many, .kernel = 3); /* 5 x 5 -> 3 x 3 */
    map[5] = ssd_extra(g, map[4], 9, few, .out = many, .kernel = 3);
    return net;
}

static void build(struct graph *g, const struct workload_config *config)
{
    int map[6] = {NONE};
    struct ssd net = trunk(g, config, map);
    ssd_end(g, config, &net, map);
}

static const struct recipe recipe = SSD_RECIPE(1e-3, 120000, 80000, 100000, 120000);

static const struct training training = {
    .recipe = &recipe,
    SCENES_LESSON,
    .tiny = "thin=16,classes=5",
    .tiny_batch = 4,
    .tiny_rate = 0.002,
    .tiny_steps = 60,
};

REGISTER(workload, ssd300_vgg16) = {
    .name = "ssd300_vgg16",
    .domain = "vision",
    .task = "object detection",
    .summary = "SSD300 on VGG16, 21 classes (PASCAL VOC), with detection output",
    .source = "Liu et al., ECCV 2016; AI Matrix SSD_VGG16_Caffe and SSD_Tensorflow",
    .params = params,
    .table1_batch = 16,
    .batch = 1,
    .build = build,
    .training = &training,
};
