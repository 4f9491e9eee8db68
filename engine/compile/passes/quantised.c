/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/compile/passes/quantised.h"

#include <float.h>
#include <stdlib.h>

#include "engine/graph/op_list.h"
#include "engine/ops/lib/op_args.h"

bool quantised_is_byte(const struct graph *g, int v)
{
    return g->values[v].dtype == DTYPE_U8 || g->values[v].dtype == DTYPE_I8;
}

bool quantised_alike(const struct graph *g, const struct quantised *a, const struct quantised *b)
{
    return a->scale == b->scale && a->zero == b->zero &&
           g->values[a->value].dtype == g->values[b->value].dtype;
}

double *quantised_numbers(const struct graph *g, int v)
{
    const struct value *value = &g->values[v];
    struct ref_tensor tensor;
    if (!value_is_fixed(value))
        return NULL;
    int64_t count = shape_count(&value->shape);
    void *data = malloc(value_size(value) + 1);
    double *numbers = calloc((size_t)count + 1, sizeof(*numbers));
    bool read = false;
    if (data && numbers) {
        value_materialise(value, data);
        read = ref_from_data(&tensor, value->dtype, &value->shape, data, NULL) == STATUS_OK;
    }
    for (int64_t k = 0; read && k < count; k++)
        numbers[k] = ref_get(&tensor, k);
    if (read)
        ref_release(&tensor);
    free(data);
    if (read)
        return numbers;
    free(numbers);
    return NULL;
}

bool quantised_zero(const struct graph *g, const struct node *node, int64_t *zero)
{
    *zero = 0;
    if (node->op_inputs < 3 || node->inputs[2] == NONE)
        return true;
    double *numbers = quantised_numbers(g, node->inputs[2]);
    int64_t count = shape_count(&g->values[node->inputs[2]].shape);
    bool same = numbers && count > 0;
    for (int64_t k = 1; same && k < count; k++)
        same = numbers[k] == numbers[0];
    if (same)
        *zero = (int64_t)numbers[0];
    free(numbers);
    return same;
}

static bool read_scale(const struct graph *g, const struct node *node, struct quantised *q)
{
    const struct value *scale = &g->values[node->inputs[1]];
    return scale->dtype == DTYPE_F32 && rewrite_scalar(g, node->inputs[1], &q->scale) &&
           q->scale > 0 && q->scale <= (double)FLT_MAX && quantised_zero(g, node, &q->zero);
}

bool quantised_source(const struct graph *g, int v, struct quantised *q)
{
    const struct node *node = v == NONE ? NULL : rewrite_producer(g, v, &op_dequantize_linear);
    if (!node || !quantised_is_byte(g, node->inputs[0]) || g->values[v].dtype != DTYPE_F32)
        return false;
    q->value = node->inputs[0];
    return read_scale(g, node, q);
}

bool quantised_result(const struct graph *g, const struct node *node, struct quantised *q)
{
    if (node->dead || node->op != &op_quantize_linear || !quantised_is_byte(g, node->outputs[0]) ||
        g->values[node->inputs[0]].dtype != DTYPE_F32)
        return false;
    q->value = node->outputs[0];
    return read_scale(g, node, q);
}

/* The bounds of a Clip; false: they are not known. */
static bool read_clip(const struct graph *g, const struct node *node, struct quantised_end *end)
{
    double *const bounds[] = {&end->low, &end->high};
    for (int k = 0; k < 2; k++)
        if (node->op_inputs > k + 1 && node->inputs[k + 1] != NONE &&
            !rewrite_scalar(g, node->inputs[k + 1], bounds[k]))
            return false;
    return true;
}

static bool bends(const struct graph *g, const struct node *node, int v, struct quantised_end *end)
{
    if (node->post_count || node->inputs[0] != v)
        return false;
    if (node->op == &op_clip)
        return read_clip(g, node, end);
    if (node->op == &op_relu)
        end->low = 0;
    return node->op == &op_relu;
}

bool quantised_end(const struct graph *g, int v, struct quantised_end *end)
{
    *end = (struct quantised_end){.low = -(double)FLT_MAX, .high = (double)FLT_MAX};
    int n = rewrite_only_user(g, v);
    if (n != NONE && bends(g, &g->nodes[n], v, end)) {
        v = g->nodes[n].outputs[0];
        n = rewrite_only_user(g, v);
    }
    return n != NONE && g->nodes[n].inputs[0] == v && quantised_result(g, &g->nodes[n], &end->y);
}
