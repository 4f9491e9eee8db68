/* SPDX-License-Identifier: Apache-2.0
 *
 * DSSD321 on ResNet-101: Fu et al., "DSSD: Deconvolutional Single Shot Detector", 2017. Maps are
 * enlarged again from the smallest on, each multiplied by what the trunk found at its size. */
#include <math.h>

#include "workloads/lib/vision/dssd.h"
#include "workloads/lib/vision/resnet.h"
#include "workloads/lib/vision/ssd.h"

/* A transposed convolution to 512 channels, kernel x kernel at the given stride, with bias. */
static int deconvolution(struct graph *g, int x, const char *name, int64_t kernel, int64_t stride)
{
    int64_t in = dim_of(g, x, 1);
    int64_t taps = kernel * kernel / (stride * stride); /* that meet in one pixel */
    double bound = sqrt(6.0 / (double)(in * taps));
    int w =
        graph_param(g, name_of(g, "%s.weight", name), DTYPE_F32, shape_of(in, 512, kernel, kernel),
                    (struct fill){.kind = FILL_UNIFORM, .a = -bound, .b = bound});
    int b = graph_param(g, name_of(g, "%s.bias", name), DTYPE_F32, shape_of(512),
                        (struct fill){.kind = FILL_UNIFORM, .a = -0.05, .b = 0.05});
    return graph_node(g, "ConvTranspose", name, INPUTS(x, w, b),
                      ATTRS(attr_ints_of("kernel_shape", kernel, kernel),
                            attr_ints_of("strides", stride, stride)));
}

/* The deconvolution module: `small`, enlarged, times `lateral`, the trunk's map of that size. The
 * norms' gains keep the size of the products. */
static int combine(struct graph *g, int small, int lateral, const char *size, int64_t kernel,
                   int64_t stride)
{
    struct conv2d pre1 = {name_of(g, "res%s_pre1", size), .out = 512, .kernel = 3, .pad = 1};
    struct conv2d pre2 = {name_of(g, "res%s_pre2", size), .out = 512, .kernel = 3, .pad = 1};
    struct conv2d pre = {name_of(g, "deconv_%s_pre", size), .out = 512, .kernel = 3, .pad = 1};
    small = deconvolution(g, small, name_of(g, "deconv_%s", size), kernel, stride);
    small = conv_bn(g, small, &pre, DSSD_EPSILON, 0.7);
    lateral = conv_bn(g, dssd_conv(g, lateral, &pre1), &pre2, DSSD_EPSILON, 0.9);
    return relu(g, mul(g, small, lateral));
}

static void build(struct graph *g, const struct workload_config *config)
{
    static const char *const names[DSSD_MAPS] = {"3", "5", "6", "7", "8", "9"};
    int trunk[DSSD_MAPS], map[DSSD_MAPS];
    dssd_trunk(g, config->batch, trunk);
    map[5] = trunk[5];
    map[4] = combine(g, map[5], trunk[4], "8", 3, 1); /* 3 x 3 */
    map[3] = combine(g, map[4], trunk[3], "7", 3, 1); /* 5 x 5 */
    map[2] = combine(g, map[3], trunk[2], "6", 2, 2); /* 10 x 10 */
    map[1] = combine(g, map[2], trunk[1], "5", 2, 2); /* 20 x 20 */
    map[0] = combine(g, map[1], trunk[0], "3", 2, 2); /* 40 x 40 */
    dssd_detect(g, config, map, names);
}

REGISTER(workload, dssd321_resnet101) = {
    .name = "dssd321_resnet101",
    .domain = "vision",
    .task = "object detection",
    .summary = "DSSD321 on ResNet-101, 21 classes (PASCAL VOC), with detection output",
    .source = "Fu et al., arXiv 1701.06659; AI Matrix DSSD, ssd_pascal_resnet_deconv_321.py",
    .params = ssd_offsets,
    .table1_batch = 2,
    .batch = 1,
    .build = build,
};
