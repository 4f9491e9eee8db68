/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/ops/lib/chain.h"

#include "engine/graph/op.h"

bool chain_reads(const struct chain *chain, int k)
{
    for (int s = 0; s < chain->count; s++)
        if (chain->steps[s].a == k ||
            (function_info(chain->steps[s].code)->operands == 2 && chain->steps[s].b == k))
            return true;
    return false;
}

int chain_push(struct chain *chain, struct chain_step step)
{
    if (chain->count < CHAIN_STEPS)
        chain->steps[chain->count] = step;
    return chain->inputs + chain->count++;
}

int chain_fold(const struct node *node, enum function function, struct chain *chain)
{
    int x = 0;
    for (int k = 1; k < node->op_inputs; k++)
        x = chain_push(chain, (struct chain_step){function, x, k, 0, 0});
    return x;
}

/* The operator's function, with its attributes as parameters. */
static void push_function(const struct node *node, struct chain *chain)
{
    enum function function = node->op->function;
    double p[2];
    node_parameters(node, p);
    if (function_info(function)->operands == 2)
        chain_fold(node, function, chain);
    else
        chain_push(chain, (struct chain_step){function, 0, 0, (float)p[0], (float)p[1]});
}

static void push_post(const struct post *post, struct chain *chain)
{
    int x = chain->count ? chain->inputs + chain->count - 1 : 0;
    if (post->kind == POST_ACT)
        chain_push(chain, (struct chain_step){post->act, x, 0, post->a, post->b});
    else
        chain_push(chain, (struct chain_step){post->kind == POST_ADD ? FN_ADD : FN_MUL, x,
                                              post->input, 0, 0});
}

enum status chain_from_node(const struct node *node, const float *const *scalars,
                            struct chain *chain, struct error *err)
{
    *chain = (struct chain){.inputs = node->input_count};
    if (node->op->expression)
        TRY(node->op->expression(node, scalars, chain, err));
    else if (node->op->function)
        push_function(node, chain);
    else
        return UNSUPPORTED(err, "%s is no elementwise expression", node->op->name);
    for (int k = 0; k < node->post_count; k++)
        push_post(&node->posts[k], chain);
    if (chain->count == 0)
        chain_push(chain, (struct chain_step){FN_COPY, 0, 0, 0, 0});
    if (chain->inputs > CHAIN_INPUTS || chain->count > CHAIN_STEPS)
        return UNSUPPORTED(err, "%d inputs and %d steps; at most %d and %d", chain->inputs,
                           chain->count, (int)CHAIN_INPUTS, (int)CHAIN_STEPS);
    return STATUS_OK;
}
