/* SPDX-License-Identifier: Apache-2.0
 *
 * Post-norm encoder: x = LN(x + attention(x)); x = LN(x + ffn(x)). Scores are scaled by
 * 1/sqrt(D/G) and get an additive mask (1 - m) (-10000); GELU in its tanh form; LN epsilon 1e-12.
 * While it learns, embeddings, the probabilities of attentions and both results that are added lose
 * a tenth of their elements. */
#include "workloads/lib/bert.h"

#include <string.h>

#include "workloads/lib/limits.h"
#include "workloads/lib/transformer.h"

/* The deepest that was published has as many (DeepNet, arXiv 2203.00555). Each layer is some forty
 * nodes: a graph of a million layers takes gigabytes and minutes before anything can be said. */
enum { LAYERS_MAX = 1000 };

static const double epsilon = 1e-12, dropped = 0.1;

const char *const bert_dropout[] = {"all", "hidden", "none", NULL};

struct bert bert_of(const struct workload_config *config)
{
    const char *drop = config_text(config, "dropout");
    int64_t width = config_int(config, "width");
    return (struct bert){.batch = config->batch,
                         .tokens = config_int(config, "tokens"),
                         .layers = config_int(config, "depth"),
                         .model = width,
                         .heads = config_int(config, "heads"),
                         .inner = 4 * width,
                         .vocabulary = config_int(config, "vocabulary"),
                         .positions = 512,
                         .drop = strcmp(drop, "none") == 0 ? 0 : dropped,
                         .drop_attention = strcmp(drop, "all") == 0 ? dropped : 0};
}

static int table(struct graph *g, int ids, const char *name, int64_t rows, int64_t width)
{
    transformer_begin(g, name_of(g, "%s.weight", name), shape_of(rows, width), 0.02);
    return embedding(g, ids, name, rows, width);
}

static int encoder_layer(struct graph *g, int x, int mask, const char *name, const struct bert *b)
{
    struct self_attention attention = {.name = name_of(g, "%s.attention", name),
                                       .heads = b->heads,
                                       .mask = mask,
                                       .drop = b->drop_attention};
    int y = self_attention(g, x, &attention);
    y = transformer_dense(g, y, name_of(g, "%s.attention.output", name), b->model, 1);
    y = dropout(g, y, name_of(g, "%s.attention.output.dropout", name), b->drop);
    x = layer_norm(g, add(g, y, x), name_of(g, "%s.attention.norm", name), epsilon);

    y = gelu_tanh(g, transformer_dense(g, x, name_of(g, "%s.intermediate", name), b->inner, 1));
    y = transformer_dense(g, y, name_of(g, "%s.output", name), b->model, 1);
    y = dropout(g, y, name_of(g, "%s.output.dropout", name), b->drop);
    return layer_norm(g, add(g, y, x), name_of(g, "%s.norm", name), epsilon);
}

/* Word, position and segment embeddings, summed and normalised. */
static int embed(struct graph *g, const struct bert *b, int *table_of_words)
{
    struct shape shape = shape_of(b->batch, b->tokens);
    int ids = graph_input(g, "input_ids", DTYPE_I32, shape,
                          (struct fill){.kind = FILL_ZIPF, .a = 0, .b = (double)b->vocabulary});
    int segments = graph_input(g, "segment_ids", DTYPE_I32, shape,
                               (struct fill){.kind = FILL_INDEX, .a = 0, .b = 2});
    int words = table(g, ids, "embeddings.word", b->vocabulary, b->model);
    int types = table(g, segments, "embeddings.type", 2, b->model);
    int of_position =
        transformer_vectors(g, "embeddings.position.weight", shape_of(b->positions, b->model));
    *table_of_words = graph_find_value(g, "embeddings.word.weight");
    int64_t zero = 0, tokens = b->tokens;
    int first = graph_const_i64(g, 1, &zero), last = graph_const_i64(g, 1, &tokens);
    int positions = graph_node(g, "Slice", NULL, INPUTS(of_position, first, last), NO_ATTRS);
    int sum = add(g, add(g, words, types), positions);
    int x = layer_norm(g, sum, "embeddings.norm", epsilon);
    return dropout(g, x, "embeddings.dropout", b->drop);
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

int bert_encoder(struct graph *g, const struct bert *b, int *words)
{
    if (!at_most(g, "tokens", b->tokens, b->positions) ||
        !at_most(g, "depth", b->layers, LAYERS_MAX) ||
        !divides(g, "heads", b->heads, "width", b->model))
        return NONE;
    int x = embed(g, b, words);
    int mask = additive_mask(g, b);
    for (int64_t layer = 0; layer < b->layers; layer++)
        x = encoder_layer(g, x, mask, name_of(g, "layer%d", (int)layer), b);
    return x;
}

void bert_squad(struct graph *g, const struct workload_config *config)
{
    struct bert bert = bert_of(config);
    int words, x = bert_encoder(g, &bert, &words);
    if (x == NONE)
        return;
    unused_pooler(g, &bert);
    x = dense(g, x, "squad", 2); /* start and end logits */
    graph_rename(g, x, "span_logits");
    graph_output(g, x);
}
