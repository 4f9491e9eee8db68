/* SPDX-License-Identifier: Apache-2.0
 *
 * SegLink: Shi, Bai, Belongie, "Detecting Oriented Text in Natural Images by Linking Segments",
 * CVPR 2017. A VGG16 trunk as in SSD, six maps from fine to coarse; every cell predicts whether it
 * is on text, an oriented box, and to which neighbours it is linked: eight around it and, from
 * the second map on, four in the map before. Linked segments become lines of text. */
#include "workloads/lib/vision/seglink.h"
#include "workloads/lib/vision/pages.h"
#include "workloads/lib/vision/ssd.h"
#include "workloads/lib/vision/ssd_vgg.h"

static const struct param params[] = {
    {"height", "1280", NULL, "of the image"},
    {"width", "768", NULL, "of the image"},
    {"thin", "1", thin_choices, "what all channels of the trunk are divided by"},
    {.name = NULL},
};

static void feature_maps(struct graph *g, int image, int64_t thin, int maps[SEGLINK_LAYERS])
{
    int64_t few = 128 / thin, many = 256 / thin;
    ssd_vgg_trunk(g, image, thin, maps); /* conv4_3, normalised; fc7 */
    maps[2] =
        ssd_extra(g, maps[1], 8, many, .out = 2 * many, .kernel = 3, .stride = 2, .same = true);
    maps[3] = ssd_extra(g, maps[2], 9, few, .out = many, .kernel = 3, .stride = 2, .same = true);
    maps[4] = ssd_extra(g, maps[3], 10, few, .out = many, .kernel = 3, .stride = 2, .same = true);
    maps[5] = relu(g, conv2d(g, maps[4], .name = "conv11", .out = many, .kernel = 3, .stride = 2,
                             .same = true, .bias = true));
}

/* 3x3 convolution, cells as rows: [N, C, H, W] -> [N, H W C / fields, fields]. */
static int predict(struct graph *g, int map, const struct conv2d *c, int64_t batch, int64_t fields)
{
    int x = layer_conv2d(g, map, c);
    x = transpose(g, x, 4, (const int64_t[]){0, 2, 3, 1});
    return reshape(g, x, 3, (const int64_t[]){batch, -1, fields});
}

static void detect(struct graph *g, const int *maps, struct seglink *net)
{
    static const double anchors[] = {11.842, 23.684, 45, 90, 150, 285};
    int segments[SEGLINK_LAYERS], links[SEGLINK_LAYERS], offsets[SEGLINK_LAYERS];
    for (int l = 0; l < SEGLINK_LAYERS; l++) {
        struct seglink_layer *layer = &net->layers[l];
        const struct shape *map = g->failed ? NULL : &g->values[maps[l]].shape;
        *layer = (struct seglink_layer){map ? map->dim[2] : 1, map ? map->dim[3] : 1,
                                        l == 0 ? 8 : 12, anchors[l]};
        struct conv2d c = {.kernel = 3, .pad = 1, .bias = true};
        c.name = name_of(g, "det_%d.conv_cls", l + 1);
        c.out = 2;
        c.gain = l == 0 && !g->training
                     ? 3
                     : 1; /* else no cell of this map, the calmest, would be sure of text */
        segments[l] = predict(g, maps[l], &c, net->batch, 2);
        c.name = name_of(g, "det_%d.conv_lnk", l + 1);
        c.out = 2 * layer->links;
        c.gain = 1;
        links[l] = predict(g, maps[l], &c, net->batch, 2);
        c.name = name_of(g, "det_%d.conv_reg", l + 1);
        c.out = 6;
        offsets[l] = predict(g, maps[l], &c, net->batch, 6);
    }
    net->segments = concat(g, 1, SEGLINK_LAYERS, segments);
    net->links = concat(g, 1, SEGLINK_LAYERS, links);
    net->offsets = concat(g, 1, SEGLINK_LAYERS, offsets);
}

/* What is said of an image of these sizes, made of the input "image". */
static struct seglink network(struct graph *g, const struct workload_config *config)
{
    struct seglink net = {.batch = config->batch,
                          .height = config_int(config, "height"),
                          .width = config_int(config, "width")};
    int maps[SEGLINK_LAYERS];
    int x = image_input(g, net.batch, net.height, net.width);
    feature_maps(g, x, config_int(config, "thin"), maps);
    detect(g, maps, &net);
    return net;
}

static void find_lines(struct graph *g, const struct seglink *net)
{
    int outputs[2];
    seglink_decode(g, net, outputs);
    graph_rename(g, outputs[0], "boxes");
    graph_rename(g, outputs[1], "counts");
    graph_output(g, outputs[0]);
    graph_output(g, outputs[1]);
}

static void build(struct graph *g, const struct workload_config *config)
{
    struct seglink net = network(g, config);
    find_lines(g, &net);
}

static void build_loss(struct graph *g, const struct workload_config *config)
{
    struct seglink net = network(g, config);
    int loss = seglink_loss(g, &net);
    graph_rename(g, loss, "loss");
    graph_output(g, loss);
    if (!g->training)
        find_lines(g, &net);
}

static const struct recipe recipe = {
    .optimiser = "momentum",
    .attrs = {{.name = "momentum", .kind = ATTR_FLOAT, .f = 0.9}},
    .decay = 5e-4,
    .schedule = {.kind = SCHEDULE_TABLE,
                 .rate = 5e-4,
                 .at = {10000, 20000, 60000, 75000, 90000},
                 .scale = {0.64, 0.8, 1, 0.1, 0.01, 1},
                 .steps = 1000},
    .source = "Shi et al., CVPR 2017; AI Matrix SegLink (TensorFlow)",
};

static const struct training training = {
    .build = build_loss,
    .recipe = &recipe,
    .fill = pages_fill,
    .quality = &quality_words,
    .answers = "boxes",
    .targets = "words",
    .lesson = PAGES_LESSON,
    .tiny = "height=128,width=128,thin=8",
    .tiny_batch = 4,
    .tiny_rate = 0.0005,
    .tiny_steps = 120,
};

REGISTER(workload, seglink) = {
    .name = "seglink",
    .domain = "vision",
    .task = "text detection",
    .summary = "SegLink on 1280x768 images, with linking of segments to lines",
    .source = "Shi et al., CVPR 2017; AI Matrix SegLink (TensorFlow)",
    .params = params,
    .table1_batch = 8,
    .batch = 1,
    .build = build,
    .training = &training,
};
