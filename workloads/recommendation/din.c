/* SPDX-License-Identifier: Apache-2.0
 *
 * DIN: Zhou et al., "Deep Interest Network for Click-Through Rate Prediction", KDD 2018, on Amazon
 * Electronics. Scores one candidate item per user. The user table of the repository's code takes no
 * part in the forward pass and is left out. */
#include <math.h>
#include <string.h>

#include "workloads/lib/interest.h"
#include "workloads/workload.h"

enum { ITEMS = 63001, CATEGORIES = 801, HALF = 64, WIDTH = 2 * HALF };

static const char *const tables[] = {"gathered", "whole", NULL};
static const struct param params[] = {
    {"history", "86", NULL, "items in a user's history, padding included"},
    {"table", "gathered", tables, "whole: the candidate is the first row of a table of all items"},
    {.name = NULL},
};

/* The category of every item is part of the model. As an input, its vectors are not put together
 * with the items' once and for all when constants are folded: nobody knows tables while training.
 */
static int category_list(struct graph *g, bool input)
{
    struct shape shape = shape_of(ITEMS);
    int32_t *of = arena_array(&g->arena, ITEMS, sizeof(*of));
    if (of)
        for (uint32_t item = 0; item < ITEMS; item++)
            of[item] = (int32_t)((item * 2654435761u >> 8) % CATEGORIES); /* Knuth's hash */
    if (!of || !input)
        return of ? graph_const(g, "category_of", DTYPE_I32, shape, of) : NONE;
    int list = graph_input(g, "category_of", DTYPE_I32, shape, (struct fill){.kind = FILL_NONE});
    if (list != NONE)
        g->values[list].data = of;
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

/* The candidate as the repository's code comes by it: all items are put together with their
 * categories, and the first is taken, the same for all users. */
static int first_of_all(struct graph *g, int list, int64_t users)
{
    int parts[] = {graph_find_value(g, "item.weight"),
                   embedding(g, list, "category", CATEGORIES, HALF)};
    int first = slice(g, concat(g, 1, 2, parts), (struct range){0, 0, 1, 1});
    return graph_node(g, "Expand", "predict_ads",
                      INPUTS(first, graph_const_i64(g, 2, (int64_t[]){users, WIDTH})), NO_ATTRS);
}

static void build(struct graph *g, const struct workload_config *config)
{
    int64_t n = config->batch, steps = config_int(config, "history");
    struct fill zipf = {.kind = FILL_ZIPF, .a = 0, .b = ITEMS};
    struct fill lengths = {.kind = FILL_INDEX, .a = 1, .b = (double)steps + 1};
    int item = graph_input(g, "item", DTYPE_I32, shape_of(n), zipf);
    int viewed = graph_input(g, "history", DTYPE_I32, shape_of(n, steps), zipf);
    int length = graph_input(g, "history_length", DTYPE_I32, shape_of(n), lengths);

    bool whole = strcmp(config_text(config, "table"), "whole") == 0;
    int list = category_list(g, whole);
    int history = embed(g, viewed, list, 2); /* h_emb */
    int candidate = whole ? first_of_all(g, list, n) : embed(g, item, list, 1);
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
