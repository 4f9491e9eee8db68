/* SPDX-License-Identifier: Apache-2.0 */
#include "workloads/lib/vision/ssd_vgg.h"

#include "workloads/lib/vision/vgg.h"

/* x / |x| over the channels of each position, times a learnt scale per channel that starts at 20.
 */
static int normalise(struct graph *g, int x, const char *name)
{
    int64_t channels = dim_of(g, x, 1);
    int scale = graph_param(g, name_of(g, "%s.scale", name), DTYPE_F32, shape_of(1, channels, 1, 1),
                            (struct fill){.kind = FILL_UNIFORM, .a = 18, .b = 22});
    x = graph_node(g, "LpNormalization", name, INPUTS(x),
                   ATTRS(attr_int("axis", 1), attr_int("p", 2)));
    return mul(g, x, scale);
}

void ssd_vgg_trunk(struct graph *g, int image, int64_t thin, int features[2])
{
    int64_t first = VGG_FIRST / thin;
    int x = vgg16_stages(g, image, 3, first);
    x = vgg16_stage(g, vgg16_pool(g, x), 4, first);
    features[0] = normalise(g, x, "conv4_3_norm");
    x = vgg16_stage(g, vgg16_pool(g, x), 5, first);
    x = max_pool(g, x, (struct window2d){3, 1, 1, 1, 1, 1});
    x = relu(g, conv2d(g, x, .name = "fc6", .out = 1024 / thin, .kernel = 3, .pad = 6,
                       .dilation = 6, .bias = true));
    features[1] =
        relu(g, conv2d(g, x, .name = "fc7", .out = 1024 / thin, .kernel = 1, .bias = true));
}

int ssd_vgg_extra(struct graph *g, int x, int number, int64_t reduce, const struct conv2d *c)
{
    struct conv2d second = *c;
    second.name = name_of(g, "conv%d_2", number);
    second.bias = true;
    x = relu(g, conv2d(g, x, .name = name_of(g, "conv%d_1", number), .out = reduce, .kernel = 1,
                       .bias = true));
    return relu(g, layer_conv2d(g, x, &second));
}
