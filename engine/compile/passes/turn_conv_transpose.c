/* SPDX-License-Identifier: Apache-2.0
 *
 * A transposed convolution of stride 1 is a convolution: channels of the weights exchanged, taps in
 * opposite order, and as much padding as the kernel reaches less what was cut off. Convolutions
 * have the faster kernels, and take in norms and activations. */
#include <stdio.h>
#include <stdlib.h>

#include "engine/compile/passes/rewrite.h"
#include "engine/graph/op_list.h"
#include "engine/ops/lib/window.h"

/* Weights [C, M, taps] as [M, C, taps backwards]; malloc'd. */
static float *turn(const struct value *weights)
{
    const struct shape *s = &weights->shape;
    int64_t in = s->dim[0], out = s->dim[1], taps = shape_span(s, 2, s->rank);
    float *from = malloc((size_t)shape_count(s) * sizeof(*from) + 1);
    float *to = malloc((size_t)shape_count(s) * sizeof(*to) + 1);
    if (from && to)
        value_materialise(weights, from);
    for (int64_t c = 0; from && to && c < in; c++)
        for (int64_t m = 0; m < out; m++)
            for (int64_t t = 0; t < taps; t++)
                to[(m * in + c) * taps + t] = from[(c * out + m) * taps + taps - 1 - t];
    if (!from) {
        free(to);
        to = NULL;
    }
    free(from);
    return to;
}

/* The window of the convolution; false when there is none. */
static bool turned_window(const struct graph *g, const struct node *node, struct window *w)
{
    const struct value *weights = &g->values[node->inputs[1]];
    struct error ignored;
    if (node->op != &op_conv_transpose || node->dead || node->post_count ||
        !value_is_fixed(weights) || weights->dtype != DTYPE_F32 ||
        window_transposed_from_node(node, &g->values[node->inputs[0]].shape, weights->shape.dim + 2,
                                    w, &ignored) != STATUS_OK)
        return false;
    for (int k = 0; k < w->rank; k++) {
        int64_t reach = (w->kernel[k] - 1) * w->dilation[k];
        w->pad_begin[k] = reach - w->pad_begin[k];
        w->pad_end[k] = w->out[k] - w->in[k] + reach - w->pad_begin[k];
        if (w->stride[k] != 1 || w->pad_begin[k] < 0 || w->pad_end[k] < 0)
            return false;
    }
    return w->group == 1;
}

static enum status turn_node(struct graph *g, int n, const struct window *w, struct error *err)
{
    const struct value *weights = &g->values[g->nodes[n].inputs[1]];
    struct shape shape = weights->shape;
    float *data = turn(weights);
    char name[256];
    if (!data)
        return FAIL_NO_MEMORY(err);
    shape.dim[0] = weights->shape.dim[1];
    shape.dim[1] = weights->shape.dim[0];
    snprintf(name, sizeof(name), "%.200s.turned_weight", g->nodes[n].name);
    int inputs[3] = {g->nodes[n].inputs[0], rewrite_weight(g, name, shape, data), NONE};
    int input_count = g->nodes[n].op_inputs;
    if (input_count > 2)
        inputs[2] = g->nodes[n].inputs[2];
    int64_t pads[2 * SPATIAL_MAX];
    for (int k = 0; k < w->rank; k++) {
        pads[k] = w->pad_begin[k];
        pads[w->rank + k] = w->pad_end[k];
    }
    int old = g->nodes[n].outputs[0];
    g->phase = g->nodes[n].phase;
    int fresh = graph_node(g, op_conv.name, g->nodes[n].name, input_count, inputs,
                           ATTRS(attr_ints("kernel_shape", w->rank, w->kernel),
                                 attr_ints("dilations", w->rank, w->dilation),
                                 attr_ints("pads", 2 * w->rank, pads)));
    if (g->failed)
        return graph_check(g, err);
    rewrite_replace(g, old, fresh);
    return STATUS_OK;
}

enum status pass_turn_conv_transpose(struct graph *g, struct error *err)
{
    int count = g->node_count; /* nodes are added at the end */
    for (int n = 0; n < count; n++) {
        struct window w;
        if (turned_window(g, &g->nodes[n], &w))
            TRY(turn_node(g, n, &w, err));
    }
    return STATUS_OK;
}
