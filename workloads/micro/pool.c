/* SPDX-License-Identifier: Apache-2.0
 *
 * One pooling layer without padding: the shapes of AI Matrix's layer benchmark, literally (228
 * channels and an uneven stride included). */
#include <string.h>

#include "workloads/lib/cases.h"

static const char *const kinds[] = {"max", "average", NULL};
static const struct param params[] = {
    {"case", "1", NULL, "which shape: 1 to 24"},
    {"kind", "max", kinds, "largest value or mean of each window"},
    {.name = NULL},
};

struct pool_case {
    int16_t batch, side, channels, kernel, stride_high, stride_wide;
};

static const struct pool_case cases[] = {
    {64, 55, 96, 3, 2, 2},  {64, 27, 256, 3, 2, 2}, {64, 13, 256, 3, 2, 2}, {10, 112, 64, 3, 2, 2},
    {10, 56, 192, 3, 2, 2}, {10, 28, 192, 3, 1, 1}, {10, 28, 256, 3, 1, 1}, {10, 28, 480, 3, 2, 2},
    {10, 14, 480, 3, 1, 1}, {10, 14, 512, 3, 1, 1}, {10, 14, 528, 3, 1, 1}, {10, 14, 832, 3, 2, 2},
    {10, 7, 832, 3, 1, 1},  {10, 7, 1024, 7, 1, 1}, {10, 224, 64, 2, 2, 2}, {10, 112, 228, 2, 2, 2},
    {10, 56, 256, 2, 2, 2}, {10, 28, 512, 2, 2, 2}, {10, 14, 512, 2, 2, 2}, {1, 112, 64, 3, 2, 2},
    {1, 57, 128, 2, 2, 2},  {1, 29, 256, 2, 2, 2},  {1, 15, 512, 2, 2, 1},  {1, 8, 1024, 1, 1, 1},
};

static void build(struct graph *g, const struct workload_config *config)
{
    int at = case_index(g, config, "case", ARRAY_COUNT(cases));
    if (at < 0)
        return;
    const struct pool_case *c = &cases[at];
    bool average = strcmp(config_text(config, "kind"), "average") == 0;
    int x = case_images(g, c->batch, c->side, c->channels);
    int y = graph_node(g, average ? "AveragePool" : "MaxPool", "pool", INPUTS(x),
                       ATTRS(attr_ints_of("kernel_shape", c->kernel, c->kernel),
                             attr_ints_of("strides", c->stride_high, c->stride_wide)));
    case_images_output(g, y);
}

REGISTER(workload, pool) = {
    .name = "pool",
    .domain = "micro",
    .task = "pooling",
    .summary = "one pooling layer in the 24 shapes of AI Matrix, max or average",
    .source = "AI Matrix layer benchmark, pool.params",
    .params = params,
    .batch = 1,
    .batch_is_one = true,
    .build = build,
};
