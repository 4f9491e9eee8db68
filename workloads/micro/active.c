/* SPDX-License-Identifier: Apache-2.0
 *
 * One activation: the tensors of AI Matrix's layer benchmark, literally, channels last as there
 * (what decides the lines of softmax), or a row of any length, whose bytes are known. */
#include "workloads/lib/cases.h"
#include "workloads/lib/limits.h"

static const char *const kinds[] = {"Relu", "Sigmoid", "Softmax", "Tanh", NULL};
static const struct param params[] = {
    {"case", "1", NULL, "which tensor: 1 to 96"},
    {"kind", "Relu", kinds, "the function"},
    {"elements", "0", NULL, "of one row, instead of a case (0)"},
    {.name = NULL},
};

struct tensor_case {
    int16_t batch, side, channels; /* side 0: no image */
};

static const struct tensor_case cases[] = {
    {64, 55, 96},   {64, 27, 256}, {64, 13, 384}, {64, 13, 256}, {64, 0, 4096}, {64, 0, 4096},
    {10, 112, 64},  {10, 56, 64},  {10, 28, 96},  {10, 28, 128}, {10, 28, 192}, {10, 14, 112},
    {10, 14, 224},  {10, 14, 256}, {10, 14, 288}, {10, 14, 320}, {10, 7, 384},  {10, 224, 64},
    {10, 112, 128}, {10, 56, 256}, {10, 28, 512}, {19, 14, 512}, {10, 0, 4096}, {1, 112, 64},
    {1, 56, 64},    {1, 56, 256},  {1, 28, 128},  {1, 28, 512},  {1, 14, 256},  {1, 14, 1024},
    {1, 14, 256},   {1, 7, 512},   {1, 7, 2048},  {1, 112, 64},  {1, 57, 64},   {1, 57, 96},
    {1, 57, 128},   {1, 57, 160},  {1, 57, 192},  {1, 57, 224},  {1, 57, 256},  {1, 29, 128},
    {1, 29, 160},   {1, 29, 192},  {1, 29, 224},  {1, 29, 256},  {1, 29, 288},  {1, 29, 320},
    {1, 29, 352},   {1, 29, 384},  {1, 29, 416},  {1, 29, 448},  {1, 29, 480},  {1, 29, 512},
    {1, 15, 128},   {1, 15, 216},  {1, 15, 320},  {1, 15, 352},  {1, 15, 384},  {1, 15, 416},
    {1, 15, 448},   {1, 15, 480},  {1, 15, 512},  {1, 15, 544},  {1, 15, 576},  {1, 15, 608},
    {1, 15, 640},   {1, 15, 672},  {1, 15, 704},  {1, 15, 736},  {1, 15, 768},  {1, 15, 800},
    {1, 15, 832},   {1, 15, 864},  {1, 15, 892},  {1, 15, 928},  {1, 15, 960},  {1, 15, 992},
    {1, 15, 1024},  {1, 8, 512},   {1, 8, 544},   {1, 8, 576},   {1, 8, 608},   {1, 8, 640},
    {1, 8, 672},    {1, 8, 704},   {1, 8, 736},   {1, 8, 768},   {1, 8, 800},   {1, 8, 832},
    {1, 8, 864},    {1, 8, 896},   {1, 8, 928},   {1, 8, 960},   {1, 8, 992},   {1, 8, 1024},
};

static bool tensor_of(struct graph *g, const struct workload_config *config, struct shape *shape)
{
    static const char *const listed[] = {"case", NULL};
    int64_t elements = config_int(config, "elements");
    *shape = shape_of(elements);
    if (elements)
        return unset_beside(g, config, "elements", listed);
    int at = case_index(g, config, "case", ARRAY_COUNT(cases));
    if (at < 0)
        return false;
    const struct tensor_case *c = &cases[at];
    *shape = c->side ? shape_of(c->batch, c->side, c->side, c->channels)
                     : shape_of(c->batch, c->channels);
    return true;
}

static void build(struct graph *g, const struct workload_config *config)
{
    struct shape shape;
    if (!tensor_of(g, config, &shape))
        return;
    int x = case_input(g, "x", shape);
    int y = graph_node(g, config_text(config, "kind"), "active", INPUTS(x), NO_ATTRS);
    graph_rename(g, y, "y");
    graph_output(g, y);
}

REGISTER(workload, active) = {
    .name = "active",
    .domain = "micro",
    .task = "activation",
    .summary = "one activation on the 96 tensors of AI Matrix",
    .source = "AI Matrix layer benchmark, active.params",
    .params = params,
    .batch = 1,
    .batch_is_one = true,
    .build = build,
};
