/* SPDX-License-Identifier: Apache-2.0
 *
 * Narrow products of one wide matrix, such as one-hot rows with several tables, become one product
 * whose result is cut up again: the matrix, most of what is read, is read once, and the tiles of
 * the product fill the registers. A bias and an activation that all of them have stay with it. */
#include "engine/compile/passes/rewrite.h"
#include "engine/graph/op_list.h"

enum {
    MEMBERS_MAX = 16,
    COLUMNS_MAX = 64, /* of all together: a wider product fills the registers alone */
    DEPTH_LEAST = 8,  /* times the columns: less is not worth cutting the result up */
    ROWS_LEAST = 8,   /* with fewer the weights are most of what is read */
};

/* activation(x W + bias) */
struct member {
    int weights, bias;    /* bias NONE: none */
    const struct op *act; /* NULL: none */
    int end;              /* the result */
    int64_t columns;
};

static const struct node *only_user(const struct graph *g, int v, const struct op *op)
{
    int user = rewrite_only_user(g, v);
    const struct node *node = user == NONE ? NULL : &g->nodes[user];
    return node && !node->post_count && (!op || node->op == op) ? node : NULL;
}

static void follow(const struct graph *g, struct member *m)
{
    const struct node *add = only_user(g, m->end, &op_add);
    for (int k = 0; add && m->bias == NONE && k < 2; k++)
        if (rewrite_is_vector(g, add->inputs[k], m->columns))
            m->bias = add->inputs[k];
    if (m->bias != NONE)
        m->end = add->outputs[0];
    const struct node *act = only_user(g, m->end, NULL);
    if (act && op_is_expression(act->op) && act->input_count == 1 && !act->attr_count) {
        m->act = act->op;
        m->end = act->outputs[0];
    }
}

static bool member_of(const struct graph *g, const struct node *node, struct member *m)
{
    if (node->dead || node->op != &op_mat_mul || node->post_count || node->attr_count)
        return false;
    const struct value *x = &g->values[node->inputs[0]], *w = &g->values[node->inputs[1]];
    if (!value_is_fixed(w) || value_is_fixed(x) || w->dtype != DTYPE_F32 || w->shape.rank != 2 ||
        x->shape.rank < 2 || w->shape.dim[1] * 2 > COLUMNS_MAX ||
        shape_span(&x->shape, 0, x->shape.rank - 1) < ROWS_LEAST)
        return false;
    *m = (struct member){.weights = node->inputs[1],
                         .bias = NONE,
                         .end = node->outputs[0],
                         .columns = w->shape.dim[1]};
    follow(g, m);
    return true;
}

/* Members that are computed alike, node n first. */
static int siblings_of(const struct graph *g, int n, struct member *m)
{
    int count = 0;
    int64_t columns = 0, depth = 0;
    for (int k = n; k < g->node_count && count < MEMBERS_MAX; k++) {
        const struct node *node = &g->nodes[k];
        if (!member_of(g, node, &m[count])) {
            if (k == n)
                return 0;
            continue;
        }
        depth = g->values[m[0].weights].shape.dim[0];
        if (node->inputs[0] != g->nodes[n].inputs[0] || m[count].act != m[0].act ||
            (m[count].bias == NONE) != (m[0].bias == NONE) ||
            columns + m[count].columns > COLUMNS_MAX)
            continue;
        columns += m[count++].columns;
    }
    return depth >= DEPTH_LEAST * columns ? count : 0;
}

static enum status merge(struct graph *g, int n, const struct member *m, int count,
                         struct error *err)
{
    int x = g->nodes[n].inputs[0], cut[MEMBERS_MAX], weights[MEMBERS_MAX], biases[MEMBERS_MAX];
    int64_t sizes[MEMBERS_MAX];
    bool biased = m->bias != NONE;
    for (int k = 0; k < count; k++) {
        weights[k] = m[k].weights;
        biases[k] = m[k].bias;
        sizes[k] = m[k].columns;
    }
    g->phase = g->nodes[n].phase;
    int w = rewrite_side_by_side(g, count, weights);
    int b = biased ? rewrite_side_by_side(g, count, biases) : NONE;
    if (w == NONE || (biased && b == NONE))
        return FAIL_NO_MEMORY(err);
    int y = graph_node(g, op_mat_mul.name, NULL, INPUTS(x, w), NO_ATTRS);
    if (biased)
        y = graph_node(g, op_add.name, NULL, INPUTS(y, b), NO_ATTRS);
    if (m->act)
        y = graph_node(g, m->act->name, NULL, INPUTS(y), NO_ATTRS);
    graph_node_many(g, op_split.name, NULL, INPUTS(y, graph_const_i64(g, count, sizes)),
                    ATTRS(attr_int("axis", -1)), count, cut);
    TRY(graph_failed(g, err));
    for (int k = 0; k < count; k++)
        rewrite_replace(g, m[k].end, cut[k]);
    return STATUS_OK;
}

enum status pass_merge_products(struct graph *g, struct error *err)
{
    enum phase phase = g->phase;
    for (int n = 0, nodes = g->node_count; n < nodes; n++) {
        struct member members[MEMBERS_MAX];
        int count = siblings_of(g, n, members);
        if (count < 2)
            continue;
        TRY(merge(g, n, members, count, err));
        graph_compact(g); /* without them, so that none is found again */
        n = -1;
        nodes = g->node_count;
    }
    g->phase = phase;
    return STATUS_OK;
}
