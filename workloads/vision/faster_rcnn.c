/* SPDX-License-Identifier: Apache-2.0
 *
 * Faster R-CNN: Ren, He, Girshick, Sun, NIPS 2015, as py-faster-rcnn tests it end to end. A region
 * proposal network on the last map of VGG16 (or ZF) gives 300 regions; each is pooled, classified
 * into 20 classes and background, and its box is corrected once more. */
#include <string.h>

#include "workloads/lib/limits.h"
#include "workloads/lib/vision/region_loss.h"
#include "workloads/lib/vision/regions.h"
#include "workloads/lib/vision/ssd.h"
#include "workloads/lib/vision/vgg.h"

enum { STRIDE = 16, ANCHORS = 9, CANDIDATES = 6000, DETECTIONS = 100 };
enum { LEARNT_CANDIDATES = 12000, LEARNT_PROPOSALS = 2000 };

static const char *const bodies[] = {"vgg16", "zf", NULL};
static const char *const dropouts[] = {"dense", "none", NULL};
static const struct param params[] = {
    {"body", "vgg16", bodies, "the network under the heads"},
    {"height", "600", NULL, "height of the image"},
    {"width", "800", NULL, "width of the image"},
    {"proposals", "300", NULL, "regions that go on to the second stage; 2048 at most"},
    {"scale", "8", NULL,
     "of the smallest anchors to 16 pixels; the others are 2 and 4 times as large"},
    {"thin", "1", thin_choices,
     "what all channels are divided by, so that it learns within seconds"},
    {"classes", "21", NULL, "with the background"},
    {"dropout", "dense", dropouts,
     "while it learns: what loses half of its elements, the dense layers or nothing"},
    {.name = NULL},
};

/* Three shapes (wide, square, tall) at three sizes, around the pixel (7.5, 7.5): x1 y1 x2 y2. */
static const float shapes[ANCHORS][4] = {
    {-84, -40, 99, 55}, {-176, -88, 191, 103},  {-360, -184, 375, 199},
    {-56, -56, 71, 71}, {-120, -120, 135, 135}, {-248, -248, 263, 263},
    {-36, -80, 51, 95}, {-80, -168, 95, 183},   {-168, -344, 183, 359},
};

/* ---- bodies ---- */

/* x / (1 + alpha mean(x^2))^0.75 over 3x3 neighbours of the same channel. */
static int normalise_within(struct graph *g, int x)
{
    int mean =
        graph_node(g, "AveragePool", NULL, INPUTS(mul(g, x, x)),
                   ATTRS(attr_ints_of("kernel_shape", 3, 3), attr_ints_of("strides", 1, 1),
                         attr_ints_of("pads", 1, 1, 1, 1), attr_int("count_include_pad", 1)));
    int scale = add(g, mul(g, mean, graph_const_f32(g, 5e-5f)), graph_const_f32(g, 1));
    return binary(g, "Div", x, binary(g, "Pow", scale, graph_const_f32(g, 0.75f)));
}

/* 3x3/2 with one pixel of padding, rounding up. */
static int zf_pool(struct graph *g, int x)
{
    struct window2d w = {.kernel = 3, .stride = 2, .top = 1, .left = 1};
    w.bottom = 1 + (dim_of(g, x, 2) + 1) % 2;
    w.right = 1 + (dim_of(g, x, 3) + 1) % 2;
    return max_pool(g, x, w);
}

static int zf(struct graph *g, int x, int64_t thin)
{
    x = relu(g, conv2d(g, x, .name = "conv1", .out = 96 / thin, .kernel = 7, .stride = 2, .pad = 3,
                       .bias = true));
    x = zf_pool(g, normalise_within(g, x));
    x = relu(g, conv2d(g, x, .name = "conv2", .out = 256 / thin, .kernel = 5, .stride = 2, .pad = 2,
                       .bias = true));
    x = zf_pool(g, normalise_within(g, x));
    x = vgg_conv(g, x, "conv3", 384 / thin, 3);
    x = vgg_conv(g, x, "conv4", 384 / thin, 3);
    return vgg_conv(g, x, "conv5", 256 / thin, 3);
}

/* ---- region proposals ---- */

struct rpn {
    int scores;     /* [N, 2 ANCHORS, H, W]: background, object; before the softmax */
    int objectness; /* [N, H W ANCHORS] */
    int deltas;     /* [N, H W ANCHORS, 4] */
};

static struct rpn propose_net(struct graph *g, int map)
{
    struct rpn out;
    int64_t images = dim_of(g, map, 0), rows = dim_of(g, map, 2), columns = dim_of(g, map, 3);
    struct conv2d score = {
        .name = "rpn_cls_score", .out = 2 * ANCHORS, .kernel = 1, .bias = true, .gain = 0.5};
    struct conv2d box = {
        .name = "rpn_bbox_pred", .out = 4 * ANCHORS, .kernel = 1, .bias = true, .gain = 0.1};
    int x = vgg_conv(g, map, "rpn_conv", dim_of(g, map, 1), 3);
    int s = out.scores = layer_conv2d(g, x, &score);
    /* Softmax over background and object: channels k and k + ANCHORS. */
    s = reshape(g, s, 4, (const int64_t[]){images, 2, ANCHORS * rows, columns});
    s = graph_node(g, "Softmax", "rpn_cls_prob", INPUTS(s), ATTRS(attr_int("axis", 1)));
    s = slice(g, s, (struct range){1, 1, 2, 1});
    s = reshape(g, s, 4, (const int64_t[]){images, ANCHORS, rows, columns});
    out.objectness = by_place(g, s, 1);
    out.deltas = by_place(g, layer_conv2d(g, x, &box), 4);
    return out;
}

struct size {
    float height, width, scale; /* of the image; scale to its original of 375 rows */
    int64_t candidates, proposals, classes;
};

static int clip_to(struct graph *g, int boxes, float height, float width)
{
    const float zero[4] = {0}, corner[] = {width - 1, height - 1, width - 1, height - 1};
    return clip_boxes(g, boxes, zero, corner);
}

/* The best regions of an image; boxes whose sides are below 16 pixels of the original are no
 * candidates. */
static int proposal(struct graph *g, const struct rpn *rpn, int base, int64_t image,
                    const struct size *size)
{
    const struct suppression rule = {.limit = size->proposals, .iou = 0.7f, .pixels = true};
    int boxes = decode_boxes(g, base, entry(g, rpn->deltas, image), 1);
    boxes = clip_to(g, boxes, size->height, size->width);
    int side = binary(g, "Sub", slice(g, boxes, (struct range){1, 2, 4, 1}),
                      slice(g, boxes, (struct range){1, 0, 2, 1}));
    side = graph_node(g, "ReduceMin", NULL, INPUTS(side),
                      ATTRS(attr_ints_of("axes", 1), attr_int("keepdims", 0)));
    int large = binary(g, "Greater", side, graph_const_f32(g, STRIDE * size->scale - 1));
    int scores = mul(g, entry(g, rpn->objectness, image), cast(g, large, DTYPE_F32));
    int64_t all = dim_of(g, scores, 0), limit = all < size->candidates ? all : size->candidates;
    int top[2] = {NONE, NONE};
    if (!proposals_fit(g, size->proposals, limit))
        return NONE;
    graph_node_many(g, "TopK", name_of(g, "candidates%d", (int)image),
                    INPUTS(scores, graph_const_i64(g, 1, &limit)), NO_ATTRS, 2, top);
    return propose(g, gather(g, boxes, top[1], 0), top[0], size->proposals, &rule);
}

/* ---- detections ---- */

/* Class boxes and scores of the regions of an image -> rows of class, score, x1, y1, x2, y2. */
static int final_boxes(struct graph *g, int rois, int scores, int deltas, const struct size *size)
{
    const struct suppression rule = {.limit = size->proposals, .iou = 0.3f, .pixels = true};
    int64_t classes = size->classes;
    int boxes = mul(g, rois, graph_const_f32(g, 1 / size->scale));
    boxes = reshape(g, boxes, 3, (const int64_t[]){size->proposals, 1, 4});
    deltas = reshape(g, deltas, 3, (const int64_t[]){size->proposals, classes, 4});
    boxes = decode_boxes(g, boxes, deltas, 1);
    boxes = clip_to(g, boxes, size->height / size->scale, size->width / size->scale);
    boxes = transpose(g, boxes, 3, (const int64_t[]){1, 0, 2});

    /* Neither background nor scores up to 0.05 nor the padding of the regions take part. */
    float *counts = arena_array(&g->arena, (size_t)classes, sizeof(*counts));
    for (int64_t k = 1; counts && k < classes; k++)
        counts[k] = 1;
    int sum = graph_node(g, "ReduceMax", NULL, INPUTS(rois),
                         ATTRS(attr_ints_of("axes", 1), attr_int("keepdims", 1)));
    int real = binary(g, "Greater", sum, graph_const_f32(g, 0));
    int enough = binary(g, "Greater", scores, graph_const_f32(g, 0.05f));
    int takes_part = cast(g, binary(g, "And", real, enough), DTYPE_F32);
    scores = mul(g, mul(g, scores, takes_part), const_f32(g, shape_of(classes), counts));
    scores = transpose(g, scores, 2, (const int64_t[]){1, 0});
    scores = reshape(g, scores, 3, (const int64_t[]){classes, 1, size->proposals});
    int kept = kept_scores(g, boxes, scores, &rule);
    boxes = reshape(g, boxes, 2, (const int64_t[]){-1, 4});
    return detections(g, kept, boxes, classes, DETECTIONS);
}

/* ---- the whole ---- */

struct net {
    struct size size;
    int64_t images, thin;
    double drop;
    bool is_zf;
    int map, base; /* the last map of the body; anchors [H W ANCHORS, 4] */
    struct rpn rpn;
};

/* False after an error, which is in the graph. */
static bool first_stage(struct graph *g, const struct workload_config *config, struct net *net)
{
    int64_t width = config_int(config, "width"), height = config_int(config, "height");
    float grown[ANCHORS][4], by = (float)config_int(config, "scale") / 8;
    *net = (struct net){.images = config->batch, .thin = config_int(config, "thin")};
    net->is_zf = strcmp(config_text(config, "body"), "zf") == 0;
    net->size = (struct size){(float)height,
                              (float)width,
                              (float)height / 375,
                              CANDIDATES,
                              config_int(config, "proposals"),
                              config_int(config, "classes")};
    net->drop = strcmp(config_text(config, "dropout"), "none") == 0 ? 0 : 0.5;
    int64_t classes = net->size.classes;
    if (!regions_fit(g, config, NULL) || !at_least(g, "classes", classes, 2) ||
        !at_least(g, "proposals", net->size.proposals, (DETECTIONS + classes - 1) / classes))
        return false;
    int image = image_input(g, net->images, height, width);
    net->map =
        net->is_zf ? zf(g, image, net->thin) : vgg16_stages(g, image, 5, VGG_FIRST / net->thin);
    net->rpn = propose_net(g, net->map);
    for (int k = 0; k < ANCHORS * 4; k++)
        grown[k / 4][k % 4] = (shapes[k / 4][k % 4] - 7.5f) * by + 7.5f;
    struct anchors anchors = {
        dim_of(g, net->map, 2), dim_of(g, net->map, 3), STRIDE, ANCHORS, grown[0], false};
    net->base = anchor_boxes(g, &anchors);
    return true;
}

/* Regions [R, 4] as MaxRoiPool wants them, of image k: [R, 5]. */
static int numbered(struct graph *g, int rois, int64_t k)
{
    return graph_node(g, "Pad", NULL,
                      INPUTS(rois, graph_const_i64(g, 4, (const int64_t[]){0, 1, 0, 0}),
                             graph_const_f32(g, (float)k)),
                      NO_ATTRS);
}

struct heads {
    int scores, deltas; /* [R, classes], before the softmax; [R, 4 classes] */
};

static struct heads second_stage(struct graph *g, const struct net *net, int rois)
{
    int64_t side = net->is_zf ? 6 : 7, width = 4096 / net->thin;
    int x = graph_node(
        g, "MaxRoiPool", "roi_pool", INPUTS(net->map, rois),
        ATTRS(attr_ints_of("pooled_shape", side, side), attr_float("spatial_scale", 1.0 / STRIDE)));
    x = dropout(g, relu(g, dense(g, flatten(g, x), "fc6", width)), "drop6", net->drop);
    x = dropout(g, relu(g, dense(g, x, "fc7", width)), "drop7", net->drop);
    int scores = dense(g, x, "cls_score", net->size.classes);
    return (struct heads){scores, dense_scaled(g, x, "bbox_pred", 4 * net->size.classes, 0.1)};
}

/* Rows of the boxes found, [N, DETECTIONS, 6]. trained: deltas are in units of `deviation`, which
 * published weights contain. */
static int detect(struct graph *g, const struct net *net, bool trained)
{
    static const float deviation[4] = {0.1f, 0.1f, 0.2f, 0.2f};
    int rois[IMAGES_MAX] = {0}, parts[IMAGES_MAX], rows[IMAGES_MAX];
    for (int k = 0; k < net->images; k++) {
        rois[k] = proposal(g, &net->rpn, net->base, k, &net->size);
        parts[k] = numbered(g, rois[k], k);
    }
    struct heads heads = second_stage(g, net, join(g, 0, (int)net->images, parts));
    int scores =
        graph_node(g, "Softmax", "cls_prob", INPUTS(heads.scores), ATTRS(attr_int("axis", 1)));
    for (int64_t k = 0; k < net->images; k++) {
        struct range own = {0, k * net->size.proposals, (k + 1) * net->size.proposals, 1};
        int deltas = slice(g, heads.deltas, own), own_scores = slice(g, scores, own);
        if (trained) {
            deltas = reshape(g, deltas, 2, (const int64_t[]){-1, 4});
            deltas = mul(g, deltas, const_f32(g, shape_of(4), deviation));
        }
        rows[k] = final_boxes(g, rois[k], own_scores, deltas, &net->size);
    }
    return reshape(g, join(g, 0, (int)net->images, rows), 3,
                   (const int64_t[]){net->images, DETECTIONS, 6});
}

static void build(struct graph *g, const struct workload_config *config)
{
    struct net net;
    if (!first_stage(g, config, &net))
        return;
    int found = detect(g, &net, false);
    graph_rename(g, found, "detections");
    graph_output(g, found);
}

/* ---- training ---- */

static const struct region_rule anchor_rule = {.name = "anchors",
                                               .count = 256,
                                               .positives = 128,
                                               .object = 0.7,
                                               .background = 0.3,
                                               .best = true,
                                               .variance = {1, 1},
                                               .beta = 1.0 / 9};
static const struct region_rule region_rule = {.name = "regions",
                                               .count = 128,
                                               .positives = 32,
                                               .object = 0.5,
                                               .background = 0.5,
                                               .variance = {0.1, 0.2},
                                               .beta = 1};

/* Anchors as centres and sizes; of size 0, so that they do not count, where they cross the edge. */
static int inner_priors(struct graph *g, const struct net *net)
{
    const float limit[] = {net->size.width, net->size.height, net->size.width, net->size.height};
    int low = binary(g, "GreaterOrEqual", net->base, graph_const_f32(g, 0));
    int high = binary(g, "Less", net->base, const_f32(g, shape_of(4), limit));
    int inside = cast(g, binary(g, "And", low, high), DTYPE_F32);
    int all = graph_node(g, "ReduceMin", NULL, INPUTS(inside),
                         ATTRS(attr_ints_of("axes", 1), attr_int("keepdims", 1)));
    return mul(g, region_priors(g, net->base, 1), all);
}

/* Background and object of every anchor, [N, H W ANCHORS, 2]. */
static int anchor_logits(struct graph *g, const struct net *net)
{
    int64_t rows = dim_of(g, net->map, 2), columns = dim_of(g, net->map, 3);
    int x =
        reshape(g, net->rpn.scores, 5, (const int64_t[]){net->images, 2, ANCHORS, rows, columns});
    x = transpose(g, x, 5, (const int64_t[]){0, 3, 4, 2, 1});
    return reshape(g, x, 3, (const int64_t[]){net->images, -1, 2});
}

static int sampled_loss(struct graph *g, const struct net *net, const struct region_truth *truth)
{
    int parts[IMAGES_MAX], classes[IMAGES_MAX], offsets[IMAGES_MAX], images = (int)net->images;
    struct size size = net->size;
    int64_t all = dim_of(g, net->base, 0);
    size.candidates = LEARNT_CANDIDATES;
    size.proposals = all < LEARNT_PROPOSALS ? all : LEARNT_PROPOSALS;
    for (int k = 0; k < images; k++) {
        int rois = proposal(g, &net->rpn, net->base, k, &size);
        struct region_sample s = region_sample(g, &region_rule, truth, k, rois, 1);
        parts[k] = numbered(g, s.boxes, k);
        classes[k] = s.classes;
        offsets[k] = s.offsets;
    }
    struct heads heads = second_stage(g, net, join(g, 0, images, parts));
    return region_loss(g, &region_rule, heads.scores, heads.deltas, join(g, 0, images, classes),
                       join(g, 0, images, offsets));
}

static void build_loss(struct graph *g, const struct workload_config *config)
{
    struct net net;
    if (!first_stage(g, config, &net))
        return;
    const double sides[] = {(double)net.size.height, (double)net.size.width};
    struct region_truth truth =
        region_truth(g, scenes_objects(g, net.images, net.size.classes), sides, false);
    int first = anchor_loss(g, &anchor_rule, &truth, inner_priors(g, &net), anchor_logits(g, &net),
                            net.rpn.deltas);
    int loss = add(g, first, sampled_loss(g, &net, &truth));
    graph_rename(g, loss, "loss");
    graph_output(g, loss);
    if (g->training)
        return;
    double scale =
        (double)net.size.scale; /* boxes are in pixels of the original, the last one in */
    const double unit[] = {sides[0] / scale, sides[1] / scale};
    int rows = scene_rows(g, detect(g, &net, true), unit, false);
    graph_rename(g, rows, "detections");
    graph_output(g, rows);
}

/* Images of two passes are accumulated in the original (iter_size 2). */
static const struct recipe recipe = {
    .optimiser = "momentum",
    .attrs = {{.name = "momentum", .kind = ATTR_FLOAT, .f = 0.9}},
    .decay = 5e-4,
    .schedule =
        {.kind = SCHEDULE_STEP, .rate = 1e-3, .factor = 0.1, .every = 50000, .steps = 70000},
    .source = "Ren et al., NIPS 2015; py-faster-rcnn, end to end",
};

static const struct training training = {
    .build = build_loss,
    .recipe = &recipe,
    SCENES_LESSON,
    .tiny = "height=128,width=128,scale=2,thin=8,proposals=50,classes=5,dropout=none",
    .tiny_batch = 4,
    .tiny_rate = 0.001,
    .tiny_steps = 50,
};

REGISTER(workload, faster_rcnn) = {
    .name = "faster_rcnn",
    .domain = "vision",
    .task = "object detection",
    .summary = "Faster R-CNN, VGG16, 600x800 images, 300 regions, 20 classes",
    .source = "Ren et al., NIPS 2015; AI Matrix FasterRCNN_Caffe, py-faster-rcnn",
    .params = params,
    .table1_batch = 1,
    .batch = 1,
    .build = build,
    .training = &training,
};
