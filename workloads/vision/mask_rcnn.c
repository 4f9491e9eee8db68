/* SPDX-License-Identifier: Apache-2.0
 *
 * Mask R-CNN: He, Gkioxari, Dollar, Girshick, ICCV 2017, as matterport's implementation tests it:
 * ResNet-101 with a feature pyramid on 1024x1024 images, 1000 proposals, 100 detections with a mask
 * of 28x28 for each of 81 classes. Boxes are y1, x1, y2, x2, corners of the image being 0 and 1. */
#include <math.h>

#include "workloads/lib/limits.h"
#include "workloads/lib/vision/fpn.h"
#include "workloads/lib/vision/regions.h"
#include "workloads/lib/vision/resnet.h"
#include "workloads/workload.h"

enum { LEVELS = FPN_LEVELS, ROI_LEVELS = 4, ANCHORS = 3, CLASSES = 81 };
enum { CANDIDATES = 6000 };

static const double epsilon = 1e-3;
static const float deviation[4] = {0.1f, 0.1f, 0.2f, 0.2f}; /* that deltas are trained with */
static const struct param params[] = {
    {"image", "1024", NULL, "height and width of the image, a multiple of 64"},
    {"detections", "100", NULL, "objects found at most, each with its masks; 2048 at most"},
    {"proposals", "1000", NULL, "regions that go on to the second stage; 2048 at most"},
    {.name = NULL},
};

static int conv(struct graph *g, int x, const char *name, int64_t out, int64_t kernel)
{
    return conv2d(g, x, .name = name, .out = out, .kernel = kernel, .pad = kernel / 2,
                  .bias = true);
}

/* ---- region proposals ---- */

struct rpn {
    int objectness, deltas, anchors; /* [N, A], [N, A, 4], [A, 4] of all levels */
};

/* One size per level, three shapes: twice as wide as high, square, twice as high. */
static int level_anchors(struct graph *g, int map, int level)
{
    float boxes[ANCHORS][4];
    for (int k = 0; k < ANCHORS; k++) {
        double size = 32 << level, root = sqrt(0.5 * (1 << k));
        float high = (float)(size / root / 2), wide = (float)(size * root / 2);
        const float box[] = {-high, -wide, high, wide};
        for (int j = 0; j < 4; j++)
            boxes[k][j] = box[j];
    }
    struct anchors a = {dim_of(g, map, 2), dim_of(g, map, 3), 4 << level, ANCHORS, boxes[0], true};
    return anchor_boxes(g, &a);
}

static struct rpn propose_net(struct graph *g, const int maps[LEVELS], int64_t size)
{
    struct shared conv3 = shared_conv(g, "rpn_conv_shared", (const int64_t[]){512, 256, 3}, 1);
    struct shared score = shared_conv(g, "rpn_class_raw", (const int64_t[]){6, 512, 1}, 0.6);
    struct shared box = shared_conv(g, "rpn_bbox_pred", (const int64_t[]){12, 512, 1}, 0.7);
    int scores[LEVELS], deltas[LEVELS], anchors[LEVELS];
    for (int k = 0; k < LEVELS; k++) {
        int x = relu(g, apply_shared(g, maps[k], &conv3));
        int s = graph_node(g, "Softmax", NULL, INPUTS(by_place(g, apply_shared(g, x, &score), 2)),
                           ATTRS(attr_int("axis", 2)));
        scores[k] = slice(g, s, (struct range){2, 1, 2, 1});
        deltas[k] = by_place(g, apply_shared(g, x, &box), 4);
        anchors[k] = level_anchors(g, maps[k], k);
    }
    float edge = (float)(size - 1);
    const float one[] = {0, 0, 1 / edge, 1 / edge};
    struct rpn rpn = {concat(g, 1, LEVELS, scores), concat(g, 1, LEVELS, deltas), NONE};
    rpn.anchors = mul(g, concat(g, 0, LEVELS, anchors), graph_const_f32(g, 1 / edge));
    rpn.anchors = binary(g, "Sub", rpn.anchors, const_f32(g, shape_of(4), one));
    return rpn;
}

/* Deltas times their deviation, applied; within the image. */
static int refine(struct graph *g, int boxes, int deltas)
{
    const float zero[4] = {0}, one[4] = {1, 1, 1, 1};
    deltas = mul(g, deltas, const_f32(g, shape_of(4), deviation));
    return clip_boxes(g, decode_boxes(g, boxes, deltas, 0), zero, one);
}

static int proposals(struct graph *g, const struct rpn *rpn, int64_t image, int64_t keep)
{
    const struct suppression rule = {.most = keep, .iou = 0.7f};
    int64_t all = dim_of(g, rpn->anchors, 0), most = all < CANDIDATES ? all : CANDIDATES;
    int top[2] = {NONE, NONE};
    if (!proposals_fit(g, keep, most))
        return NONE;
    int scores = reshape(g, entry(g, rpn->objectness, image), 1, &all);
    graph_node_many(g, "TopK", name_of(g, "candidates%d", (int)image),
                    INPUTS(scores, graph_const_i64(g, 1, &most)), NO_ATTRS, 2, top);
    int boxes = refine(g, gather(g, rpn->anchors, top[1], 0),
                       gather(g, entry(g, rpn->deltas, image), top[1], 0));
    return propose(g, boxes, top[0], keep, &rule);
}

/* ---- heads ---- */

/* Regions of the level that suits their size: a box of 224 pixels belongs to P4, half that to P3.
 */
static int crop(struct graph *g, const struct pyramid *p, int boxes, const int64_t size[2])
{
    int side = binary(g, "Sub", slice(g, boxes, (struct range){1, 2, 4, 1}),
                      slice(g, boxes, (struct range){1, 0, 2, 1}));
    int area = mul(g, slice(g, side, (struct range){1, 0, 1, 1}),
                   slice(g, side, (struct range){1, 1, 2, 1}));
    /* 4 + log2(sqrt(area) image / 224), counted from P2; the floor keeps padding out of log 0. */
    double per_area = (double)(size[0] * size[0]) / (224.0 * 224.0);
    area = binary(g, "Max", mul(g, area, graph_const_f32(g, (float)per_area)),
                  graph_const_f32(g, 1e-6f));
    int level = mul(g, unary(g, "Log", area), graph_const_f32(g, (float)(0.5 / log(2))));
    level = add(g, unary(g, "Round", level), graph_const_f32(g, 2));
    level = graph_node(g, "Clip", NULL,
                       INPUTS(level, graph_const_f32(g, 0), graph_const_f32(g, ROI_LEVELS - 1)),
                       NO_ATTRS);
    return crop_pyramid(g, p, boxes, level, size[1]);
}

struct heads {
    int scores, deltas; /* [R, CLASSES], [R, 4 CLASSES] */
};

static struct heads box_head(struct graph *g, int regions)
{
    struct conv2d conv1 = {.name = "mrcnn_class_conv1", .out = 1024, .kernel = 7, .bias = true};
    struct conv2d conv2 = {.name = "mrcnn_class_conv2", .out = 1024, .kernel = 1, .bias = true};
    int x = relu(g, conv_bn(g, regions, &conv1, epsilon, 1));
    x = flatten(g, relu(g, conv_bn(g, x, &conv2, epsilon, 1)));
    int scores = dense_scaled(g, x, "mrcnn_class_logits", CLASSES, 0.8);
    int deltas = dense_scaled(g, x, "mrcnn_bbox_fc", 4 * CLASSES, 0.4);
    scores = graph_node(g, "Softmax", "mrcnn_class", INPUTS(scores), ATTRS(attr_int("axis", 1)));
    return (struct heads){scores, deltas};
}

/* Each proposal counts for its best class only, and not for the background (class 0). */
static int detect(struct graph *g, int rois, const struct heads *heads, int64_t most)
{
    const struct suppression rule = {.most = most, .iou = 0.3f};
    int64_t row[REGIONS_MAX], count = dim_of(g, rois, 0);
    float counts[CLASSES] = {0};
    for (int k = 0; k < count; k++)
        row[k] = k * CLASSES;
    for (int k = 1; k < CLASSES; k++)
        counts[k] = 1;
    int label = graph_node(g, "ArgMax", NULL, INPUTS(heads->scores),
                           ATTRS(attr_int("axis", 1), attr_int("keepdims", 0)));
    int deltas = reshape(g, heads->deltas, 2, (const int64_t[]){-1, 4});
    deltas = gather(g, deltas, add(g, label, graph_const_i64(g, (int)count, row)), 0);
    int boxes = refine(g, rois, deltas);

    int best = one_hot(g, label, CLASSES);
    int high = graph_node(g, "ReduceMax", NULL, INPUTS(rois),
                          ATTRS(attr_ints_of("axes", 1), attr_int("keepdims", 1)));
    int real = cast(g, binary(g, "Greater", high, graph_const_f32(g, 0)), DTYPE_F32);
    int scores = mul(g, heads->scores, mul(g, best, const_f32(g, shape_of(CLASSES), counts)));
    scores = transpose(g, mul(g, scores, real), 2, (const int64_t[]){1, 0});
    scores = reshape(g, scores, 3, (const int64_t[]){1, CLASSES, count});
    int kept = kept_scores(g, reshape(g, boxes, 3, (const int64_t[]){1, count, 4}), scores, &rule);
    return detections(g, kept, boxes, CLASSES, most);
}

static int mask_head(struct graph *g, int x)
{
    for (int k = 1; k <= 4; k++) {
        struct conv2d c = {.name = name_of(g, "mrcnn_mask_conv%d", k),
                           .out = 256,
                           .kernel = 3,
                           .pad = 1,
                           .bias = true};
        x = relu(g, conv_bn(g, x, &c, epsilon, 1));
    }
    const double bound = sqrt(6.0 / 256);
    int weight = graph_param(g, "mrcnn_mask_deconv.weight", DTYPE_F32, shape_of(256, 256, 2, 2),
                             (struct fill){.kind = FILL_UNIFORM, .a = -bound, .b = bound});
    int bias = graph_param(g, "mrcnn_mask_deconv.bias", DTYPE_F32, shape_of(256),
                           (struct fill){.kind = FILL_UNIFORM, .a = -0.05, .b = 0.05});
    x = relu(g,
             graph_node(g, "ConvTranspose", "mrcnn_mask_deconv", INPUTS(x, weight, bias),
                        ATTRS(attr_ints_of("kernel_shape", 2, 2), attr_ints_of("strides", 2, 2))));
    return sigmoid(g, conv(g, x, "mrcnn_mask", CLASSES, 1));
}

/* ---- the whole ---- */

static void build(struct graph *g, const struct workload_config *config)
{
    int64_t images = config->batch, size = config_int(config, "image");
    int64_t keep = config_int(config, "proposals"), most = config_int(config, "detections");
    if (!regions_fit(g, config, "detections") || !multiple_of(g, "image", size, 64) ||
        !at_most(g, "detections", most, keep * CLASSES))
        return;
    struct resnet net = {.blocks = {3, 4, 23, 3}, .epsilon = epsilon, .bias = true};
    int x = graph_input(g, "image", DTYPE_F32, shape_of(images, 3, size, size),
                        (struct fill){.kind = FILL_IMAGE, .a = 0, .b = 0.6});
    int stage[RESNET_STAGES], maps[LEVELS], rois[IMAGES_MAX], crops[IMAGES_MAX], rows[IMAGES_MAX];
    resnet_taps(g, x, &net, stage);
    feature_pyramid(g, stage, maps);
    struct rpn rpn = propose_net(g, maps, size);

    for (int k = 0; k < images; k++) {
        struct pyramid p = {maps, ROI_LEVELS, k};
        rois[k] = proposals(g, &rpn, k, keep);
        crops[k] = crop(g, &p, rois[k], (const int64_t[]){size, 7});
    }
    struct heads heads = box_head(g, join(g, 0, (int)images, crops));
    for (int k = 0; k < images; k++) {
        struct pyramid p = {maps, ROI_LEVELS, k};
        struct range own = {0, k * keep, (k + 1) * keep, 1};
        struct heads part = {slice(g, heads.scores, own), slice(g, heads.deltas, own)};
        rows[k] = detect(g, rois[k], &part, most);
        int boxes = slice(g, rows[k], (struct range){1, 2, 6, 1});
        crops[k] = crop(g, &p, boxes, (const int64_t[]){size, 14});
    }
    int masks = mask_head(g, join(g, 0, (int)images, crops));
    int found = reshape(g, join(g, 0, (int)images, rows), 3, (const int64_t[]){images, most, 6});
    graph_rename(g, found, "detections");
    graph_output(g, found);
    graph_rename(g, masks, "masks");
    graph_output(g, masks);
}

REGISTER(workload, mask_rcnn) = {
    .name = "mask_rcnn",
    .domain = "vision",
    .task = "instance segmentation",
    .summary = "Mask R-CNN, ResNet-101-FPN, 1024x1024 images, 81 classes",
    .source = "He et al., ICCV 2017; AI Matrix Mask R-CNN (matterport)",
    .params = params,
    .table1_batch = 1,
    .batch = 1,
    .build = build,
};
