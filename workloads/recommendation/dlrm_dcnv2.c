/* SPDX-License-Identifier: Apache-2.0
 *
 * DLRM with DCN V2: Naumov et al., "Deep Learning Recommendation Model for Personalization and
 * Recommendation Systems", arXiv 1906.00091, where Wang et al., "DCN V2", WWW 2021, cross the
 * features by products of low rank. Sizes and hots are those of MLPerf's recommendation_v2 on
 * Criteo's clicks; `rows` says how much of the largest tables, of 40 million rows, there is.
 *
 * It learns who clicks: binary cross-entropy by Adagrad, as MLPerf's reference does it. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/numbers/integers.h"
#include "base/numbers/random.h"
#include "base/system/hash.h"
#include "workloads/lib/layers.h"
#include "workloads/lib/lessons.h"
#include "workloads/lib/losses.h"

enum { NUMBERS = 13, WIDTH = 128, RANK = 512, CROSSES = 3 };

/* A categorical feature: rows of its table, and how many of them a sample adds up. */
static const struct feature {
    int64_t rows, hots;
} features[] = {
    {40000000, 3}, {39060, 2},     {17295, 1},      {7424, 2},      {20265, 6},   {3, 1},
    {7122, 1},     {1543, 1},      {63, 1},         {40000000, 7},  {3067956, 3}, {405282, 8},
    {10, 1},       {2209, 6},      {11938, 9},      {155, 5},       {4, 1},       {976, 1},
    {14, 1},       {40000000, 12}, {40000000, 100}, {40000000, 27}, {590152, 10}, {12973, 3},
    {108, 1},      {36, 1},
};
enum { FEATURES = ARRAY_COUNT(features) };

static const char *const distributions[] = {"uniform", "zipf", NULL};
static const struct param params[] = {
    {"rows", "1000000", NULL, "most rows that a table has; the published tables end at 40000000"},
    {"distribution", "uniform", distributions, "how often which row of a table is asked for"},
    {"thin", "1", thin_choices, "all widths are divided by it"},
    {.name = NULL},
};

static int dense_numbers(struct graph *g, const struct workload_config *config)
{
    /* Logarithms of counts. */
    return graph_input(g, "numbers", DTYPE_F32, shape_of(config->batch, NUMBERS),
                       (struct fill){.kind = FILL_UNIFORM, .a = 0, .b = 4});
}

static int64_t rows_of(const struct workload_config *config, int feature)
{
    return smaller(features[feature].rows, config_int(config, "rows"));
}

/* The rows that a sample names, added up: [N, width]. */
static int bag(struct graph *g, const struct workload_config *config, int feature, int64_t width)
{
    const struct feature *f = &features[feature];
    int64_t rows = rows_of(config, feature);
    bool zipf = strcmp(config_text(config, "distribution"), "zipf") == 0;
    /* A sum is as large as the numbers beside it; learning begins as in MLPerf's reference. */
    double bound = g->training ? 1 / sqrt((double)rows) : 1 / sqrt((double)f->hots);
    const char *name = name_of(g, "cat_%d", feature);
    int ids =
        graph_input(g, name_of(g, "%s.ids", name), DTYPE_I64, shape_of(config->batch, f->hots),
                    (struct fill){.kind = zipf ? FILL_ZIPF : FILL_INDEX, .b = (double)rows});
    int table = graph_param(g, name_of(g, "%s.weight", name), DTYPE_F32, shape_of(rows, width),
                            (struct fill){.kind = FILL_UNIFORM, .a = -bound, .b = bound});
    return graph_node(g, "EmbeddingBag", name, INPUTS(table, ids), NO_ATTRS);
}

/* Dense layers of such widths, each with a ReLU; the network's own width divided by `thin`. */
static int tower(struct graph *g, int x, const char *name, int count, const int64_t *widths,
                 int64_t thin)
{
    for (int k = 0; k < count; k++)
        x = relu(g, dense(g, x, name_of(g, "%s%d", name, k + 1), widths[k] / thin));
    return x;
}

/* x0 * (W (V x) + b) + x: every feature times all others, of a degree that each layer raises. */
static int cross(struct graph *g, int x0, int x, int layer, int64_t rank)
{
    int64_t width = dim_of(g, x, -1);
    double bound = sqrt(6.0 / (double)(width + rank)); /* Glorot */
    const char *name = name_of(g, "cross%d", layer);
    int v = graph_param(g, name_of(g, "%s_v.weight", name), DTYPE_F32, shape_of(width, rank),
                        (struct fill){.kind = FILL_UNIFORM, .a = -bound, .b = bound});
    int low = graph_node(g, "MatMul", name_of(g, "%s_v", name), INPUTS(x, v), NO_ATTRS);
    return add(g, mul(g, x0, dense(g, low, name_of(g, "%s_w", name), width)), x);
}

/* Log odds of a click, [N, 1]. */
static int log_odds(struct graph *g, const struct workload_config *config)
{
    static const int64_t bottom[] = {512, 256, WIDTH}, over[] = {1024, 1024, 512, 256};
    int64_t thin = config_int(config, "thin");
    int parts[1 + FEATURES];
    parts[0] = tower(g, dense_numbers(g, config), "bottom", ARRAY_COUNT(bottom), bottom, thin);
    for (int k = 0; k < FEATURES; k++)
        parts[1 + k] = bag(g, config, k, WIDTH / thin);
    int x0 = concat(g, 1, ARRAY_COUNT(parts), parts), x = x0;
    for (int layer = 1; layer <= CROSSES; layer++)
        x = cross(g, x0, x, layer, RANK / thin);
    x = tower(g, x, "over", ARRAY_COUNT(over), over, thin);
    return dense(g, x, "over5", 1);
}

static void build(struct graph *g, const struct workload_config *config)
{
    int x = sigmoid(g, log_odds(g, config));
    graph_rename(g, x, "click_probability");
    graph_output(g, x);
}

/* ---- training ---- */

static void build_loss(struct graph *g, const struct workload_config *config)
{
    learn_yes_or_no(g, log_odds(g, config), "click");
}

/* What one feature adds to the odds of a click; each id's share is drawn once. A sum of many ids
 * weighs as much as one id. */
static double draw_bag(struct draw *draw, int feature, int64_t rows, int64_t *ids)
{
    char name[32];
    double sum = 0;
    snprintf(name, sizeof(name), "dlrm_dcnv2 %d", feature);
    uint64_t shares = hash_fnv1a(name);
    for (int64_t k = 0; k < features[feature].hots; k++) {
        ids[k] = draw_index(draw, rows);
        sum += random_uniform(shares, (uint64_t)ids[k]) - 0.5;
    }
    return sum / sqrt((double)features[feature].hots);
}

static void fill(const struct batch *batch)
{
    float *numbers = batch_input(batch, "numbers"), *click = batch_input(batch, "click");
    for (int64_t n = 0; n < batch->size; n++) {
        struct draw draw = draw_begin(batch, n);
        double odds = 0;
        for (int k = 0; k < NUMBERS; k++) {
            double at = draw_uniform(&draw);
            numbers[n * NUMBERS + k] = (float)(4 * at);
            odds += (k % 2 ? -0.5 : 0.5) * (2 * at - 1);
        }
        for (int k = 0; k < FEATURES; k++) {
            char name[32];
            snprintf(name, sizeof(name), "cat_%d.ids", k);
            int64_t *ids = batch_input(batch, name), rows = batch_range(batch, name);
            odds += draw_bag(&draw, k, rows, ids + n * features[k].hots);
        }
        double likely = 1 / (1 + exp(-5 * odds));
        click[n] = draw_uniform(&draw) < likely;
        if (batch->bayes)
            batch->bayes[n] = (float)likely;
    }
}

static const struct recipe recipe = {
    .optimiser = "adagrad",
    .attrs = {{.name = "epsilon", .kind = ATTR_FLOAT, .f = 1e-8}},
    .schedule = {.kind = SCHEDULE_CONSTANT, .rate = 0.005},
    .source = "MLPerf Training, recommendation_v2/torchrec_dlrm",
};

static const struct training training = {
    .build = build_loss,
    .recipe = &recipe,
    .fill = fill,
    .quality = &quality_auc,
    .answers = "log_odds",
    .targets = "click",
    .bayes = true,
    .lesson = "who clicks, by thirteen numbers and hidden shares of the ids of 26 features",
    .tiny = "rows=20,thin=16",
    .tiny_batch = 256,
    .tiny_rate = 0.02,
    .tiny_steps = 400,
};

REGISTER(workload, dlrm_dcnv2) = {
    .name = "dlrm_dcnv2",
    .domain = "recommendation",
    .task = "click-through prediction",
    .summary = "MLPerf's recommender: 26 tables of width 128, 214 rows a sample, DCN V2",
    .source = "Naumov et al., arXiv 1906.00091; Wang et al., WWW 2021; MLPerf recommendation_v2",
    .params = params,
    .batch = 128,
    .build = build,
    .training = &training,
};
