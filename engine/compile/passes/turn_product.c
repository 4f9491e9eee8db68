/* SPDX-License-Identifier: Apache-2.0
 *
 * A fixed matrix that multiplies along an axis other than the last, such as one that mixes the
 * heads of attention or the positions of a sequence: frameworks, whose linear layers know the last
 * axis alone, exchange axes before and after. Multiplied from the left it needs neither copy:
 * transpose(x) W + b, transposed back, is W' x + b with b as a column. */
#include <stdio.h>
#include <stdlib.h>

#include "engine/compile/passes/rewrite.h"
#include "engine/graph/op_list.h"
#include "engine/ops/family/gradient.h"

enum { POSITIONS_LEAST = 64 /* behind the axis: fewer do not fill the registers */ };

struct product {
    int x, weights, bias; /* bias NONE: none */
    int axis;
    int64_t before, in, out, behind; /* x is [before, in, behind] */
};

/* Whether axis `to` of the result is axis `from`, and the others keep their order. */
static bool moves_axis(const struct node *node, int rank, int from, int to)
{
    int64_t perm[RANK_MAX];
    if (node_ints(node, "perm", perm, RANK_MAX) != rank)
        return false;
    for (int k = 0, other = 0; k < rank; k++) {
        other += k != to && other == from;
        if (perm[k] != (k == to ? from : other))
            return false;
        other += k != to;
    }
    return true;
}

/* Images lie channels-last, where exchanging axes moves nothing. */
static bool is_image(const struct graph *g, int value)
{
    int at = g->values[value].producer;
    while (at != NONE && (g->nodes[at].op->layout == LAYOUT_RULE_ANY ||
                          g->nodes[at].op->layout == LAYOUT_RULE_AXIS))
        at = g->values[g->nodes[at].inputs[0]].producer;
    return at != NONE && g->nodes[at].op->layout != LAYOUT_RULE_PLAIN;
}

/* Reads x from what the first exchange gives to the product. */
static bool read_product(const struct graph *g, const struct node *product, int rank,
                         struct product *p)
{
    if (!product || product->attr_count || product->post_count ||
        rewrite_only_user(g, product->outputs[0]) == NONE ||
        rewrite_only_user(g, product->inputs[0]) == NONE)
        return false;
    const struct node *turn = rewrite_producer(g, product->inputs[0], &op_transpose);
    const struct value *w = &g->values[product->inputs[1]];
    if (!turn || !moves_axis(turn, rank, p->axis, rank - 1) || !value_is_fixed(w) ||
        w->dtype != DTYPE_F32 || w->shape.rank != 2)
        return false;
    const struct shape *x = &g->values[turn->inputs[0]].shape;
    p->x = turn->inputs[0];
    p->weights = product->inputs[1];
    p->before = shape_span(x, 0, p->axis);
    p->in = w->shape.dim[0];
    p->out = w->shape.dim[1];
    p->behind = shape_span(x, p->axis + 1, rank);
    return p->before > 0 && p->in > 0 && p->out > 0 && p->behind >= POSITIONS_LEAST &&
           !is_image(g, p->x);
}

/* By the node that exchanges the axes back. */
static bool find_product(const struct graph *g, const struct node *back, struct product *p)
{
    if (back->dead || back->op != &op_transpose || back->post_count ||
        rewrite_only_user(g, back->inputs[0]) == NONE)
        return false;
    const struct shape *y = &g->values[back->inputs[0]].shape;
    int rank = y->rank;
    *p = (struct product){.bias = NONE};
    while (p->axis < rank - 1 && !moves_axis(back, rank, rank - 1, p->axis))
        p->axis++;
    if (p->axis >= rank - 1)
        return false;
    const struct node *add = rewrite_producer(g, back->inputs[0], &op_add);
    int from = back->inputs[0];
    for (int k = 0; add && !add->post_count && p->bias == NONE && k < 2; k++)
        if (rewrite_is_vector(g, add->inputs[k], y->dim[rank - 1])) {
            p->bias = add->inputs[k];
            from = add->inputs[1 - k];
        }
    return read_product(g, rewrite_producer(g, from, &op_mat_mul), rank, p);
}

/* The transpose of [rows, columns] as a new weight; NONE: out of memory. */
static int turned(struct graph *g, int value, int64_t rows, int64_t columns)
{
    size_t size = (size_t)(rows * columns) * sizeof(float);
    float *from = malloc(size), *to = malloc(size);
    char name[256];
    if (!from || !to) {
        free(from);
        free(to);
        return NONE;
    }
    value_materialise(&g->values[value], from);
    for (int64_t i = 0; i < rows; i++)
        for (int64_t k = 0; k < columns; k++)
            to[k * rows + i] = from[i * columns + k];
    free(from);
    snprintf(name, sizeof(name), "%.200s.turned", g->values[value].name);
    return rewrite_weight(g, name, shape_of(columns, rows), to);
}

static enum status turn(struct graph *g, int n, const struct product *p, struct error *err)
{
    struct shape shape = g->values[p->x].shape, flat = shape_of(p->before, p->in, p->behind);
    int old = g->nodes[n].outputs[0];
    shape.dim[p->axis] = p->out;
    g->phase = g->nodes[n].phase;
    int weights = turned(g, p->weights, p->in, p->out);
    int bias = p->bias == NONE ? NONE : turned(g, p->bias, 1, p->out);
    if (weights == NONE || (p->bias != NONE && bias == NONE))
        return FAIL_NO_MEMORY(err);
    int x = make_reshaped(g, p->x, &flat);
    int y = graph_node(g, op_mat_mul.name, NULL, INPUTS(weights, x), NO_ATTRS);
    if (bias != NONE)
        y = make_add(g, y, bias);
    y = make_reshaped(g, y, &shape);
    TRY(graph_failed(g, err));
    rewrite_replace(g, old, y);
    return STATUS_OK;
}

enum status pass_turn_product(struct graph *g, struct error *err)
{
    enum phase phase = g->phase;
    int count = g->node_count; /* nodes are added at the end */
    for (int n = 0; n < count; n++) {
        struct product p;
        if (find_product(g, &g->nodes[n], &p))
            TRY(turn(g, n, &p, err));
    }
    g->phase = phase;
    return STATUS_OK;
}
