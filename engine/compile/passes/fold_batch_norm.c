/* SPDX-License-Identifier: Apache-2.0
 *
 * y = scale (conv(x) - mean) / sqrt(var + eps) + shift is a convolution with other weights:
 * w' = w k, b' = (b - mean) k + shift, k = scale / sqrt(var + eps). Computed in double, rounded
 * once. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "engine/compile/passes/rewrite.h"
#include "engine/graph/op_list.h"

/* The four vectors of a BatchNormalization, per channel. */
struct norm {
    int64_t channels;
    float *scale, *shift, *mean, *var; /* into one block */
    double eps;
};

static bool foldable(const struct graph *g, const struct node *bn, const struct node *conv)
{
    if (!conv || conv->op_inputs < 2 || conv->post_count || bn->output_count != 1 ||
        node_int(bn, "training_mode", 0) || rewrite_only_user(g, conv->outputs[0]) == NONE)
        return false;
    for (int k = 1; k < 5; k++)
        if (!value_is_fixed(&g->values[bn->inputs[k]]) ||
            g->values[bn->inputs[k]].dtype != DTYPE_F32)
            return false;
    for (int k = 1; k < conv->op_inputs; k++)
        if (conv->inputs[k] != NONE && !value_is_fixed(&g->values[conv->inputs[k]]))
            return false;
    const struct value *weights = &g->values[conv->inputs[1]];
    return weights->dtype == DTYPE_F32 && shape_count(&weights->shape) > 0;
}

static enum status fold_values(struct graph *g, const struct node *conv, const struct norm *norm,
                               int *weights, int *bias, struct error *err)
{
    const struct value *w = &g->values[conv->inputs[1]];
    int64_t count = shape_count(&w->shape), per_channel = count / norm->channels;
    float *data = malloc((size_t)count * sizeof(*data) + 1);
    float *offset = calloc((size_t)norm->channels + 1, sizeof(*offset));
    if (!data || !offset) {
        free(data);
        free(offset);
        return FAIL_NO_MEMORY(err);
    }
    value_materialise(w, data);
    bool has_bias = conv->op_inputs > 2 && conv->inputs[2] != NONE;
    if (has_bias)
        value_materialise(&g->values[conv->inputs[2]], offset);
    for (int64_t c = 0; c < norm->channels; c++) {
        double k = (double)norm->scale[c] / sqrt((double)norm->var[c] + norm->eps);
        for (int64_t i = 0; i < per_channel; i++)
            data[c * per_channel + i] = (float)((double)data[c * per_channel + i] * k);
        offset[c] =
            (float)(((double)offset[c] - (double)norm->mean[c]) * k + (double)norm->shift[c]);
    }
    struct shape shape = w->shape, channels = shape_of(norm->channels);
    char name[256];
    snprintf(name, sizeof(name), "%.200s.folded_weight", conv->name);
    *weights = rewrite_weight(g, name, shape, data);
    snprintf(name, sizeof(name), "%.200s.folded_bias", conv->name);
    *bias = rewrite_weight(g, name, channels, offset);
    return *weights == NONE || *bias == NONE ? FAIL_NO_MEMORY(err) : STATUS_OK;
}

static enum status fold(struct graph *g, int bn_index, int conv_index, struct error *err)
{
    struct node *bn = &g->nodes[bn_index], *conv = &g->nodes[conv_index];
    struct norm norm = {.channels = shape_count(&g->values[bn->inputs[1]].shape),
                        .eps = node_float(bn, "epsilon", 1e-5)};
    float *block = malloc((size_t)norm.channels * 4 * sizeof(*block) + 4);
    if (!block)
        return FAIL_NO_MEMORY(err);
    norm.scale = block;
    norm.shift = block + norm.channels;
    norm.mean = block + 2 * norm.channels;
    norm.var = block + 3 * norm.channels;
    for (int k = 0; k < 4; k++)
        value_materialise(&g->values[bn->inputs[1 + k]], block + k * norm.channels);
    int weights = NONE, bias = NONE;
    enum status status = fold_values(g, conv, &norm, &weights, &bias, err);
    free(block);
    TRY(status);
    int *inputs = arena_array(&g->arena, 3, sizeof(*inputs));
    if (!inputs)
        return FAIL_NO_MEMORY(err);
    inputs[0] = conv->inputs[0];
    inputs[1] = weights;
    inputs[2] = bias;
    conv->inputs = inputs;
    conv->input_count = conv->op_inputs = 3;
    conv->outputs[0] = bn->outputs[0];
    g->values[bn->outputs[0]].producer = conv_index;
    bn->dead = true;
    return STATUS_OK;
}

enum status pass_fold_batch_norm(struct graph *g, struct error *err)
{
    for (int n = 0; n < g->node_count; n++) {
        struct node *bn = &g->nodes[n];
        if (bn->dead || bn->op != &op_batch_normalization)
            continue;
        const struct node *conv = rewrite_producer(g, bn->inputs[0], &op_conv);
        if (foldable(g, bn, conv))
            TRY(fold(g, n, (int)(conv - g->nodes), err));
    }
    return STATUS_OK;
}
