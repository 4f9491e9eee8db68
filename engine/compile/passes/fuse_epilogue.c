/* SPDX-License-Identifier: Apache-2.0
 *
 * An activation, bias, scale or residual that follows a convolution or matrix product is applied
 * while the result is still in registers: it becomes a post of that node (engine/graph/graph.h). */
#include <string.h>

#include "engine/compile/passes/rewrite.h"

struct act_row {
    const char *op;
    enum act act;
    const char *a_name, *b_name; /* attributes that give a and b */
    float a, b;                  /* their defaults */
};

static const struct act_row act_rows[] = {
    {"Relu", ACT_RELU, NULL, NULL, 0, 0},
    {"LeakyRelu", ACT_LEAKY_RELU, "alpha", NULL, 0.01f, 0},
    {"Sigmoid", ACT_SIGMOID, NULL, NULL, 0, 0},
    {"Tanh", ACT_TANH, NULL, NULL, 0, 0},
    {"HardSigmoid", ACT_HARD_SIGMOID, "alpha", "beta", 0.2f, 0.5f},
    {"HardSwish", ACT_HARD_SWISH, NULL, NULL, 0, 0},
    {"Elu", ACT_ELU, "alpha", NULL, 1.0f, 0},
};

static bool clip_of(const struct graph *g, const struct node *node, struct post *post)
{
    double low = -3.4028234663852886e38, high = -low;
    low = node_float(node, "min", low);
    high = node_float(node, "max", high);
    for (int k = 1; k < node->op_inputs; k++)
        if (node->inputs[k] != NONE && !rewrite_scalar(g, node->inputs[k], k == 1 ? &low : &high))
            return false;
    post->act = ACT_CLIP;
    post->a = (float)low;
    post->b = (float)high;
    return true;
}

static bool act_of(const struct graph *g, const struct node *node, struct post *post)
{
    const char *op = node->op->name;
    *post = (struct post){.kind = POST_ACT};
    if (strcmp(op, "Clip") == 0)
        return clip_of(g, node, post);
    if (strcmp(op, "Gelu") == 0) {
        bool tanh_form = strcmp(node_string(node, "approximate", "none"), "tanh") == 0;
        post->act = tanh_form ? ACT_GELU_TANH : ACT_GELU_ERF;
        return true;
    }
    for (int k = 0; k < ARRAY_COUNT(act_rows); k++) {
        const struct act_row *row = &act_rows[k];
        if (strcmp(op, row->op) != 0)
            continue;
        post->act = row->act;
        post->a = row->a_name ? (float)node_float(node, row->a_name, (double)row->a) : row->a;
        post->b = row->b_name ? (float)node_float(node, row->b_name, (double)row->b) : row->b;
        return true;
    }
    return false;
}

/* Whether node n (the host) comes before value v's computation needs it: v must not depend on it.
 * The host's result has one reader, so only that reader could carry the dependence. */
static bool binary_of(const struct graph *g, const struct node *user, int result, int *operand,
                      struct post *post)
{
    bool add = strcmp(user->op->name, "Add") == 0, mul = strcmp(user->op->name, "Mul") == 0;
    if ((!add && !mul) || user->op_inputs != 2)
        return false;
    *operand = user->inputs[user->inputs[0] == result ? 1 : 0];
    const struct value *out = &g->values[user->outputs[0]];
    if (*operand == result || out->dtype != DTYPE_F32 ||
        !shape_equal(&out->shape, &g->values[result].shape))
        return false;
    *post = (struct post){.kind = add ? POST_ADD : POST_MUL};
    return true;
}

static enum status add_input(struct graph *g, struct node *host, int operand, struct error *err)
{
    int *inputs = arena_array(&g->arena, (size_t)host->input_count + 1, sizeof(*inputs));
    if (!inputs)
        return FAIL_NO_MEMORY(err);
    memcpy(inputs, host->inputs, (size_t)host->input_count * sizeof(*inputs));
    inputs[host->input_count++] = operand;
    host->inputs = inputs;
    return STATUS_OK;
}

/* Batch norms take an activation alone, also those that have become a Concat with posts. */
static bool takes_act(const struct node *host)
{
    bool plain = host->op->epilogue_act && host->post_count == 0;
    bool joined = strcmp(host->op->name, "Concat") == 0 && host->post_count == 2;
    return plain || joined;
}

/* Fuses the one reader of the host's result if that can be; *fused says so. */
static enum status fuse_next(struct graph *g, int n, bool *fused, struct error *err)
{
    struct node *host = &g->nodes[n];
    *fused = false;
    if (host->post_count == POST_MAX || host->output_count != 1)
        return STATUS_OK;
    int result = host->outputs[0], u = rewrite_only_user(g, result), operand = NONE;
    if (u == NONE || g->nodes[u].post_count)
        return STATUS_OK;
    struct node *user = &g->nodes[u];
    struct post post;
    if (user->inputs[0] == result && act_of(g, user, &post)) {
        *fused = true;
    } else if (host->op->epilogue && binary_of(g, user, result, &operand, &post)) {
        post.input = host->input_count;
        TRY(add_input(g, host, operand, err));
        *fused = true;
    }
    if (!*fused)
        return STATUS_OK;
    host->posts[host->post_count++] = post;
    host->outputs[0] = user->outputs[0];
    g->values[user->outputs[0]].producer = n;
    user->dead = true;
    return STATUS_OK;
}

/* Backwards, so that a residual goes to the branch that is computed last. */
enum status pass_fuse_epilogue(struct graph *g, struct error *err)
{
    for (int n = g->node_count - 1; n >= 0; n--) {
        const struct node *host = &g->nodes[n];
        bool fused = !host->dead && (host->op->epilogue || takes_act(host)) &&
                     g->values[g->nodes[n].outputs[0]].dtype == DTYPE_F32;
        while (fused) {
            TRY(fuse_next(g, n, &fused, err));
            fused = fused && g->nodes[n].op->epilogue;
        }
    }
    return STATUS_OK;
}
