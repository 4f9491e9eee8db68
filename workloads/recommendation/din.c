/* SPDX-License-Identifier: Apache-2.0
 *
 * DIN: Zhou et al., "Deep Interest Network for Click-Through Rate Prediction", KDD 2018, on Amazon
 * Electronics. Scores one candidate item per user. The user table of the repository's code takes no
 * part in the forward pass and is left out. */
#include <math.h>
#include <stdlib.h>

#include "workloads/lib/interest.h"
#include "workloads/workload.h"

enum { ITEMS = 63001, CATEGORIES = 801, HALF = 64, WIDTH = 2 * HALF };

static const struct param params[] = {
    {"history", "86", NULL, "items in a user's history, padding included"},
    {.name = NULL},
};

/* The category of every item is part of the model. */
static int category_list(struct graph *g)
{
    int32_t *of = malloc(ITEMS * sizeof(*of));
    for (uint32_t item = 0; of && item < ITEMS; item++)
        of[item] = (int32_t)((item * 2654435761u >> 8) % CATEGORIES); /* Knuth's hash */
    int list = of ? graph_const(g, "category_of", DTYPE_I32, shape_of(ITEMS), of) : NONE;
    free(of);
    return list;
}

/* [item, category] vectors of any number of items, [..., WIDTH]. */
static int embed(struct graph *g, int ids, int list, int64_t axis)
{
    int category = graph_node(g, "Gather", NULL, INPUTS(list, ids), ATTRS(attr_int("axis", 0)));
    int parts[] = {embedding(g, ids, "item", ITEMS, HALF),
                   embedding(g, category, "category", CATEGORIES, HALF)};
    return concat(g, axis, 2, parts);
}

static void build(struct graph *g, const struct workload_config *config)
{
    int64_t n = config->batch, steps = config_int(config, "history");
    struct fill zipf = {.kind = FILL_ZIPF, .a = 0, .b = ITEMS};
    struct fill lengths = {.kind = FILL_INDEX, .a = 1, .b = (double)steps + 1};
    int item = graph_input(g, "item", DTYPE_I32, shape_of(n), zipf);
    int viewed = graph_input(g, "history", DTYPE_I32, shape_of(n, steps), zipf);
    int length = graph_input(g, "history_length", DTYPE_I32, shape_of(n), lengths);

    int list = category_list(g);
    int candidate = embed(g, item, list, 1);
    int history = embed(g, viewed, list, 2); /* h_emb */
    struct interest attention = {.batch = n,
                                 .steps = steps,
                                 .width = WIDTH,
                                 .query = candidate,
                                 .history = history,
                                 .mask = interest_mask(g, length, steps),
                                 .divisor = sqrt(WIDTH)};
    int weights = reshape(g, interest_weights(g, &attention), 3, (int64_t[]){n, 1, steps});
    int x = graph_node(g, "MatMul", "weighted_sum", INPUTS(weights, history), NO_ATTRS);
    x = reshape(g, x, 2, (int64_t[]){n, WIDTH});
    x = batch_norm(g, x, "hist_bn", 1e-3, 1);
    x = dense(g, x, "hist_fcn", WIDTH);

    x = concat(g, 1, 2, (int[]){x, candidate}); /* din_sub */
    x = batch_norm(g, x, "bn", 1e-3, 1);
    x = sigmoid(g, dense(g, x, "f1", 80));
    x = sigmoid(g, dense(g, x, "f2", 40));
    x = add(g, dense(g, x, "f3", 1), embedding(g, item, "item_bias", ITEMS, 1));
    x = sigmoid(g, x);
    graph_rename(g, x, "click_probability");
    graph_output(g, x);
}

REGISTER(workload, din) = {
    .name = "din",
    .domain = "recommendation",
    .task = "click-through prediction",
    .summary = "Deep Interest Network on Amazon Electronics: 63001 items, history of 86",
    .source = "Zhou et al., KDD 2018; AI Matrix DeepInterest/din",
    .params = params,
    .table1_batch = 512,
    .batch = 512,
    .build = build,
};
