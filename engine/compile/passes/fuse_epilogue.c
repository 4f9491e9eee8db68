/* SPDX-License-Identifier: Apache-2.0
 *
 * An activation, bias, scale or residual that follows a convolution or matrix product is applied
 * while the result is still in registers: it becomes a post of that node (engine/graph/graph.h). */
#include <string.h>

#include "engine/compile/passes/rewrite.h"
#include "engine/graph/op_list.h"

/* Whether the node is an activation of its input 0, and nothing else. */
static bool act_of(const struct graph *g, const struct node *node, struct post *post)
{
    struct chain chain;
    if (!op_is_expression(node->op) || !rewrite_expression(g, node, &chain) || chain.count != 1 ||
        chain.steps[0].a != 0 || !function_info(chain.steps[0].code)->activation)
        return false;
    const struct chain_step *step = &chain.steps[0];
    *post = (struct post){.kind = POST_ACT, .act = step->code, .a = step->p, .b = step->q};
    return true;
}

/* Whether node n (the host) comes before value v's computation needs it: v must not depend on it.
 * The host's result has one reader, so only that reader could carry the dependence. */
static bool binary_of(const struct graph *g, const struct node *user, int result, int *operand,
                      struct post *post)
{
    bool add = user->op->function == FN_ADD, mul = user->op->function == FN_MUL;
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

/* Whether kernels of devices read it beside a result: it is of the same shape, or one number, or
 * lies along the channels of an image or the columns of a matrix. */
static bool device_reads(const struct graph *g, const struct node *host, int operand)
{
    const struct shape *out = &g->values[host->outputs[0]].shape, *in = &g->values[operand].shape;
    int channels = host->op->layout == LAYOUT_RULE_CHANNELS_LAST ? 1 : out->rank - 1;
    int own = channels - (out->rank - in->rank);
    int64_t count = shape_count(in);
    return count == 1 || shape_equal(in, out) || (own >= 0 && in->dim[own] == count);
}

/* Their products have columns: not those by a vector. */
static bool device_fuses(const struct graph *g, const struct node *host)
{
    bool product = host->op == &op_mat_mul || host->op == &op_mat_mul_f8;
    return !product || g->values[host->inputs[1]].shape.rank > 1;
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
    bool joined = host->op == &op_concat && host->post_count == 2;
    return plain || joined;
}

/* Fuses the one reader of the host's result if that can be; *fused says so. */
static enum status fuse_next(struct graph *g, int n, bool device, bool *fused, struct error *err)
{
    struct node *host = &g->nodes[n];
    *fused = false;
    if (host->post_count == POST_MAX || (host->output_count != 1 && !host->op->epilogue_act))
        return STATUS_OK;
    int result = host->outputs[0], u = rewrite_only_user(g, result), operand = NONE;
    if (u == NONE || g->nodes[u].post_count)
        return STATUS_OK;
    struct node *user = &g->nodes[u];
    struct post post;
    if (user->inputs[0] == result && act_of(g, user, &post)) {
        *fused = true;
    } else if (host->op->epilogue && binary_of(g, user, result, &operand, &post) &&
               (!device || device_reads(g, host, operand))) {
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
static enum status fuse_all(struct graph *g, bool device, struct error *err)
{
    for (int n = g->node_count - 1; n >= 0; n--) {
        const struct node *host = &g->nodes[n];
        bool fused = !host->dead && (host->op->epilogue || takes_act(host)) &&
                     g->values[g->nodes[n].outputs[0]].dtype == DTYPE_F32 &&
                     (!device || device_fuses(g, host));
        while (fused) {
            TRY(fuse_next(g, n, device, &fused, err));
            fused = fused && g->nodes[n].op->epilogue;
        }
    }
    return STATUS_OK;
}

enum status pass_fuse_epilogue(struct graph *g, struct error *err)
{
    return fuse_all(g, false, err);
}

enum status pass_fuse_on_device(struct graph *g, struct error *err)
{
    return fuse_all(g, true, err);
}
