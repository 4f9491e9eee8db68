/* SPDX-License-Identifier: Apache-2.0
 *
 * One normalisation: the shapes of AI Matrix's layer benchmark, literally (216 and 892 channels
 * included). Batch normalisation with the numbers of its code: mean 0.35, variance 0.55, epsilon
 * 0.03, scale 8.6, shift 2.3. Local response normalisation with its alpha 1e-4 and beta 0.75. */
#include <string.h>

#include "workloads/lib/cases.h"
#include "workloads/lib/limits.h"

static const char *const kinds[] = {"batch", "lrn", NULL};
static const struct param params[] = {
    {"case", "1", NULL, "which shape: 1 to 77"},
    {"kind", "batch", kinds, "batch normalisation, or local response"},
    {"radius", "5", NULL, "channels on either side that lrn sums, 1 to 7 in AI Matrix"},
    {.name = NULL},
};

struct norm {
    int16_t batch, side, channels;
};

/* Case 6 is 64 x 64 with 112 channels. */
static const struct norm cases[] = {
    {10, 112, 64}, {10, 56, 64}, {10, 56, 256}, {10, 28, 128}, {10, 28, 512}, {1, 64, 112},
    {1, 56, 64},   {1, 56, 256}, {1, 28, 128},  {1, 28, 512},  {1, 14, 256},  {1, 14, 1024},
    {1, 7, 512},   {1, 7, 2048}, {1, 112, 64},  {1, 57, 64},   {1, 57, 96},   {1, 57, 128},
    {1, 57, 160},  {1, 57, 192}, {1, 57, 224},  {1, 57, 256},  {1, 29, 128},  {1, 29, 160},
    {1, 29, 192},  {1, 29, 224}, {1, 29, 256},  {1, 29, 288},  {1, 29, 320},  {1, 29, 352},
    {1, 29, 384},  {1, 29, 416}, {1, 29, 448},  {1, 29, 480},  {1, 29, 512},  {1, 15, 128},
    {1, 15, 216},  {1, 15, 320}, {1, 15, 352},  {1, 15, 384},  {1, 15, 416},  {1, 15, 448},
    {1, 15, 480},  {1, 15, 512}, {1, 15, 544},  {1, 15, 576},  {1, 15, 608},  {1, 15, 640},
    {1, 15, 672},  {1, 15, 704}, {1, 15, 736},  {1, 15, 768},  {1, 15, 800},  {1, 15, 832},
    {1, 15, 864},  {1, 15, 892}, {1, 15, 928},  {1, 15, 960},  {1, 15, 992},  {1, 15, 1024},
    {1, 8, 512},   {1, 8, 544},  {1, 8, 576},   {1, 8, 608},   {1, 8, 640},   {1, 8, 672},
    {1, 8, 704},   {1, 8, 736},  {1, 8, 768},   {1, 8, 800},   {1, 8, 832},   {1, 8, 864},
    {1, 8, 896},   {1, 8, 928},  {1, 8, 960},   {1, 8, 992},   {1, 8, 1024},
};

static int per_channel(struct graph *g, const char *name, int64_t channels, double value)
{
    return graph_param(g, name, DTYPE_F32, shape_of(channels),
                       (struct fill){.kind = FILL_CONST, .a = value});
}

static int batch_normalisation(struct graph *g, int x, int64_t channels)
{
    int scale = per_channel(g, "scale", channels, 8.6),
        shift = per_channel(g, "shift", channels, 2.3);
    int mean = per_channel(g, "mean", channels, 0.35);
    int variance = per_channel(g, "variance", channels, 0.55);
    return graph_node(g, "BatchNormalization", "norm", INPUTS(x, scale, shift, mean, variance),
                      ATTRS(attr_float("epsilon", 0.03)));
}

/* TensorFlow's alpha counts per channel, ONNX's for the whole window. */
static int local_response(struct graph *g, int x, int64_t radius)
{
    int64_t size = 2 * radius + 1;
    return graph_node(g, "LRN", "norm", INPUTS(x),
                      ATTRS(attr_int("size", size), attr_float("alpha", 1e-4 * (double)size),
                            attr_float("beta", 0.75), attr_float("bias", 1)));
}

static void build(struct graph *g, const struct workload_config *config)
{
    int at = case_index(g, config, "case", ARRAY_COUNT(cases));
    bool lrn = strcmp(config_text(config, "kind"), "lrn") == 0;
    static const char *const of_lrn[] = {"radius", NULL};
    if (at < 0 || (!lrn && !unset_beside(g, config, "kind", of_lrn)))
        return;
    const struct norm *c = &cases[at];
    int x = case_images(g, c->batch, c->side, c->channels);
    int y = lrn ? local_response(g, x, config_int(config, "radius"))
                : batch_normalisation(g, x, c->channels);
    case_images_output(g, y);
}

REGISTER(workload, norm) = {
    .name = "norm",
    .domain = "micro",
    .task = "normalisation",
    .summary = "one normalisation in the 77 shapes of AI Matrix, batch or local response",
    .source = "AI Matrix layer benchmark, normal.params",
    .params = params,
    .batch = 1,
    .batch_is_one = true,
    .build = build,
};
