/* SPDX-License-Identifier: Apache-2.0 */
#include "workloads/lib/vision/dssd.h"

#include "workloads/lib/vision/resnet.h"
#include "workloads/lib/vision/ssd.h"

static const struct ssd ssd = {
    .image = 321,
    .classes = 21,
    .ratio = {1.6, 2, 3},
    .whole_sides = true,
    .score_threshold = 0.01,
    .top_k = 400,
    .maps = DSSD_MAPS,
    .map = {{NULL, 32.1, 64.2, .step = 8, .offset = 2.5, .ratios = 3, .kernel = 5},
            {NULL, 64.2, 121.98, .step = 16, .offset = 2.5, .ratios = 3, .kernel = 5},
            {NULL, 121.98, 179.76, .step = 32, .offset = 10.5, .ratios = 3, .kernel = 3},
            {NULL, 179.76, 237.54, .step = 64, .offset = 26.5, .ratios = 3, .kernel = 3},
            {NULL, 237.54, 295.32, .step = 64, .offset = 90.5, .ratios = 3, .kernel = 3},
            {NULL, 295.32, 353.1, .step = 321, .offset = 160.5, .ratios = 3, .kernel = 3}},
};

int dssd_conv(struct graph *g, int x, const struct conv2d *c)
{
    return relu(g, conv_bn(g, x, c, DSSD_EPSILON, 1.0));
}

/* k x k 1024 beside k x k 256 -> 3x3 256 -> 1x1 1024, added. */
static int residual(struct graph *g, int x, const char *name, int64_t kernel, int64_t stride,
                    int64_t thin)
{
    int64_t many = 1024 / thin, few = 256 / thin;
    struct conv2d branch1 = {name_of(g, "%s_branch1", name), .out = many, .kernel = kernel};
    struct conv2d branch2a = {name_of(g, "%s_branch2a", name), .out = few, .kernel = kernel};
    struct conv2d branch2b = {name_of(g, "%s_branch2b", name), .out = few, .kernel = 3, .pad = 1};
    struct conv2d branch2c = {name_of(g, "%s_branch2c", name), .out = many, .kernel = 1};
    branch1.stride = branch2a.stride = stride;

    int shortcut = conv_bn(g, x, &branch1, DSSD_EPSILON, 0.7);
    x = dssd_conv(g, dssd_conv(g, x, &branch2a), &branch2b);
    return relu(g, add(g, shortcut, conv_bn(g, x, &branch2c, DSSD_EPSILON, 0.7)));
}

void dssd_trunk(struct graph *g, const struct workload_config *config, int maps[DSSD_MAPS])
{
    int64_t thin = config_int(config, "thin");
    struct resnet trunk = {.blocks = {3, 4, 23, 3},
                           .epsilon = DSSD_EPSILON,
                           .branch_gain = 0.25,
                           .pool = {.kernel = 3, .stride = 2},
                           .last_stride = 1,
                           .last_dilation = 2,
                           .thin = thin};
    int stage[RESNET_STAGES];
    int x = image_input(g, config->batch, 321, 321);
    maps[1] = resnet_taps(g, x, &trunk, stage);
    maps[0] = stage[1];
    maps[2] = residual(g, maps[1], "res6", 2, 2, thin);
    maps[3] = residual(g, maps[2], "res7", 2, 2, thin);
    maps[4] = residual(g, maps[3], "res8", 3, 1, thin);
    maps[5] = residual(g, maps[4], "res9", 3, 1, thin);
}

void dssd_end(struct graph *g, const struct workload_config *config, const int maps[DSSD_MAPS],
              const char *const names[DSSD_MAPS])
{
    int heads[DSSD_MAPS];
    struct ssd net = ssd;
    ssd_set_offsets(&net, config);
    for (int k = 0; k < DSSD_MAPS; k++) {
        net.map[k].name = name_of(g, "head_%s", names[k]);
        heads[k] = residual(g, maps[k], net.map[k].name, 1, 1, config_int(config, "thin"));
    }
    ssd_end(g, config, &net, heads);
}
