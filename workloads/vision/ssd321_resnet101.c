/* SPDX-License-Identifier: Apache-2.0
 *
 * SSD321 on ResNet-101, the first stage of DSSD's training: Fu et al., "DSSD: Deconvolutional
 * Single Shot Detector", 2017. Stage 5 keeps the resolution by dilation. 17080 priors. */
#include "workloads/lib/vision/dssd.h"
#include "workloads/lib/vision/ssd.h"

static const char *const names[DSSD_MAPS] = {"3b3", "5c", "6", "7", "8", "9"};

static void build(struct graph *g, const struct workload_config *config)
{
    int map[DSSD_MAPS];
    dssd_trunk(g, config, map);
    dssd_end(g, config, map, names);
}

static const struct recipe recipe = SSD_RECIPE(1e-3, 40000, 20000);

static const struct training training = {
    .recipe = &recipe,
    SCENES_LESSON,
    .tiny = "thin=16,offsets=centre",
    .tiny_batch = 2,
    .tiny_rate = 0.005,
    .tiny_steps = 38,
};

REGISTER(workload, ssd321_resnet101) = {
    .name = "ssd321_resnet101",
    .domain = "vision",
    .task = "object detection",
    .summary = "SSD321 on ResNet-101 (DSSD's first stage), 21 classes, with detection output",
    .source = "Fu et al., arXiv 1701.06659; AI Matrix DSSD, ssd_pascal_resnet_321.py",
    .params = ssd_offsets,
    .batch = 1,
    .build = build,
    .training = &training,
};
