/* SPDX-License-Identifier: Apache-2.0
 * AllToAll (ridge): the input is cut along axis 0 into as many equal parts as there are ranks; part
 * r of the result is what rank r has for this rank. */
#include "engine/graph/op_list.h"
#include "engine/ops/family/between_ranks.h"

static const char *const attrs[] = {"ranks", NULL};

static enum status infer(const struct infer *c, struct error *err)
{
    int64_t ranks;
    TRY(between_ranks_infer_cut(c, &ranks, err));
    infer_set(c, 0, c->in[0]->dtype, &c->in[0]->shape);
    return STATUS_OK;
}

static enum status reference(const struct ref_call *call, struct error *err)
{
    (void)err;
    between_ranks_copy(call, call->out[0]->count / node_int(call->node, "ranks", 1));
    return STATUS_OK;
}

/* Gradients go back the way that the values came. */
static enum status gradient(const struct gradient_call *c, struct error *err)
{
    (void)err;
    between_ranks_gradient(c, &op_all_to_all);
    return STATUS_OK;
}

static const struct op_case cases[] = {
    {.name = "one", .inputs = "f32[33]"},
    {.name = "rows", .inputs = "f32[7,5,3]", .attrs = "ranks=1"},
    {.name = "large", .inputs = "f32[70000]"},
    {.name = "integers", .inputs = "i32[4,3]"},
    {.name = "empty", .inputs = "f32[0,4]"},
};

REGISTER(op, all_to_all) = {
    .name = "AllToAll",
    .domain = "ridge",
    .between_ranks = true,
    .inputs_min = 1,
    .attrs = attrs,
    .infer = infer,
    .reference = reference,
    .gradient = gradient,
    OP_CASES(cases),
};
