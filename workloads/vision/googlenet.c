/* SPDX-License-Identifier: Apache-2.0
 *
 * GoogLeNet (Inception v1): Szegedy et al., "Going Deeper with Convolutions", CVPR 2015, table 1,
 * without the auxiliary classifiers, which serve training only.
 * Form tf is what AI Matrix measured: SAME padding, no normalisation, logits. Form bvlc is Caffe's:
 * local response normalisation after the first stages, softmax at the end. Caffe's pools round up,
 * which on these sizes is one pixel of padding bottom and right: the same as SAME. */
#include <string.h>

#include "workloads/lib/limits.h"
#include "workloads/lib/vision/classes.h"

static const char *const forms[] = {"tf", "bvlc", NULL};
static const struct param params[] = {
    {"form", "tf", forms, "tf: as measured by AI Matrix; bvlc: Caffe's, with LRN and softmax"},
    CLASSES_PARAMS,
    {.name = NULL},
};

/* Columns of the paper's table. */
struct inception {
    const char *name;
    int64_t c1x1, reduce3, c3x3, reduce5, c5x5, pool;
};

static int conv_relu(struct graph *g, int x, const char *name, int64_t out, int64_t kernel)
{
    struct conv2d c = {name, .out = out, .kernel = kernel, .bias = true, .same = true};
    return relu(g, layer_conv2d(g, x, &c));
}

static int inception(struct graph *g, int x, const struct inception *m)
{
    int a = conv_relu(g, x, name_of(g, "%s.1x1", m->name), m->c1x1, 1);
    int b = conv_relu(g, x, name_of(g, "%s.3x3_reduce", m->name), m->reduce3, 1);
    b = conv_relu(g, b, name_of(g, "%s.3x3", m->name), m->c3x3, 3);
    int c = conv_relu(g, x, name_of(g, "%s.5x5_reduce", m->name), m->reduce5, 1);
    c = conv_relu(g, c, name_of(g, "%s.5x5", m->name), m->c5x5, 5);
    int d = max_pool(g, x, (struct window2d){3, 1, 1, 1, 1, 1});
    d = conv_relu(g, d, name_of(g, "%s.pool_proj", m->name), m->pool, 1);
    return concat(g, 1, 4, (const int[]){a, b, c, d});
}

static int halve(struct graph *g, int x)
{
    return max_pool(g, x, (struct window2d){.kernel = 3, .stride = 2, .bottom = 1, .right = 1});
}

static int lrn(struct graph *g, int x)
{
    return graph_node(g, "LRN", NULL, INPUTS(x),
                      ATTRS(attr_int("size", 5), attr_float("alpha", 1e-4),
                            attr_float("beta", 0.75), attr_float("bias", 1)));
}

static int stem(struct graph *g, int x, bool bvlc)
{
    struct conv2d conv1 = {"conv1", .out = 64, .kernel = 7, .stride = 2, .pad = 3, .bias = true};
    conv1.same = !bvlc;
    x = halve(g, relu(g, layer_conv2d(g, x, &conv1)));
    x = bvlc ? lrn(g, x) : x;
    x = conv_relu(g, x, "conv2_reduce", 64, 1);
    x = conv_relu(g, x, "conv2", 192, 3);
    x = bvlc ? lrn(g, x) : x;
    return halve(g, x);
}

static const struct inception modules[] = {
    {"3a", 64, 96, 128, 16, 32, 32},     {"3b", 128, 128, 192, 32, 96, 64},
    {"4a", 192, 96, 208, 16, 48, 64},    {"4b", 160, 112, 224, 24, 64, 64},
    {"4c", 128, 128, 256, 24, 64, 64},   {"4d", 112, 144, 288, 32, 64, 64},
    {"4e", 256, 160, 320, 32, 128, 128}, {"5a", 256, 160, 320, 32, 128, 128},
    {"5b", 384, 192, 384, 48, 128, 128},
};

static bool is_bvlc(const struct workload_config *config)
{
    return strcmp(config_text(config, "form"), "bvlc") == 0;
}

/* Logits, [N, classes]. */
static int network(struct graph *g, const struct workload_config *config)
{
    bool bvlc = is_bvlc(config);
    int64_t size = config_int(config, "image");
    if (!at_least(g, "image", size, 32))
        return NONE;
    int x = image_input(g, config->batch, size, size);
    x = stem(g, x, bvlc);
    for (int m = 0; m < ARRAY_COUNT(modules); m++) {
        x = inception(g, x, &modules[m]);
        if (m == 1 || m == 6) /* after 3b and 4e */
            x = halve(g, x);
    }
    x = flatten(g, global_average_pool(g, x));
    return dense(g, x, "fc", config_int(config, "classes"));
}

static void build(struct graph *g, const struct workload_config *config)
{
    int x = network(g, config);
    if (!is_bvlc(config) || config->loss) {
        classes_end(g, config, x);
        return;
    }
    x = softmax(g, x, -1);
    graph_rename(g, x, "probabilities");
    graph_output(g, x);
}

static const struct recipe recipe = CLASSES_RECIPE(0.04);

static const struct training training = {
    .recipe = &recipe,
    CLASSES_LESSON,
    .tiny = "image=32,classes=4",
    .tiny_batch = 8,
    .tiny_rate = 0.01,
    .tiny_steps = 40,
};

REGISTER(workload, googlenet) = {
    .name = "googlenet",
    .domain = "vision",
    .task = "image classification",
    .summary = "GoogLeNet (Inception v1) on 224x224 images, 1000 classes",
    .source = "Szegedy et al., CVPR 2015; AI Matrix nvcnn.py (tf), bvlc_googlenet (bvlc)",
    .params = params,
    .table1_batch = 32,
    .batch = 1,
    .build = build,
    .training = &training,
};
