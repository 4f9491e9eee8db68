/* SPDX-License-Identifier: Apache-2.0
 *
 * Attention as Vaswani et al. (2017) define it: softmax(q k' / sqrt(D/G)) v for each of G heads,
 * written as exporters write it; passes find it. */
#include "workloads/lib/transformer.h"

#include <math.h>

static const double deviation_of_weights = 0.02;

void transformer_begin(struct graph *g, const char *name, struct shape shape, double deviation)
{
    struct fill fill = {.kind = FILL_NORMAL, .a = 0, .b = deviation};
    if (deviation == 0)
        fill = (struct fill){.kind = FILL_CONST, .a = 0};
    if (g->training)
        graph_param(g, name, DTYPE_F32, shape, fill);
}

int transformer_dense(struct graph *g, int x, const char *name, int64_t out, double gain)
{
    struct shape weights = shape_of(dim_of(g, x, -1), out);
    transformer_begin(g, name_of(g, "%s.weight", name), weights, deviation_of_weights);
    transformer_begin(g, name_of(g, "%s.bias", name), shape_of(out), 0);
    return dense_scaled(g, x, name, out, gain);
}

int transformer_vectors(struct graph *g, const char *name, struct shape shape)
{
    struct fill fill = {.kind = FILL_UNIFORM, .a = -0.5, .b = 0.5};
    if (g->training)
        fill = (struct fill){.kind = FILL_NORMAL, .a = 0, .b = deviation_of_weights};
    return graph_param(g, name, DTYPE_F32, shape, fill);
}

/* x [N, T, D] times weights of its own, [N, G, T, D/G] */
static int project(struct graph *g, int x, const char *part, const struct self_attention *a)
{
    int64_t batch = dim_of(g, x, 0), tokens = dim_of(g, x, 1), width = dim_of(g, x, 2);
    x = transformer_dense(g, x, name_of(g, "%s.%s", a->name, part), width, 1);
    x = reshape(g, x, 4, (int64_t[]){batch, tokens, a->heads, width / a->heads});
    return transpose(g, x, 4, (int64_t[]){0, 2, 1, 3});
}

int self_attention(struct graph *g, int x, const struct self_attention *a)
{
    int64_t batch = dim_of(g, x, 0), tokens = dim_of(g, x, 1), width = dim_of(g, x, 2);
    int q = project(g, x, "query", a), k = project(g, x, "key", a), v = project(g, x, "value", a);
    float scale = (float)(1 / sqrt((double)(width / a->heads)));

    k = transpose(g, k, 4, (int64_t[]){0, 1, 3, 2});
    int scores = graph_node(g, "MatMul", name_of(g, "%s.scores", a->name), INPUTS(q, k), NO_ATTRS);
    scores = mul(g, scores, graph_const_f32(g, scale));
    scores = a->mask == NONE ? scores : add(g, scores, a->mask); /* [N, G, T, T] */
    int weights = softmax(g, scores, -1);
    weights = dropout(g, weights, name_of(g, "%s.dropout", a->name), a->drop);
    int mixed =
        graph_node(g, "MatMul", name_of(g, "%s.context", a->name), INPUTS(weights, v), NO_ATTRS);
    mixed = transpose(g, mixed, 4, (int64_t[]){0, 2, 1, 3});
    return reshape(g, mixed, 3, (int64_t[]){batch, tokens, width});
}
