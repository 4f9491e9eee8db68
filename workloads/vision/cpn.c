/* SPDX-License-Identifier: Apache-2.0
 *
 * CPN: Chen, Wang, Peng, Zhang, Yu, Sun, "Cascaded Pyramid Network for Multi-Person Pose
 * Estimation", CVPR 2018. GlobalNet is a feature pyramid on a ResNet, RefineNet concatenates all of
 * its levels at the finest size; 17 heat maps come out. Each crop is tested with its mirror image:
 * the maps of both are averaged, blurred, and their peaks become joints. */
#include <string.h>

#include "workloads/lib/limits.h"
#include "workloads/lib/vision/heat_maps.h"
#include "workloads/lib/vision/pose_loss.h"
#include "workloads/lib/vision/poses.h"
#include "workloads/lib/vision/resnet.h"

enum { JOINTS = POSE_JOINTS, LEVELS = POSE_LEVELS };

static const double epsilon = 1e-9;
static const char *const depths[] = {"101", "50", "152", NULL};
static const char *const yes_no[] = {"yes", "no", NULL};
static const char *const thin[] = {"1", "2", "4", "8", "16", NULL};
static const struct param params[] = {
    {"depth", "101", depths, "layers of the ResNet"},
    {"height", "384", NULL, "height of a crop; its width is three quarters of that"},
    {"mirror", "yes", yes_no, "whether each crop goes through the network mirrored as well"},
    {"thin", "1", thin, "what all channels are divided by, so that it learns within seconds"},
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
    x = conv_bn_relu(g, x, name_of(g, "tmp.res%d", level), dim_of(g, x, 1), 1);
    x = conv_norm(g, x, name_of(g, "pyramid.res%d", level), JOINTS, 3);
    return resize(g, x, to);
}

/* What the network says: features of each level, and the heat maps that come of them. */
struct said {
    int fused[LEVELS], maps[LEVELS], refined;
};

/* From stage 5 to stage 2: the coarser map, upsampled, joins the lateral one. */
static void global_net(struct graph *g, const int stage[LEVELS], struct said *said)
{
    struct size finest = size_of(g, stage[0]);
    int64_t width = dim_of(g, stage[0], 1); /* 256 */
    int *fused = said->fused;
    for (int k = LEVELS - 1; k >= 0; k--) {
        int level = k + 2;
        fused[k] = conv_bn_relu(g, stage[k], name_of(g, "lateral.res%d", level), width, 1);
        if (k < LEVELS - 1) {
            int up = resize(g, fused[k + 1], size_of(g, fused[k]));
            struct conv2d merge = {.name = name_of(g, "merge.res%d", level),
                                   .out = width,
                                   .kernel = 1,
                                   .bias = true,
                                   .gain = 0.5};
            up = layer_conv2d(g, up, &merge);
            fused[k] = add(g, up, fused[k]);
        }
        said->maps[k] = predict(g, fused[k], level, finest);
    }
}

/* 1x1 128 -> 3x3 128 -> 1x1 256 (out), added to x or to its projection. */
static int bottleneck(struct graph *g, int x, const char *name, int64_t out)
{
    bool project = dim_of(g, x, 1) != out;
    int shortcut = project ? conv_norm(g, x, name_of(g, "%s.shortcut", name), out, 1) : x;
    int y = conv_bn_relu(g, x, name_of(g, "%s.conv1", name), out / 2, 1);
    y = conv_bn_relu(g, y, name_of(g, "%s.conv2", name), out / 2, 3);
    y = conv_norm(g, y, name_of(g, "%s.conv3", name), out, 1);
    return relu(g, add(g, y, shortcut));
}

/* Stage i passes i - 2 bottlenecks; all are brought to the finest size and concatenated. */
static int refine_net(struct graph *g, const int fused[LEVELS])
{
    int parts[LEVELS];
    int64_t width = dim_of(g, fused[0], 1);
    for (int k = 0; k < LEVELS; k++) {
        int x = fused[k];
        for (int block = 0; block < k; block++)
            x = bottleneck(g, x, name_of(g, "refine.res%d.block%d", k + 2, block), width);
        parts[k] = resize(g, x, size_of(g, fused[0]));
    }
    int x = bottleneck(g, concat(g, 1, LEVELS, parts), "refine.final", width);
    x = conv2d(g, x, .name = "refine.maps", .out = JOINTS, .kernel = 3, .pad = 1);
    return batch_norm(g, x, "refine.maps.bn", epsilon, 40); /* of the order of its targets */
}

static struct said network(struct graph *g, int crops, const struct workload_config *config)
{
    const char *depth = config_text(config, "depth");
    const int *blocks = strcmp(depth, "50") == 0    ? blocks_50
                        : strcmp(depth, "101") == 0 ? blocks_101
                                                    : blocks_152;
    struct resnet net = {.stride_in_3x3 = true, .epsilon = epsilon};
    net.pool = (struct window2d){3, 2, 1, 1, 1, 1};
    net.thin = config_int(config, "thin");
    memcpy(net.blocks, blocks, sizeof(net.blocks));
    struct said said;
    int stage[LEVELS];
    resnet_taps(g, crops, &net, stage);
    global_net(g, stage, &said);
    said.refined = refine_net(g, said.fused);
    return said;
}

/* [N, 3, height, 3/4 height]; NONE: too low to have a width. */
static int input(struct graph *g, const struct workload_config *config)
{
    int64_t height = config_int(config, "height");
    if (!at_least(g, "height", height, 2))
        return NONE;
    return graph_input(g, "crop", DTYPE_F32, shape_of(config->batch, 3, height, height * 3 / 4),
                       (struct fill){.kind = FILL_IMAGE, .a = 0, .b = 0.3});
}

static void build(struct graph *g, const struct workload_config *config)
{
    bool mirror = strcmp(config_text(config, "mirror"), "yes") == 0;
    int crop = input(g, config);
    if (g->failed)
        return;
    int box_score = graph_input(g, "box_score", DTYPE_F32, shape_of(config->batch),
                                (struct fill){.kind = FILL_UNIFORM, .a = 0.5, .b = 1});
    if (mirror)
        crop = concat(g, 0, 2, (const int[]){crop, heat_maps_flipped(g, crop)});
    struct said said = network(g, crop, config);
    for (int k = LEVELS - 1; k >= 0; k--) {
        graph_rename(g, said.maps[k], name_of(g, "global_maps.res%d", k + 2));
        graph_output(g, said.maps[k]);
    }
    graph_rename(g, said.refined, "refined_maps");
    graph_output(g, said.refined);
    int maps = mirror ? heat_maps_averaged(g, said.refined) : said.refined;
    struct joints found = heat_maps_read(g, maps);
    graph_rename(g, found.joints, "joints");
    graph_output(g, found.joints);
    int mean = graph_node(g, "ReduceMean", NULL, INPUTS(found.scores),
                          ATTRS(attr_ints_of("axes", 1, 2), attr_int("keepdims", 0)));
    int pose = mul(g, mean, box_score);
    graph_rename(g, pose, "pose_score");
    graph_output(g, pose);
}

/* ---- training ---- */

static void build_loss(struct graph *g, const struct workload_config *config)
{
    int crop = input(g, config);
    if (g->failed)
        return;
    struct said said = network(g, crop, config);
    int loss = pose_loss(g, said.maps, said.refined, config_int(config, "height"));
    graph_rename(g, loss, "loss");
    graph_output(g, loss);
    if (g->training)
        return;
    int found = heat_maps_read(g, said.refined).joints;
    graph_rename(g, found, "found");
    graph_output(g, found);
}

/* Halved every 60 epochs, which AI Matrix sets to 10000 steps each. */
static const struct recipe recipe = {
    .optimiser = "adam",
    .decay = 1e-5,
    .decay_all = true,
    .schedule =
        {.kind = SCHEDULE_STEP, .rate = 5e-4, .factor = 0.5, .every = 600000, .steps = 10000},
    .source = "Chen et al., CVPR 2018; AI Matrix CPN",
};

static const struct training training = {
    .build = build_loss,
    .recipe = &recipe,
    .fill = poses_fill,
    .quality = &quality_pck,
    .answers = "found",
    .targets = "joints",
    .lesson = POSES_LESSON,
    .tiny = "depth=50,height=64,thin=8",
    .tiny_batch = 8,
    .tiny_rate = 0.1,
    .tiny_steps = 350,
};

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
    .training = &training,
};
