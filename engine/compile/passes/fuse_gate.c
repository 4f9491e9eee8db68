/* SPDX-License-Identifier: Apache-2.0
 *
 * The gradient of a ReLU after a batch normalisation becomes part of the normalisation's gradient,
 * which reads the normalisation's input anyway and so sees where the ReLU let through: one tensor
 * less is written, and two less are read. */
#include <string.h>

#include "engine/compile/passes/rewrite.h"
#include "engine/graph/op_list.h"

enum { DY, X, SCALE, MEAN, INVERSE, BIAS, INPUTS_WITH_RELU };

/* The normalisation whose gradient the node is, if `result` is a ReLU of what it computes. */
static const struct node *norm_of(const struct graph *g, const struct node *gradient, int result)
{
    const struct node *relu = rewrite_producer(g, result, &op_relu);
    const struct node *norm =
        relu ? rewrite_producer(g, relu->inputs[0], &op_batch_normalization) : NULL;
    if (!norm || norm->output_count != INVERSE + 1 || relu->inputs[0] != norm->outputs[0])
        return NULL;
    bool same =
        norm->inputs[0] == gradient->inputs[X] && norm->inputs[1] == gradient->inputs[SCALE] &&
        norm->outputs[3] == gradient->inputs[MEAN] && norm->outputs[4] == gradient->inputs[INVERSE];
    return same ? norm : NULL;
}

/* Autodiff writes a ReLU's gradient as relu_slope(dy, its result). */
static const struct node *gate_of(const struct graph *g, int value)
{
    const struct node *gate = rewrite_producer(g, value, &op_function);
    bool found = gate && strcmp(node_string(gate, "function", ""), "relu_slope") == 0 &&
                 shape_equal(&g->values[gate->inputs[0]].shape, &g->values[value].shape);
    return found ? gate : NULL;
}

static enum status fuse(struct graph *g, struct node *gradient, struct error *err)
{
    const struct node *gate = gate_of(g, gradient->inputs[DY]);
    const struct node *norm = gate ? norm_of(g, gradient, gate->inputs[1]) : NULL;
    if (!norm || rewrite_only_user(g, gradient->inputs[DY]) == NONE)
        return STATUS_OK;
    int *inputs = arena_array(&g->arena, INPUTS_WITH_RELU, sizeof(*inputs));
    if (!inputs)
        return FAIL_NO_MEMORY(err);
    memcpy(inputs, gradient->inputs, BIAS * sizeof(*inputs));
    inputs[DY] = gate->inputs[0];
    inputs[BIAS] = norm->inputs[2];
    gradient->inputs = inputs;
    gradient->input_count = gradient->op_inputs = INPUTS_WITH_RELU;
    return STATUS_OK;
}

enum status pass_fuse_gate(struct graph *g, struct error *err)
{
    for (int n = 0; n < g->node_count; n++) {
        struct node *node = &g->nodes[n];
        if (!node->dead && node->op == &op_batch_normalization_gradient &&
            node->op_inputs == BIAS && g->values[node->inputs[X]].dtype == DTYPE_F32)
            TRY(fuse(g, node, err));
    }
    return STATUS_OK;
}
