/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/graph/cost.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { SLOTS = 64 }; /* inputs and outputs whose descriptions fit on the stack */

double value_bytes(const struct value *value)
{
    return (double)value_size(value);
}

/* Picks elements of input k by position: reads what it writes, not the whole. */
static bool picks(const struct node *node, int k)
{
    const struct op *op = node->op;
    bool pairs = op->reads == READS_ROWS && op->inputs_max < 0; /* of tables and indices */
    if (pairs)
        return k % 2 == 0 && k + 1 < node->op_inputs && node->inputs[k + 1] != NONE;
    bool rows = op->reads == READS_ROWS && (k == 0 || (k < 32 && op->row_inputs >> k & 1));
    if (op->reads == READS_EXPERTS)
        return k == 1;
    return rows || (k == 0 && op->reads == READS_WHAT_IT_WRITES);
}

static bool moves(const struct op *op)
{
    return op->alias || op->moves_in_passing;
}

static void add_posts(const struct graph *g, const struct node *node, struct cost *work)
{
    double count = (double)shape_count(&g->values[node->outputs[0]].shape);
    for (int k = 0; k < node->post_count; k++) {
        const struct post *post = &node->posts[k];
        enum function function = post->kind == POST_ACT   ? post->act
                                 : post->kind == POST_ADD ? FN_ADD
                                                          : FN_MUL;
        work->elementwise += function_info(function)->flops * count;
        work->transcendentals += function_info(function)->calls * count;
    }
}

static void add_op(const struct graph *g, const struct node *node, struct value **slots,
                   struct cost *work)
{
    struct value **in = slots, **out = slots + node->op_inputs;
    for (int k = 0; k < node->op_inputs; k++)
        in[k] = node->inputs[k] == NONE ? NULL : &g->values[node->inputs[k]];
    for (int k = 0; k < node->output_count; k++)
        out[k] = node->outputs[k] == NONE ? NULL : &g->values[node->outputs[k]];
    struct infer c = {.node = node,
                      .in = (const struct value *const *)in,
                      .out = out,
                      .in_count = node->op_inputs,
                      .out_count = node->output_count};
    node->op->cost(&c, work);
}

/* An update of all weights has hundreds of inputs. Without memory for them the work is not known.
 */
static void add_work(const struct graph *g, const struct node *node, struct cost *work)
{
    struct value *few[SLOTS];
    size_t count = (size_t)node->op_inputs + (size_t)node->output_count;
    struct value **slots = count <= SLOTS ? few : calloc(count, sizeof(struct value *));
    if (node->op->cost && slots)
        add_op(g, node, slots, work);
    else if (node->op->cost)
        *work = (struct cost){.macs = NAN, .elementwise = NAN, .transcendentals = NAN};
    if (slots != few)
        free(slots);
    if (node->post_count > 0)
        add_posts(g, node, work);
}

/* Bytes of the experts that a node's tokens choose: what is expected where all experts are as
 * likely and no token minds what others do, experts (1 - (1 - chosen / experts)^tokens) of them. */
static double chosen_bytes(const struct graph *g, const struct node *node)
{
    const struct value *weights = &g->values[node->inputs[1]];
    double experts = (double)weights->shape.dim[0], chosen = (double)node_int(node, "chosen", 1);
    double tokens = (double)g->values[node->outputs[0]].shape.dim[0] / chosen;
    double share = experts > 0 ? 1 - pow(1 - fmin(chosen / experts, 1), tokens) : 0;
    return value_bytes(weights) * share;
}

/* Bytes that a picking node takes out of input k. */
static double picked_bytes(const struct graph *g, const struct node *node, int k)
{
    const struct value *table = &g->values[node->inputs[k]];
    double picked = value_bytes(&g->values[node->outputs[0]]);
    int index = node->op->inputs_max < 0 ? k + 1 : 1;
    if (node->op->reads == READS_EXPERTS)
        return chosen_bytes(g, node);
    if (node->op->reads == READS_ROWS)
        picked = (double)shape_count(&g->values[node->inputs[index]].shape) *
                 (double)shape_span(&table->shape, 1, table->shape.rank) *
                 (double)dtype_size(table->dtype);
    return fmin(picked, value_bytes(table));
}

/* Whether input k is a state of which the node changes rows: there is one for each result. */
static bool changes_rows_of(const struct node *node, int k)
{
    return node->op->reads == READS_CHANGED_ROWS && k >= UPDATE_WEIGHTS &&
           k < UPDATE_WEIGHTS + node->output_count;
}

/* Bytes of the rows that are changed of each state: pairs of gradients and indices follow them. */
static double changed_bytes(const struct graph *g, const struct node *node)
{
    const struct value *table = &g->values[node->inputs[UPDATE_WEIGHTS]];
    double rows = 0;
    for (int k = UPDATE_WEIGHTS + node->output_count + 1; k < node->op_inputs; k += 2)
        rows += (double)shape_count(&g->values[node->inputs[k]].shape);
    double row = (double)shape_span(&table->shape, 1, table->shape.rank);
    return fmin(rows * row * (double)dtype_size(table->dtype), value_bytes(table));
}

/* Whether the node's result follows the state that is its input 0, so that all but what input 1
 * replaces lies where it is to be already. */
static bool replaces_part(const struct graph *g, const struct node *node)
{
    if (node->op->reads != READS_REPLACED_PART || node->op_inputs < 2 || node->inputs[1] == NONE)
        return false;
    int state = graph_state_of(g, node->inputs[0]);
    return state != NONE && g->states[state].after == node->outputs[0];
}

/* Bytes that input k costs; what only decides a shape costs none. */
static double input_bytes(const struct graph *g, const struct node *node, int k)
{
    if (node->inputs[k] == NONE || (k < 32 && node->op->const_inputs >> k & 1))
        return 0;
    if (changes_rows_of(node, k))
        return changed_bytes(g, node);
    if (k == 0 && replaces_part(g, node))
        return 0;
    return picks(node, k) ? picked_bytes(g, node, k) : value_bytes(&g->values[node->inputs[k]]);
}

double node_bytes_read(const struct graph *g, int n)
{
    double bytes = 0;
    for (int k = 0; k < g->nodes[n].input_count; k++)
        bytes += input_bytes(g, &g->nodes[n], k);
    return bytes;
}

double node_bytes_written(const struct graph *g, int n)
{
    const struct node *node = &g->nodes[n];
    double bytes = 0;
    if (replaces_part(g, node))
        return value_bytes(&g->values[node->inputs[1]]);
    for (int k = 0; k < node->output_count; k++)
        if (node->outputs[k] != NONE)
            bytes += node->op->reads == READS_CHANGED_ROWS
                         ? changed_bytes(g, node)
                         : value_bytes(&g->values[node->outputs[k]]);
    return bytes;
}

static bool reads_no_data(const struct op *op)
{
    return op->alias || op->reads == READS_SHAPE;
}

static bool ends_with(const char *text, const char *end)
{
    size_t n = strlen(text), m = strlen(end);
    return n >= m && strcmp(text + n - m, end) == 0;
}

/* A running mean or variance: kept with the weights, but no parameter. */
static bool value_is_buffer(const struct graph *g, int v)
{
    const char *name = g->values[v].name;
    return ends_with(name, "running_mean") || ends_with(name, "running_var");
}

/* How many numbers an element of input k is. */
static int numbers_in(const struct node *node, int k)
{
    bool packed = k < 32 && (node->op->packed_inputs >> k & 1);
    return packed && node_int(node, "bits", 4) == 4 ? 2 : 1;
}

void node_cost(const struct graph *g, int n, struct node_cost *cost)
{
    const struct node *node = &g->nodes[n];
    *cost = (struct node_cost){.flops = 0};
    add_work(g, node, &cost->work);
    cost->flops = 2 * cost->work.macs + cost->work.elementwise;
    for (int k = 0; k < node->input_count; k++) {
        int v = node->inputs[k];
        bool buffer = k < 32 && (node->op->buffers >> k & 1);
        if (v != NONE && g->values[v].weight && !buffer && !value_is_buffer(g, v))
            cost->params += numbers_in(node, k) * (double)shape_count(&g->values[v].shape);
        if (!reads_no_data(node->op))
            cost->bytes_read += input_bytes(g, node, k);
    }
    if (!node->op->alias)
        cost->bytes_written = node_bytes_written(g, n);
}

double graph_flops(const struct graph *g)
{
    double flops = 0;
    for (int n = 0; n < g->node_count; n++) {
        struct node_cost cost;
        if (g->nodes[n].dead)
            continue;
        node_cost(g, n, &cost);
        flops += cost.flops;
    }
    return flops;
}

/* ---- compulsory bytes ----
 *
 * Elementwise work is done in the kernel that made its operand, so nodes form groups, named after
 * their first node. Only values that cross from one group to another need memory. Elementwise work
 * on what no kernel made as such (a concatenation) is done by its reader, if it has only one. */

struct tally {
    const struct graph *g;
    int *group;     /* per value: first node of its group; NONE: inputs, weights, concatenations */
    int *holder;    /* per value: the value whose memory it shows, renamed or permuted */
    double *picked; /* per value: bytes that picking nodes take */
    bool *whole;    /* per value: read all over by a node of another group */
    int *reader;    /* per value: 1 + that group; MANY; 0: none */
    bool *buffer;   /* per value: a statistic that some node keeps */
    bool *pairs;    /* per value: its elements are two numbers each */
    bool *named;    /* per value: input of some node, dead or alive */
    bool *shown; /* per value: an input or weight that is a result as it is, moved by no kernel */
};

enum { MANY = -1 };

/* With statistics of its operand among its results it needs all of it first. */
static bool is_elementwise(const struct node *node)
{
    const struct op *op = node->op;
    return (op->layout == LAYOUT_RULE_ANY && !moves(op)) ||
           (op->per_element && node->output_count == 1);
}

static bool shows_input(const struct node *node)
{
    return node->op->alias || node->op->reorders;
}

/* The group of the operand that is made last, if node can be done there: the operand is as large
 * as the result, and all others exist before. NONE: the node starts a group of its own. */
static int group_to_join(const struct tally *t, const struct node *node)
{
    const struct graph *g = t->g;
    int last = NONE;
    if (!is_elementwise(node) || node->outputs[0] == NONE)
        return NONE;
    int64_t count = shape_count(&g->values[node->outputs[0]].shape);
    for (int k = 0; k < node->input_count; k++) {
        int v = node->inputs[k];
        if (v != NONE && shape_count(&g->values[v].shape) == count && t->group[v] > last)
            last = t->group[v];
    }
    for (int k = 0; k < node->input_count; k++) {
        int v = node->inputs[k];
        if (v != NONE && t->group[v] != last && g->values[v].producer >= last)
            return NONE;
    }
    return last;
}

static void tally_group(struct tally *t, int n)
{
    const struct node *node = &t->g->nodes[n];
    bool shows = shows_input(node);
    int joined = group_to_join(t, node);
    for (int k = 0; k < node->output_count; k++) {
        int v = node->outputs[k];
        if (v == NONE)
            continue;
        t->group[v] = shows             ? t->group[node->inputs[0]]
                      : moves(node->op) ? NONE
                      : joined != NONE  ? joined
                                        : n;
        if (shows && k == 0)
            t->holder[v] = t->holder[node->inputs[0]];
    }
}

static void tally_reader(struct tally *t, int v, int group)
{
    int *reader = &t->reader[t->holder[v]];
    t->whole[t->holder[v]] = true;
    if (group == NONE || (*reader && *reader != group + 1))
        *reader = MANY;
    else
        *reader = group + 1;
}

static void tally_reads(struct tally *t, const struct node *node)
{
    int group = node->outputs[0] == NONE ? NONE : t->group[node->outputs[0]];
    for (int k = 0; k < node->input_count; k++) {
        int v = node->inputs[k];
        if (v == NONE)
            continue;
        t->buffer[v] |= k < 32 && (node->op->buffers >> k & 1);
        t->pairs[t->holder[v]] |= numbers_in(node, k) == 2;
        bool inside = is_elementwise(node) && group != NONE && group == t->group[v];
        if (picks(node, k) && t->g->values[v].kind != VALUE_RESULT)
            t->picked[v] += picked_bytes(t->g, node, k);
        else if (!inside && (k >= 32 || !(node->op->const_inputs >> k & 1)) &&
                 (k > 0 || !replaces_part(t->g, node)))
            tally_reader(t, v, group);
    }
}

static bool begins_with_moved(const struct graph *g, const struct node *node)
{
    int producer = node->input_count ? g->values[node->inputs[0]].producer : NONE;
    return is_elementwise(node) && producer != NONE && moves(g->nodes[producer].op);
}

/* Whether v is made as it is read. */
static bool is_made_by_reader(const struct tally *t, int v)
{
    int group = t->group[v];
    return t->reader[v] > 0 && group != NONE && begins_with_moved(t->g, &t->g->nodes[group]);
}

static double compulsory_of(const struct tally *t, int v)
{
    const struct value *value = &t->g->values[v];
    double bytes = value_bytes(value);
    if (value->kind != VALUE_RESULT)
        return t->whole[v] ? bytes : fmin(bytes, t->picked[v]);
    if (!t->whole[v] || moves(t->g->nodes[value->producer].op))
        return 0;
    return is_made_by_reader(t, v) ? 0 : bytes;
}

/* Weights and statistics count where they are states, too: a graph that learns has them as such. */
static bool is_of_model(const struct graph *g, int v)
{
    return g->values[v].weight || (g->values[v].kind == VALUE_STATE && value_is_buffer(g, v));
}

static void tally_values(struct tally *t, struct graph_cost *cost)
{
    const struct graph *g = t->g;
    for (int v = 0; v < g->value_count; v++) {
        t->group[v] = NONE;
        t->holder[v] = v;
    }
    for (int n = 0; n < g->node_count; n++)
        if (!g->nodes[n].dead)
            tally_group(t, n);
    for (int n = 0; n < g->node_count; n++)
        if (!g->nodes[n].dead && !shows_input(&g->nodes[n]))
            tally_reads(t, &g->nodes[n]);
    for (int n = 0; n < g->node_count; n++)
        for (int k = 0; k < g->nodes[n].input_count; k++)
            if (g->nodes[n].inputs[k] != NONE)
                t->named[g->nodes[n].inputs[k]] = true;
    for (int k = 0; k < g->output_count; k++) {
        int holder = t->holder[g->outputs[k]], producer = g->values[holder].producer;
        if (producer != NONE && replaces_part(g, &g->nodes[producer]))
            continue; /* it lies there already */
        if (g->values[holder].kind == VALUE_RESULT)
            tally_reader(t, holder, NONE);
        else
            t->shown[holder] = true;
    }
    for (int v = 0; v < g->value_count; v++) {
        cost->bytes_compulsory += compulsory_of(t, v);
        /* Weights that no node ever read belong to the model too (BERT's pooler under a span head);
         * those that only replaced nodes read do not. */
        bool counts = t->whole[v] || t->picked[v] > 0 || t->shown[v] || !t->named[v];
        if (!is_of_model(g, v) || !counts)
            continue;
        bool buffer = t->buffer[v] || value_is_buffer(g, v);
        *(buffer ? &cost->buffers : &cost->params) +=
            (t->pairs[v] ? 2 : 1) * (double)shape_count(&g->values[v].shape);
    }
}

static void tally_free(struct tally *t)
{
    free(t->group);
    free(t->holder);
    free(t->picked);
    free(t->whole);
    free(t->reader);
    free(t->named);
    free(t->shown);
    free(t->buffer);
    free(t->pairs);
}

static int64_t batch_of(const struct graph *g)
{
    if (g->batch || !g->input_count)
        return g->batch ? g->batch : 1;
    const struct shape *first = &g->values[g->inputs[0]].shape;
    return first->rank ? first->dim[0] : 1;
}

void graph_cost(const struct graph *g, struct graph_cost *cost)
{
    *cost = (struct graph_cost){.flops = 0};
    cost->batch = batch_of(g);
    for (int n = 0; n < g->node_count; n++) {
        struct node_cost node;
        if (g->nodes[n].dead)
            continue;
        node_cost(g, n, &node);
        cost->work.macs += node.work.macs;
        cost->work.elementwise += node.work.elementwise;
        cost->work.transcendentals += node.work.transcendentals;
        cost->flops += node.flops;
        cost->bytes_streamed += node.bytes_read + node.bytes_written;
    }
    size_t count = (size_t)g->value_count + 1;
    struct tally t = {.g = g,
                      .group = calloc(count, sizeof(*t.group)),
                      .holder = calloc(count, sizeof(*t.holder)),
                      .picked = calloc(count, sizeof(*t.picked)),
                      .whole = calloc(count, sizeof(*t.whole)),
                      .reader = calloc(count, sizeof(*t.reader)),
                      .buffer = calloc(count, sizeof(*t.buffer)),
                      .pairs = calloc(count, sizeof(*t.pairs)),
                      .named = calloc(count, sizeof(*t.named)),
                      .shown = calloc(count, sizeof(*t.shown))};
    if (t.group && t.holder && t.picked && t.whole && t.reader && t.buffer && t.pairs && t.named &&
        t.shown)
        tally_values(&t, cost);
    else
        cost->params = cost->buffers = cost->bytes_compulsory = NAN;
    tally_free(&t);
}
