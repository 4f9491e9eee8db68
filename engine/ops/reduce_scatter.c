/* SPDX-License-Identifier: Apache-2.0
 * ReduceScatter (ridge): of the sum of the input over all ranks, cut along axis 0 into as many
 * equal parts as there are ranks, each rank gets its part. wire: as AllReduce has it. */
#include "engine/graph/op_list.h"
#include "engine/ops/family/between_ranks.h"

static const char *const attrs[] = {"ranks", "wire", NULL};

static enum status infer(const struct infer *c, struct error *err)
{
    struct shape y = c->in[0]->shape;
    int64_t ranks;
    TRY(between_ranks_infer_cut(c, &ranks, err));
    y.dim[0] /= ranks;
    infer_set(c, 0, c->in[0]->dtype, &y);
    return between_ranks_infer_wire(c, err);
}

static enum status reference(const struct ref_call *call, struct error *err)
{
    (void)err;
    between_ranks_copy(call, call->out[0]->count);
    return STATUS_OK;
}

/* What a rank gives goes into one part on each rank. */
static enum status gradient(const struct gradient_call *c, struct error *err)
{
    (void)err;
    between_ranks_gradient(c, &op_all_gather);
    return STATUS_OK;
}

static const struct op_case cases[] = {
    {.name = "one", .inputs = "f32[33]"},
    {.name = "rows", .inputs = "f32[7,5,3]", .attrs = "ranks=1"},
    {.name = "large", .inputs = "f32[70000]"},
    {.name = "integers", .inputs = "i64[4,3]"},
    {.name = "empty", .inputs = "f32[0,4]"},
};

REGISTER(op, reduce_scatter) = {
    .name = "ReduceScatter",
    .domain = "ridge",
    .between_ranks = true,
    .inputs_min = 1,
    .attrs = attrs,
    .infer = infer,
    .reference = reference,
    .gradient = gradient,
    OP_CASES(cases),
};
