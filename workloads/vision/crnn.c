/* SPDX-License-Identifier: Apache-2.0
 *
 * CRNN: Shi, Bai, Yao, "An End-to-End Trainable Neural Network for Image-based Sequence
 * Recognition", TPAMI 2017, as AI Matrix has it in TensorFlow. Seven convolutions turn a line of
 * text into a sequence of T = width / 4 columns; two bidirectional LSTMs read it; each column votes
 * for one of 36 letters and digits or the blank, which the CTC decoder reduces to a word. It learns
 * by the sum over all ways to spell the word (CTC). */
#include <math.h>

#include "workloads/lib/layers.h"
#include "workloads/lib/limits.h"
#include "workloads/lib/losses.h"
#include "workloads/lib/vision/words.h"

static const struct param params[] = {
    {"width", "100", NULL,
     "of the 32 pixels high image, a multiple of 4: 100 as in the data set, or 280"},
    {"filters", "64", NULL, "channels of the first convolution, an eighth of those of the last"},
    {"units", "256", NULL, "of each direction of the LSTMs"},
    {.name = NULL},
};

enum { HEIGHT = 32, CLASSES = WORDS_SYMBOLS + 1, GATES = 4 };

/* Only the first two convolutions have a bias. */
static int conv(struct graph *g, int x, const char *name, int64_t out, bool bias)
{
    x = conv2d(g, x, .name = name, .out = out, .kernel = 3, .pad = 1, .bias = bias);
    return relu(g, batch_norm(g, x, name_of(g, "%s.bn", name), 1e-3, 1.0));
}

static int halve(struct graph *g, int x)
{
    return max_pool(g, x, (struct window2d){.kernel = 2, .stride = 2});
}

/* Two rows become one; the columns are the time and stay. */
static int halve_height(struct graph *g, int x)
{
    return graph_node(g, "MaxPool", NULL, INPUTS(x),
                      ATTRS(attr_ints_of("kernel_shape", 2, 1), attr_ints_of("strides", 2, 1)));
}

/* 2x2 over the last two rows, one column of padding on the right. */
static int last_conv(struct graph *g, int x, int64_t channels)
{
    double bound = 0.0541 * sqrt(512 / (double)channels); /* He: sqrt(6 / (512 x 2 x 2)) */
    int w = graph_param(g, "conv7.weight", DTYPE_F32, shape_of(channels, channels, 2, 2),
                        (struct fill){.kind = FILL_UNIFORM, .a = -bound, .b = bound});
    x = graph_node(g, "Conv", "conv7", INPUTS(x, w),
                   ATTRS(attr_ints_of("kernel_shape", 2, 2), attr_ints_of("strides", 2, 1),
                         attr_ints_of("pads", 0, 0, 0, 1)));
    return relu(g, batch_norm(g, x, "conv7.bn", 1e-3, 1.0));
}

/* [N, 3, 32, W] -> [N, 8 filters, 1, W / 4] */
static int convolutions(struct graph *g, int x, int64_t filters)
{
    /* Pixels were divided by 255 twice; weights of this size undo it, as training would. */
    x = conv2d(g, x, .name = "conv1", .out = filters, .kernel = 3, .pad = 1, .bias = true,
               .gain = 255);
    x = halve(g, relu(g, batch_norm(g, x, "conv1.bn", 1e-3, 1.0)));
    x = halve(g, conv(g, x, "conv2", 2 * filters, true));
    x = conv(g, x, "conv3", 4 * filters, false);
    x = halve_height(g, conv(g, x, "conv4", 4 * filters, false));
    x = conv(g, x, "conv5", 8 * filters, false);
    x = halve_height(g, conv(g, x, "conv6", 8 * filters, false));
    return last_conv(g, x, 8 * filters);
}

/* Of both directions, by gate: input, output, forget, cell. One that learns begins by remembering
 * (TensorFlow's forget bias). */
static int lstm_bias(struct graph *g, const char *name, int64_t units)
{
    int64_t count = 2 * GATES * units;
    int bias = graph_param(g, name_of(g, "%s.bias", name), DTYPE_F32, shape_of(2, GATES * units),
                           (struct fill){.kind = FILL_UNIFORM, .a = 0, .b = 0.5});
    float *data = g->training ? arena_array(&g->arena, (size_t)count, sizeof(*data)) : NULL;
    for (int64_t k = 0; data && k < count; k++)
        data[k] = k / units % GATES == 2;
    if (!g->failed)
        g->values[bias].data = data;
    /* TensorFlow has one bias per gate, ONNX two. */
    float *zeros = arena_array(&g->arena, (size_t)count, sizeof(*zeros));
    int second = graph_const(g, NULL, DTYPE_F32, shape_of(2, GATES * units), zeros);
    return concat(g, 1, 2, (const int[]){bias, second});
}

/* [T, N, in] -> [T, N, 2 units]: both directions side by side. */
static int bidirectional_lstm(struct graph *g, int x, const char *name, int64_t units)
{
    int64_t steps = dim_of(g, x, 0), n = dim_of(g, x, 1), in = dim_of(g, x, 2);
    /* One that learns begins with Glorot's weights, as TensorFlow draws them. */
    double glorot = sqrt(6 / (double)(in + (1 + GATES) * units)),
           bound = g->training ? glorot : 0.1;
    struct fill weights = {.kind = FILL_UNIFORM, .a = -bound, .b = bound};
    int w = graph_param(g, name_of(g, "%s.weight", name), DTYPE_F32, shape_of(2, GATES * units, in),
                        weights);
    int r = graph_param(g, name_of(g, "%s.recurrent", name), DTYPE_F32,
                        shape_of(2, GATES * units, units), weights);
    int b = lstm_bias(g, name, units);
    int y = graph_node(g, "LSTM", name, INPUTS(x, w, r, b),
                       ATTRS(attr_string("direction", "bidirectional"),
                             attr_int("hidden_size", units))); /* [T, 2, N, units] */
    y = transpose(g, y, 4, (const int64_t[]){0, 2, 1, 3});
    return reshape(g, y, 3, (const int64_t[]){steps, n, 2 * units});
}

/* [T, N, CLASSES] */
static int logits_of_image(struct graph *g, const struct workload_config *config)
{
    int64_t n = config->batch, width = config_int(config, "width"), steps = width / 4;
    int64_t filters = config_int(config, "filters"), units = config_int(config, "units");
    if (!multiple_of(g, "width", width, 4))
        return NONE;
    int x = image_input(g, n, HEIGHT, width);
    x = graph_node(g, "Div", "scale", INPUTS(x, graph_const_f32(g, 255)), NO_ATTRS);
    x = convolutions(g, x, filters);
    x = reshape(g, x, 3, (const int64_t[]){n, 8 * filters, steps});
    x = transpose(g, x, 3, (const int64_t[]){2, 0, 1}); /* [T, N, 8 filters] */
    x = bidirectional_lstm(g, x, "bilstm1", units);
    x = bidirectional_lstm(g, x, "bilstm2", units);
    int w = graph_param(g, "logits.weight", DTYPE_F32, shape_of(2 * units, CLASSES),
                        (struct fill){.kind = FILL_UNIFORM, .a = -0.6, .b = 0.6});
    return graph_node(g, "MatMul", "logits", INPUTS(x, w), NO_ATTRS);
}

static void build(struct graph *g, const struct workload_config *config)
{
    int x = softmax(g, logits_of_image(g, config), -1);
    int word[2]; /* labels [N, T], -1 after the end; lengths [N] */
    graph_node_many(g, "CTCGreedyDecoder", "decode", INPUTS(x), NO_ATTRS, 2, word);
    graph_rename(g, x, "probabilities");
    graph_rename(g, word[0], "labels");
    graph_rename(g, word[1], "lengths");
    graph_output(g, x);
    graph_output(g, word[0]);
    graph_output(g, word[1]);
}

/* ---- training ---- */

static void build_loss(struct graph *g, const struct workload_config *config)
{
    int x = logits_of_image(g, config);
    int64_t n = config->batch, room = dim_of(g, x, 0) / 2 + 1;
    int label = graph_input(g, "label", DTYPE_I64, shape_of(n, room),
                            (struct fill){.kind = FILL_INDEX, .a = 0, .b = WORDS_SYMBOLS});
    int length = graph_input(g, "label_length", DTYPE_I64, shape_of(n),
                             (struct fill){.kind = FILL_INDEX, .a = 1, .b = (double)room});
    int each = graph_node(g, "CTCLoss", "ctc", INPUTS(x, label, length), NO_ATTRS);
    int loss = mean_of(g, each);
    int word = graph_node(g, "CTCGreedyDecoder", "decode", INPUTS(x), NO_ATTRS);
    word = slice(g, word, (struct range){.axis = 1, .start = 0, .stop = room});
    int same = cast(g, binary(g, "Equal", word, label), DTYPE_F32);
    int right = graph_node(g, "ReduceMin", NULL, INPUTS(same),
                           ATTRS(attr_ints_of("axes", 1), attr_int("keepdims", 0)));
    graph_rename(g, loss, "loss");
    graph_rename(g, right, "right");
    graph_output(g, loss);
    graph_output(g, right);
}

static const struct recipe recipe = {
    .optimiser = "momentum",
    .attrs = {{.name = "momentum", .kind = ATTR_FLOAT, .f = 0.9}},
    .schedule =
        {.kind = SCHEDULE_STEP, .rate = 0.01, .factor = 0.1, .every = 500000, .steps = 2000},
    .source = "AI Matrix CRNN (TensorFlow)",
};

static const struct training training = {
    .build = build_loss,
    .recipe = &recipe,
    .fill = words_fill,
    .quality = &quality_share,
    .answers = "right",
    .targets = "label",
    .lesson = WORDS_LESSON,
    .tiny = "width=48,filters=8,units=32",
    .tiny_batch = 16,
    .tiny_rate = 0.05,
    .tiny_steps = 100,
};

REGISTER(workload, crnn) = {
    .name = "crnn",
    .domain = "vision",
    .task = "text recognition",
    .summary = "CRNN on lines of text 32 pixels high, greedy CTC decoding",
    .source = "Shi et al., TPAMI 2017; AI Matrix CRNN (TensorFlow)",
    .params = params,
    .table1_batch = 256,
    .batch = 1,
    .build = build,
    .training = &training,
};
