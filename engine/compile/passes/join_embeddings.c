/* SPDX-License-Identifier: Apache-2.0
 *
 * Embeddings that end in one concatenation or one sum become one node with all tables: Gathers of
 * rows, one-hot rows, and what else is put beside them. In a sum the order of the terms stays. */
#include "engine/compile/passes/rewrite.h"
#include "engine/graph/op_list.h"

enum { PAIRS_MAX = 32, LOOKUPS_LEAST = 2 };

/* The inputs of the node to come. */
struct pairs {
    int count, lookups;
    int inputs[2 * PAIRS_MAX];
    int64_t depths[PAIRS_MAX];
};

static void push(struct pairs *p, int table, int indices, int64_t depth)
{
    p->inputs[2 * p->count] = table;
    p->inputs[2 * p->count + 1] = indices;
    p->depths[p->count++] = depth;
    p->lookups += indices != NONE;
}

static bool is_index(const struct value *v)
{
    return (v->dtype == DTYPE_I32 || v->dtype == DTYPE_I64) && v->shape.rank > 0;
}

/* Whether the values are 0 and 1. */
static bool is_off_on(const struct graph *g, int v)
{
    const struct value *value = &g->values[v];
    float values[2];
    if (!value_is_fixed(value) || value->dtype != DTYPE_F32 || shape_count(&value->shape) != 2)
        return false;
    value_materialise(value, values);
    return values[0] == 0 && values[1] == 1;
}

/* Rows of a table that are read here alone. */
static bool push_rows(const struct graph *g, int v, struct pairs *p)
{
    const struct node *gather = rewrite_producer(g, v, &op_gather);
    if (!gather || node_int(gather, "axis", 0) != 0 || rewrite_only_user(g, v) == NONE)
        return false;
    const struct value *table = &g->values[gather->inputs[0]];
    if (table->dtype != DTYPE_F32 || table->shape.rank != 2 ||
        !is_index(&g->values[gather->inputs[1]]))
        return false;
    push(p, gather->inputs[0], gather->inputs[1], 0);
    return true;
}

static bool push_one_hot(const struct graph *g, int v, struct pairs *p)
{
    const struct node *hot = rewrite_producer(g, v, &op_one_hot);
    const struct shape *shape = &g->values[v].shape;
    int64_t axis = hot ? node_int(hot, "axis", -1) : 0;
    if (!hot || (axis != -1 && axis != shape->rank - 1) || rewrite_only_user(g, v) == NONE ||
        !is_off_on(g, hot->inputs[2]) || !is_index(&g->values[hot->inputs[0]]) ||
        shape->dim[shape->rank - 1] == 0)
        return false;
    push(p, NONE, hot->inputs[0], shape->dim[shape->rank - 1]);
    return true;
}

static bool push_lookup(const struct graph *g, int v, struct pairs *p)
{
    return push_rows(g, v, p) || push_one_hot(g, v, p);
}

/* ---- concatenations ---- */

static bool is_join(const struct graph *g, const struct node *join)
{
    if (join->op != &op_concat || join->post_count || join->op_inputs > PAIRS_MAX)
        return false;
    const struct value *y = &g->values[join->outputs[0]];
    return y->dtype == DTYPE_F32 && y->shape.rank >= 2 &&
           shape_axis(&y->shape, node_int(join, "axis", 1)) == y->shape.rank - 1;
}

static bool join_of(const struct graph *g, const struct node *join, struct pairs *p)
{
    if (!is_join(g, join))
        return false;
    for (int k = 0; k < join->op_inputs; k++)
        if (!push_lookup(g, join->inputs[k], p))
            push(p, join->inputs[k], NONE, 0);
    return p->lookups >= LOOKUPS_LEAST;
}

/* What all inputs of a concatenation add to their rows, and apply then, is done with all at once.
 */
struct dress {
    int biases[PAIRS_MAX];
    const struct op *act; /* NULL: none */
};

/* Who computes a value that one node alone reads. */
static const struct node *maker_of(const struct graph *g, int v)
{
    int n = g->values[v].producer;
    bool usable = n != NONE && !g->nodes[n].dead && !g->nodes[n].post_count;
    return usable && rewrite_only_user(g, v) != NONE ? &g->nodes[n] : NULL;
}

/* Of act(rows + bias) the rows; NONE for anything else. */
static int undress(const struct graph *g, int v, const struct op **act, int *bias)
{
    const struct shape *shape = &g->values[v].shape;
    const struct node *node = maker_of(g, v);
    *act = NULL;
    if (node && op_is_expression(node->op) && node->input_count == 1 && !node->attr_count) {
        *act = node->op;
        node = maker_of(g, node->inputs[0]);
    }
    for (int k = 0; node && node->op == &op_add && k < 2; k++) {
        *bias = node->inputs[k];
        if (rewrite_is_vector(g, *bias, shape->dim[shape->rank - 1]) &&
            shape_equal(&g->values[node->inputs[1 - k]].shape, shape))
            return node->inputs[1 - k];
    }
    return NONE;
}

static bool dressed_of(const struct graph *g, const struct node *join, struct pairs *p,
                       struct dress *d)
{
    if (!is_join(g, join))
        return false;
    for (int k = 0; k < join->op_inputs; k++) {
        const struct op *act;
        int rows = undress(g, join->inputs[k], &act, &d->biases[k]);
        if (rows == NONE || (k > 0 && act != d->act) || !push_lookup(g, rows, p))
            return false;
        d->act = act;
    }
    return p->lookups >= LOOKUPS_LEAST;
}

/* ---- sums ---- */

/* Takes the last term off a sum that is no longer than the others; *rest: what is left of it. */
static bool take_term(const struct graph *g, const struct node *add, struct pairs *p, int *rest)
{
    if (!add || add->op != &op_add || add->post_count || p->count + 2 > PAIRS_MAX)
        return false;
    const struct shape *y = &g->values[add->outputs[0]].shape;
    for (int k = 0; k < 2; k++)
        if (!shape_equal(&g->values[add->inputs[k]].shape, y))
            return false;
    for (int k = 1; k >= 0; k--) {
        *rest = add->inputs[1 - k];
        if (push_lookup(g, add->inputs[k], p))
            return true;
    }
    return false;
}

static void turn(struct pairs *p)
{
    struct pairs old = *p;
    for (int k = 0, from = p->count - 1; from >= 0; k++, from--) {
        p->inputs[2 * k] = old.inputs[2 * from];
        p->inputs[2 * k + 1] = old.inputs[2 * from + 1];
        p->depths[k] = old.depths[from];
    }
}

/* ((first + second) + third) + ...: from the last term to the first. */
static bool sum_of(const struct graph *g, const struct node *sum, struct pairs *p)
{
    int rest, before;
    if (!take_term(g, sum, p, &rest))
        return false;
    while (rewrite_only_user(g, rest) != NONE &&
           take_term(g, rewrite_producer(g, rest, &op_add), p, &before))
        rest = before;
    if (!push_lookup(g, rest, p))
        push(p, rest, NONE, 0);
    turn(p);
    return p->lookups >= LOOKUPS_LEAST;
}

static int join_of_pairs(struct graph *g, const struct pairs *p, const char *mode)
{
    return graph_node(g, op_embeddings.name, NULL, 2 * p->count, p->inputs,
                      ATTRS(attr_ints("depths", p->count, p->depths), attr_string("mode", mode)));
}

static enum status replace(struct graph *g, int n, int fresh, struct error *err)
{
    TRY(graph_failed(g, err));
    g->nodes[n].dead = true;
    rewrite_replace(g, g->nodes[n].outputs[0], fresh);
    return STATUS_OK;
}

static enum status replace_dressed(struct graph *g, int n, const struct pairs *p,
                                   const struct dress *d, struct error *err)
{
    int bias = rewrite_side_by_side(g, p->count, d->biases);
    if (bias == NONE)
        return FAIL_NO_MEMORY(err);
    int y = join_of_pairs(g, p, "concat");
    y = graph_node(g, op_add.name, NULL, INPUTS(y, bias), NO_ATTRS);
    if (d->act)
        y = graph_node(g, d->act->name, NULL, INPUTS(y), NO_ATTRS);
    return replace(g, n, y, err);
}

/* From the last node, so that a sum is found by its end. */
enum status pass_join_embeddings(struct graph *g, struct error *err)
{
    enum phase phase = g->phase;
    for (int n = g->node_count - 1; n >= 0; n--) {
        struct pairs dressed = {.count = 0}, join = {.count = 0}, sum = {.count = 0};
        struct dress dress = {.act = NULL};
        if (g->nodes[n].dead)
            continue;
        g->phase = g->nodes[n].phase;
        if (dressed_of(g, &g->nodes[n], &dressed, &dress))
            TRY(replace_dressed(g, n, &dressed, &dress, err));
        else if (join_of(g, &g->nodes[n], &join))
            TRY(replace(g, n, join_of_pairs(g, &join, "concat"), err));
        else if (sum_of(g, &g->nodes[n], &sum))
            TRY(replace(g, n, join_of_pairs(g, &sum, "sum"), err));
    }
    g->phase = phase;
    return STATUS_OK;
}
