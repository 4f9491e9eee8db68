/* SPDX-License-Identifier: Apache-2.0
 *
 * VGG16: Simonyan, Zisserman, "Very Deep Convolutional Networks for Large-Scale Image Recognition",
 * ICLR 2015, configuration D. Dropout is gone at inference. */
#include "workloads/lib/vision/classes.h"
#include "workloads/lib/vision/vgg.h"

static const struct param params[] = {
    CLASSES_PARAMS,
    {"thin", "1", thin_choices, "what all channels of the convolutions are divided by"},
    {"hidden", "4096", NULL, "width of the two layers before the last"},
    {.name = NULL},
};

/* Logits, [N, classes]. */
static int network(struct graph *g, const struct workload_config *config)
{
    int64_t size = config_int(config, "image"), hidden = config_int(config, "hidden");
    int x = image_input(g, config->batch, size, size);
    x = vgg16_stages(g, x, 5, VGG_FIRST / config_int(config, "thin"));
    x = flatten(g, vgg16_pool(g, x));
    x = relu(g, dense(g, x, "fc6", hidden));
    x = relu(g, dense(g, x, "fc7", hidden));
    return dense(g, x, "fc8", config_int(config, "classes"));
}

static void build(struct graph *g, const struct workload_config *config)
{
    classes_end(g, config, network(g, config));
}

static const struct recipe recipe = CLASSES_RECIPE(0.02);

static const struct training training = {
    .recipe = &recipe,
    CLASSES_LESSON,
    .tiny = "image=32,classes=4,hidden=64,thin=4",
    .tiny_batch = 16,
    .tiny_rate = 0.001,
    .tiny_steps = 200,
};

REGISTER(workload, vgg16) = {
    .name = "vgg16",
    .domain = "vision",
    .task = "image classification",
    .summary = "VGG16 (configuration D) on 224x224 images, 1000 classes",
    .source = "Simonyan and Zisserman, ICLR 2015; AI Matrix nvcnn.py",
    .params = params,
    .batch = 1,
    .build = build,
    .training = &training,
};
