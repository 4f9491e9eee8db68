/* SPDX-License-Identifier: Apache-2.0
 * NegativeLogLikelihoodLoss: minus the log probability of each label. */
#include "engine/ops/family/gradient.h"
#include "engine/ops/family/loss.h"

static const char *const attrs[] = {"ignore_index", "reduction", NULL};

static void cost(const struct infer *c, struct cost *cost)
{
    cost->elementwise = 2 * (double)shape_count(&c->in[1]->shape);
}

static enum status reference(const struct ref_call *call, struct error *err)
{
    return loss_reference(call, call->in[0]->f, err);
}

static enum status gradient(const struct gradient_call *c, struct error *err)
{
    if (gradient_in(c, 2) != NONE && c->wanted[2])
        return UNSUPPORTED(err, "the weights of the classes are not trained");
    c->dx[0] = loss_gradient(c, "log");
    return STATUS_OK;
}

static const struct op_case cases[] = {
    {.name = "mean", .inputs = "f32[9,17]{-5:0} i64[9]{0:17}"},
    {.name = "sum", .inputs = "f32[9,17]{-5:0} i64[9]{0:17}", .attrs = "reduction=\"sum\""},
    {.name = "none", .inputs = "f32[3,5,4,2]{-5:0} i64[3,4,2]{0:5}", .attrs = "reduction=\"none\""},
    {.name = "weights", .inputs = "f32[3,5,7]{-5:0} i32[3,7]{0:5} f32[5]{0.1:2}"},
    {.name = "ignored",
     .inputs = "f32[4,5]{-5:0} i64[4]=1,-1,4,-1 f32[5]{0.1:2}",
     .attrs = "ignore_index=-1"},
};

REGISTER(op, negative_log_likelihood_loss) = {
    .name = "NegativeLogLikelihoodLoss",
    .inputs_min = 2,
    .inputs_max = 3,
    .int_inputs = 1u << 1,
    .attrs = attrs,
    .infer = loss_infer,
    .cost = cost,
    .reference = reference,
    .gradient = gradient,
    OP_CASES(cases),
};
