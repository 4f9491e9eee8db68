/* SPDX-License-Identifier: Apache-2.0
 *
 * A batch norm after a concatenation of channels, as in DenseNet, becomes a concatenation with
 * scale and shift as epilogue, and an activation after it joins: what is to be normalised is never
 * stored. Concatenations of concatenations are flattened on the way, so that a block's long ones
 * lose their readers and vanish. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "engine/compile/passes/rewrite.h"
#include "engine/graph/op_list.h"

static bool joins_channels(const struct graph *g, const struct node *node)
{
    const struct value *out = &g->values[node->outputs[0]];
    int64_t axis = node_int(node, "axis", 1);
    return out->dtype == DTYPE_F32 && out->shape.rank == 4 && (axis == 1 || axis == -3) &&
           node->post_count == 0;
}

static bool fusible(const struct graph *g, const struct node *bn)
{
    if (bn->dead || bn->op != &op_batch_normalization || bn->output_count != 1 || bn->post_count ||
        node_int(bn, "training_mode", 0))
        return false;
    for (int k = 1; k < 5; k++)
        if (!value_is_fixed(&g->values[bn->inputs[k]]) ||
            g->values[bn->inputs[k]].dtype != DTYPE_F32)
            return false;
    const struct node *join = rewrite_producer(g, bn->inputs[0], &op_concat);
    return join && joins_channels(g, join);
}

/* How many pieces a value falls into; writes them when pieces is not NULL. */
static int pieces_of(const struct graph *g, int value, int *pieces)
{
    const struct node *join = rewrite_producer(g, value, &op_concat);
    if (!join || !joins_channels(g, join)) {
        if (pieces)
            *pieces = value;
        return 1;
    }
    int count = 0;
    for (int k = 0; k < join->op_inputs; k++)
        count += pieces_of(g, join->inputs[k], pieces ? pieces + count : NULL);
    return count;
}

/* y = factor x + shift, in double, rounded once. */
static enum status weights_of(struct graph *g, const struct node *bn, int *factor, int *shift,
                              struct error *err)
{
    int64_t n = shape_count(&g->values[bn->inputs[1]].shape);
    float *block = malloc((size_t)n * 4 * sizeof(*block) + 1);
    float *f = malloc((size_t)n * sizeof(*f) + 1), *s = malloc((size_t)n * sizeof(*s) + 1);
    if (!block || !f || !s) {
        free(block);
        free(f);
        free(s);
        return FAIL_NO_MEMORY(err);
    }
    for (int k = 0; k < 4; k++)
        value_materialise(&g->values[bn->inputs[1 + k]], block + k * n);
    for (int64_t c = 0; c < n; c++) {
        double variance = (double)block[3 * n + c] + node_float(bn, "epsilon", 1e-5);
        double k = (double)block[c] / sqrt(variance);
        f[c] = (float)k;
        s[c] = (float)((double)block[n + c] - (double)block[2 * n + c] * k);
    }
    free(block);
    char name[256];
    snprintf(name, sizeof(name), "%.200s.factor", bn->name);
    *factor = rewrite_weight(g, name, shape_of(1, n, 1, 1), f);
    snprintf(name, sizeof(name), "%.200s.shift", bn->name);
    *shift = rewrite_weight(g, name, shape_of(1, n, 1, 1), s);
    return *factor == NONE || *shift == NONE ? FAIL_NO_MEMORY(err) : STATUS_OK;
}

static enum status fuse(struct graph *g, int n, struct error *err)
{
    struct node *bn = &g->nodes[n];
    int count = pieces_of(g, bn->inputs[0], NULL), factor = NONE, shift = NONE;
    int *inputs = arena_array(&g->arena, (size_t)count + 2, sizeof(*inputs));
    const struct attr axis = attr_int("axis", 1);
    struct attr *attrs = arena_copy(&g->arena, &axis, sizeof(axis));
    if (!inputs || !attrs)
        return FAIL_NO_MEMORY(err);
    pieces_of(g, bn->inputs[0], inputs);
    TRY(weights_of(g, bn, &factor, &shift, err));
    inputs[count] = factor;
    inputs[count + 1] = shift;
    bn->op = &op_concat;
    bn->inputs = inputs;
    bn->input_count = count + 2;
    bn->op_inputs = count;
    bn->attrs = attrs;
    bn->attr_count = 1;
    bn->post_count = 2;
    bn->posts[0] = (struct post){.kind = POST_MUL, .input = count};
    bn->posts[1] = (struct post){.kind = POST_ADD, .input = count + 1};
    return STATUS_OK;
}

enum status pass_fuse_concat_norm(struct graph *g, struct error *err)
{
    for (int n = 0; n < g->node_count; n++)
        if (fusible(g, &g->nodes[n]))
            TRY(fuse(g, n, err));
    return STATUS_OK;
}
