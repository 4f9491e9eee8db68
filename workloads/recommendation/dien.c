/* SPDX-License-Identifier: Apache-2.0
 *
 * DIEN: Zhou et al., "Deep Interest Evolution Network for Click-Through Rate Prediction", AAAI
 * 2019, on Amazon Books: the model DIN_V2_Gru_Vec_attGru_Neg of its code, auxiliary loss included,
 * which its inference computes as well.
 *
 * It learns whether a user clicks on the item, and by the auxiliary loss what the user looked at
 * next, against one drawn item that was not looked at: Adam. */
#include <math.h>

#include "workloads/lib/browsing.h"
#include "workloads/lib/interest.h"
#include "workloads/lib/limits.h"
#include "workloads/lib/losses.h"

enum { HALF = 18, WIDTH = 2 * HALF, GATES = 3 };

static const struct param params[] = {
    {"history", "100", NULL,
     "items in a user's history, padding included; 2 at least (1936: Table I)"},
    {"users", "543060", NULL, "rows of the users' table"},
    {"items", "367983", NULL, "rows of the items' table"},
    {"categories", "1601", NULL, "rows of the categories' table"},
    {.name = NULL},
};

static int ids(struct graph *g, const char *name, struct shape shape, int64_t rows)
{
    struct fill zipf = {.kind = FILL_ZIPF, .a = 0, .b = (double)rows};
    return graph_input(g, name, DTYPE_I32, shape, zipf);
}

/* Rows of the tables. */
struct tables {
    int64_t users, items, categories;
};

static int embed(struct graph *g, const struct tables *t, int item, int category, int64_t axis)
{
    int parts[] = {embedding(g, item, "mid", t->items, HALF),
                   embedding(g, category, "cat", t->categories, HALF)};
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

/* The same of log odds, which does not overflow and lacks the 1e-8. */
static int auxiliary_loss_of_odds(struct graph *g, int clicked, int not_clicked, int mask)
{
    int terms =
        add(g, unary(g, "Softplus", unary(g, "Neg", clicked)), unary(g, "Softplus", not_clicked));
    return mean(g, mul(g, terms, mask));
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
    struct tables tables;
    int64_t n, steps;
    int items;   /* [N, T, WIDTH] */
    int states;  /* GRU's, [N, T, WIDTH] */
    int in_time; /* the same time-major */
    int lengths, mask;
    bool for_loss; /* probabilities are wanted as log odds */
};

/* A weight of the width of x; one that is there already is shared. */
static int per_feature(struct graph *g, int x, const char *name, double first)
{
    int known = graph_find_value(g, name);
    return known != NONE ? known
                         : graph_param(g, name, DTYPE_F32, shape_of(dim_of(g, x, -1)),
                                       (struct fill){.kind = FILL_CONST, .a = first});
}

/* The code normalises without saying that it trains, so that TensorFlow's running moments stay 0
 * and 1 and only scale and offset are learnt. */
static int normalise(struct graph *g, const struct history *h, int x, const char *name)
{
    const double epsilon = 1e-3;
    if (!h->for_loss)
        return batch_norm(g, x, name, epsilon, 1);
    int scale = per_feature(g, x, name_of(g, "%s.weight", name), 1);
    int offset = per_feature(g, x, name_of(g, "%s.bias", name), 0);
    scale = mul(g, scale, graph_const_f32(g, (float)(1 / sqrt(1 + epsilon))));
    return add(g, mul(g, x, scale), offset);
}

/* The first of two classes: its probability, or its log odds; of [rows, 2] in shape dim. */
static int first_of_two(struct graph *g, int logits, bool odds, const int64_t *dim)
{
    if (odds) {
        int x = binary(g, "Sub", part(g, logits, 1, 0, 1), part(g, logits, 1, 1, 2));
        return reshape(g, x, 2, dim);
    }
    int x = softmax(g, logits, 1);
    x = part(g, add(g, x, graph_const_f32(g, 1e-8f)), 1, 0, 1);
    return reshape(g, x, 2, dim);
}

/* Whether the item whose vector is beside a state is the next one, [N, T - 1]. */
static int auxiliary(struct graph *g, const struct history *h, int states, int items,
                     const int64_t *dim)
{
    int x = concat(g, 2, 2, (int[]){states, items});
    x = reshape(g, x, 2, (int64_t[]){dim[0] * dim[1], 2 * WIDTH});
    x = normalise(g, h, x, "aux_bn");
    x = sigmoid(g, dense(g, x, "aux_f1", 100));
    x = sigmoid(g, dense(g, x, "aux_f2", 50));
    return first_of_two(g, dense(g, x, "aux_f3", 2), h->for_loss, dim);
}

static void read_history(struct graph *g, struct history *h)
{
    static const int64_t swap[] = {1, 0, 2};
    struct fill lengths = {.kind = FILL_INDEX, .a = 1, .b = (double)h->steps + 1};
    struct shape shape = shape_of(h->n, h->steps);
    const struct tables *t = &h->tables;
    int item = ids(g, "mid_his", shape, t->items);
    int category = ids(g, "cat_his", shape, t->categories);
    h->lengths = graph_input(g, "history_length", DTYPE_I32, shape_of(h->n), lengths);
    h->mask = interest_mask(g, h->lengths, h->steps);
    h->items = embed(g, t, item, category, 2);
    h->in_time = gru(g, "gru1", transpose(g, h->items, 3, swap), h->lengths, NONE);
    h->states = transpose(g, h->in_time, 3, swap);
}

static int read_negatives(struct graph *g, const struct history *h)
{
    struct shape shape = shape_of(h->n, h->steps, BROWSING_OTHERS);
    int item = ids(g, "noclk_mid", shape, h->tables.items);
    int category = ids(g, "noclk_cat", shape, h->tables.categories);
    int first = graph_const_i64(g, -1, &(int64_t){0});
    item = graph_node(g, "Gather", NULL, INPUTS(item, first), ATTRS(attr_int("axis", 2)));
    category = graph_node(g, "Gather", NULL, INPUTS(category, first), ATTRS(attr_int("axis", 2)));
    return embed(g, &h->tables, item, category, 2);
}

static int interest_extractor(struct graph *g, const struct history *h)
{
    int64_t dim[] = {h->n, h->steps - 1}, last = h->steps - 1;
    int states = part(g, h->states, 1, 0, last);
    int clicked = part(g, h->items, 1, 1, h->steps);
    int other = part(g, read_negatives(g, h), 1, 1, h->steps);
    int mask = cast(g, part(g, h->mask, 1, 1, h->steps), DTYPE_F32);
    int no = auxiliary(g, h, states, other, dim), yes = auxiliary(g, h, states, clicked, dim);
    return h->for_loss ? auxiliary_loss_of_odds(g, yes, no, mask)
                       : auxiliary_loss(g, yes, no, mask);
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

/* Logits of a click and of none, [N, 2]; *auxiliary: the auxiliary loss. */
static int logits(struct graph *g, const struct workload_config *config, bool for_loss,
                  int *auxiliary)
{
    struct history h = {.n = config->batch,
                        .steps = config_int(config, "history"),
                        .for_loss = for_loss,
                        .tables = {.users = config_int(config, "users"),
                                   .items = config_int(config, "items"),
                                   .categories = config_int(config, "categories")}};
    *auxiliary = NONE;
    if (!at_least(g, "history", h.steps, 2)) /* the auxiliary net looks at what came next */
        return NONE;
    const struct tables *t = &h.tables;
    struct shape one = shape_of(h.n);
    int user = embedding(g, ids(g, "uid", one, t->users), "uid", t->users, HALF);
    int category = ids(g, "cat", one, t->categories);
    int item = embed(g, t, ids(g, "mid", one, t->items), category, 1);
    read_history(g, &h);
    *auxiliary = interest_extractor(g, &h);
    graph_rename(g, *auxiliary, "auxiliary_loss");
    if (!for_loss)
        graph_output(g, *auxiliary);
    int interest = interest_evolution(g, &h, item);

    int64_t axis = 1;
    int sum =
        graph_node(g, "ReduceSum", "history_sum", INPUTS(h.items, graph_const_i64(g, 1, &axis)),
                   ATTRS(attr_int("keepdims", 0)));
    int x = concat(g, 1, 5, (int[]){user, item, sum, mul(g, item, sum), interest}); /* [N, 162] */
    x = normalise(g, &h, x, "bn1");
    x = dice(g, dense(g, x, "fcn1", 200), "fcn1", 200);
    x = dice(g, dense(g, x, "fcn2", 80), "fcn2", 80);
    return dense(g, x, "fcn3", 2);
}

static void build(struct graph *g, const struct workload_config *config)
{
    int loss, x = softmax(g, logits(g, config, false, &loss), 1);
    x = add(g, x, graph_const_f32(g, 1e-8f));
    graph_rename(g, x, "probability");
    graph_output(g, x);
}

/* ---- training ---- */

/* As the code has it, the click's cross-entropy is averaged over both classes, so it counts half.
 */
static void build_loss(struct graph *g, const struct workload_config *config)
{
    const int64_t column[] = {config->batch, 1};
    int click = graph_input(g, "click", DTYPE_F32, shape_of(config->batch, 1),
                            (struct fill){.kind = FILL_INDEX, .a = 0, .b = 2});
    int auxiliary, x = logits(g, config, true, &auxiliary);
    x = first_of_two(g, x, true, column);
    int loss = mul(g, binary_cross_entropy_with_logits(g, x, click), graph_const_f32(g, 0.5f));
    loss = add(g, loss, auxiliary);
    graph_rename(g, loss, "loss");
    graph_rename(g, x, "log_odds");
    graph_output(g, loss);
    graph_output(g, x);
}

/* Batches of 512 make a thousand steps of an epoch of 512,000 users. */
static const struct recipe recipe = {
    .optimiser = "adam",
    .schedule = {.kind = SCHEDULE_STEP, .rate = 1e-3, .factor = 0.5, .every = 1000},
    .source = "AI Matrix DeepInterest/dien",
};

static const struct training training = {
    .build = build_loss,
    .recipe = &recipe,
    .fill = browsing_fill,
    .quality = &quality_auc,
    .answers = "log_odds",
    .targets = "click",
    .bayes = true,
    .lesson = BROWSING_LESSON,
    .tiny = "users=40,items=60,categories=8,history=8",
    .tiny_batch = 64,
    .tiny_rate = 0.005,
    .tiny_steps = 450,
};

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
    .training = &training,
};
