/* SPDX-License-Identifier: Apache-2.0
 *
 * Three projections of one input (query, key, value) become one matrix product of three times the
 * width, and Attention reads its packed result: one pass over the input instead of three. */
#include "engine/compile/passes/rewrite.h"
#include "engine/graph/op_list.h"

/* x [B,S,K] times a fixed [K,N] plus a fixed [N], used once. */
struct projection {
    const struct node *matmul;
    int weights, bias;
    int64_t in, out;
};

static bool projection_of(const struct graph *g, int value, struct projection *p)
{
    int producer = g->values[value].producer;
    if (producer == NONE || rewrite_only_user(g, value) == NONE)
        return false;
    const struct node *node = &g->nodes[producer];
    if (node->op != &op_mat_mul || node->post_count != 1 || node->posts[0].kind != POST_ADD)
        return false;
    *p = (struct projection){
        .matmul = node, .weights = node->inputs[1], .bias = node->inputs[node->posts[0].input]};
    const struct value *w = &g->values[p->weights], *b = &g->values[p->bias];
    if (!value_is_fixed(w) || !value_is_fixed(b) || w->dtype != DTYPE_F32 || w->shape.rank != 2 ||
        b->shape.rank != 1)
        return false;
    p->in = w->shape.dim[0];
    p->out = w->shape.dim[1];
    return b->shape.dim[0] == p->out;
}

static enum status merge(struct graph *g, struct node *attention, const struct projection *p,
                         struct error *err)
{
    int input = p[0].matmul->inputs[0], mask = NONE;
    if (attention->op_inputs > 3)
        mask = attention->inputs[3];
    int old = attention->outputs[0], attr_count = attention->attr_count;
    const struct attr *attrs = attention->attrs;
    int weights[] = {p[0].weights, p[1].weights, p[2].weights};
    int biases[] = {p[0].bias, p[1].bias, p[2].bias};
    int w = rewrite_side_by_side(g, 3, weights), b = rewrite_side_by_side(g, 3, biases);
    if (w == NONE || b == NONE)
        return FAIL_NO_MEMORY(err);
    g->phase = attention->phase;
    int packed = graph_node(g, op_mat_mul.name, NULL, INPUTS(input, w), NO_ATTRS);
    packed = graph_node(g, op_add.name, NULL, INPUTS(packed, b), NO_ATTRS);
    int fresh = graph_node(g, op_attention.name, NULL, 4, (const int[]){packed, NONE, NONE, mask},
                           attr_count, attrs);
    if (g->failed)
        return graph_check(g, err);
    rewrite_replace(g, old, fresh);
    return STATUS_OK;
}

enum status pass_merge_qkv(struct graph *g, struct error *err)
{
    int count = g->node_count;
    for (int n = 0; n < count; n++) {
        struct node *node = &g->nodes[n];
        struct projection p[3];
        if (node->dead || node->op != &op_attention || node->op_inputs < 3 ||
            node->inputs[1] == NONE)
            continue;
        bool same = true;
        for (int k = 0; same && k < 3; k++)
            same = projection_of(g, node->inputs[k], &p[k]) &&
                   p[k].matmul->inputs[0] == p[0].matmul->inputs[0] && p[k].in == p[0].in &&
                   p[k].out == p[0].out;
        if (same)
            TRY(merge(g, node, p, err));
    }
    return STATUS_OK;
}
