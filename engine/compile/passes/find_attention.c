/* SPDX-License-Identifier: Apache-2.0
 *
 * Scaled dot-product attention as models write it,
 *   Q = heads(q)  K = heads(k)  V = heads(v)         heads: Reshape [B,S,G,D], Transpose 0,2,1,3
 *   softmax(Q K^T * scale + mask) V                  scale on scores or on Q; Mul or Div
 *   Transpose 0,2,1,3, Reshape [B,S,G D]
 * becomes one Attention of q, k, v as [B, S, G D]: no transposes, no score matrix in memory. */
#include <string.h>

#include "engine/compile/passes/rewrite.h"
#include "engine/graph/op_list.h"

struct match {
    int q, k, v, mask;
    int64_t heads;
    double scale;
    int result; /* value to replace, [B, S, G D] */
};

static bool has_perm(const struct node *node, const int64_t *wanted)
{
    int64_t perm[RANK_MAX];
    if (!node || node_ints(node, "perm", perm, RANK_MAX) != 4)
        return false;
    return memcmp(perm, wanted, 4 * sizeof(*perm)) == 0;
}

/* [B, G, S, D] -> the [B, S, G D] it was made from by Reshape and Transpose with perm. */
static bool from_heads(const struct graph *g, int value, const int64_t *perm, int64_t *heads,
                       int *flat)
{
    const struct node *move = rewrite_producer(g, value, &op_transpose);
    const struct node *cut =
        has_perm(move, perm) ? rewrite_producer(g, move->inputs[0], &op_reshape) : NULL;
    if (!cut)
        return false;
    const struct shape *in = &g->values[cut->inputs[0]].shape;
    const struct shape *out = &g->values[cut->outputs[0]].shape;
    if (in->rank != 3 || out->rank != 4 || in->dim[0] != out->dim[0] || in->dim[1] != out->dim[1] ||
        in->dim[2] != out->dim[2] * out->dim[3])
        return false;
    *heads = out->dim[2];
    *flat = cut->inputs[0];
    return true;
}

/* Takes a scalar factor off a value; *value becomes what was scaled. */
static bool take_scale(const struct graph *g, int *value, double *scale)
{
    double number;
    int other;
    const struct node *mul = rewrite_producer(g, *value, &op_mul);
    const struct node *div = rewrite_producer(g, *value, &op_div);
    if (mul && rewrite_with_scalar(g, mul, &number, &other)) {
        *scale *= number;
    } else if (div && rewrite_scalar(g, div->inputs[1], &number) && number != 0) {
        *scale /= number;
        other = div->inputs[0];
    } else {
        return false;
    }
    *value = other;
    return true;
}

/* K^T straight from [B,S,G,D] (perm 0,2,3,1), or by a second transposition 0,1,3,2. */
static bool keys(const struct graph *g, int value, struct match *m)
{
    static const int64_t direct[] = {0, 2, 3, 1}, swap[] = {0, 1, 3, 2}, plain[] = {0, 2, 1, 3};
    int64_t heads;
    take_scale(g, &value, &m->scale);
    if (from_heads(g, value, direct, &heads, &m->k))
        return heads == m->heads;
    const struct node *move = rewrite_producer(g, value, &op_transpose);
    if (!has_perm(move, swap))
        return false;
    int turned = move->inputs[0];
    take_scale(g, &turned, &m->scale);
    return from_heads(g, turned, plain, &heads, &m->k) && heads == m->heads;
}

static bool is_scores(const struct graph *g, int value, struct match *m)
{
    static const int64_t plain[] = {0, 2, 1, 3};
    take_scale(g, &value, &m->scale);
    const struct node *product = rewrite_producer(g, value, &op_mat_mul);
    if (!product)
        return false;
    int queries = product->inputs[0];
    take_scale(g, &queries, &m->scale);
    return from_heads(g, queries, plain, &m->heads, &m->q) && keys(g, product->inputs[1], m);
}

/* softmax's input: scores, or scores + mask in either order. */
static bool masked_scores(const struct graph *g, int value, struct match *m)
{
    const struct node *add = rewrite_producer(g, value, &op_add);
    m->mask = NONE;
    m->scale = 1;
    if (!add)
        return is_scores(g, value, m);
    for (int k = 0; k < 2; k++) {
        m->scale = 1;
        m->mask = add->inputs[1 - k];
        if (g->values[m->mask].shape.rank <= 4 && is_scores(g, add->inputs[k], m))
            return true;
    }
    return false;
}

/* From the context [B,G,S,D] down to [B,S,G D]. */
static bool merged(const struct graph *g, int context, struct match *m)
{
    static const int64_t plain[] = {0, 2, 1, 3};
    int n = rewrite_only_user(g, context);
    if (n == NONE || g->nodes[n].op != &op_transpose || !has_perm(&g->nodes[n], plain))
        return false;
    int moved = g->nodes[n].outputs[0];
    n = rewrite_only_user(g, moved);
    if (n == NONE || g->nodes[n].op != &op_reshape)
        return false;
    m->result = g->nodes[n].outputs[0];
    const struct shape *from = &g->values[moved].shape, *to = &g->values[m->result].shape;
    return to->rank == 3 && to->dim[0] == from->dim[0] && to->dim[1] == from->dim[1];
}

/* Attention has one batch and one size of heads: nothing is broadcast but the mask. */
static bool is_uniform(const struct graph *g, const struct match *m, const struct shape *scores)
{
    const struct shape *q = &g->values[m->q].shape, *k = &g->values[m->k].shape;
    const struct shape *v = &g->values[m->v].shape;
    struct shape expected = shape_of(q->dim[0], m->heads, q->dim[1], k->dim[1]);
    return q->dim[0] == k->dim[0] && q->dim[0] == v->dim[0] && q->dim[2] == v->dim[2] &&
           shape_equal(scores, &expected);
}

static bool find(const struct graph *g, int n, struct match *m)
{
    static const int64_t plain[] = {0, 2, 1, 3};
    const struct node *softmax = &g->nodes[n];
    int64_t heads, axis = node_int(softmax, "axis", -1);
    if (node_int(softmax, "flatten", 0) || (axis != -1 && axis != 3) ||
        g->values[softmax->inputs[0]].shape.rank != 4 ||
        g->values[softmax->outputs[0]].dtype != DTYPE_F32)
        return false;
    int user = rewrite_only_user(g, softmax->outputs[0]);
    if (user == NONE || g->nodes[user].op != &op_mat_mul ||
        g->nodes[user].inputs[0] != softmax->outputs[0])
        return false;
    return masked_scores(g, softmax->inputs[0], m) &&
           from_heads(g, g->nodes[user].inputs[1], plain, &heads, &m->v) && heads == m->heads &&
           is_uniform(g, m, &g->values[softmax->inputs[0]].shape) &&
           merged(g, g->nodes[user].outputs[0], m);
}

enum status pass_find_attention(struct graph *g, struct error *err)
{
    int count = g->node_count;
    for (int n = 0; n < count; n++) {
        struct match m;
        if (g->nodes[n].dead || g->nodes[n].op != &op_softmax || !find(g, n, &m))
            continue;
        g->phase = g->nodes[n].phase;
        int fresh = graph_node(g, op_attention.name, NULL, m.mask == NONE ? 3 : 4,
                               (const int[]){m.q, m.k, m.v, m.mask},
                               ATTRS(attr_int("heads", m.heads), attr_float("scale", m.scale)));
        if (g->failed)
            return graph_check(g, err);
        rewrite_replace(g, m.result, fresh);
    }
    return STATUS_OK;
}
