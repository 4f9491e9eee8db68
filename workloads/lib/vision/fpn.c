/* SPDX-License-Identifier: Apache-2.0 */
#include "workloads/lib/vision/fpn.h"

#include <math.h>

static int twice(struct graph *g, int x)
{
    int scales = graph_const(g, NULL, DTYPE_F32, shape_of(4), (const float[]){1, 1, 2, 2});
    return graph_node(g, "Resize", NULL, INPUTS(x, NONE, scales),
                      ATTRS(attr_string("mode", "nearest"),
                            attr_string("coordinate_transformation_mode", "asymmetric"),
                            attr_string("nearest_mode", "floor")));
}

void feature_pyramid(struct graph *g, const int stage[4], int64_t width, int maps[FPN_LEVELS])
{
    /* Stage 4 adds up the residuals of many blocks: its map is the largest, and stage 5 keeps that.
     */
    static const double gain[4] = {0.5, 0.5, 0.06, 0.06};
    int merged[4];
    for (int k = 3; k >= 0; k--) {
        struct conv2d lateral = {.name = name_of(g, "fpn_c%dp%d", k + 2, k + 2),
                                 .out = width,
                                 .kernel = 1,
                                 .bias = true,
                                 .gain = gain[k]};
        merged[k] = layer_conv2d(g, stage[k], &lateral);
        if (k < 3)
            merged[k] = add(g, twice(g, merged[k + 1]), merged[k]);
    }
    for (int k = 0; k < 4; k++) {
        struct conv2d smooth = {.name = name_of(g, "fpn_p%d", k + 2),
                                .out = width,
                                .kernel = 3,
                                .pad = 1,
                                .bias = true,
                                .gain = 0.7};
        maps[k] = layer_conv2d(g, merged[k], &smooth);
    }
    maps[4] = max_pool(g, maps[3], (struct window2d){.kernel = 1, .stride = 2});
}

struct shared shared_conv(struct graph *g, const char *name, const int64_t shape[3], double gain)
{
    int64_t out = shape[0], in = shape[1], k = shape[2];
    double bound = gain * sqrt(6.0 / (double)(in * k * k));
    struct shared s = {.kernel = k};
    s.weight = graph_param(g, name_of(g, "%s.weight", name), DTYPE_F32, shape_of(out, in, k, k),
                           (struct fill){.kind = FILL_UNIFORM, .a = -bound, .b = bound});
    s.bias = graph_param(g, name_of(g, "%s.bias", name), DTYPE_F32, shape_of(out),
                         (struct fill){.kind = FILL_UNIFORM, .a = -0.05, .b = 0.05});
    return s;
}

int apply_shared(struct graph *g, int x, const struct shared *s)
{
    int64_t pad = s->kernel / 2;
    return graph_node(g, "Conv", NULL, INPUTS(x, s->weight, s->bias),
                      ATTRS(attr_ints_of("kernel_shape", s->kernel, s->kernel),
                            attr_ints_of("pads", pad, pad, pad, pad)));
}
