/* SPDX-License-Identifier: Apache-2.0 */
#include "workloads/lib/resnet.h"

/* Convolution and batch norm; the norm's scale weights average `gain`. */
static int conv_bn(struct graph *g, int x, const struct conv2d *c, double epsilon, double gain)
{
    x = layer_conv2d(g, x, c);
    return batch_norm(g, x, name_of(g, "%s.bn", c->name), epsilon, gain);
}

/* 1x1 c -> 3x3 c -> 1x1 4c, added to the shortcut. The last norm is scaled down so that the sum
 * does not grow block by block. */
static int bottleneck(struct graph *g, int x, const char *name, int64_t c, int64_t stride,
                      const struct resnet *net)
{
    struct conv2d reduce = {name_of(g, "%s.conv1", name), .out = c, .kernel = 1};
    struct conv2d middle = {name_of(g, "%s.conv2", name), .out = c, .kernel = 3, .pad = 1};
    struct conv2d expand = {name_of(g, "%s.conv3", name), .out = 4 * c, .kernel = 1};
    struct conv2d project = {name_of(g, "%s.shortcut", name), .out = 4 * c, .kernel = 1};
    reduce.stride = net->stride_in_3x3 ? 1 : stride;
    middle.stride = net->stride_in_3x3 ? stride : 1;
    project.stride = stride;
    bool first = !g->failed && g->values[x].shape.dim[1] != 4 * c;

    int y = relu(g, conv_bn(g, x, &reduce, net->epsilon, 1.0));
    y = relu(g, conv_bn(g, y, &middle, net->epsilon, 1.0));
    y = conv_bn(g, y, &expand, net->epsilon, 0.4);
    int shortcut = first ? conv_bn(g, x, &project, net->epsilon, 0.7) : x;
    return relu(g, add(g, y, shortcut));
}

int resnet_trunk(struct graph *g, int image, const struct resnet *net)
{
    struct conv2d conv1 = {"conv1", .out = 64, .kernel = 7, .stride = 2, .pad = 3};
    int x = relu(g, conv_bn(g, image, &conv1, net->epsilon, 1.0));
    x = max_pool(g, x, (struct window2d){.kernel = 3, .stride = 2, .bottom = 1, .right = 1});
    for (int stage = 0; stage < 4; stage++)
        for (int block = 0; block < net->blocks[stage]; block++)
            x = bottleneck(g, x, name_of(g, "stage%d.block%d", stage + 2, block + 1),
                           (int64_t)64 << stage, stage > 0 && block == 0 ? 2 : 1, net);
    return x;
}
