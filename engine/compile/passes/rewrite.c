/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/compile/passes/rewrite.h"

#include <stdlib.h>
#include <string.h>

struct node *rewrite_producer(const struct graph *g, int value, const struct op *op)
{
    if (value == NONE || g->values[value].producer == NONE)
        return NULL;
    struct node *node = &g->nodes[g->values[value].producer];
    if (node->dead || node->post_count || node->op != op)
        return NULL;
    return node->outputs[0] == value ? node : NULL;
}

bool rewrite_is_output(const struct graph *g, int value)
{
    for (int k = 0; k < g->output_count; k++)
        if (g->outputs[k] == value)
            return true;
    return false;
}

bool rewrite_reads(const struct node *node, int value)
{
    for (int k = 0; k < node->input_count; k++)
        if (node->inputs[k] == value)
            return true;
    return false;
}

int rewrite_only_user(const struct graph *g, int value)
{
    int user = NONE;
    if (rewrite_is_output(g, value))
        return NONE;
    for (int n = 0; n < g->node_count; n++) {
        for (int k = 0; !g->nodes[n].dead && k < g->nodes[n].input_count; k++) {
            if (g->nodes[n].inputs[k] != value)
                continue;
            if (user != NONE)
                return NONE;
            user = n;
        }
    }
    return user;
}

bool rewrite_scalar(const struct graph *g, int value, double *number)
{
    if (value == NONE)
        return false;
    const struct value *v = &g->values[value];
    if (!value_is_fixed(v) || shape_count(&v->shape) != 1)
        return false;
    if (v->dtype == DTYPE_F32) {
        float x;
        value_materialise(v, &x);
        *number = (double)x;
        return true;
    }
    if (v->dtype == DTYPE_F64) {
        value_materialise(v, number);
        return true;
    }
    if (v->dtype == DTYPE_F16 || v->dtype == DTYPE_BF16) {
        uint16_t bits;
        value_materialise(v, &bits);
        *number = (double)(v->dtype == DTYPE_F16 ? half_to_float(bits) : bfloat_to_float(bits));
        return true;
    }
    return false;
}

bool rewrite_expression(const struct graph *g, const struct node *node, struct chain *chain)
{
    float numbers[CHAIN_INPUTS] = {0};
    const float *scalars[CHAIN_INPUTS] = {0};
    if (node->input_count > CHAIN_INPUTS)
        return false;
    for (int k = 0; k < node->input_count; k++) {
        double number;
        if (!rewrite_scalar(g, node->inputs[k], &number))
            continue;
        numbers[k] = (float)number;
        scalars[k] = &numbers[k];
    }
    return chain_from_node(node, scalars, chain, NULL) == STATUS_OK;
}

bool rewrite_with_scalar(const struct graph *g, const struct node *node, double *number, int *other)
{
    if (!node || node->op_inputs != 2)
        return false;
    for (int k = 0; k < 2; k++) {
        if (rewrite_scalar(g, node->inputs[k], number)) {
            *other = node->inputs[1 - k];
            return true;
        }
    }
    return false;
}

void rewrite_replace(struct graph *g, int old, int fresh)
{
    for (int n = 0; n < g->node_count; n++)
        for (int k = 0; k < g->nodes[n].input_count; k++)
            if (g->nodes[n].inputs[k] == old)
                g->nodes[n].inputs[k] = fresh;
    for (int k = 0; k < g->output_count; k++)
        if (g->outputs[k] == old)
            g->outputs[k] = fresh;
    for (int s = 0; s < g->state_count; s++)
        if (g->states[s].after == old)
            g->states[s].after = fresh;
}

int rewrite_weight(struct graph *g, const char *name, struct shape shape, float *data)
{
    return rewrite_weight_of(g, name, DTYPE_F32, shape, data);
}

int rewrite_weight_of(struct graph *g, const char *name, enum dtype dtype, struct shape shape,
                      void *data)
{
    int v = data ? graph_param(g, name, dtype, shape, (struct fill){0}) : NONE;
    if (v == NONE) {
        free(data);
        return NONE;
    }
    g->values[v].data = data;
    g->values[v].data_owned = true;
    return v;
}

bool rewrite_is_vector(const struct graph *g, int value, int64_t size)
{
    const struct value *v = &g->values[value];
    return value_is_fixed(v) && v->dtype == DTYPE_F32 && v->shape.rank == 1 &&
           v->shape.dim[0] == size;
}

int rewrite_side_by_side(struct graph *g, int count, const int *values)
{
    struct shape shape = g->values[values[0]].shape;
    int64_t rows = shape.rank == 1 ? 1 : shape.dim[0], columns = 0, at = 0;
    for (int k = 0; k < count; k++)
        columns += g->values[values[k]].shape.dim[shape.rank - 1];
    size_t bytes = (size_t)(rows * columns) * sizeof(float);
    float *joined = malloc(bytes + 1), *one = malloc(bytes + 1);
    for (int k = 0; joined && one && k < count; k++) {
        int64_t width = g->values[values[k]].shape.dim[shape.rank - 1];
        value_materialise(&g->values[values[k]], one);
        for (int64_t r = 0; r < rows; r++)
            memcpy(joined + r * columns + at, one + r * width, (size_t)width * sizeof(*one));
        at += width;
    }
    if (!one) {
        free(joined);
        return NONE;
    }
    free(one);
    shape.dim[shape.rank - 1] = columns;
    return rewrite_weight(g, NULL, shape, joined);
}
