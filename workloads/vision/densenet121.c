/* SPDX-License-Identifier: Apache-2.0
 *
 * DenseNet-121: Huang, Liu, van der Maaten, Weinberger, "Densely Connected Convolutional Networks",
 * CVPR 2017, table 1: growth 32, bottlenecks of 128 channels, transitions that halve the channels.
 */
#include "workloads/lib/limits.h"
#include "workloads/lib/vision/classes.h"
#include "workloads/lib/vision/densenet.h"

static const double epsilon = 1e-5;

static int layer(struct graph *g, int x, const char *name)
{
    x = bn_relu(g, x, name_of(g, "%s.bn1", name), epsilon);
    x = conv2d(g, x, .name = name_of(g, "%s.conv1", name), .out = 128, .kernel = 1);
    x = bn_relu(g, x, name_of(g, "%s.bn2", name), epsilon);
    return conv2d(g, x, .name = name_of(g, "%s.conv2", name), .out = 32, .kernel = 3, .pad = 1);
}

static int transition(struct graph *g, int x, const char *name, int64_t out)
{
    x = bn_relu(g, x, name_of(g, "%s.bn", name), epsilon);
    x = conv2d(g, x, .name = name_of(g, "%s.conv", name), .out = out, .kernel = 1);
    return halve_by_average(g, x);
}

static const struct param params[] = {CLASSES_PARAMS, {.name = NULL}};

/* Logits, [N, classes]. */
static int network(struct graph *g, const struct workload_config *config)
{
    int64_t size = config_int(config, "image");
    if (!at_least(g, "image", size, 32))
        return NONE;
    static const int layers[] = {6, 12, 24, 16};
    static const int64_t transition_out[] = {128, 256, 512};
    int x = image_input(g, config->batch, size, size);
    x = conv2d(g, x, .name = "conv1", .out = 64, .kernel = 7, .stride = 2, .pad = 3);
    x = bn_relu(g, x, "conv1.bn", epsilon);
    x = max_pool(g, x, (struct window2d){3, 2, 1, 1, 1, 1});
    for (int b = 0; b < ARRAY_COUNT(layers); b++) {
        x = dense_block(g, x, b + 1, layers[b], layer);
        if (b < ARRAY_COUNT(transition_out))
            x = transition(g, x, name_of(g, "transition%d", b + 1), transition_out[b]);
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
    .tiny = "image=32,classes=4",
    .tiny_batch = 16,
    .tiny_rate = 0.001,
    .tiny_steps = 35,
};

REGISTER(workload, densenet121) = {
    .name = "densenet121",
    .domain = "vision",
    .task = "image classification",
    .summary = "DenseNet-121 on 224x224 images, 1000 classes",
    .source = "Huang et al., CVPR 2017; AI Matrix CNN_Caffe (shicai's DenseNet)",
    .params = params,
    .batch = 1,
    .build = build,
    .training = &training,
};
