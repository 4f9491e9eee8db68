/* SPDX-License-Identifier: Apache-2.0
 *
 * Vision Transformer: Dosovitskiy et al., "An Image is Worth 16x16 Words", ICLR 2021 (arXiv
 * 2010.11929); Ti/16 and S/16 are those of Touvron et al. (DeiT, arXiv 2012.12877). Pre-norm
 * layers: x += attention(LN(x)); x += mlp(LN(x)). Counts and outputs are those of torchvision's
 * VisionTransformer. While it learns, what is looked at first and each product but those of the
 * attention lose a tenth of their elements (the paper's appendix B.1). */
#include <math.h>
#include <string.h>

#include "workloads/lib/limits.h"
#include "workloads/lib/transformer.h"
#include "workloads/lib/vision/classes.h"

static const double epsilon = 1e-6;

static const char *const sizes[] = {"ti16", "s16", "b16", "l16", "h14", NULL};
static const char *const dropouts[] = {"products", "none", NULL};
static const struct param params[] = {
    {"size", "b16", sizes, "which of the published networks; the number is the side of a patch"},
    CLASSES_PARAMS,
    {"depth", "0", NULL, "how many of the layers, from the first on (0: all)"},
    {"dropout", "products", dropouts, "while it learns: what loses 0.1 of its elements"},
    {.name = NULL},
};

struct vit {
    const char *size;
    int64_t patch, layers, width, heads;
    double drop;
};

static const struct vit networks[] = {
    {.size = "ti16", .patch = 16, .layers = 12, .width = 192, .heads = 3},
    {.size = "s16", .patch = 16, .layers = 12, .width = 384, .heads = 6},
    {.size = "b16", .patch = 16, .layers = 12, .width = 768, .heads = 12},
    {.size = "l16", .patch = 16, .layers = 24, .width = 1024, .heads = 16},
    {.size = "h14", .patch = 14, .layers = 32, .width = 1280, .heads = 16},
};

static struct vit vit_of(const struct workload_config *config)
{
    const struct vit *net = networks;
    while (strcmp(net->size, config_text(config, "size")) != 0)
        net++;
    struct vit v = *net;
    v.drop = strcmp(config_text(config, "dropout"), "none") == 0 ? 0 : 0.1;
    return v;
}

/* A token for each patch, row after row: [N, (S/P)^2, D]. */
static int patches(struct graph *g, int image, const struct vit *v)
{
    int64_t p = v->patch, batch = dim_of(g, image, 0), side = dim_of(g, image, 2) / p;
    /* One that learns begins with tokens as large as pixels. */
    transformer_begin(g, "patches.weight", shape_of(v->width, 3, p, p),
                      1 / sqrt(3.0 * (double)p * (double)p));
    transformer_begin(g, "patches.bias", shape_of(v->width), 0);
    int x = conv2d(g, image, .name = "patches", .out = v->width, .kernel = p, .stride = p,
                   .bias = true);
    x = transpose(g, x, 4, (int64_t[]){0, 2, 3, 1});
    return reshape(g, x, 3, (int64_t[]){batch, side * side, v->width});
}

/* The token of the class goes first; all get their positions: [N, T, D]. */
static int embed(struct graph *g, int image, const struct vit *v)
{
    int64_t batch = dim_of(g, image, 0), first[] = {batch, 1, v->width};
    int x = patches(g, image, v);
    int class = transformer_vectors(g, "class_token", shape_of(v->width));
    class = graph_node(g, "Expand", NULL, INPUTS(class, graph_const_i64(g, 3, first)), NO_ATTRS);
    x = concat(g, 1, 2, (int[]){class, x});
    x = add(g, x, transformer_vectors(g, "positions", shape_of(dim_of(g, x, 1), v->width)));
    return dropout(g, x, "positions.dropout", v->drop);
}

static int product(struct graph *g, int x, const char *name, int64_t out, const struct vit *v)
{
    /* So that x does not grow layer by layer. */
    x = transformer_dense(g, x, name, out, 1 / sqrt(2 * (double)v->layers));
    return dropout(g, x, name_of(g, "%s.dropout", name), v->drop);
}

static int layer(struct graph *g, int x, const char *name, const struct vit *v)
{
    struct self_attention attention = {
        .name = name_of(g, "%s.attention", name), .heads = v->heads, .mask = NONE};
    int y = layer_norm(g, x, name_of(g, "%s.attention.norm", name), epsilon);
    y = self_attention(g, y, &attention);
    x = add(g, x, product(g, y, name_of(g, "%s.attention.output", name), v->width, v));

    y = layer_norm(g, x, name_of(g, "%s.mlp.norm", name), epsilon);
    y = transformer_dense(g, y, name_of(g, "%s.mlp.up", name), 4 * v->width, 1);
    y = dropout(g, unary(g, "Gelu", y), name_of(g, "%s.mlp.up.dropout", name), v->drop);
    return add(g, x, product(g, y, name_of(g, "%s.mlp.down", name), v->width, v));
}

/* Logits, [N, classes], of the class's token alone. */
static int network(struct graph *g, const struct workload_config *config)
{
    struct vit v = vit_of(config);
    int64_t size = config_int(config, "image"), depth = config_int(config, "depth");
    if (!at_most(g, "depth", depth, v.layers) || !multiple_of(g, "image", size, v.patch))
        return NONE;
    v.layers = depth ? depth : v.layers;
    int x = embed(g, image_input(g, config->batch, size, size), &v);
    for (int64_t k = 0; k < v.layers; k++)
        x = layer(g, x, name_of(g, "layer%d", (int)k), &v);
    x = slice(g, x, (struct range){.axis = 1, .start = 0, .stop = 1});
    x = reshape(g, x, 2, (int64_t[]){config->batch, v.width});
    x = layer_norm(g, x, "norm", epsilon);
    return transformer_dense(g, x, "head", config_int(config, "classes"), 1);
}

static void build(struct graph *g, const struct workload_config *config)
{
    classes_end(g, config, network(g, config));
}

/* Of ImageNet, without a larger set before it: 300 epochs of 1,281,167 images, 4096 at a time. */
static const struct recipe recipe = {
    .optimiser = "adamw",
    .decay = 0.3,
    .clip_norm = 1,
    .schedule = {.kind = SCHEDULE_COSINE, .rate = 3e-3, .warm_up = 10000, .steps = 93836},
    .source = "Dosovitskiy et al., ICLR 2021, appendix B.1",
};

static const struct training training = {
    .recipe = &recipe,
    CLASSES_LESSON,
    .tiny = "size=ti16,image=64,classes=4,depth=2,dropout=none",
    .tiny_batch = 16,
    .tiny_rate = 0.001,
    .tiny_steps = 60,
};

REGISTER(workload, vit) = {
    .name = "vit",
    .domain = "vision",
    .task = "image classification",
    .summary = "Vision Transformer (Ti/16 to H/14) on 224x224 images, 1000 classes",
    .source = "Dosovitskiy et al., ICLR 2021",
    .params = params,
    .batch = 1,
    .build = build,
    .training = &training,
};
