/* SPDX-License-Identifier: Apache-2.0
 * AllGather (ridge): the inputs of all ranks one after another along axis 0. */
#include "engine/graph/op_list.h"
#include "engine/ops/family/between_ranks.h"

static const char *const attrs[] = {"ranks", NULL};

static enum status infer(const struct infer *c, struct error *err)
{
    struct shape y = c->in[0]->shape;
    int64_t ranks;
    TRY(between_ranks_infer(c, &ranks, err));
    if (y.rank < 1)
        return FAIL(err, STATUS_FAILED, "AllGather: a scalar has no axis 0");
    y.dim[0] *= ranks;
    infer_set(c, 0, c->in[0]->dtype, &y);
    return STATUS_OK;
}

static enum status reference(const struct ref_call *call, struct error *err)
{
    (void)err;
    between_ranks_copy(call, call->in[0]->count);
    return STATUS_OK;
}

/* What a rank gives is read on all of them. */
static enum status gradient(const struct gradient_call *c, struct error *err)
{
    (void)err;
    between_ranks_gradient(c, &op_reduce_scatter);
    return STATUS_OK;
}

static const struct op_case cases[] = {
    {.name = "one", .inputs = "f32[33]"},
    {.name = "rows", .inputs = "f32[7,5,3]", .attrs = "ranks=1"},
    {.name = "large", .inputs = "f32[70000]"},
    {.name = "integers", .inputs = "i64[4,3]"},
    {.name = "narrow_integers", .inputs = "i32[31]"},
    {.name = "empty", .inputs = "f32[0,4]"},
};

REGISTER(op, all_gather) = {
    .name = "AllGather",
    .domain = "ridge",
    .between_ranks = true,
    .inputs_min = 1,
    .attrs = attrs,
    .infer = infer,
    .reference = reference,
    .gradient = gradient,
    OP_CASES(cases),
};
