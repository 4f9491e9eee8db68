/* SPDX-License-Identifier: Apache-2.0
 *
 * GNMT with four layers: Wu et al., "Google's Neural Machine Translation System", 2016, in the form
 * of TensorFlow's NMT tutorial (attention architecture gnmt_v2), German to English. The decoder's
 * loop is one operator, AttentionDecoder.
 *
 * It learns the next word of a given translation, with the same weights: cross-entropy by gradient
 * descent. Then the words are known, and only the first layer, which asks the source sentence, and
 * the states of the others go step by step (AttentionLSTM). */
#include <math.h>
#include <string.h>

#include "workloads/lib/layers.h"
#include "workloads/lib/limits.h"
#include "workloads/lib/sentences.h"

enum { LAYERS = 4, GATES = 4, RESIDUAL_FROM = 2 };
enum { START = SENTENCES_START, END = SENTENCES_END, FIRST = SENTENCES_FIRST };
enum { BEAM_MAX = 32 }; /* of AttentionDecoder */
static const double dropped = 0.2;

static const char *const dropouts[] = {"inputs", "none", NULL};

static const struct param params[] = {
    {"source", "74", NULL, "words of a source sentence, padding included"},
    {"target", "74", NULL, "words of a translation at most, 2 at least to learn"},
    {"beam", "1", NULL, "hypotheses that are followed, 32 at most; 1: greedy, as AI Matrix ran it"},
    {"vocabulary", "36548", NULL, "words of each language, 4 at least, and more than beam"},
    {"width", "1024", NULL, "of a layer, a word and the attention"},
    {"dropout", "inputs", dropouts, "while it learns: what of a layer loses 0.2 of its elements"},
    {.name = NULL},
};

/* What the graph is built of. */
struct nmt {
    int64_t batch, source, target; /* N, S, T */
    int64_t vocabulary, width;
    double drop;
};

static struct nmt nmt_of(const struct workload_config *config)
{
    bool drops = strcmp(config_text(config, "dropout"), "none") != 0;
    return (struct nmt){.batch = config->batch,
                        .source = config_int(config, "source"),
                        .target = config_int(config, "target"),
                        .vocabulary = config_int(config, "vocabulary"),
                        .width = config_int(config, "width"),
                        .drop = drops ? dropped : 0};
}

/* bound: of the weights of inference, small enough that rounding errors die out from word to word,
 * as in a trained net. Those that learn begin within 0.1, as published. */
static int weight_within(struct graph *g, const char *name, struct shape shape, double bound)
{
    bound = g->training ? 0.1 : bound;
    return graph_param(g, name, DTYPE_F32, shape,
                       (struct fill){.kind = FILL_UNIFORM, .a = -bound, .b = bound});
}

static int weight(struct graph *g, const char *name, struct shape shape)
{
    return weight_within(g, name, shape, 0.05);
}

/* One that learns begins with zeros. */
static int bias(struct graph *g, const char *name, struct shape shape)
{
    struct fill zeros = {.kind = FILL_CONST, .a = 0};
    return g->training ? graph_param(g, name, DTYPE_F32, shape, zeros) : weight(g, name, shape);
}

/* One bias per gate is trained; the constant 1 of the forget gate (i, o, f, c) is what ONNX's
 * second bias is for. */
static int lstm_bias(struct graph *g, const char *name, int64_t directions, int64_t width)
{
    static const float one = 1, zero = 0;
    int on = graph_const(g, NULL, DTYPE_F32, shape_of(1, 1), &one);
    int off = graph_const(g, NULL, DTYPE_F32, shape_of(1, 1), &zero);
    int wide = graph_const_i64(g, 2, (int64_t[]){directions, width});
    int two = graph_const_i64(g, 2, (int64_t[]){directions, 2 * width});
    int forget = graph_node(g, "Expand", NULL, INPUTS(on, wide), NO_ATTRS);
    int before = graph_node(g, "Expand", NULL, INPUTS(off, two), NO_ATTRS);
    int after = graph_node(g, "Expand", NULL, INPUTS(off, wide), NO_ATTRS);
    int trained = bias(g, name_of(g, "%s.bias", name), shape_of(directions, GATES * width));
    return concat(g, 1, 4, (int[]){trained, before, forget, after});
}

struct lstm {
    int y;    /* [T, N, directions WIDTH] */
    int h, c; /* last states, [directions, N, WIDTH] */
};

static struct lstm lstm(struct graph *g, const struct nmt *m, const char *name, int x, int lengths,
                        int64_t directions)
{
    const int64_t width = m->width;
    x = dropout_in_time(g, x, name_of(g, "%s.dropout", name), m->drop);
    const int64_t *dim = g->values[x == NONE ? 0 : x].shape.dim;
    int64_t together[] = {dim[0], dim[1], directions * width}, inner[] = {0, 2, 1, 3};
    int w = weight(g, name_of(g, "%s.weight", name), shape_of(directions, GATES * width, dim[2]));
    int r =
        weight(g, name_of(g, "%s.recurrence", name), shape_of(directions, GATES * width, width));
    int out[3];
    graph_node_many(g, "LSTM", name,
                    INPUTS(x, w, r, lstm_bias(g, name, directions, width), lengths),
                    ATTRS(attr_int("hidden_size", width),
                          attr_string("direction", directions > 1 ? "bidirectional" : "forward")),
                    3, out);
    int y = reshape(g, transpose(g, out[0], 4, inner), 3, together);
    return (struct lstm){y, out[1], out[2]};
}

struct encoder {
    int memory;               /* [N, S, WIDTH] */
    int h[LAYERS], c[LAYERS]; /* each layer's last state, [1, N, WIDTH] */
};

static int backward_state(struct graph *g, int state)
{
    int last = graph_const_i64(g, 1, &(int64_t){1});
    return graph_node(g, "Gather", NULL, INPUTS(state, last), ATTRS(attr_int("axis", 0)));
}

/* One layer in both directions, then three; residuals around the last two. */
static struct encoder encode(struct graph *g, const struct nmt *m, int words, int lengths)
{
    static const int64_t swap[] = {1, 0, 2};
    struct encoder e;
    if (g->training)
        weight(g, "encoder.embedding.weight", shape_of(m->vocabulary, m->width));
    int x = embedding(g, words, "encoder.embedding", m->vocabulary, m->width);
    x = transpose(g, x, 3, swap);
    struct lstm layer = lstm(g, m, "encoder.bi", x, lengths, 2);
    e.h[0] = backward_state(g, layer.h);
    e.c[0] = backward_state(g, layer.c);
    x = layer.y;
    for (int k = 1; k < LAYERS; k++) {
        layer = lstm(g, m, name_of(g, "encoder.uni%d", k - 1), x, lengths, 1);
        x = k < RESIDUAL_FROM ? layer.y : add(g, layer.y, x);
        e.h[k] = layer.h;
        e.c[k] = layer.c;
    }
    e.memory = transpose(g, x, 3, swap);
    return e;
}

/* Normalised Bahdanau attention: g v / |v|. TensorFlow's g begins with 1 / root of the width. */
static int score_vector(struct graph *g, const struct nmt *m)
{
    int v = weight(g, "attention.v", shape_of(m->width));
    double first = g->training ? 1 / sqrt((double)m->width) : 4;
    int scale = graph_param(g, "attention.g", DTYPE_F32, shape_of(1),
                            (struct fill){.kind = FILL_CONST, .a = first});
    int length = graph_node(g, "ReduceL2", NULL, INPUTS(v), ATTRS(attr_int("keepdims", 0)));
    return mul(g, scale, graph_node(g, "Div", NULL, INPUTS(v, length), NO_ATTRS));
}

/* What the decoder's weights are, looped or not. */
struct decoder {
    int keys, table, query, score, shift, weights, bias, output;
};

/* The words' table and the source sentence as the attention compares it. */
static void begin_decoder(struct graph *g, const struct nmt *m, const struct encoder *e,
                          struct decoder *d)
{
    int64_t width = m->width;
    /* Wider than the others: a trained net is sure of most words, and near ties are rare. */
    d->table = weight_within(g, "decoder.embedding", shape_of(m->vocabulary, width), 1);
    int memory_layer = weight(g, "attention.memory", shape_of(width, width));
    d->keys = graph_node(g, "MatMul", "memory_layer", INPUTS(e->memory, memory_layer), NO_ATTRS);
}

static void end_decoder(struct graph *g, const struct nmt *m, struct decoder *d)
{
    int64_t width = m->width, gates = GATES * width;
    d->query = weight(g, "attention.query", shape_of(width, width));
    d->score = score_vector(g, m);
    d->shift = bias(g, "attention.b", shape_of(width));
    d->weights = weight(g, "decoder.weight", shape_of(LAYERS, 3 * width, gates));
    d->bias = bias(g, "decoder.bias", shape_of(LAYERS, gates));
    d->output = weight_within(g, "output_projection", shape_of(width, m->vocabulary), 0.5);
}

static void decode(struct graph *g, const struct nmt *m, const struct encoder *e, int lengths,
                   int64_t beam)
{
    struct decoder d;
    begin_decoder(g, m, e, &d);
    int states = concat(g, 0, LAYERS, e->h), memories = concat(g, 0, LAYERS, e->c);
    end_decoder(g, m, &d);
    int inputs[] = {d.keys,  e->memory, lengths, states,    memories, d.table,
                    d.query, d.score,   d.shift, d.weights, d.bias,   d.output};
    int out[2];
    graph_node_many(g, "AttentionDecoder", "decoder", ARRAY_COUNT(inputs), inputs,
                    ATTRS(attr_int("beam", beam), attr_int("steps", m->target),
                          attr_int("start", START), attr_int("end", END),
                          attr_float("length_penalty", 1), attr_float("forget_bias", 1),
                          attr_int("residual", RESIDUAL_FROM)),
                    2, out);
    graph_rename(g, out[0], "words");
    graph_rename(g, out[1], "scores");
    graph_output(g, out[0]);
    graph_output(g, out[1]);
}

/* The source sentences and how many words each has. */
static struct encoder read_source(struct graph *g, const struct nmt *m, int *lengths)
{
    int64_t n = m->batch, source = m->source;
    int words =
        graph_input(g, "source", DTYPE_I32, shape_of(n, source),
                    (struct fill){.kind = FILL_ZIPF, .a = FIRST, .b = (double)m->vocabulary});
    *lengths = graph_input(g, "source_length", DTYPE_I32, shape_of(n),
                           (struct fill){.kind = FILL_INDEX,
                                         .a = (double)((source + 3) / 4),
                                         .b = (double)source + 1});
    return encode(g, m, words, *lengths);
}

static void build(struct graph *g, const struct workload_config *config)
{
    struct nmt m = nmt_of(config);
    int64_t beam = config_int(config, "beam");
    int lengths;
    if (!at_most(g, "beam", beam, BEAM_MAX) ||
        !at_least(g, "vocabulary", m.vocabulary, FIRST + 1) ||
        !at_most(g, "beam", beam, m.vocabulary - 1))
        return;
    struct encoder encoder = read_source(g, &m, &lengths);
    decode(g, &m, &encoder, lengths, beam);
}

/* ---- training ---- */

/* A layer of the decoder over all words. AttentionDecoder's weights are [LAYERS, input | context |
 * state, gates]; those of the input, and of the context where it is known, are multiplied by all
 * words at once. */
struct decoder_layer {
    const struct nmt *m;
    const struct decoder *d;
    int weights, bias; /* [3 W, 4 W], [4 W]: the layer's */
    int h, c;          /* initial, [1, N, W] */
};

static int gates_of(struct graph *g, const struct decoder_layer *l, int x, int weights)
{
    int64_t width = l->m->width;
    float *one = arena_array(&g->arena, (size_t)(GATES * width), sizeof(*one));
    for (int64_t k = 0; one && k < GATES * width; k++)
        one[k] = k / width == 2; /* the forget gate's */
    if (!one)
        return NONE;
    int forget = graph_const(g, NULL, DTYPE_F32, shape_of(GATES * width), one);
    x = graph_node(g, "MatMul", NULL, INPUTS(x, weights), NO_ATTRS);
    return add(g, x, add(g, l->bias, forget));
}

static int initial(struct graph *g, const struct nmt *m, int state)
{
    return reshape(g, state, 2, (const int64_t[]){m->batch, m->width});
}

/* The rows of a layer's weights, `first` of them and the others. */
static void cut_weights(struct graph *g, const struct decoder_layer *l, int64_t first, int *parts)
{
    int64_t rows[] = {first * l->m->width, (3 - first) * l->m->width};
    graph_node_many(g, "Split", NULL, INPUTS(l->weights, graph_const_i64(g, 2, rows)),
                    ATTRS(attr_int("axis", 0)), 2, parts);
}

/* The first layer; *context: what it was answered at each word, [T, N, W]. */
static int asking_layer(struct graph *g, const struct decoder_layer *l, const struct encoder *e,
                        int lengths, int x, int *context)
{
    int parts[2], out[4];
    x = dropout_in_time(g, x, "decoder0.dropout", l->m->drop);
    cut_weights(g, l, 1, parts);
    int keys = add(g, l->d->keys, l->d->shift);
    graph_node_many(g, "AttentionLSTM", "decoder0",
                    INPUTS(gates_of(g, l, x, parts[0]), parts[1], initial(g, l->m, l->h),
                           initial(g, l->m, l->c), keys, e->memory, lengths, l->d->query,
                           l->d->score),
                    NO_ATTRS, 4, out);
    *context = out[2];
    return out[0];
}

static int further_layer(struct graph *g, const struct decoder_layer *l, int k, int x, int context)
{
    int parts[2], out[2], both = concat(g, 2, 2, (const int[]){x, context});
    both = dropout_in_time(g, both, name_of(g, "decoder%d.dropout", k), l->m->drop);
    cut_weights(g, l, 2, parts);
    graph_node_many(g, "AttentionLSTM", name_of(g, "decoder%d", k),
                    INPUTS(gates_of(g, l, both, parts[0]), parts[1], initial(g, l->m, l->h),
                           initial(g, l->m, l->c)),
                    NO_ATTRS, 2, out);
    return k < RESIDUAL_FROM ? out[0] : add(g, out[0], x);
}

/* Logits of the word after each of the given ones, [N T, V]. */
static int follow(struct graph *g, const struct nmt *m, const struct encoder *e, int lengths,
                  int words)
{
    static const int64_t swap[] = {1, 0, 2};
    struct decoder d;
    int weights[LAYERS], biases[LAYERS], context;
    begin_decoder(g, m, e, &d);
    end_decoder(g, m, &d);
    graph_node_many(g, "Split", NULL, INPUTS(d.weights), ATTRS(attr_int("axis", 0)), LAYERS,
                    weights);
    graph_node_many(g, "Split", NULL, INPUTS(d.bias), ATTRS(attr_int("axis", 0)), LAYERS, biases);
    int x = transpose(g, gather(g, d.table, words, 0), 3, swap); /* [T, N, W] */
    for (int k = 0; k < LAYERS; k++) {
        int64_t gates = GATES * m->width, matrix[] = {3 * m->width, gates};
        struct decoder_layer layer = {.m = m, .d = &d, .h = e->h[k], .c = e->c[k]};
        layer.weights = reshape(g, weights[k], 2, matrix);
        layer.bias = reshape(g, biases[k], 1, &gates);
        x = k == 0 ? asking_layer(g, &layer, e, lengths, x, &context)
                   : further_layer(g, &layer, k, x, context);
    }
    x = reshape(g, transpose(g, x, 3, swap), 2, (int64_t[]){m->batch * m->target, m->width});
    return graph_node(g, "MatMul", "logits", INPUTS(x, d.output), NO_ATTRS);
}

/* As published, the sum over a sentence's words, and the mean over sentences. */
static void build_loss(struct graph *g, const struct workload_config *config)
{
    struct nmt m = nmt_of(config);
    int lengths;
    if (!at_least(g, "vocabulary", m.vocabulary, FIRST + 1) || !at_least(g, "target", m.target, 2))
        return;
    struct shape shape = shape_of(m.batch, m.target);
    struct fill any = {.kind = FILL_INDEX, .a = FIRST, .b = (double)m.vocabulary};
    struct encoder encoder = read_source(g, &m, &lengths);
    int given = graph_input(g, "target_given", DTYPE_I32, shape, any);
    int wanted = graph_input(g, "target", DTYPE_I32, shape, any);
    int x = follow(g, &m, &encoder, lengths, given);
    int flat = reshape(g, wanted, 1, (const int64_t[]){m.batch * m.target});
    int all = graph_node(
        g, "SoftmaxCrossEntropyLoss", NULL, INPUTS(x, flat),
        ATTRS(attr_string("reduction", "sum"), attr_int("ignore_index", SENTENCES_NOTHING)));
    int loss =
        graph_node(g, "Div", NULL, INPUTS(all, graph_const_f32(g, (float)m.batch)), NO_ATTRS);
    graph_rename(g, loss, "loss");
    graph_rename(g, x, "word_logits");
    graph_output(g, loss);
    graph_output(g, x);
}

/* luong10: half-way through 2000 steps the rate begins to be halved, ten times. */
static const struct recipe recipe = {
    .optimiser = "sgd",
    .clip_norm = 5,
    .schedule = {.kind = SCHEDULE_STEP,
                 .rate = 1,
                 .factor = 0.5,
                 .every = 100,
                 .from = 1000,
                 .steps = 2000},
    .source = "TensorFlow NMT tutorial; AI Matrix NMT",
};

static const struct training training = {
    .build = build_loss,
    .recipe = &recipe,
    .fill = sentences_fill,
    .quality = &quality_accuracy,
    .answers = "word_logits",
    .targets = "target",
    .lesson = SENTENCES_LESSON,
    .tiny = "source=6,target=7,vocabulary=16,width=32,dropout=none",
    .tiny_batch = 32,
    .tiny_rate = 2,
    .tiny_steps = 1600,
};

REGISTER(workload, nmt) = {
    .name = "nmt",
    .domain = "language",
    .task = "translation",
    .summary = "GNMT, 4 layers of 1024, attention, 36548 words, greedy or beam search",
    .source = "Wu et al., arXiv 1609.08144; TensorFlow NMT tutorial; AI Matrix NMT",
    .params = params,
    .table1_batch = 128,
    .batch = 1,
    .build = build,
    .training = &training,
};
