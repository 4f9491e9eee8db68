/* SPDX-License-Identifier: Apache-2.0
 *
 * Faster R-CNN: Ren, He, Girshick, Sun, NIPS 2015, as py-faster-rcnn tests it end to end. A region
 * proposal network on the last map of VGG16 (or ZF) gives 300 regions; each is pooled, classified
 * into 20 classes and background, and its box is corrected once more. */
#include <string.h>

#include "workloads/lib/limits.h"
#include "workloads/lib/vision/regions.h"
#include "workloads/lib/vision/vgg.h"
#include "workloads/workload.h"

enum { STRIDE = 16, ANCHORS = 9, CLASSES = 21, CANDIDATES = 6000, DETECTIONS = 100 };

static const char *const bodies[] = {"vgg16", "zf", NULL};
static const struct param params[] = {
    {"body", "vgg16", bodies, "the network under the heads"},
    {"height", "600", NULL, "height of the image"},
    {"width", "800", NULL, "width of the image"},
    {"proposals", "300", NULL, "regions that go on to the second stage; 2048 at most"},
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

static int zf(struct graph *g, int x)
{
    x = relu(g, conv2d(g, x, .name = "conv1", .out = 96, .kernel = 7, .stride = 2, .pad = 3,
                       .bias = true));
    x = zf_pool(g, normalise_within(g, x));
    x = relu(g, conv2d(g, x, .name = "conv2", .out = 256, .kernel = 5, .stride = 2, .pad = 2,
                       .bias = true));
    x = zf_pool(g, normalise_within(g, x));
    x = vgg_conv(g, x, "conv3", 384, 3);
    x = vgg_conv(g, x, "conv4", 384, 3);
    return vgg_conv(g, x, "conv5", 256, 3);
}

/* ---- region proposals ---- */

struct rpn {
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
    int s = layer_conv2d(g, x, &score);
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
    int64_t proposals;
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
    const struct suppression rule = {.most = size->proposals, .iou = 0.7f, .pixels = true};
    int boxes = decode_boxes(g, base, entry(g, rpn->deltas, image), 1);
    boxes = clip_to(g, boxes, size->height, size->width);
    int side = binary(g, "Sub", slice(g, boxes, (struct range){1, 2, 4, 1}),
                      slice(g, boxes, (struct range){1, 0, 2, 1}));
    side = graph_node(g, "ReduceMin", NULL, INPUTS(side),
                      ATTRS(attr_ints_of("axes", 1), attr_int("keepdims", 0)));
    int large = binary(g, "Greater", side, graph_const_f32(g, STRIDE * size->scale - 1));
    int scores = mul(g, entry(g, rpn->objectness, image), cast(g, large, DTYPE_F32));
    int64_t all = dim_of(g, scores, 0), most = all < CANDIDATES ? all : CANDIDATES;
    int top[2] = {NONE, NONE};
    if (!proposals_fit(g, size->proposals, most))
        return NONE;
    graph_node_many(g, "TopK", name_of(g, "candidates%d", (int)image),
                    INPUTS(scores, graph_const_i64(g, 1, &most)), NO_ATTRS, 2, top);
    return propose(g, gather(g, boxes, top[1], 0), top[0], size->proposals, &rule);
}

/* ---- detections ---- */

/* Class boxes and scores of the regions of an image -> rows of class, score, x1, y1, x2, y2. */
static int final_boxes(struct graph *g, int rois, int scores, int deltas, const struct size *size)
{
    const struct suppression rule = {.most = size->proposals, .iou = 0.3f, .pixels = true};
    int boxes = mul(g, rois, graph_const_f32(g, 1 / size->scale));
    boxes = reshape(g, boxes, 3, (const int64_t[]){size->proposals, 1, 4});
    deltas = reshape(g, deltas, 3, (const int64_t[]){size->proposals, CLASSES, 4});
    boxes = decode_boxes(g, boxes, deltas, 1);
    boxes = clip_to(g, boxes, size->height / size->scale, size->width / size->scale);
    boxes = transpose(g, boxes, 3, (const int64_t[]){1, 0, 2});

    /* Neither background nor scores up to 0.05 nor the padding of the regions take part. */
    float counts[CLASSES] = {0};
    for (int k = 1; k < CLASSES; k++)
        counts[k] = 1;
    int sum = graph_node(g, "ReduceMax", NULL, INPUTS(rois),
                         ATTRS(attr_ints_of("axes", 1), attr_int("keepdims", 1)));
    int real = binary(g, "Greater", sum, graph_const_f32(g, 0));
    int enough = binary(g, "Greater", scores, graph_const_f32(g, 0.05f));
    int takes_part = cast(g, binary(g, "And", real, enough), DTYPE_F32);
    scores = mul(g, mul(g, scores, takes_part), const_f32(g, shape_of(CLASSES), counts));
    scores = transpose(g, scores, 2, (const int64_t[]){1, 0});
    scores = reshape(g, scores, 3, (const int64_t[]){CLASSES, 1, size->proposals});
    int kept = kept_scores(g, boxes, scores, &rule);
    boxes = reshape(g, boxes, 2, (const int64_t[]){-1, 4});
    return detections(g, kept, boxes, CLASSES, DETECTIONS);
}

static void build(struct graph *g, const struct workload_config *config)
{
    int64_t images = config->batch, width = config_int(config, "width");
    int64_t height = config_int(config, "height");
    bool is_zf = strcmp(config_text(config, "body"), "zf") == 0;
    struct size size = {(float)height, (float)width, (float)height / 375,
                        config_int(config, "proposals")};
    if (!regions_fit(g, config, NULL) ||
        !at_least(g, "proposals", size.proposals, (DETECTIONS + CLASSES - 1) / CLASSES))
        return;
    int image = graph_input(g, "image", DTYPE_F32, shape_of(images, 3, height, width),
                            (struct fill){.kind = FILL_IMAGE, .a = 0, .b = 0.6});
    int map = is_zf ? zf(g, image) : vgg16_stages(g, image, 5, VGG_FIRST);
    struct rpn rpn = propose_net(g, map);
    struct anchors anchors = {dim_of(g, map, 2), dim_of(g, map, 3), STRIDE,
                              ANCHORS,           shapes[0],         false};
    int base = anchor_boxes(g, &anchors);

    int rois[IMAGES_MAX], numbered[IMAGES_MAX], rows[IMAGES_MAX];
    for (int k = 0; k < images; k++) {
        rois[k] = proposal(g, &rpn, base, k, &size);
        numbered[k] =
            graph_node(g, "Pad", NULL,
                       INPUTS(rois[k], graph_const_i64(g, 4, (const int64_t[]){0, 1, 0, 0}),
                              graph_const_f32(g, (float)k)),
                       NO_ATTRS);
    }
    int64_t side = is_zf ? 6 : 7;
    int x = graph_node(
        g, "MaxRoiPool", "roi_pool", INPUTS(map, join(g, 0, (int)images, numbered)),
        ATTRS(attr_ints_of("pooled_shape", side, side), attr_float("spatial_scale", 1.0 / STRIDE)));
    x = relu(g, dense(g, flatten(g, x), "fc6", 4096));
    x = relu(g, dense(g, x, "fc7", 4096));
    int scores = dense(g, x, "cls_score", CLASSES);
    int deltas = dense_scaled(g, x, "bbox_pred", 4 * CLASSES, 0.1);
    scores = graph_node(g, "Softmax", "cls_prob", INPUTS(scores), ATTRS(attr_int("axis", 1)));
    for (int64_t k = 0; k < images; k++) {
        struct range own = {0, k * size.proposals, (k + 1) * size.proposals, 1};
        rows[k] = final_boxes(g, rois[k], slice(g, scores, own), slice(g, deltas, own), &size);
    }
    int found =
        reshape(g, join(g, 0, (int)images, rows), 3, (const int64_t[]){images, DETECTIONS, 6});
    graph_rename(g, found, "detections");
    graph_output(g, found);
}

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
};
