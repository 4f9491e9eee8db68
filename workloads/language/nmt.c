/* SPDX-License-Identifier: Apache-2.0
 *
 * GNMT with four layers: Wu et al., "Google's Neural Machine Translation System", 2016, in the form
 * of TensorFlow's NMT tutorial (attention architecture gnmt_v2), German to English. The decoder's
 * loop is one operator, AttentionDecoder. */
#include "workloads/lib/layers.h"
#include "workloads/lib/limits.h"
#include "workloads/workload.h"

enum { VOCABULARY = 36548, WIDTH = 1024, LAYERS = 4, GATES = 4, RESIDUAL_FROM = 2 };
enum { START = 1, END = 2 };
enum { BEAM_MAX = 32 }; /* of AttentionDecoder */

static const struct param params[] = {
    {"source", "74", NULL, "words of a source sentence, padding included"},
    {"target", "74", NULL, "words of a translation at most"},
    {"beam", "1", NULL, "hypotheses that are followed, 32 at most; 1: greedy, as AI Matrix ran it"},
    {.name = NULL},
};

/* Small enough that rounding errors die out from word to word, as in a trained net. */
static int weight(struct graph *g, const char *name, struct shape shape)
{
    return graph_param(g, name, DTYPE_F32, shape,
                       (struct fill){.kind = FILL_UNIFORM, .a = -0.05, .b = 0.05});
}

/* One bias per gate is trained; the constant 1 of the forget gate (i, o, f, c) is what ONNX's
 * second bias is for. */
static int lstm_bias(struct graph *g, const char *name, int64_t directions)
{
    static const float one = 1, zero = 0;
    int on = graph_const(g, NULL, DTYPE_F32, shape_of(1, 1), &one);
    int off = graph_const(g, NULL, DTYPE_F32, shape_of(1, 1), &zero);
    int wide = graph_const_i64(g, 2, (int64_t[]){directions, WIDTH});
    int two = graph_const_i64(g, 2, (int64_t[]){directions, 2 * WIDTH});
    int forget = graph_node(g, "Expand", NULL, INPUTS(on, wide), NO_ATTRS);
    int before = graph_node(g, "Expand", NULL, INPUTS(off, two), NO_ATTRS);
    int after = graph_node(g, "Expand", NULL, INPUTS(off, wide), NO_ATTRS);
    int trained = weight(g, name_of(g, "%s.bias", name), shape_of(directions, GATES * WIDTH));
    return concat(g, 1, 4, (int[]){trained, before, forget, after});
}

struct lstm {
    int y;    /* [T, N, directions WIDTH] */
    int h, c; /* last states, [directions, N, WIDTH] */
};

static struct lstm lstm(struct graph *g, const char *name, int x, int lengths, int64_t directions)
{
    const int64_t *dim = g->values[x == NONE ? 0 : x].shape.dim;
    int64_t together[] = {dim[0], dim[1], directions * WIDTH}, inner[] = {0, 2, 1, 3};
    int w = weight(g, name_of(g, "%s.weight", name), shape_of(directions, GATES * WIDTH, dim[2]));
    int r =
        weight(g, name_of(g, "%s.recurrence", name), shape_of(directions, GATES * WIDTH, WIDTH));
    int out[3];
    graph_node_many(g, "LSTM", name, INPUTS(x, w, r, lstm_bias(g, name, directions), lengths),
                    ATTRS(attr_int("hidden_size", WIDTH),
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
static struct encoder encode(struct graph *g, int words, int lengths)
{
    static const int64_t swap[] = {1, 0, 2};
    struct encoder e;
    int x = transpose(g, embedding(g, words, "encoder.embedding", VOCABULARY, WIDTH), 3, swap);
    struct lstm layer = lstm(g, "encoder.bi", x, lengths, 2);
    e.h[0] = backward_state(g, layer.h);
    e.c[0] = backward_state(g, layer.c);
    x = layer.y;
    for (int k = 1; k < LAYERS; k++) {
        layer = lstm(g, name_of(g, "encoder.uni%d", k - 1), x, lengths, 1);
        x = k < RESIDUAL_FROM ? layer.y : add(g, layer.y, x);
        e.h[k] = layer.h;
        e.c[k] = layer.c;
    }
    e.memory = transpose(g, x, 3, swap);
    return e;
}

/* Normalised Bahdanau attention: g v / |v|. */
static int score_vector(struct graph *g)
{
    int v = weight(g, "attention.v", shape_of(WIDTH));
    int scale = graph_param(g, "attention.g", DTYPE_F32, shape_of(1),
                            (struct fill){.kind = FILL_CONST, .a = 4});
    int length = graph_node(g, "ReduceL2", NULL, INPUTS(v), ATTRS(attr_int("keepdims", 0)));
    return mul(g, scale, graph_node(g, "Div", NULL, INPUTS(v, length), NO_ATTRS));
}

static void decode(struct graph *g, const struct encoder *e, int lengths, int64_t beam,
                   int64_t steps)
{
    /* Wider than the others: a trained net is sure of most words, and near ties are rare. */
    struct fill decided = {.kind = FILL_UNIFORM, .a = -0.5, .b = 0.5};
    int table = graph_param(g, "decoder.embedding", DTYPE_F32, shape_of(VOCABULARY, WIDTH),
                            (struct fill){.kind = FILL_UNIFORM, .a = -1, .b = 1});
    int memory_layer = weight(g, "attention.memory", shape_of(WIDTH, WIDTH));
    int keys = graph_node(g, "MatMul", "memory_layer", INPUTS(e->memory, memory_layer), NO_ATTRS);
    int inputs[] = {
        keys,
        e->memory,
        lengths,
        concat(g, 0, LAYERS, e->h),
        concat(g, 0, LAYERS, e->c),
        table,
        weight(g, "attention.query", shape_of(WIDTH, WIDTH)),
        score_vector(g),
        weight(g, "attention.b", shape_of(WIDTH)),
        weight(g, "decoder.weight", shape_of(LAYERS, 3 * WIDTH, GATES * WIDTH)),
        weight(g, "decoder.bias", shape_of(LAYERS, GATES * WIDTH)),
        graph_param(g, "output_projection", DTYPE_F32, shape_of(WIDTH, VOCABULARY), decided)};
    int out[2];
    graph_node_many(g, "AttentionDecoder", "decoder", ARRAY_COUNT(inputs), inputs,
                    ATTRS(attr_int("beam", beam), attr_int("steps", steps),
                          attr_int("start", START), attr_int("end", END),
                          attr_float("length_penalty", 1), attr_float("forget_bias", 1),
                          attr_int("residual", RESIDUAL_FROM)),
                    2, out);
    graph_rename(g, out[0], "words");
    graph_rename(g, out[1], "scores");
    graph_output(g, out[0]);
    graph_output(g, out[1]);
}

static void build(struct graph *g, const struct workload_config *config)
{
    int64_t n = config->batch, source = config_int(config, "source");
    if (!at_most(g, "beam", config_int(config, "beam"), BEAM_MAX))
        return;
    int words = graph_input(g, "source", DTYPE_I32, shape_of(n, source),
                            (struct fill){.kind = FILL_ZIPF, .a = 3, .b = VOCABULARY});
    int lengths = graph_input(g, "source_length", DTYPE_I32, shape_of(n),
                              (struct fill){.kind = FILL_INDEX,
                                            .a = (double)((source + 3) / 4),
                                            .b = (double)source + 1});
    struct encoder encoder = encode(g, words, lengths);
    decode(g, &encoder, lengths, config_int(config, "beam"), config_int(config, "target"));
}

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
};
