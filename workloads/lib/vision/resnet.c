/* SPDX-License-Identifier: Apache-2.0 */
#include "workloads/lib/vision/resnet.h"

struct block {
    const char *name;
    int64_t width, stride, dilation;
    bool project; /* the shortcut: first of its stage */
};

int conv_bn(struct graph *g, int x, const struct conv2d *c, double epsilon, double gain)
{
    x = layer_conv2d(g, x, c);
    return batch_norm(g, x, name_of(g, "%s.bn", c->name), epsilon, gain);
}

/* Scaled down so that the sum does not grow block by block. */
static int branch_end(struct graph *g, int x, const struct conv2d *c, const struct resnet *net)
{
    return conv_bn(g, x, c, net->epsilon, net->branch_gain > 0 ? net->branch_gain : 0.4);
}

static int shortcut(struct graph *g, int x, const struct block *b, int64_t out,
                    const struct resnet *net)
{
    struct conv2d project = {.name = name_of(g, "%s.shortcut", b->name), .out = out, .kernel = 1};
    project.stride = b->stride;
    project.bias = net->bias;
    return b->project ? conv_bn(g, x, &project, net->epsilon, 0.7) : x;
}

/* 1x1 c -> 3x3 c -> 1x1 4c, added to the shortcut. */
static int bottleneck(struct graph *g, int x, const struct block *b, const struct resnet *net)
{
    int64_t c = b->width;
    struct conv2d reduce = {.name = name_of(g, "%s.conv1", b->name), .out = c, .kernel = 1};
    struct conv2d middle = {.name = name_of(g, "%s.conv2", b->name), .out = c, .kernel = 3};
    struct conv2d expand = {.name = name_of(g, "%s.conv3", b->name), .out = 4 * c, .kernel = 1};
    reduce.stride = net->stride_in_3x3 ? 1 : b->stride;
    middle.stride = net->stride_in_3x3 ? b->stride : 1;
    middle.pad = middle.dilation = b->dilation;
    reduce.bias = middle.bias = expand.bias = net->bias;

    int y = relu(g, conv_bn(g, x, &reduce, net->epsilon, 1.0));
    y = relu(g, conv_bn(g, y, &middle, net->epsilon, 1.0));
    y = branch_end(g, y, &expand, net);
    return relu(g, add(g, y, shortcut(g, x, b, 4 * c, net)));
}

/* 3x3 c -> 3x3 c, added to the shortcut. */
static int basic(struct graph *g, int x, const struct block *b, const struct resnet *net)
{
    int64_t c = b->width;
    struct conv2d one = {.name = name_of(g, "%s.conv1", b->name), .out = c, .kernel = 3, .pad = 1};
    struct conv2d two = {.name = name_of(g, "%s.conv2", b->name), .out = c, .kernel = 3, .pad = 1};
    one.stride = b->stride;
    one.bias = two.bias = net->bias;

    int y = relu(g, conv_bn(g, x, &one, net->epsilon, 1.0));
    y = branch_end(g, y, &two, net);
    return relu(g, add(g, y, shortcut(g, x, b, c, net)));
}

int resnet_taps(struct graph *g, int image, const struct resnet *net, int taps[RESNET_STAGES])
{
    int64_t width = 64 / (net->thin ? net->thin : 1);
    struct conv2d conv1 = {"conv1", .out = width, .kernel = 7, .stride = 2, .pad = 3};
    conv1.bias = net->bias;
    struct window2d pool = {.kernel = 3, .stride = 2, .bottom = 1, .right = 1};
    int x = relu(g, conv_bn(g, image, &conv1, net->epsilon, 1.0));
    x = max_pool(g, x, net->pool.kernel ? net->pool : pool);
    for (int stage = 0; stage < RESNET_STAGES; stage++) {
        bool last = stage == RESNET_STAGES - 1 || net->blocks[stage + 1] == 0;
        int64_t stride = last && net->last_stride ? net->last_stride : stage > 0 ? 2 : 1;
        for (int k = 0; k < net->blocks[stage]; k++) {
            struct block b = {.name = name_of(g, "stage%d.block%d", stage + 2, k + 1),
                              .width = width << stage,
                              .stride = k == 0 ? stride : 1,
                              .dilation = last && net->last_dilation ? net->last_dilation : 1,
                              .project = k == 0 && (stage || !net->basic || net->project_all)};
            x = net->basic ? basic(g, x, &b, net) : bottleneck(g, x, &b, net);
        }
        taps[stage] = x;
    }
    return x;
}

int resnet_trunk(struct graph *g, int image, const struct resnet *net)
{
    int taps[RESNET_STAGES];
    return resnet_taps(g, image, net, taps);
}
