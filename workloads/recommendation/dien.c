/* SPDX-License-Identifier: Apache-2.0
 *
 * DIEN: Zhou et al., "Deep Interest Evolution Network for Click-Through Rate Prediction", AAAI
 * 2019, on Amazon Books: the model DIN_V2_Gru_Vec_attGru_Neg of its code, auxiliary loss included,
 * which its inference computes as well. */
#include "workloads/lib/interest.h"
#include "workloads/lib/limits.h"
#include "workloads/workload.h"

enum { USERS = 543060, ITEMS = 367983, CATEGORIES = 1601, NEGATIVES = 5 };
enum { HALF = 18, WIDTH = 2 * HALF, GATES = 3 };

static const struct param params[] = {
    {"history", "100", NULL,
     "items in a user's history, padding included; 2 at least (1936: Table I)"},
    {.name = NULL},
};

static int ids(struct graph *g, const char *name, struct shape shape, int64_t rows)
{
    struct fill zipf = {.kind = FILL_ZIPF, .a = 0, .b = (double)rows};
    return graph_input(g, name, DTYPE_I32, shape, zipf);
}

static int embed(struct graph *g, int item, int category, int64_t axis)
{
    int parts[] = {embedding(g, item, "mid", ITEMS, HALF),
                   embedding(g, category, "cat", CATEGORIES, HALF)};
    return concat(g, axis, 2, parts);
}

static int part(struct graph *g, int x, int64_t axis, int64_t from, int64_t to)
{
    return graph_node(g, "Slice", NULL,
                      INPUTS(x, graph_const_i64(g, 1, &from), graph_const_i64(g, 1, &to),
                             graph_const_i64(g, 1, &axis)),
                      NO_ATTRS);
}

static int weight(struct graph *g, const char *name, struct shape shape, double low, double high)
{
    return graph_param(g, name, DTYPE_F32, shape,
                       (struct fill){.kind = FILL_UNIFORM, .a = low, .b = high});
}

/* TensorFlow's GRUCell has one bias per gate, around 1 for update and reset; ONNX has two. */
static int gru_bias(struct graph *g, const char *name)
{
    static const float none[GATES * WIDTH];
    int parts[] = {weight(g, name_of(g, "%s.gates.bias", name), shape_of(1, 2 * WIDTH), 0.9, 1.1),
                   weight(g, name_of(g, "%s.candidate.bias", name), shape_of(1, WIDTH), -0.1, 0.1),
                   graph_const(g, NULL, DTYPE_F32, shape_of(1, GATES * WIDTH), none)};
    return concat(g, 1, 3, parts);
}

/* Over time-major x [T, N, WIDTH]; attention NONE: GRU, all its states; else AUGRU's last one. */
static int gru(struct graph *g, const char *name, int x, int lengths, int attention)
{
    struct shape square = shape_of(1, GATES * WIDTH, WIDTH);
    int w = weight(g, name_of(g, "%s.weight", name), square, -0.25, 0.25); /* about 1.5 / root D */
    int r = weight(g, name_of(g, "%s.recurrence", name), square, -0.25, 0.25);
    int inputs[] = {x, w, r, gru_bias(g, name), lengths, NONE, attention}, outputs[2];
    bool all = attention == NONE;
    graph_node_many(g, all ? "GRU" : "AUGRU", name, all ? 5 : 7, inputs,
                    ATTRS(attr_int("hidden_size", WIDTH)), 2, outputs);
    int64_t axis = all ? 1 : 0;
    return graph_node(g, "Squeeze", NULL, INPUTS(outputs[!all], graph_const_i64(g, 1, &axis)),
                      NO_ATTRS);
}

/* Probability that the item whose vector is beside a state is the next click, [N (T - 1), 1]. */
static int auxiliary(struct graph *g, int states, int items, const int64_t *dim)
{
    int x = concat(g, 2, 2, (int[]){states, items});
    x = reshape(g, x, 2, (int64_t[]){dim[0] * dim[1], 2 * WIDTH});
    x = batch_norm(g, x, "aux_bn", 1e-3, 1);
    x = sigmoid(g, dense(g, x, "aux_f1", 100));
    x = sigmoid(g, dense(g, x, "aux_f2", 50));
    x = dense(g, x, "aux_f3", 2);
    x = graph_node(g, "Softmax", NULL, INPUTS(x), ATTRS(attr_int("axis", 1)));
    x = add(g, x, graph_const_f32(g, 1e-8f));
    return reshape(g, part(g, x, 1, 0, 1), 2, dim);
}

static int mean(struct graph *g, int x)
{
    return graph_node(g, "ReduceMean", NULL, INPUTS(x), ATTRS(attr_int("keepdims", 0)));
}

static int batch_mean(struct graph *g, int x)
{
    return graph_node(g, "ReduceMean", NULL, INPUTS(x),
                      ATTRS(attr_ints_of("axes", 0), attr_int("keepdims", 1)));
}

/* - log p(clicked) - log (1 - p(not clicked)), each masked, then averaged. */
static int auxiliary_loss(struct graph *g, int clicked, int not_clicked, int mask)
{
    int miss = graph_node(g, "Sub", NULL, INPUTS(graph_const_f32(g, 1), not_clicked), NO_ATTRS);
    int terms = add(g, mul(g, unary(g, "Log", clicked), mask), mul(g, unary(g, "Log", miss), mask));
    return unary(g, "Neg", mean(g, terms));
}

/* Dice: a PReLU whose corner is smooth and is at the batch's mean; statistics of this batch. */
static int dice(struct graph *g, int x, const char *name, int64_t width)
{
    int epsilon = graph_const_f32(g, 1e-9f), one = graph_const_f32(g, 1);
    int alpha = weight(g, name_of(g, "%s.alpha", name), shape_of(width), -0.25, 0.25);
    int centred = graph_node(g, "Sub", NULL, INPUTS(x, batch_mean(g, x)), NO_ATTRS);
    int deviation = unary(g, "Sqrt", batch_mean(g, add(g, mul(g, centred, centred), epsilon)));
    int p = graph_node(g, "Div", NULL, INPUTS(centred, add(g, deviation, epsilon)), NO_ATTRS);
    p = sigmoid(g, p);
    int rest = graph_node(g, "Sub", NULL, INPUTS(one, p), NO_ATTRS);
    return add(g, mul(g, alpha, mul(g, rest, x)), mul(g, p, x));
}

struct history {
    int64_t n, steps;
    int items;   /* [N, T, WIDTH] */
    int states;  /* GRU's, [N, T, WIDTH] */
    int in_time; /* the same time-major */
    int lengths, mask;
};

static void read_history(struct graph *g, struct history *h)
{
    static const int64_t swap[] = {1, 0, 2};
    struct fill lengths = {.kind = FILL_INDEX, .a = 1, .b = (double)h->steps + 1};
    struct shape shape = shape_of(h->n, h->steps);
    int item = ids(g, "mid_his", shape, ITEMS), category = ids(g, "cat_his", shape, CATEGORIES);
    h->lengths = graph_input(g, "history_length", DTYPE_I32, shape_of(h->n), lengths);
    h->mask = interest_mask(g, h->lengths, h->steps);
    h->items = embed(g, item, category, 2);
    h->in_time = gru(g, "gru1", transpose(g, h->items, 3, swap), h->lengths, NONE);
    h->states = transpose(g, h->in_time, 3, swap);
}

static int read_negatives(struct graph *g, const struct history *h)
{
    struct shape shape = shape_of(h->n, h->steps, NEGATIVES);
    int item = ids(g, "noclk_mid", shape, ITEMS), category = ids(g, "noclk_cat", shape, CATEGORIES);
    int first = graph_const_i64(g, -1, &(int64_t){0});
    item = graph_node(g, "Gather", NULL, INPUTS(item, first), ATTRS(attr_int("axis", 2)));
    category = graph_node(g, "Gather", NULL, INPUTS(category, first), ATTRS(attr_int("axis", 2)));
    return embed(g, item, category, 2);
}

static void interest_extractor(struct graph *g, const struct history *h)
{
    int64_t dim[] = {h->n, h->steps - 1}, last = h->steps - 1;
    int states = part(g, h->states, 1, 0, last);
    int clicked = part(g, h->items, 1, 1, h->steps);
    int other = part(g, read_negatives(g, h), 1, 1, h->steps);
    int mask = cast(g, part(g, h->mask, 1, 1, h->steps), DTYPE_F32);
    int loss = auxiliary_loss(g, auxiliary(g, states, clicked, dim),
                              auxiliary(g, states, other, dim), mask);
    graph_rename(g, loss, "auxiliary_loss");
    graph_output(g, loss);
}

/* The last state of the AUGRU. */
static int interest_evolution(struct graph *g, const struct history *h, int candidate)
{
    int query = dense(g, candidate, "f1", WIDTH);
    int slope = weight(g, "f1.alpha", shape_of(WIDTH), 0.05, 0.15);
    query = graph_node(g, "PRelu", NULL, INPUTS(query, slope), NO_ATTRS);
    struct interest attention = {.batch = h->n,
                                 .steps = h->steps,
                                 .width = WIDTH,
                                 .query = query,
                                 .history = h->states,
                                 .mask = h->mask,
                                 .divisor = 1};
    int weights = transpose(g, interest_weights(g, &attention), 2, (int64_t[]){1, 0});
    return gru(g, "gru2", h->in_time, h->lengths, weights);
}

static void build(struct graph *g, const struct workload_config *config)
{
    struct history h = {.n = config->batch, .steps = config_int(config, "history")};
    if (!at_least(g, "history", h.steps, 2)) /* the auxiliary net looks at what came next */
        return;
    struct shape one = shape_of(h.n);
    int user = embedding(g, ids(g, "uid", one, USERS), "uid", USERS, HALF);
    int item = embed(g, ids(g, "mid", one, ITEMS), ids(g, "cat", one, CATEGORIES), 1);
    read_history(g, &h);
    interest_extractor(g, &h);
    int interest = interest_evolution(g, &h, item);

    int64_t axis = 1;
    int sum =
        graph_node(g, "ReduceSum", "history_sum", INPUTS(h.items, graph_const_i64(g, 1, &axis)),
                   ATTRS(attr_int("keepdims", 0)));
    int x = concat(g, 1, 5, (int[]){user, item, sum, mul(g, item, sum), interest}); /* [N, 162] */
    x = batch_norm(g, x, "bn1", 1e-3, 1);
    x = dice(g, dense(g, x, "fcn1", 200), "fcn1", 200);
    x = dice(g, dense(g, x, "fcn2", 80), "fcn2", 80);
    x = graph_node(g, "Softmax", NULL, INPUTS(dense(g, x, "fcn3", 2)), ATTRS(attr_int("axis", 1)));
    x = add(g, x, graph_const_f32(g, 1e-8f));
    graph_rename(g, x, "probability");
    graph_output(g, x);
}

REGISTER(workload, dien) = {
    .name = "dien",
    .domain = "recommendation",
    .task = "click-through prediction",
    .summary = "Deep Interest Evolution Network on Amazon Books: GRU, attention, AUGRU over 100",
    .source = "Zhou et al., AAAI 2019; AI Matrix DeepInterest/dien",
    .params = params,
    .table1_batch = 512,
    .batch = 512,
    .build = build,
};
