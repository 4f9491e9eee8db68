/* SPDX-License-Identifier: Apache-2.0 */
#include "workloads/lib/vision/densenet.h"

int bn_relu(struct graph *g, int x, const char *name, double epsilon)
{
    return relu(g, batch_norm(g, x, name, epsilon, 1.0));
}

int dense_block(struct graph *g, int x, int block, int layers, dense_layer *layer)
{
    for (int k = 1; k <= layers; k++) {
        int grown = layer(g, x, name_of(g, "block%d.layer%d", block, k));
        x = concat(g, 1, 2, (const int[]){x, grown});
    }
    return x;
}

int halve_by_average(struct graph *g, int x)
{
    return average_pool(g, x, (struct window2d){.kernel = 2, .stride = 2});
}
