/* SPDX-License-Identifier: Apache-2.0
 *
 * Mask R-CNN: He, Gkioxari, Dollar, Girshick, ICCV 2017, as matterport's implementation tests it:
 * ResNet-101 with a feature pyramid on 1024x1024 images, 1000 proposals, 100 detections with a mask
 * of 28x28 for each of 81 classes. Boxes are y1, x1, y2, x2, corners of the image being 0 and 1. */
#include <math.h>
#include <string.h>

#include "workloads/lib/limits.h"
#include "workloads/lib/losses.h"
#include "workloads/lib/vision/detector_loss.h"
#include "workloads/lib/vision/fpn.h"
#include "workloads/lib/vision/region_loss.h"
#include "workloads/lib/vision/regions.h"
#include "workloads/lib/vision/resnet.h"
#include "workloads/lib/vision/ssd.h"

enum { LEVELS = FPN_LEVELS, ROI_LEVELS = 4, ANCHORS = 3 };
enum { CANDIDATES = 6000, LEARNT_PROPOSALS = 2000, MASK = 28 };

static const double epsilon = 1e-3;
static const float deviation[4] = {0.1f, 0.1f, 0.2f, 0.2f}; /* that deltas are trained with */
static const char *const depths[] = {"101", "50", NULL};
static const struct param params[] = {
    {"image", "1024", NULL, "height and width of the image, a multiple of 64"},
    {"detections", "100", NULL, "objects found at most, each with its masks; 2048 at most"},
    {"proposals", "1000", NULL, "regions that go on to the second stage; 2048 at most"},
    {"depth", "101", depths, "layers of the ResNet"},
    {"thin", "1", thin_choices,
     "what all channels are divided by, so that it learns within seconds"},
    {"classes", "81", NULL, "with the background"},
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
    int logits[LEVELS];              /* [N, .., 2]: background, object */
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
    int64_t width = dim_of(g, maps[0], 1), wide = 2 * width; /* 256, 512 */
    struct shared conv3 = shared_conv(g, "rpn_conv_shared", (const int64_t[]){wide, width, 3}, 1);
    struct shared score = shared_conv(g, "rpn_class_raw", (const int64_t[]){6, wide, 1}, 0.6);
    struct shared box = shared_conv(g, "rpn_bbox_pred", (const int64_t[]){12, wide, 1}, 0.7);
    struct rpn rpn;
    int scores[LEVELS], deltas[LEVELS], anchors[LEVELS];
    for (int k = 0; k < LEVELS; k++) {
        int x = relu(g, apply_shared(g, maps[k], &conv3));
        rpn.logits[k] = by_place(g, apply_shared(g, x, &score), 2);
        int s = softmax(g, rpn.logits[k], 2);
        scores[k] = slice(g, s, (struct range){2, 1, 2, 1});
        deltas[k] = by_place(g, apply_shared(g, x, &box), 4);
        anchors[k] = level_anchors(g, maps[k], k);
    }
    float edge = (float)(size - 1);
    const float one[] = {0, 0, 1 / edge, 1 / edge};
    rpn.objectness = concat(g, 1, LEVELS, scores);
    rpn.deltas = concat(g, 1, LEVELS, deltas);
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
    const struct suppression rule = {.limit = keep, .iou = 0.7f};
    int64_t all = dim_of(g, rpn->anchors, 0), limit = all < CANDIDATES ? all : CANDIDATES;
    int top[2] = {NONE, NONE};
    if (!proposals_fit(g, keep, limit))
        return NONE;
    int scores = reshape(g, entry(g, rpn->objectness, image), 1, &all);
    graph_node_many(g, "TopK", name_of(g, "candidates%d", (int)image),
                    INPUTS(scores, graph_const_i64(g, 1, &limit)), NO_ATTRS, 2, top);
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
    int scores, deltas; /* [R, classes], before the softmax; [R, 4 classes] */
};

static struct heads box_head(struct graph *g, int regions, int64_t classes)
{
    int64_t wide = 4 * dim_of(g, regions, 1); /* 1024 */
    struct conv2d conv1 = {.name = "mrcnn_class_conv1", .out = wide, .kernel = 7, .bias = true};
    struct conv2d conv2 = {.name = "mrcnn_class_conv2", .out = wide, .kernel = 1, .bias = true};
    int x = relu(g, conv_bn(g, regions, &conv1, epsilon, 1));
    x = flatten(g, relu(g, conv_bn(g, x, &conv2, epsilon, 1)));
    int scores = dense_scaled(g, x, "mrcnn_class_logits", classes, 0.8);
    return (struct heads){scores, dense_scaled(g, x, "mrcnn_bbox_fc", 4 * classes, 0.4)};
}

/* Each proposal counts for its best class only, and not for the background (class 0). */
static int detect(struct graph *g, int rois, const struct heads *heads, int64_t limit)
{
    const struct suppression rule = {.limit = limit, .iou = 0.3f};
    int64_t row[REGIONS_MAX], count = dim_of(g, rois, 0), classes = dim_of(g, heads->scores, 1);
    float *counts = arena_array(&g->arena, (size_t)classes, sizeof(*counts));
    for (int k = 0; k < count; k++)
        row[k] = k * classes;
    for (int64_t k = 1; counts && k < classes; k++)
        counts[k] = 1;
    int label = graph_node(g, "ArgMax", NULL, INPUTS(heads->scores),
                           ATTRS(attr_int("axis", 1), attr_int("keepdims", 0)));
    int deltas = reshape(g, heads->deltas, 2, (const int64_t[]){-1, 4});
    deltas = gather(g, deltas, add(g, label, graph_const_i64(g, (int)count, row)), 0);
    int boxes = refine(g, rois, deltas);

    int best = one_hot(g, label, classes);
    int high = graph_node(g, "ReduceMax", NULL, INPUTS(rois),
                          ATTRS(attr_ints_of("axes", 1), attr_int("keepdims", 1)));
    int real = cast(g, binary(g, "Greater", high, graph_const_f32(g, 0)), DTYPE_F32);
    int scores = mul(g, heads->scores, mul(g, best, const_f32(g, shape_of(classes), counts)));
    scores = transpose(g, mul(g, scores, real), 2, (const int64_t[]){1, 0});
    scores = reshape(g, scores, 3, (const int64_t[]){1, classes, count});
    int kept = kept_scores(g, reshape(g, boxes, 3, (const int64_t[]){1, count, 4}), scores, &rule);
    return detections(g, kept, boxes, classes, limit);
}

/* [R, classes, MASK, MASK], before the sigmoid. */
static int mask_head(struct graph *g, int x, int64_t classes)
{
    int64_t width = dim_of(g, x, 1); /* 256 */
    for (int k = 1; k <= 4; k++) {
        struct conv2d c = {.name = name_of(g, "mrcnn_mask_conv%d", k),
                           .out = width,
                           .kernel = 3,
                           .pad = 1,
                           .bias = true};
        x = relu(g, conv_bn(g, x, &c, epsilon, 1));
    }
    const double bound = sqrt(6.0 / (double)width);
    int weight = graph_param(g, "mrcnn_mask_deconv.weight", DTYPE_F32, shape_of(width, width, 2, 2),
                             (struct fill){.kind = FILL_UNIFORM, .a = -bound, .b = bound});
    int bias = graph_param(g, "mrcnn_mask_deconv.bias", DTYPE_F32, shape_of(width),
                           (struct fill){.kind = FILL_UNIFORM, .a = -0.05, .b = 0.05});
    x = relu(g,
             graph_node(g, "ConvTranspose", "mrcnn_mask_deconv", INPUTS(x, weight, bias),
                        ATTRS(attr_ints_of("kernel_shape", 2, 2), attr_ints_of("strides", 2, 2))));
    return conv(g, x, "mrcnn_mask", classes, 1);
}

/* ---- the whole ---- */

struct net {
    int64_t images, size, classes;
    int maps[LEVELS];
    struct rpn rpn;
};

/* False after an error, which is in the graph. */
static bool first_stage(struct graph *g, const struct workload_config *config, struct net *net)
{
    bool deep = strcmp(config_text(config, "depth"), "101") == 0;
    int64_t keep = config_int(config, "proposals"), limit = config_int(config, "detections");
    struct resnet trunk = {.blocks = {3, 4, deep ? 23 : 6, 3}, .epsilon = epsilon, .bias = true};
    trunk.thin = config_int(config, "thin");
    *net = (struct net){.images = config->batch,
                        .size = config_int(config, "image"),
                        .classes = config_int(config, "classes")};
    if (!regions_fit(g, config, "detections") || !multiple_of(g, "image", net->size, 64) ||
        !at_least(g, "classes", net->classes, 2) ||
        !at_most(g, "detections", limit, keep * net->classes))
        return false;
    int x = image_input(g, net->images, net->size, net->size);
    int stage[RESNET_STAGES];
    resnet_taps(g, x, &trunk, stage);
    feature_pyramid(g, stage, 256 / trunk.thin, net->maps);
    net->rpn = propose_net(g, net->maps, net->size);
    return true;
}

/* Regions of each image, cut out: [R, C, side, side] of all. */
static int crop_all(struct graph *g, const struct net *net, const int *boxes, int64_t side)
{
    int crops[IMAGES_MAX];
    for (int k = 0; k < net->images; k++) {
        struct pyramid p = {net->maps, ROI_LEVELS, k};
        crops[k] = crop(g, &p, boxes[k], (const int64_t[]){net->size, side});
    }
    return join(g, 0, (int)net->images, crops);
}

/* Rows of what is found in each image among `keep` proposals, at most `most`; and these boxes, cut
 * out for their masks. */
static void find(struct graph *g, const struct net *net, int64_t keep, int64_t limit, int *rows,
                 int *crops)
{
    int rois[IMAGES_MAX], images = (int)net->images;
    for (int k = 0; k < images; k++) {
        struct pyramid p = {net->maps, ROI_LEVELS, k};
        rois[k] = proposals(g, &net->rpn, k, keep);
        crops[k] = crop(g, &p, rois[k], (const int64_t[]){net->size, 7});
    }
    struct heads heads = box_head(g, join(g, 0, images, crops), net->classes);
    heads.scores =
        graph_node(g, "Softmax", "mrcnn_class", INPUTS(heads.scores), ATTRS(attr_int("axis", 1)));
    for (int k = 0; k < images; k++) {
        struct pyramid p = {net->maps, ROI_LEVELS, k};
        struct range own = {0, k * keep, (k + 1) * keep, 1};
        struct heads part = {slice(g, heads.scores, own), slice(g, heads.deltas, own)};
        rows[k] = detect(g, rois[k], &part, limit);
        int boxes = slice(g, rows[k], (struct range){1, 2, 6, 1});
        crops[k] = crop(g, &p, boxes, (const int64_t[]){net->size, 14});
    }
}

static void build(struct graph *g, const struct workload_config *config)
{
    struct net net;
    int rows[IMAGES_MAX], crops[IMAGES_MAX], images = (int)config->batch;
    int64_t limit = config_int(config, "detections");
    if (!first_stage(g, config, &net))
        return;
    find(g, &net, config_int(config, "proposals"), limit, rows, crops);
    int masks = sigmoid(g, mask_head(g, join(g, 0, images, crops), net.classes));
    int found = reshape(g, join(g, 0, images, rows), 3, (const int64_t[]){images, limit, 6});
    graph_rename(g, found, "detections");
    graph_output(g, found);
    graph_rename(g, masks, "masks");
    graph_output(g, masks);
}

/* ---- training ---- */

static const struct region_rule anchor_rule = {.name = "anchors",
                                               .count = 256,
                                               .positives = 128,
                                               .object = 0.7,
                                               .background = 0.3,
                                               .best = true,
                                               .variance = {0.1, 0.2},
                                               .beta = 1,
                                               .mean = true};
static const struct region_rule region_rule = {.name = "regions",
                                               .count = 200,
                                               .positives = 66,
                                               .ratio = 2,
                                               .object = 0.5,
                                               .background = 0.5,
                                               .variance = {0.1, 0.2},
                                               .beta = 1,
                                               .mean = true};

/* The first rows of a sample, which has its positive ones there. */
static int first_rows(struct graph *g, int x)
{
    return slice(g, x, (struct range){0, 0, region_rule.positives, 1});
}

/* 1 where the object of a region is, else 0: [positives, MASK MASK] of image k. masks: see
 * workloads/lib/vision/scenes.h. */
static int mask_targets(struct graph *g, const struct region_sample *s, int masks, int object_boxes)
{
    int one = graph_const_i64(g, -1, (const int64_t[]){1});
    int object = binary(g, "Sub", binary(g, "Max", first_rows(g, s->objects), one), one);
    int own = gather(g, object_boxes, object, 0);
    int low = slice(g, own, (struct range){1, 0, 2, 1});
    int size = binary(g, "Sub", slice(g, own, (struct range){1, 2, 4, 1}), low);
    /* Of no object the box has no size, and its mask does not count. */
    size = binary(g, "Max", size, graph_const_f32(g, 1e-3f));
    int from = concat(g, 1, 2, (const int[]){low, low});
    int boxes = binary(g, "Div", binary(g, "Sub", first_rows(g, s->boxes), from),
                       concat(g, 1, 2, (const int[]){size, size}));
    const int64_t each[] = {SCENE_OBJECTS, 1, SCENE_MASK, SCENE_MASK};
    int cut = crop_and_resize(g, reshape(g, masks, 4, each), boxes, object, MASK);
    int on = binary(g, "GreaterOrEqual", cut, graph_const_f32(g, 0.5f));
    return reshape(g, cast(g, on, DTYPE_F32), 2, (const int64_t[]){-1, MASK * MASK});
}

/* The mean over the elements of the masks of positive regions, of their classes. */
static int mask_loss(struct graph *g, int logits, int classes, int targets)
{
    int column = reshape(g, is_positive(g, classes), 2, (const int64_t[]){-1, 1});
    int rows = reshape(g, logits, 2, (const int64_t[]){-1, MASK * MASK});
    rows = rows_of_classes(g, rows, classes, dim_of(g, logits, 1));
    int each = mul(g, binary_cross_entropy_of_each(g, rows, targets), column);
    int count = binary(g, "Max", sum_of(g, column), graph_const_f32(g, 1));
    return binary(g, "Div", sum_of(g, each), mul(g, count, graph_const_f32(g, MASK * MASK)));
}

static int second_loss(struct graph *g, const struct net *net, const struct region_truth *truth,
                       int masks)
{
    int boxes[IMAGES_MAX] = {0}, classes[IMAGES_MAX], offsets[IMAGES_MAX], targets[IMAGES_MAX];
    int shown[IMAGES_MAX] = {0}, shown_classes[IMAGES_MAX], images = (int)net->images;
    int64_t all = dim_of(g, net->rpn.anchors, 0);
    int64_t keep = all < LEARNT_PROPOSALS ? all : LEARNT_PROPOSALS;
    for (int k = 0; k < images; k++) {
        int rois = proposals(g, &net->rpn, k, keep);
        struct region_sample s = region_sample(g, &region_rule, truth, k, rois, 0);
        boxes[k] = s.boxes;
        classes[k] = s.classes;
        offsets[k] = s.offsets;
        shown[k] = first_rows(g, s.boxes);
        shown_classes[k] = first_rows(g, s.classes);
        targets[k] = mask_targets(g, &s, entry(g, masks, k), entry(g, truth->boxes, k));
    }
    struct heads heads = box_head(g, crop_all(g, net, boxes, 7), net->classes);
    int loss = region_loss(g, &region_rule, heads.scores, heads.deltas, join(g, 0, images, classes),
                           join(g, 0, images, offsets));
    int logits = mask_head(g, crop_all(g, net, shown, 14), net->classes);
    return add(
        g, loss,
        mask_loss(g, logits, join(g, 0, images, shown_classes), join(g, 0, images, targets)));
}

static void build_loss(struct graph *g, const struct workload_config *config)
{
    static const double whole[] = {1, 1};
    struct net net;
    int rows[IMAGES_MAX], crops[IMAGES_MAX], images = (int)config->batch;
    int64_t limit = config_int(config, "detections");
    if (!first_stage(g, config, &net))
        return;
    int objects = scenes_objects(g, net.images, net.classes), masks = scenes_masks(g, net.images);
    struct region_truth truth = region_truth(g, objects, whole, true);
    int first = anchor_loss(g, &anchor_rule, &truth, region_priors(g, net.rpn.anchors, 0),
                            concat(g, 1, LEVELS, net.rpn.logits), net.rpn.deltas);
    int loss = add(g, first, second_loss(g, &net, &truth, masks));
    graph_rename(g, loss, "loss");
    graph_output(g, loss);
    if (g->training)
        return;
    find(g, &net, config_int(config, "proposals"), limit, rows, crops);
    int found = reshape(g, join(g, 0, images, rows), 3, (const int64_t[]){images, limit, 6});
    found = scene_rows(g, found, whole, true);
    graph_rename(g, found, "detections");
    graph_output(g, found);
}

/* Three stages of 1000 steps, which differ in what learns; here all weights do in each. */
static const struct recipe recipe = {
    .optimiser = "momentum",
    .attrs = {{.name = "momentum", .kind = ATTR_FLOAT, .f = 0.9}},
    .decay = 1e-4,
    .clip_each = 5,
    .schedule =
        {.kind = SCHEDULE_MULTISTEP, .rate = 1e-3, .factor = 0.1, .at = {2000}, .steps = 3000},
    .source = "He et al., ICCV 2017; AI Matrix Mask R-CNN (matterport)",
};

static const struct training training = {
    .build = build_loss,
    .recipe = &recipe,
    SCENES_LESSON,
    .tiny = "image=128,depth=50,thin=8,proposals=50,detections=20,classes=5",
    .tiny_batch = 2,
    .tiny_rate = 0.005,
    .tiny_steps = 60,
};

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
    .training = &training,
};
