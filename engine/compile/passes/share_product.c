/* SPDX-License-Identifier: Apache-2.0
 *
 * A product whose left factor is a concatenation becomes a sum of products of its parts where that
 * saves work, as in attention over a history (DIN): a part that repeats its rows is multiplied once
 * per row that differs, and the product of a difference of two other parts is had from theirs,
 * since (a - b) W = a W - b W: its weights are added to those of the others. What was concatenated
 * is never stored, nor is its gradient. */
#include <string.h>

#include "engine/compile/passes/rewrite.h"
#include "engine/graph/op_list.h"

enum { PARTS_MAX = 8 };

/* The product is the sum over parts of value[k] times weight[k]; NONE: the part is dropped. */
struct parts {
    int count;
    int value[PARTS_MAX], weight[PARTS_MAX];
    int64_t size[PARTS_MAX];
};

static bool last_axis(const struct node *join, const struct shape *shape)
{
    int64_t axis = node_int(join, "axis", 0);
    return axis == -1 || axis == shape->rank - 1;
}

/* Of MatMul(Concat(...), W) with nothing else about it. */
static bool parts_of(const struct graph *g, const struct node *product, struct parts *p)
{
    const struct value *x = &g->values[product->inputs[0]], *w = &g->values[product->inputs[1]];
    const struct node *join = rewrite_producer(g, product->inputs[0], &op_concat);
    if (!join || product->post_count || join->post_count || join->op_inputs > PARTS_MAX ||
        node_int(product, "transA", 0) || node_int(product, "transB", 0) || x->shape.rank < 2 ||
        w->shape.rank != 2 || x->dtype != DTYPE_F32 || !last_axis(join, &x->shape) ||
        rewrite_only_user(g, product->inputs[0]) == NONE)
        return false;
    p->count = join->op_inputs;
    for (int k = 0; k < p->count; k++) {
        p->value[k] = join->inputs[k];
        p->size[k] = g->values[join->inputs[k]].shape.dim[x->shape.rank - 1];
    }
    return true;
}

static int place_of(const struct parts *p, int value)
{
    for (int k = 0; k < p->count; k++)
        if (p->value[k] == value)
            return k;
    return NONE;
}

/* Whether part k is a difference of two others as wide, which are not differences themselves. */
static bool is_difference(const struct graph *g, const struct parts *p, int k, int of[2])
{
    const struct node *sub = rewrite_producer(g, p->value[k], &op_sub);
    for (int i = 0; sub && i < 2; i++) {
        of[i] = place_of(p, sub->inputs[i]);
        if (of[i] == NONE || p->size[of[i]] != p->size[k] ||
            rewrite_producer(g, p->value[of[i]], &op_sub))
            return false;
    }
    return sub != NULL;
}

/* What a part repeats along other axes than the last; NONE: its rows are its own. */
static int repeated(const struct graph *g, int value)
{
    const struct node *expand = rewrite_producer(g, value, &op_expand);
    if (!expand)
        return NONE;
    const struct shape *all = &g->values[value].shape, *one = &g->values[expand->inputs[0]].shape;
    bool whole = one->rank > 0 && one->dim[one->rank - 1] == all->dim[all->rank - 1];
    return whole && 2 * shape_count(one) <= shape_count(all) ? expand->inputs[0] : NONE;
}

static bool saves_work(const struct graph *g, const struct parts *p)
{
    int of[2];
    for (int k = 0; k < p->count; k++)
        if (is_difference(g, p, k, of) || repeated(g, p->value[k]) != NONE)
            return true;
    return false;
}

static void cut_weights(struct graph *g, int w, struct parts *p)
{
    int sizes = graph_const_i64(g, p->count, p->size);
    graph_node_many(g, op_split.name, NULL, INPUTS(w, sizes), ATTRS(attr_int("axis", 0)), p->count,
                    p->weight);
}

static void drop_differences(struct graph *g, struct parts *p)
{
    for (int k = 0; k < p->count && !g->failed; k++) {
        int of[2];
        if (!is_difference(g, p, k, of))
            continue;
        p->weight[of[0]] =
            graph_node(g, op_add.name, NULL, INPUTS(p->weight[of[0]], p->weight[k]), NO_ATTRS);
        p->weight[of[1]] =
            graph_node(g, op_sub.name, NULL, INPUTS(p->weight[of[1]], p->weight[k]), NO_ATTRS);
        p->weight[k] = NONE;
    }
}

/* Whole products first; those of fewer rows are broadcast onto their sum. */
static int sum_of_products(struct graph *g, const struct parts *p)
{
    int sum = NONE;
    for (int few = 0; few < 2; few++) {
        for (int k = 0; k < p->count && !g->failed; k++) {
            int once = repeated(g, p->value[k]);
            if (p->weight[k] == NONE || (once != NONE) != few)
                continue;
            int x = few ? once : p->value[k];
            int y = graph_node(g, op_mat_mul.name, NULL, INPUTS(x, p->weight[k]), NO_ATTRS);
            sum = sum == NONE ? y : graph_node(g, op_add.name, NULL, INPUTS(sum, y), NO_ATTRS);
        }
    }
    return sum;
}

static enum status share(struct graph *g, int n, struct parts *p, struct error *err)
{
    int old = g->nodes[n].outputs[0], w = g->nodes[n].inputs[1];
    struct shape shape = g->values[old].shape;
    g->phase = g->nodes[n].phase;
    cut_weights(g, w, p);
    drop_differences(g, p);
    int fresh = sum_of_products(g, p);
    TRY(graph_failed(g, err));
    if (fresh != NONE && shape_equal(&g->values[fresh].shape, &shape))
        rewrite_replace(g, old, fresh);
    return STATUS_OK;
}

enum status pass_share_product(struct graph *g, struct error *err)
{
    for (int n = 0, count = g->node_count; n < count; n++) {
        struct parts p;
        if (!g->nodes[n].dead && g->nodes[n].op == &op_mat_mul && parts_of(g, &g->nodes[n], &p) &&
            saves_work(g, &p))
            TRY(share(g, n, &p, err));
    }
    return STATUS_OK;
}
