/* SPDX-License-Identifier: Apache-2.0
 * ConstantOfShape: a tensor of the given shape, filled with `value` (a tensor of one element;
 * f32 zero without it). */
#include "engine/ops/lib/move.h"

static const char *const attrs[] = {"value", NULL};

static enum status infer(const struct infer *c, struct error *err)
{
    struct op_args args = args_of_infer(c);
    struct int_list dims;
    const struct attr *value = node_attr(c->node, "value");
    TRY(args_ints(&args, 0, NULL, &dims, err));
    if (dims.count > RANK_MAX)
        return UNSUPPORTED(err, "rank %d; at most %d is supported", dims.count, RANK_MAX);
    if (value && (value->kind != ATTR_TENSOR || shape_count(&value->desc.shape) != 1))
        return FAIL(err, STATUS_FAILED, "value of ConstantOfShape is not a tensor of one element");
    struct shape y = shape_from(dims.count, dims.at);
    infer_set(c, 0, value ? value->desc.dtype : DTYPE_F32, &y);
    return STATUS_OK;
}

static enum status reference(const struct ref_call *call, struct error *err)
{
    (void)err;
    const struct attr *value = node_attr(call->node, "value");
    if (!value)
        return STATUS_OK; /* zeroed already */
    union {
        double f;
        int64_t i;
    } memory;
    struct ref_tensor one = {.dtype = value->desc.dtype, .shape = value->desc.shape, .count = 1};
    ref_place(&one, &memory);
    ref_load(&one, &value->desc, value->data);
    for (int64_t k = 0; k < call->out[0]->count; k++)
        ref_copy(call->out[0], k, &one, 0);
    return STATUS_OK;
}

static const struct op_case cases[] = {
    {.name = "matrix", .inputs = "i64[2]=3,5"},
    {.name = "integer", .inputs = "i64[3]=2,1,4", .attrs = "value=i64[1]=-7"},
    {.name = "scalar", .inputs = "i64[0]=", .attrs = "value=f32[1]=2.5"},
    {.name = "empty", .inputs = "i64[2]=0,5"},
};

REGISTER(op, constant_of_shape) = {
    .name = "ConstantOfShape",
    .inputs_min = 1,
    .attrs = attrs,
    .const_inputs = 1u,
    .infer = infer,
    .reference = reference,
    .no_gradient = "its input is a shape",
    OP_CASES(cases),
};
