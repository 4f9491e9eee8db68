/* SPDX-License-Identifier: Apache-2.0
 *
 * Post-norm encoder: x = LN(x + attention(x)); x = LN(x + ffn(x)). Scores are scaled by
 * 1/sqrt(D/G) and get an additive mask (1 - m) (-10000); GELU in its tanh form; LN epsilon 1e-12.
 */
#include "workloads/lib/bert.h"

#include <math.h>

#include "workloads/lib/limits.h"

static const double epsilon = 1e-12;

/* [N, T, D] -> [N, G, T, D/G] */
static int split_heads(struct graph *g, int x, const struct bert *b)
{
    x = reshape(g, x, 4, (int64_t[]){b->batch, b->tokens, b->heads, b->model / b->heads});
    return transpose(g, x, 4, (int64_t[]){0, 2, 1, 3});
}

static int attention(struct graph *g, int x, int mask, const char *name, const struct bert *b)
{
    int q = split_heads(g, dense(g, x, name_of(g, "%s.query", name), b->model), b);
    int k = split_heads(g, dense(g, x, name_of(g, "%s.key", name), b->model), b);
    int v = split_heads(g, dense(g, x, name_of(g, "%s.value", name), b->model), b);
    float scale = (float)(1 / sqrt((double)(b->model / b->heads)));

    k = transpose(g, k, 4, (int64_t[]){0, 1, 3, 2});
    int scores = graph_node(g, "MatMul", name_of(g, "%s.scores", name), INPUTS(q, k), NO_ATTRS);
    scores = add(g, mul(g, scores, graph_const_f32(g, scale)), mask); /* [N, G, T, T] */
    int weights = graph_node(g, "Softmax", NULL, INPUTS(scores), ATTRS(attr_int("axis", -1)));
    int mixed =
        graph_node(g, "MatMul", name_of(g, "%s.context", name), INPUTS(weights, v), NO_ATTRS);
    mixed = transpose(g, mixed, 4, (int64_t[]){0, 2, 1, 3});
    return reshape(g, mixed, 3, (int64_t[]){b->batch, b->tokens, b->model});
}

static int encoder_layer(struct graph *g, int x, int mask, const char *name, const struct bert *b)
{
    int y = attention(g, x, mask, name_of(g, "%s.attention", name), b);
    y = dense(g, y, name_of(g, "%s.attention.output", name), b->model);
    x = layer_norm(g, add(g, y, x), name_of(g, "%s.attention.norm", name), epsilon);

    y = gelu_tanh(g, dense(g, x, name_of(g, "%s.intermediate", name), b->inner));
    y = dense(g, y, name_of(g, "%s.output", name), b->model);
    return layer_norm(g, add(g, y, x), name_of(g, "%s.norm", name), epsilon);
}

/* Word, position and segment embeddings, summed and normalised. */
static int embed(struct graph *g, const struct bert *b)
{
    struct shape shape = shape_of(b->batch, b->tokens);
    int ids = graph_input(g, "input_ids", DTYPE_I32, shape,
                          (struct fill){.kind = FILL_ZIPF, .a = 0, .b = (double)b->vocabulary});
    int segments = graph_input(g, "segment_ids", DTYPE_I32, shape,
                               (struct fill){.kind = FILL_INDEX, .a = 0, .b = 2});
    int words = embedding(g, ids, "embeddings.word", b->vocabulary, b->model);
    int types = embedding(g, segments, "embeddings.type", 2, b->model);
    int table =
        graph_param(g, "embeddings.position.weight", DTYPE_F32, shape_of(b->positions, b->model),
                    (struct fill){.kind = FILL_UNIFORM, .a = -0.5, .b = 0.5});
    int64_t zero = 0, tokens = b->tokens;
    int first = graph_const_i64(g, 1, &zero), last = graph_const_i64(g, 1, &tokens);
    int positions = graph_node(g, "Slice", NULL, INPUTS(table, first, last), NO_ATTRS);
    int sum = add(g, add(g, words, types), positions);
    return layer_norm(g, sum, "embeddings.norm", epsilon);
}

/* 0 where a token counts, -10000 where it is padding: [N, 1, 1, T] */
static int additive_mask(struct graph *g, const struct bert *b)
{
    int m = graph_input(g, "input_mask", DTYPE_I32, shape_of(b->batch, b->tokens),
                        (struct fill){.kind = FILL_MASK,
                                      .a = (double)(b->tokens / 2),
                                      .b = (double)(b->tokens + 1)});
    m = reshape(g, cast(g, m, DTYPE_F32), 4, (int64_t[]){b->batch, 1, 1, b->tokens});
    m = graph_node(g, "Sub", NULL, INPUTS(graph_const_f32(g, 1.0f), m), NO_ATTRS);
    return mul(g, m, graph_const_f32(g, -10000.0f));
}

/* The pooler belongs to the checkpoint, but the span head does not run it. */
static void unused_pooler(struct graph *g, const struct bert *b)
{
    struct fill fill = {.kind = FILL_UNIFORM, .a = -0.05, .b = 0.05};
    graph_param(g, "pooler.weight", DTYPE_F32, shape_of(b->model, b->model), fill);
    graph_param(g, "pooler.bias", DTYPE_F32, shape_of(b->model), fill);
}

void bert_squad(struct graph *g, const struct bert *b)
{
    if (!at_most(g, "tokens", b->tokens, b->positions))
        return;
    int x = embed(g, b);
    int mask = additive_mask(g, b);
    for (int64_t layer = 0; layer < b->layers; layer++)
        x = encoder_layer(g, x, mask, name_of(g, "layer%d", (int)layer), b);
    unused_pooler(g, b);
    x = dense(g, x, "squad", 2); /* start and end logits */
    graph_rename(g, x, "span_logits");
    graph_output(g, x);
}
