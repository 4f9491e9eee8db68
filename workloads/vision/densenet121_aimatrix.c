/* SPDX-License-Identifier: Apache-2.0
 *
 * DenseNet as AI Matrix coded and measured it (nvcnn.py): three blocks instead of four, bottlenecks
 * of 32 channels, transitions to 32 channels per layer so far, no padding in the stem. Its helper
 * puts batch norm and ReLU after every convolution as well as before it. */
#include "workloads/lib/limits.h"
#include "workloads/lib/vision/classes.h"
#include "workloads/lib/vision/densenet.h"

static const double epsilon = 1e-4;

enum { GROWTH = 32 };

/* The helper of nvcnn.py: convolution, batch norm, ReLU. */
static int conv_bn_relu(struct graph *g, int x, const struct conv2d *c)
{
    return bn_relu(g, layer_conv2d(g, x, c), name_of(g, "%s.bn", c->name), epsilon);
}

static int layer(struct graph *g, int x, const char *name)
{
    struct conv2d reduce = {name_of(g, "%s.conv1", name), .out = GROWTH, .kernel = 1};
    struct conv2d grow = {name_of(g, "%s.conv2", name), .out = GROWTH, .kernel = 3, .same = true};
    x = bn_relu(g, x, name_of(g, "%s.bn1", name), epsilon);
    x = conv_bn_relu(g, x, &reduce);
    x = bn_relu(g, x, name_of(g, "%s.bn2", name), epsilon);
    return conv_bn_relu(g, x, &grow);
}

static int transition(struct graph *g, int x, const char *name, int64_t out)
{
    struct conv2d c = {name_of(g, "%s.conv", name), .out = out, .kernel = 1};
    x = bn_relu(g, x, name_of(g, "%s.bn", name), epsilon);
    return halve_by_average(g, conv_bn_relu(g, x, &c));
}

static const struct param params[] = {CLASSES_PARAMS, {.name = NULL}};

/* Logits, [N, classes]. */
static int network(struct graph *g, const struct workload_config *config)
{
    static const int layers[] = {6, 12, 24};
    struct conv2d conv1 = {"conv1", .out = 64, .kernel = 7, .stride = 2};
    int64_t size = config_int(config, "image");
    if (!at_least(g, "image", size, 37)) /* else the third transition has no two rows left */
        return NONE;
    int x = image_input(g, config->batch, size, size);
    x = halve_by_average(g, conv_bn_relu(g, x, &conv1));
    for (int b = 0, before = 0; b < ARRAY_COUNT(layers); b++) {
        before += layers[b];
        x = dense_block(g, x, b + 1, layers[b], layer);
        x = transition(g, x, name_of(g, "transition%d", b + 1), GROWTH * before);
    }
    x = bn_relu(g, x, "final.bn", epsilon);
    x = flatten(g, global_average_pool(g, x));
    return dense(g, x, "fc", config_int(config, "classes"));
}

static void build(struct graph *g, const struct workload_config *config)
{
    classes_end(g, config, network(g, config));
}

static const struct recipe recipe = CLASSES_RECIPE(0.001);

static const struct training training = {
    .recipe = &recipe,
    CLASSES_LESSON,
    .tiny = "image=40,classes=4",
    .tiny_batch = 16,
    .tiny_rate = 0.001,
    .tiny_steps = 40,
};

REGISTER(workload, densenet121_aimatrix) = {
    .name = "densenet121_aimatrix",
    .domain = "vision",
    .task = "image classification",
    .summary = "DenseNet as AI Matrix measured it: three blocks, 32-channel bottlenecks",
    .source = "Huang et al., CVPR 2017; AI Matrix nvcnn.py",
    .params = params,
    .table1_batch = 32,
    .batch = 1,
    .build = build,
    .training = &training,
};
