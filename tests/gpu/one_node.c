/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/gpu/one_node.h"

#define NORMAL ((struct fill){.kind = FILL_NORMAL, .b = 1})

static int param(struct graph *g, const char *name, struct shape shape)
{
    return graph_param(g, name, DTYPE_F32, shape, NORMAL);
}

void one_conv(struct graph *g)
{
    int x = graph_input(g, "x", DTYPE_F32, shape_of(2, 16, 6, 5), NORMAL);
    int z = graph_input(g, "z", DTYPE_F32, shape_of(2, 8, 6, 5), NORMAL);
    int y = graph_node(g, "Conv", NULL,
                       INPUTS(x, param(g, "w", shape_of(8, 16, 3, 3)), param(g, "b", shape_of(8))),
                       ATTRS(attr_ints_of("pads", 1, 1, 1, 1)));
    y = graph_node(g, "Add", NULL, INPUTS(y, z), NO_ATTRS);
    graph_output(g, graph_node(g, "Relu", NULL, INPUTS(y), NO_ATTRS));
}

void one_stem(struct graph *g)
{
    int x = graph_input(g, "x", DTYPE_F32, shape_of(2, 3, 6, 5), NORMAL);
    int y = graph_node(g, "Conv", NULL,
                       INPUTS(x, param(g, "w", shape_of(8, 3, 3, 3)), param(g, "b", shape_of(8))),
                       ATTRS(attr_ints_of("pads", 1, 1, 1, 1)));
    graph_output(g, graph_node(g, "Relu", NULL, INPUTS(y), NO_ATTRS));
}

void one_depthwise(struct graph *g)
{
    int x = graph_input(g, "x", DTYPE_F32, shape_of(2, 8, 6, 5), NORMAL);
    int y = graph_node(g, "Conv", NULL,
                       INPUTS(x, param(g, "w", shape_of(8, 1, 3, 3)), param(g, "b", shape_of(8))),
                       ATTRS(attr_int("group", 8)));
    graph_output(g, graph_node(g, "Relu", NULL, INPUTS(y), NO_ATTRS));
}

void one_conv_1d(struct graph *g)
{
    int x = graph_input(g, "x", DTYPE_F32, shape_of(1, 4, 9), NORMAL);
    int y = graph_node(g, "Conv", NULL, INPUTS(x, param(g, "w", shape_of(8, 4, 3))), NO_ATTRS);
    graph_output(g, graph_node(g, "HardSwish", NULL, INPUTS(y), NO_ATTRS));
}

void one_conv_transpose(struct graph *g)
{
    int x = graph_input(g, "x", DTYPE_F32, shape_of(1, 8, 6, 5), NORMAL);
    graph_output(g, graph_node(g, "ConvTranspose", NULL,
                               INPUTS(x, param(g, "w", shape_of(8, 4, 2, 2))),
                               ATTRS(attr_ints_of("strides", 2, 2))));
}

void one_pool(struct graph *g)
{
    int x = graph_input(g, "x", DTYPE_F32, shape_of(1, 8, 7, 7), NORMAL);
    graph_output(g, graph_node(g, "MaxPool", NULL, INPUTS(x),
                               ATTRS(attr_ints_of("kernel_shape", 3, 3),
                                     attr_ints_of("strides", 2, 2), attr_int("ceil_mode", 1))));
}

void one_batch_norm(struct graph *g)
{
    int x = graph_input(g, "x", DTYPE_F32, shape_of(2, 3, 4, 5), NORMAL);
    struct fill positive = {.kind = FILL_UNIFORM, .a = 0.5, .b = 2};
    int variance = graph_param(g, "variance", DTYPE_F32, shape_of(3), positive);
    int y = graph_node(g, "BatchNormalization", NULL,
                       INPUTS(x, param(g, "scale", shape_of(3)), param(g, "shift", shape_of(3)),
                              param(g, "mean", shape_of(3)), variance),
                       NO_ATTRS);
    graph_output(g, graph_node(g, "Relu", NULL, INPUTS(y), NO_ATTRS));
}

void one_layer_norm(struct graph *g)
{
    int x = graph_input(g, "x", DTYPE_F32, shape_of(5, 32), NORMAL);
    graph_output(
        g, graph_node(g, "LayerNormalization", NULL,
                      INPUTS(x, param(g, "scale", shape_of(32)), param(g, "shift", shape_of(32))),
                      NO_ATTRS));
}

static int attention(struct graph *g, int mask)
{
    int x = graph_input(g, "x", DTYPE_F32, shape_of(2, 9, 96), NORMAL);
    struct attr heads[] = {attr_int("heads", 2)};
    int inputs[] = {x, NONE, NONE, mask};
    return graph_node(g, "Attention", NULL, mask == NONE ? 1 : 4, inputs, 1, heads);
}

void one_attention(struct graph *g)
{
    graph_output(g, attention(g, NONE));
}

void one_masked(struct graph *g)
{
    graph_output(g, attention(g, graph_input(g, "mask", DTYPE_F32, shape_of(2, 1, 1, 9), NORMAL)));
}

static void rnn(struct graph *g, const char *op, int gates, struct attr attr, int directions)
{
    int x = graph_input(g, "x", DTYPE_F32, shape_of(3, 2, 5), NORMAL);
    int w = param(g, "w", shape_of(directions, gates * 4, 5));
    int r = param(g, "r", shape_of(directions, gates * 4, 4));
    int b = param(g, "b", shape_of(directions, 2 * gates * 4));
    struct attr attrs[] = {attr_int("hidden_size", 4), attr};
    int outputs[2];
    graph_node_many(g, op, NULL, INPUTS(x, w, r, b), 2, attrs, 2, outputs);
    graph_output(g, outputs[0]);
    graph_output(g, outputs[1]);
}

void one_lstm(struct graph *g)
{
    rnn(g, "LSTM", 4, attr_string("direction", "bidirectional"), 2);
}

void one_gru(struct graph *g)
{
    rnn(g, "GRU", 3, attr_int("linear_before_reset", 1), 1);
}

void one_softmax(struct graph *g)
{
    int x = graph_input(g, "x", DTYPE_F32, shape_of(2, 3, 5), NORMAL);
    graph_output(g, graph_node(g, "Softmax", NULL, INPUTS(x), ATTRS(attr_int("axis", 1))));
}

/* A sum with a row, then with a residual: cuDNN wants them the other way round. */
void one_matmul(struct graph *g)
{
    int x = graph_input(g, "x", DTYPE_F32, shape_of(1, 6, 8), NORMAL);
    int z = graph_input(g, "z", DTYPE_F32, shape_of(1, 6, 16), NORMAL);
    int y = graph_node(g, "MatMul", NULL, INPUTS(x, param(g, "w", shape_of(8, 16))), NO_ATTRS);
    y = graph_node(g, "Add", NULL, INPUTS(y, param(g, "b", shape_of(16))), NO_ATTRS);
    graph_output(g, graph_node(g, "Add", NULL, INPUTS(y, z), NO_ATTRS));
}

void one_gemm(struct graph *g)
{
    int x = graph_input(g, "x", DTYPE_F32, shape_of(6, 8), NORMAL);
    int y = graph_node(g, "Gemm", NULL,
                       INPUTS(x, param(g, "w", shape_of(16, 8)), param(g, "b", shape_of(16))),
                       ATTRS(attr_int("transB", 1), attr_float("alpha", 0.5)));
    graph_output(g, graph_node(g, "Gelu", NULL, INPUTS(y), NO_ATTRS));
}
