/* SPDX-License-Identifier: Apache-2.0
 *
 * The sum of the inputs over their number: n - 1 additions and one product per element. */
#include "engine/ops/family/gradient.h"
#include "engine/ops/family/op_binary.h"
#include "engine/ops/lib/chain.h"

static const struct binary mean = {.function = FN_ADD};

static enum status infer(const struct infer *c, struct error *err)
{
    return binary_infer(c, &mean, err);
}

static void cost(const struct infer *c, struct cost *cost)
{
    op_cost_each(c, c->in_count, 0, cost);
}

static enum status reference(const struct ref_call *call, struct error *err)
{
    (void)err;
    TRY(binary_reference(call, &mean));
    for (int64_t k = 0; k < call->out[0]->count; k++)
        call->out[0]->f[k] /= call->in_count;
    return STATUS_OK;
}

static enum status expression(const struct node *node, const float *const *scalars,
                              struct chain *chain, struct error *err)
{
    (void)scalars;
    (void)err;
    int sum = chain_fold(node, FN_ADD, chain);
    if (node->op_inputs > 1)
        chain_push(chain, (struct chain_step){FN_SCALE, sum, 0, 1.0f / (float)node->op_inputs, 0});
    return STATUS_OK;
}

static enum status gradient(const struct gradient_call *c, struct error *err)
{
    (void)err;
    struct graph *g = c->g;
    int count = gradient_node(c)->op_inputs, part = make_share(g, c->dy[0], count);
    for (int k = 0; k < count; k++)
        if (c->wanted[k])
            c->dx[k] = make_sum_to(g, part, gradient_in(c, k));
    return STATUS_OK;
}

static const struct op_case cases[] = {
    {.name = "one", .inputs = "f32[2,3,4]"},
    {.name = "two", .inputs = "f32[2,5,3,7] f32[2,5,3,7]"},
    {.name = "three", .inputs = "f32[2,3] f32[2,3] f32[2,3]"},
    {.name = "three_broadcast", .inputs = "f32[2,1,4] f32[3,1] f32[]=0.25"},
    {.name = "double", .inputs = "f64[3,5] f64[5]"},
    {.name = "special", .inputs = "f32[4]=nan,inf,-inf,1 f32[4]=1,-inf,2,3"},
};

REGISTER(op, mean) = {
    .name = "Mean",
    .inputs_min = 1,
    .inputs_max = -1,
    .layout = LAYOUT_RULE_ANY,
    .expression = expression,
    .infer = infer,
    .cost = cost,
    .reference = reference,
    .gradient = gradient,
    OP_CASES(cases),
};
