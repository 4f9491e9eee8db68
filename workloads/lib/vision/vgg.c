/* SPDX-License-Identifier: Apache-2.0 */
#include "workloads/lib/vision/vgg.h"

int vgg_conv(struct graph *g, int x, const char *name, int64_t out, int64_t kernel)
{
    return relu(g, conv2d(g, x, .name = name, .out = out, .kernel = kernel, .pad = kernel / 2,
                          .bias = true));
}

int vgg16_stage(struct graph *g, int x, int stage, int64_t first)
{
    int64_t channels = first << (stage < 4 ? stage - 1 : 3); /* 64, 128, 256, 512, 512 */
    int convs = stage <= 2 ? 2 : 3;
    for (int k = 1; k <= convs; k++)
        x = vgg_conv(g, x, name_of(g, "conv%d_%d", stage, k), channels, 3);
    return x;
}

int vgg16_stages(struct graph *g, int x, int last, int64_t first)
{
    for (int stage = 1; stage <= last; stage++) {
        x = vgg16_stage(g, x, stage, first);
        if (stage < last)
            x = vgg16_pool(g, x);
    }
    return x;
}

int vgg16_pool(struct graph *g, int x)
{
    struct window2d w = {.kernel = 2, .stride = 2};
    w.bottom = dim_of(g, x, 2) % 2;
    w.right = dim_of(g, x, 3) % 2;
    return max_pool(g, x, w);
}
