/* SPDX-License-Identifier: Apache-2.0
 *
 * CPN: Chen, Wang, Peng, Zhang, Yu, Sun, "Cascaded Pyramid Network for Multi-Person Pose
 * Estimation", CVPR 2018. GlobalNet is a feature pyramid on a ResNet, RefineNet concatenates all of
 * its levels at the finest size; 17 heat maps come out. Each crop is tested with its mirror image:
 * the maps of both are averaged, blurred, and their peaks become joints. */
#include <math.h>
#include <string.h>

#include "workloads/lib/limits.h"
#include "workloads/lib/vision/resnet.h"
#include "workloads/workload.h"

enum { JOINTS = 17, BORDER = 10, BLUR = 2 * BORDER + 1 };

static const double epsilon = 1e-9;
static const char *const depths[] = {"101", "50", "152", NULL};
static const char *const yes_no[] = {"yes", "no", NULL};
static const struct param params[] = {
    {"depth", "101", depths, "layers of the ResNet"},
    {"height", "384", NULL, "height of a crop; its width is three quarters of that"},
    {"mirror", "yes", yes_no, "whether each crop goes through the network mirrored as well"},
    {.name = NULL},
};

static const int blocks_50[4] = {3, 4, 6, 3}, blocks_101[4] = {3, 4, 23, 3},
                 blocks_152[4] = {3, 8, 36, 3};

struct size {
    int64_t height, width;
};

static struct size size_of(const struct graph *g, int x)
{
    return (struct size){dim_of(g, x, 2), dim_of(g, x, 3)};
}

static int resize(struct graph *g, int x, struct size to)
{
    return resize_bilinear(g, x, to.height, to.width);
}

/* Convolution, batch norm and, unless it ends a branch, ReLU. */
static int conv_norm(struct graph *g, int x, const char *name, int64_t out, int64_t kernel)
{
    x = conv2d(g, x, .name = name, .out = out, .kernel = kernel, .pad = kernel / 2);
    return batch_norm(g, x, name_of(g, "%s.bn", name), epsilon, 1);
}

static int conv_bn_relu(struct graph *g, int x, const char *name, int64_t out, int64_t kernel)
{
    return relu(g, conv_norm(g, x, name, out, kernel));
}

/* Heat maps of one level of the pyramid. */
static int predict(struct graph *g, int x, int level, struct size to)
{
    x = conv_bn_relu(g, x, name_of(g, "tmp.res%d", level), 256, 1);
    x = conv_norm(g, x, name_of(g, "pyramid.res%d", level), JOINTS, 3);
    return resize(g, x, to);
}

/* From stage 5 to stage 2: the coarser map, upsampled, joins the lateral one. */
static void global_net(struct graph *g, const int stage[4], int fused[4])
{
    struct size finest = size_of(g, stage[0]);
    for (int k = 3; k >= 0; k--) {
        int level = k + 2;
        fused[k] = conv_bn_relu(g, stage[k], name_of(g, "lateral.res%d", level), 256, 1);
        if (k < 3) {
            int up = resize(g, fused[k + 1], size_of(g, fused[k]));
            struct conv2d merge = {.name = name_of(g, "merge.res%d", level),
                                   .out = 256,
                                   .kernel = 1,
                                   .bias = true,
                                   .gain = 0.5};
            up = layer_conv2d(g, up, &merge);
            fused[k] = add(g, up, fused[k]);
        }
        int maps = predict(g, fused[k], level, finest);
        graph_rename(g, maps, name_of(g, "global_maps.res%d", level));
        graph_output(g, maps);
    }
}

/* 1x1 128 -> 3x3 128 -> 1x1 256, added to x or to its projection. */
static int bottleneck(struct graph *g, int x, const char *name, bool project)
{
    int shortcut = project ? conv_norm(g, x, name_of(g, "%s.shortcut", name), 256, 1) : x;
    int y = conv_bn_relu(g, x, name_of(g, "%s.conv1", name), 128, 1);
    y = conv_bn_relu(g, y, name_of(g, "%s.conv2", name), 128, 3);
    y = conv_norm(g, y, name_of(g, "%s.conv3", name), 256, 1);
    return relu(g, add(g, y, shortcut));
}

/* Stage i passes i - 2 bottlenecks; all are brought to the finest size and concatenated. */
static int refine_net(struct graph *g, const int fused[4])
{
    int parts[4];
    for (int k = 0; k < 4; k++) {
        int x = fused[k];
        for (int block = 0; block < k; block++)
            x = bottleneck(g, x, name_of(g, "refine.res%d.block%d", k + 2, block), false);
        parts[k] = resize(g, x, size_of(g, fused[0]));
    }
    int x = bottleneck(g, concat(g, 1, 4, parts), "refine.final", true);
    x = conv2d(g, x, .name = "refine.maps", .out = JOINTS, .kernel = 3, .pad = 1);
    return batch_norm(g, x, "refine.maps.bn", epsilon, 40); /* of the order of the 255 targets */
}

static int flip_columns(struct graph *g, int x)
{
    return slice(g, x, (struct range){3, -1, INT64_MIN + 1, -1});
}

/* The mean of the maps and of those of the mirror images, turned back: columns in reverse order,
 * left and right joints exchanged. COCO has the nose first, then pairs. */
static int average_mirrored(struct graph *g, int maps, int64_t crops)
{
    int64_t swap[JOINTS] = {0};
    for (int64_t k = 1; k < JOINTS; k++)
        swap[k] = k % 2 ? k + 1 : k - 1;
    int there = slice(g, maps, (struct range){0, 0, crops, 1});
    int back = flip_columns(g, slice(g, maps, (struct range){0, crops, 2 * crops, 1}));
    back = gather(g, back, graph_const_i64(g, JOINTS, swap), 1);
    return mul(g, add(g, there, back), graph_const_f32(g, 0.5f));
}

/* A Gaussian of 21 taps with the deviation that OpenCV gives it, one axis at a time; the maps get a
 * border of zeros as wide as its radius. */
static int blur(struct graph *g, int maps)
{
    const double sigma = 0.3 * ((BLUR - 1) * 0.5 - 1) + 0.8;
    double bell[BLUR], sum = 0;
    float taps[JOINTS * BLUR];
    for (int k = 0; k < BLUR; k++)
        sum += bell[k] = exp(-(k - BORDER) * (k - BORDER) / (2 * sigma * sigma));
    for (int k = 0; k < JOINTS * BLUR; k++)
        taps[k] = (float)(bell[k % BLUR] / sum);
    int down = graph_const(g, "blur.down", DTYPE_F32, shape_of(JOINTS, 1, BLUR, 1), taps);
    int across = graph_const(g, "blur.across", DTYPE_F32, shape_of(JOINTS, 1, 1, BLUR), taps);
    maps = graph_node(g, "Conv", "blur.rows", INPUTS(maps, down),
                      ATTRS(attr_int("group", JOINTS), attr_ints_of("kernel_shape", BLUR, 1),
                            attr_ints_of("pads", 2 * BORDER, 0, 2 * BORDER, 0)));
    return graph_node(g, "Conv", "blur.columns", INPUTS(maps, across),
                      ATTRS(attr_int("group", JOINTS), attr_ints_of("kernel_shape", 1, BLUR),
                            attr_ints_of("pads", 0, 2 * BORDER, 0, 2 * BORDER)));
}

static int column(struct graph *g, int x, int64_t k)
{
    return slice(g, x, (struct range){2, k, k + 1, 1});
}

/* One coordinate of the joints: the first peak, a quarter of an element towards the second one. */
static int refine_peak(struct graph *g, int coordinate, int distance, int64_t size)
{
    int step = binary(g, "Sub", column(g, coordinate, 1), column(g, coordinate, 0));
    step = mul(g, binary(g, "Div", step, distance), graph_const_f32(g, 0.25f));
    int at = add(g, binary(g, "Sub", column(g, coordinate, 0), graph_const_f32(g, BORDER)), step);
    return graph_node(g, "Clip", NULL,
                      INPUTS(at, graph_const_f32(g, 0), graph_const_f32(g, (float)(size - 1))),
                      NO_ATTRS);
}

/* [N, JOINTS, H, W] -> joints [N, JOINTS, 3]: x and y in the crop, score; score of the pose [N] */
static void find_joints(struct graph *g, int maps, int box_score)
{
    struct size size = size_of(g, maps);
    int64_t crops = dim_of(g, maps, 0), wide = size.width + 2 * BORDER;
    int top[2], two = graph_const_i64(g, 1, (const int64_t[]){2});
    int flat = reshape(g, blur(g, maps), 3, (const int64_t[]){crops, JOINTS, -1});
    graph_node_many(g, "TopK", "peaks", INPUTS(flat, two), ATTRS(attr_int("axis", 2)), 2, top);

    int width = graph_const_i64(g, -1, &wide);
    int row = binary(g, "Div", top[1], width);
    int y = cast(g, row, DTYPE_F32);
    int x = cast(g, binary(g, "Sub", top[1], mul(g, row, width)), DTYPE_F32);
    int dx = binary(g, "Sub", column(g, x, 1), column(g, x, 0));
    int dy = binary(g, "Sub", column(g, y, 1), column(g, y, 0));
    int distance = unary(g, "Sqrt", add(g, mul(g, dx, dx), mul(g, dy, dy)));
    x = refine_peak(g, x, distance, size.width);
    y = refine_peak(g, y, distance, size.height);

    /* Maps are trained to reach 255; the score is read where the joint is. */
    int at = add(g, mul(g, unary(g, "Round", y), graph_const_f32(g, (float)size.width)),
                 unary(g, "Round", x));
    int plain = reshape(g, maps, 3, (const int64_t[]){crops, JOINTS, -1});
    int score = graph_node(g, "GatherElements", NULL, INPUTS(plain, cast(g, at, DTYPE_I64)),
                           ATTRS(attr_int("axis", 2)));
    score = add(g, mul(g, score, graph_const_f32(g, 1 / 255.0f)), graph_const_f32(g, 0.5f));

    int four = graph_const_f32(g, 4), half = graph_const_f32(g, 2);
    int parts[] = {add(g, mul(g, x, four), half), add(g, mul(g, y, four), half), score};
    int joints = concat(g, 2, 3, parts);
    graph_rename(g, joints, "joints");
    graph_output(g, joints);
    int mean = graph_node(g, "ReduceMean", NULL, INPUTS(score),
                          ATTRS(attr_ints_of("axes", 1, 2), attr_int("keepdims", 0)));
    int pose = mul(g, mean, box_score);
    graph_rename(g, pose, "pose_score");
    graph_output(g, pose);
}

static void build(struct graph *g, const struct workload_config *config)
{
    const char *depth = config_text(config, "depth");
    const int *blocks = strcmp(depth, "50") == 0    ? blocks_50
                        : strcmp(depth, "101") == 0 ? blocks_101
                                                    : blocks_152;
    int64_t crops = config->batch, height = config_int(config, "height");
    bool mirror = strcmp(config_text(config, "mirror"), "yes") == 0;
    if (!at_least(g, "height", height, 2)) /* the width is three quarters of it */
        return;
    struct resnet net = {.stride_in_3x3 = true, .epsilon = epsilon};
    net.pool = (struct window2d){3, 2, 1, 1, 1, 1};
    memcpy(net.blocks, blocks, sizeof(net.blocks));

    int image = graph_input(g, "crop", DTYPE_F32, shape_of(crops, 3, height, height * 3 / 4),
                            (struct fill){.kind = FILL_IMAGE, .a = 0, .b = 0.3});
    int box_score = graph_input(g, "box_score", DTYPE_F32, shape_of(crops),
                                (struct fill){.kind = FILL_UNIFORM, .a = 0.5, .b = 1});
    int stage[4], fused[4];
    if (mirror)
        image = concat(g, 0, 2, (const int[]){image, flip_columns(g, image)});
    resnet_taps(g, image, &net, stage);
    global_net(g, stage, fused);
    int maps = refine_net(g, fused);
    graph_rename(g, maps, "refined_maps");
    graph_output(g, maps);
    find_joints(g, mirror ? average_mirrored(g, maps, crops) : maps, box_score);
}

REGISTER(workload, cpn) = {
    .name = "cpn",
    .domain = "vision",
    .task = "pose estimation",
    .summary = "Cascaded Pyramid Network, ResNet-101, 384x288 crops, 17 joints",
    .source = "Chen et al., CVPR 2018; AI Matrix CPN, COCO.res101.384x288.CPN",
    .params = params,
    .table1_batch = 8,
    .batch = 1,
    .build = build,
};
