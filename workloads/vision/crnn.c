/* SPDX-License-Identifier: Apache-2.0
 *
 * CRNN: Shi, Bai, Yao, "An End-to-End Trainable Neural Network for Image-based Sequence
 * Recognition", TPAMI 2017, as AI Matrix has it in TensorFlow. Seven convolutions turn a line of
 * text into a sequence of T = width / 4 columns; two bidirectional LSTMs read it; each column votes
 * for one of 36 letters and digits or the blank, which the CTC decoder reduces to a word. */
#include "workloads/lib/layers.h"
#include "workloads/lib/limits.h"
#include "workloads/workload.h"

static const struct param params[] = {
    {"width", "100", NULL,
     "of the 32 pixels high image, a multiple of 4: 100 as in the data set, or 280"},
    {.name = NULL},
};

enum { HEIGHT = 32, HIDDEN = 256, CLASSES = 37, GATES = 4 };

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
static int last_conv(struct graph *g, int x)
{
    double bound = 0.0541; /* He: sqrt(6 / (512 x 2 x 2)) */
    int w = graph_param(g, "conv7.weight", DTYPE_F32, shape_of(512, 512, 2, 2),
                        (struct fill){.kind = FILL_UNIFORM, .a = -bound, .b = bound});
    x = graph_node(g, "Conv", "conv7", INPUTS(x, w),
                   ATTRS(attr_ints_of("kernel_shape", 2, 2), attr_ints_of("strides", 2, 1),
                         attr_ints_of("pads", 0, 0, 0, 1)));
    return relu(g, batch_norm(g, x, "conv7.bn", 1e-3, 1.0));
}

/* [N, 3, 32, W] -> [N, 512, 1, W / 4] */
static int convolutions(struct graph *g, int x)
{
    /* Pixels were divided by 255 twice; weights of this size undo it, as training would. */
    x = conv2d(g, x, .name = "conv1", .out = 64, .kernel = 3, .pad = 1, .bias = true, .gain = 255);
    x = halve(g, relu(g, batch_norm(g, x, "conv1.bn", 1e-3, 1.0)));
    x = halve(g, conv(g, x, "conv2", 128, true));
    x = conv(g, x, "conv3", 256, false);
    x = halve_height(g, conv(g, x, "conv4", 256, false));
    x = conv(g, x, "conv5", 512, false);
    x = halve_height(g, conv(g, x, "conv6", 512, false));
    return last_conv(g, x);
}

/* [T, N, 512] -> [T, N, 512]: both directions side by side. */
static int bidirectional_lstm(struct graph *g, int x, const char *name, int64_t steps, int64_t n)
{
    static const float zeros[2 * GATES * HIDDEN];
    struct fill weights = {.kind = FILL_UNIFORM, .a = -0.1, .b = 0.1};
    int w = graph_param(g, name_of(g, "%s.weight", name), DTYPE_F32,
                        shape_of(2, GATES * HIDDEN, 2 * HIDDEN), weights);
    int r = graph_param(g, name_of(g, "%s.recurrent", name), DTYPE_F32,
                        shape_of(2, GATES * HIDDEN, HIDDEN), weights);
    int bias = graph_param(g, name_of(g, "%s.bias", name), DTYPE_F32, shape_of(2, GATES * HIDDEN),
                           (struct fill){.kind = FILL_UNIFORM, .a = 0, .b = 0.5});
    /* TensorFlow has one bias per gate, ONNX two. */
    int second = graph_const(g, NULL, DTYPE_F32, shape_of(2, GATES * HIDDEN), zeros);
    int b = concat(g, 1, 2, (const int[]){bias, second});
    int y = graph_node(g, "LSTM", name, INPUTS(x, w, r, b),
                       ATTRS(attr_string("direction", "bidirectional"),
                             attr_int("hidden_size", HIDDEN))); /* [T, 2, N, 256] */
    y = transpose(g, y, 4, (const int64_t[]){0, 2, 1, 3});
    return reshape(g, y, 3, (const int64_t[]){steps, n, 2 * HIDDEN});
}

static void build(struct graph *g, const struct workload_config *config)
{
    int64_t n = config->batch, width = config_int(config, "width"), steps = width / 4;
    if (!multiple_of(g, "width", width, 4))
        return;
    int x = graph_input(g, "image", DTYPE_F32, shape_of(n, 3, HEIGHT, width),
                        (struct fill){.kind = FILL_IMAGE, .a = 0, .b = 0.6});
    x = graph_node(g, "Div", "scale", INPUTS(x, graph_const_f32(g, 255)), NO_ATTRS);
    x = convolutions(g, x);
    x = reshape(g, x, 3, (const int64_t[]){n, 2 * HIDDEN, steps});
    x = transpose(g, x, 3, (const int64_t[]){2, 0, 1}); /* [T, N, 512] */
    x = bidirectional_lstm(g, x, "bilstm1", steps, n);
    x = bidirectional_lstm(g, x, "bilstm2", steps, n);
    int w = graph_param(g, "logits.weight", DTYPE_F32, shape_of(2 * HIDDEN, CLASSES),
                        (struct fill){.kind = FILL_UNIFORM, .a = -0.6, .b = 0.6});
    x = graph_node(g, "MatMul", "logits", INPUTS(x, w), NO_ATTRS);
    x = softmax(g, x, -1);
    int word[2]; /* labels [N, T], -1 after the end; lengths [N] */
    graph_node_many(g, "CTCGreedyDecoder", "decode", INPUTS(x), NO_ATTRS, 2, word);
    graph_rename(g, x, "probabilities");
    graph_rename(g, word[0], "labels");
    graph_rename(g, word[1], "lengths");
    graph_output(g, x);
    graph_output(g, word[0]);
    graph_output(g, word[1]);
}

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
};
