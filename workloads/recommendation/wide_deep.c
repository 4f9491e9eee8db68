/* SPDX-License-Identifier: Apache-2.0
 *
 * Wide & Deep: Cheng et al., "Wide & Deep Learning for Recommender Systems", DLRS 2016, on the
 * census income data with the columns of TensorFlow's tutorial. Strings arrive as ids: hashing and
 * crossing them is the reader's work.
 *
 * It learns who has a high income: binary cross-entropy, the wide part by FTRL and the deep one by
 * Adagrad, as TensorFlow's estimator does it. */
#include <math.h>

#include "base/numbers/random.h"
#include "base/system/hash.h"
#include "workloads/lib/layers.h"
#include "workloads/lib/lessons.h"
#include "workloads/lib/losses.h"

enum { HASH_ROWS = 1000, OCCUPATION_WIDTH = 8 };

struct column {
    const char *name;
    int64_t rows; /* vocabulary or hash buckets */
    bool one_hot; /* part of the deep input as well */
};

enum { EDUCATION, MARITAL, RELATIONSHIP, WORKCLASS, OCCUPATION, CROSS2, CROSS3, COLUMNS };

static const struct column columns[COLUMNS] = {
    [EDUCATION] = {"education", 16, true},
    [MARITAL] = {"marital_status", 7, true},
    [RELATIONSHIP] = {"relationship", 6, true},
    [WORKCLASS] = {"workclass", 9, true},
    [OCCUPATION] = {"occupation", HASH_ROWS, false},
    [CROSS2] = {"education_x_occupation", HASH_ROWS, false},
    [CROSS3] = {"age_x_education_x_occupation", HASH_ROWS, false},
};

static int number(struct graph *g, const char *name, int64_t n, double low, double high)
{
    return graph_input(g, name, DTYPE_F32, shape_of(n, 1),
                       (struct fill){.kind = FILL_UNIFORM, .a = low, .b = high});
}

/* Which of the eleven ranges an age falls into: how many edges it has reached. [N] */
static int age_bucket(struct graph *g, int age)
{
    static const float edges[] = {18, 25, 30, 35, 40, 45, 50, 55, 60, 65};
    int edge = graph_const(g, "age_edges", DTYPE_F32, shape_of(10), edges);
    int reached = graph_node(g, "GreaterOrEqual", NULL, INPUTS(age, edge), NO_ATTRS);
    int64_t one = 1;
    int count = graph_node(g, "ReduceSum", NULL,
                           INPUTS(cast(g, reached, DTYPE_F32), graph_const_i64(g, 1, &one)),
                           ATTRS(attr_int("keepdims", 0)));
    return cast(g, count, DTYPE_I32);
}

/* Linear model: the weights of the buckets that are on, summed. [N, 1] */
static int wide(struct graph *g, const int *ids, int bucket)
{
    int sum = embedding(g, bucket, "wide.age", 11, 1);
    for (int c = 0; c < COLUMNS; c++)
        sum = add(g, sum,
                  embedding(g, ids[c], name_of(g, "wide.%s", columns[c].name), columns[c].rows, 1));
    int bias = graph_param(g, "wide.bias", DTYPE_F32, shape_of(1),
                           (struct fill){.kind = FILL_UNIFORM, .a = -0.05, .b = 0.05});
    return add(g, sum, bias);
}

/* Log odds of a high income, [N, 1]. */
static int log_odds(struct graph *g, int64_t n)
{
    int ids[COLUMNS], hot[COLUMNS];
    int age = number(g, "age", n, 17, 90);
    int gain = number(g, "capital_gain", n, 0, 3);
    int loss = number(g, "capital_loss", n, 0, 3);
    int school = number(g, "education_num", n, 1, 16);
    int hours = number(g, "hours_per_week", n, 1, 99);
    for (int c = 0; c < COLUMNS; c++)
        ids[c] =
            graph_input(g, columns[c].name, DTYPE_I32, shape_of(n),
                        (struct fill){.kind = FILL_ZIPF, .a = 0, .b = (double)columns[c].rows});
    for (int c = 0; c < COLUMNS; c++)
        hot[c] = columns[c].one_hot ? one_hot(g, ids[c], columns[c].rows) : NONE;

    int occupation = embedding(g, ids[OCCUPATION], "occupation", HASH_ROWS, OCCUPATION_WIDTH);
    int features[] = {age,   gain,         loss,       hot[EDUCATION],    school,
                      hours, hot[MARITAL], occupation, hot[RELATIONSHIP], hot[WORKCLASS]};
    int x = concat(g, 1, ARRAY_COUNT(features), features); /* [N, 51], alphabetical */
    static const int64_t widths[] = {100, 75, 50, 25};
    for (int k = 0; k < ARRAY_COUNT(widths); k++)
        x = relu(g, dense(g, x, name_of(g, "deep%d", k + 1), widths[k]));
    x = dense(g, x, "deep_logit", 1);
    return add(g, x, wide(g, ids, age_bucket(g, age)));
}

static void build(struct graph *g, const struct workload_config *config)
{
    int x = sigmoid(g, log_odds(g, config->batch));
    graph_rename(g, x, "probability");
    graph_output(g, x);
}

/* ---- training ---- */

static void build_loss(struct graph *g, const struct workload_config *config)
{
    learn_yes_or_no(g, log_odds(g, config->batch), "rich");
}

struct number {
    const char *name;
    float low, high;
    double weight; /* in the odds, of the number brought to [-1, 1] */
};

static const struct number numbers[] = {{"age", 17, 90, 0}, /* see below */
                                        {"capital_gain", 0, 3, 1},
                                        {"capital_loss", 0, 3, -1},
                                        {"education_num", 1, 16, 1},
                                        {"hours_per_week", 1, 99, 1}};

/* What each column adds to the odds is drawn once; the age adds most in the middle of life. */
static void fill(const struct batch *batch)
{
    float *value[ARRAY_COUNT(numbers)], *rich = batch_input(batch, "rich");
    int32_t *id[COLUMNS];
    uint64_t weights[COLUMNS];
    for (int k = 0; k < ARRAY_COUNT(numbers); k++)
        value[k] = batch_input(batch, numbers[k].name);
    for (int c = 0; c < COLUMNS; c++) {
        id[c] = batch_input(batch, columns[c].name);
        weights[c] = hash_fnv1a(columns[c].name);
    }
    for (int64_t n = 0; n < batch->size; n++) {
        struct draw draw = draw_begin(batch, n);
        double odds = 1.5;
        for (int k = 0; k < ARRAY_COUNT(numbers); k++) {
            double at = draw_uniform(&draw);
            value[k][n] = numbers[k].low + (numbers[k].high - numbers[k].low) * (float)at;
            odds +=
                numbers[k].weight * (2 * at - 1) - (k == 0 ? 5 * (2 * at - 1) * (2 * at - 1) : 0);
        }
        for (int c = 0; c < COLUMNS; c++) {
            id[c][n] = (int32_t)draw_index(&draw, columns[c].rows);
            odds += 5 * (random_uniform(weights[c], (uint64_t)id[c][n]) - 0.5);
        }
        double likely = 1 / (1 + exp(-4 * odds));
        rich[n] = draw_uniform(&draw) < likely;
        if (batch->bayes)
            batch->bayes[n] = (float)likely;
    }
}

static const struct recipe_group groups[] = {
    {.weights = "wide.",
     .optimiser = "ftrl",
     .attrs = {{.name = "initial", .kind = ATTR_FLOAT, .f = 0.1}},
     .rate = 5},
    {.weights = NULL},
};

static const struct recipe recipe = {
    .optimiser = "adagrad",
    .attrs = {{.name = "initial", .kind = ATTR_FLOAT, .f = 0.1}},
    .groups = groups,
    .schedule = {.kind = SCHEDULE_CONSTANT, .rate = 1e-3},
    .source = "Cheng et al., DLRS 2016; DNNLinearCombinedClassifier of TensorFlow 1.13",
};

static const struct training training = {
    .build = build_loss,
    .recipe = &recipe,
    .fill = fill,
    .quality = &quality_auc,
    .answers = "log_odds",
    .targets = "rich",
    .bayes = true,
    .lesson = "who has a high income, by age and hidden weights of columns",
    .tiny_batch = 256,
    .tiny_rate = 0.2,
    .tiny_steps = 1200,
};

REGISTER(workload, wide_deep) = {
    .name = "wide_deep",
    .domain = "recommendation",
    .task = "click-through prediction",
    .summary =
        "Wide & Deep on the census income columns: wide 3049 buckets, deep 51-100-75-50-25-1",
    .source = "Cheng et al., DLRS 2016; AI Matrix WideDeep",
    .table1_batch = 2048,
    .batch = 2048,
    .build = build,
    .training = &training,
};
