/* SPDX-License-Identifier: Apache-2.0
 *
 * One fully connected layer, without bias: the shapes of AI Matrix's layer benchmark, from AlexNet,
 * VGG, ResNet and DenseNet. Images are flattened. */
#include "workloads/lib/cases.h"
#include "workloads/lib/layers.h"

static const struct param params[] = {
    {"case", "1", NULL, "which shape: 1 to 9"},
    {.name = NULL},
};

struct fc {
    int64_t batch, side, channels, out; /* side 0: no image */
};

static const struct fc cases[] = {
    {64, 6, 256, 4096},  {64, 0, 4096, 4096}, {64, 0, 4096, 1000},
    {10, 7, 512, 4096},  {10, 0, 4096, 4096}, {10, 0, 4096, 1000},
    {10, 1, 2048, 1000}, {1, 1, 2048, 1000},  {1, 1, 1024, 1000},
};

static void build(struct graph *g, const struct workload_config *config)
{
    int at = case_index(g, config, "case", ARRAY_COUNT(cases));
    if (at < 0)
        return;
    const struct fc *c = &cases[at];
    int64_t width = c->channels * (c->side ? c->side * c->side : 1);
    struct shape image = shape_of(c->batch, c->side, c->side, c->channels);
    int x = case_input(g, "x", c->side ? image : shape_of(c->batch, width));
    int w = graph_param(g, "weight", DTYPE_F32, shape_of(width, c->out),
                        (struct fill){.kind = FILL_NORMAL, .a = 0, .b = 1});
    x = c->side ? flatten(g, x) : x;
    int y = graph_node(g, "MatMul", "fc", INPUTS(x, w), NO_ATTRS);
    graph_rename(g, y, "y");
    graph_output(g, y);
}

REGISTER(workload, fc) = {
    .name = "fc",
    .domain = "micro",
    .task = "fully connected layer",
    .summary = "one fully connected layer in the 9 shapes of AI Matrix",
    .source = "AI Matrix layer benchmark, fc.params",
    .params = params,
    .batch = 1,
    .batch_is_one = true,
    .build = build,
};
