/* SPDX-License-Identifier: Apache-2.0
 *
 * DSSD321 on ResNet-101: Fu et al., "DSSD: Deconvolutional Single Shot Detector", 2017. Maps are
 * enlarged again from the smallest on, each multiplied by what the trunk found at its size. */
#include <math.h>

#include "workloads/lib/vision/dssd.h"
#include "workloads/lib/vision/resnet.h"
#include "workloads/lib/vision/ssd.h"

/* How a map is enlarged to the size of the trunk's map of that name. */
struct enlarge {
    const char *size;
    int64_t kernel, stride; /* of the transposed convolution */
};

/* A transposed convolution to `out` channels, with bias. */
static int deconvolution(struct graph *g, int x, const struct enlarge *e, int64_t out)
{
    int64_t in = dim_of(g, x, 1), kernel = e->kernel, stride = e->stride;
    int64_t taps = kernel * kernel / (stride * stride); /* that meet in one pixel */
    double bound = sqrt(6.0 / (double)(in * taps));
    const char *name = name_of(g, "deconv_%s", e->size);
    int w =
        graph_param(g, name_of(g, "%s.weight", name), DTYPE_F32, shape_of(in, out, kernel, kernel),
                    (struct fill){.kind = FILL_UNIFORM, .a = -bound, .b = bound});
    int b = graph_param(g, name_of(g, "%s.bias", name), DTYPE_F32, shape_of(out),
                        (struct fill){.kind = FILL_UNIFORM, .a = -0.05, .b = 0.05});
    return graph_node(g, "ConvTranspose", name, INPUTS(x, w, b),
                      ATTRS(attr_ints_of("kernel_shape", kernel, kernel),
                            attr_ints_of("strides", stride, stride)));
}

/* The deconvolution module: `small`, enlarged, times `lateral`, the trunk's map of that size. The
 * norms' gains keep the size of the products. */
static int combine(struct graph *g, int small, int lateral, const struct enlarge *e, int64_t out)
{
    struct conv2d pre1 = {name_of(g, "res%s_pre1", e->size), .out = out, .kernel = 3, .pad = 1};
    struct conv2d pre2 = {name_of(g, "res%s_pre2", e->size), .out = out, .kernel = 3, .pad = 1};
    struct conv2d pre = {name_of(g, "deconv_%s_pre", e->size), .out = out, .kernel = 3, .pad = 1};
    small = deconvolution(g, small, e, out);
    small = conv_bn(g, small, &pre, DSSD_EPSILON, 0.7);
    lateral = conv_bn(g, dssd_conv(g, lateral, &pre1), &pre2, DSSD_EPSILON, 0.9);
    return relu(g, mul(g, small, lateral));
}

static const char *const names[DSSD_MAPS] = {"3", "5", "6", "7", "8", "9"};

static void maps_of(struct graph *g, const struct workload_config *config, int map[DSSD_MAPS])
{
    /* 40 x 40, 20 x 20, 10 x 10, 5 x 5, 3 x 3 */
    static const struct enlarge enlarge[] = {
        {"3", 2, 2}, {"5", 2, 2}, {"6", 2, 2}, {"7", 3, 1}, {"8", 3, 1}};
    int trunk[DSSD_MAPS];
    dssd_trunk(g, config, trunk);
    map[5] = trunk[5];
    for (int k = 4; k >= 0; k--)
        map[k] = combine(g, map[k + 1], trunk[k], &enlarge[k], 512 / config_int(config, "thin"));
}

static void build(struct graph *g, const struct workload_config *config)
{
    int map[DSSD_MAPS];
    maps_of(g, config, map);
    dssd_end(g, config, map, names);
}

static const struct recipe recipe = SSD_RECIPE(1e-3, 40000, 20000);

static const struct training training = {
    .recipe = &recipe,
    SCENES_LESSON,
    .tiny = "thin=16,offsets=centre",
    .tiny_batch = 2,
    .tiny_rate = 0.005,
    .tiny_steps = 38,
};

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
    .training = &training,
};
