/* SPDX-License-Identifier: Apache-2.0
 * Constant: its only attribute, in one of five forms. Strings and sparse tensors are refused. */
#include "engine/graph/op.h"

static const char *const attrs[] = {"value",       "value_int",    "value_ints",
                                    "value_float", "value_floats", NULL};

static const struct attr *given(const struct node *node)
{
    for (int k = 0; attrs[k]; k++)
        if (node_attr(node, attrs[k]))
            return node_attr(node, attrs[k]);
    return NULL;
}

static enum status infer(const struct infer *c, struct error *err)
{
    const struct attr *attr = given(c->node);
    if (!attr)
        return UNSUPPORTED(err, "a Constant that is neither a tensor nor numbers");
    struct shape list = shape_of(attr->count), scalar = shape_scalar();
    switch (attr->kind) {
    case ATTR_TENSOR:
        infer_set(c, 0, attr->desc.dtype, &attr->desc.shape);
        return STATUS_OK;
    case ATTR_INT:
        infer_set(c, 0, DTYPE_I64, &scalar);
        return STATUS_OK;
    case ATTR_FLOAT:
        infer_set(c, 0, DTYPE_F32, &scalar);
        return STATUS_OK;
    case ATTR_INTS:
        infer_set(c, 0, DTYPE_I64, &list);
        return STATUS_OK;
    case ATTR_FLOATS:
        infer_set(c, 0, DTYPE_F32, &list);
        return STATUS_OK;
    default:
        return UNSUPPORTED(err, "attribute %s of Constant has an unexpected type", attr->name);
    }
}

static enum status reference(const struct ref_call *call, struct error *err)
{
    (void)err;
    const struct attr *attr = given(call->node);
    const struct ref_tensor *y = call->out[0];
    if (attr->kind == ATTR_TENSOR)
        ref_load(y, &attr->desc, attr->data);
    for (int k = 0; k < attr->count; k++) {
        if (attr->kind == ATTR_INTS)
            y->i[k] = attr->ints[k];
        if (attr->kind == ATTR_FLOATS)
            y->f[k] = attr->floats[k];
    }
    if (attr->kind == ATTR_INT)
        y->i[0] = attr->i;
    if (attr->kind == ATTR_FLOAT)
        y->f[0] = attr->f;
    return STATUS_OK;
}

static const struct op_case cases[] = {
    {.name = "tensor", .inputs = "", .attrs = "value=f16[2,2]=1,2,3,-4"},
    {.name = "int", .inputs = "", .attrs = "value_int=-3"},
    {.name = "ints", .inputs = "", .attrs = "value_ints=[1,2,-9]"},
    {.name = "float", .inputs = "", .attrs = "value_float=0.5"},
    {.name = "floats", .inputs = "", .attrs = "value_floats=[0.5,-1.25]"},
};

REGISTER(op, constant) = {
    .name = "Constant",
    .inputs_min = 0,
    .attrs = attrs,
    .infer = infer,
    .reference = reference,
    .no_gradient = "it has no input",
    OP_CASES(cases),
};
