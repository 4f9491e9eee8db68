/* SPDX-License-Identifier: Apache-2.0
 *
 * DIN: Zhou et al., "Deep Interest Network for Click-Through Rate Prediction", KDD 2018, on Amazon
 * Electronics. Scores one candidate item per user. The user table of the repository's code takes no
 * part in the forward pass and is left out.
 *
 * It learns whether a user clicks on the item: binary cross-entropy by gradient descent, as the
 * repository's code does it. */
#include <math.h>
#include <string.h>

#include "base/numbers/random.h"
#include "base/system/hash.h"
#include "workloads/lib/interest.h"
#include "workloads/lib/lessons.h"
#include "workloads/lib/losses.h"

enum { CATEGORIES = 801, HALF = 64, WIDTH = 2 * HALF };

static const char *const tables[] = {"gathered", "whole", NULL};
static const struct param params[] = {
    {"history", "86", NULL, "items in a user's history, padding included"},
    {"table", "gathered", tables, "whole: the candidate is the first row of a table of all items"},
    {"items", "63001", NULL, "rows of the items' table"},
    {.name = NULL},
};

static int32_t category_of(int64_t item)
{
    return (int32_t)(((uint32_t)item * 2654435761u >> 8) % CATEGORIES); /* Knuth's hash */
}

/* The category of every item is part of the model. As an input, its vectors are not put together
 * with the items' once and for all when constants are folded: nobody knows tables while training.
 */
static int category_list(struct graph *g, int64_t items, bool input)
{
    struct shape shape = shape_of(items);
    int32_t *of = arena_array(&g->arena, (size_t)items, sizeof(*of));
    if (of)
        for (int64_t item = 0; item < items; item++)
            of[item] = category_of(item);
    if (!of || !input)
        return of ? graph_const(g, "category_of", DTYPE_I32, shape, of) : NONE;
    int list = graph_input(g, "category_of", DTYPE_I32, shape, (struct fill){.kind = FILL_NONE});
    if (list != NONE)
        g->values[list].data = of;
    return list;
}

/* [item, category] vectors of any number of items, [..., WIDTH]. */
static int embed(struct graph *g, int ids, int list, int64_t items, int64_t axis)
{
    int category = graph_node(g, "Gather", NULL, INPUTS(list, ids), ATTRS(attr_int("axis", 0)));
    int parts[] = {embedding(g, ids, "item", items, HALF),
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

/* Log odds of a click, [N, 1]. */
static int log_odds(struct graph *g, const struct workload_config *config)
{
    int64_t n = config->batch, steps = config_int(config, "history");
    int64_t items = config_int(config, "items");
    struct fill zipf = {.kind = FILL_ZIPF, .a = 0, .b = (double)items};
    struct fill lengths = {.kind = FILL_INDEX, .a = 1, .b = (double)steps + 1};
    int item = graph_input(g, "item", DTYPE_I32, shape_of(n), zipf);
    int viewed = graph_input(g, "history", DTYPE_I32, shape_of(n, steps), zipf);
    int length = graph_input(g, "history_length", DTYPE_I32, shape_of(n), lengths);

    bool whole = strcmp(config_text(config, "table"), "whole") == 0;
    int list = category_list(g, items, whole);
    int history = embed(g, viewed, list, items, 2); /* h_emb */
    int candidate = whole ? first_of_all(g, list, n) : embed(g, item, list, items, 1);
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
    return add(g, dense(g, x, "f3", 1), embedding(g, item, "item_bias", items, 1));
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

/* An item is of one of two kinds, which nobody says; nine in ten that a user looks at are of the
 * kind that this user likes, and so is what the user clicks on, nineteen times in twenty. */
static const double looks = 0.9, clicks = 0.95;

static bool kind_of(int32_t item)
{
    return random_uniform(hash_fnv1a("kind"), (uint64_t)item) < 0.5;
}

static int32_t draw_item(struct draw *draw, int64_t items, bool liked)
{
    int32_t item = 0;
    bool kind = (draw_uniform(draw) < looks) == liked;
    for (int tries = 0; tries < 100; tries++) {
        item = (int32_t)draw_index(draw, items);
        if (kind_of(item) == kind)
            break;
    }
    return item;
}

/* How probable a click on an item is to one who knows all kinds, and sees how many more of the
 * items looked at are of the first kind than of the other: each speaks for its kind as looks to
 * 1 - looks. */
static double likelihood(int64_t more, bool first_kind)
{
    double likes_first = 1 / (1 + pow((1 - looks) / looks, (double)more));
    double liked = first_kind ? likes_first : 1 - likes_first;
    return liked * clicks + (1 - liked) * (1 - clicks);
}

static void fill(const struct batch *batch)
{
    int32_t *item = batch_input(batch, "item"), *viewed = batch_input(batch, "history");
    int32_t *length = batch_input(batch, "history_length");
    float *click = batch_input(batch, "click");
    int64_t items = batch_range(batch, "item"), steps = batch_range(batch, "history_length") - 1;
    for (int64_t n = 0; n < batch->size; n++) {
        struct draw draw = draw_begin(batch, n);
        bool likes = draw_uniform(&draw) < 0.5;
        length[n] = (int32_t)(1 + draw_index(&draw, steps));
        int64_t more = 0;
        for (int64_t t = 0; t < steps; t++) {
            int32_t at = t < length[n] ? draw_item(&draw, items, likes) : 0;
            viewed[n * steps + t] = at;
            more += t < length[n] ? 2 * kind_of(at) - 1 : 0;
        }
        item[n] = (int32_t)draw_index(&draw, items);
        click[n] = (draw_uniform(&draw) < clicks) == (kind_of(item[n]) == likes);
        if (batch->bayes)
            batch->bayes[n] = (float)likelihood(more, kind_of(item[n]));
    }
}

static const struct recipe recipe = {
    .optimiser = "sgd",
    .clip_norm = 5,
    .schedule = {.kind = SCHEDULE_MULTISTEP, .rate = 1, .factor = 0.1, .at = {336000}},
    .source = "AI Matrix DeepInterest/din",
};

static const struct training training = {
    .build = build_loss,
    .recipe = &recipe,
    .fill = fill,
    .quality = &quality_auc,
    .answers = "log_odds",
    .targets = "click",
    .bayes = true,
    .lesson = "whether an item is of the hidden kind that a user looked at before",
    .tiny = "items=60,history=8",
    .tiny_batch = 128,
    .tiny_rate = 2,
    .tiny_steps = 600,
};

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
    .training = &training,
};
