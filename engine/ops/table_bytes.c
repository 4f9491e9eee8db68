/* SPDX-License-Identifier: Apache-2.0
 * TableBytes: element x, a byte, becomes table[x], a negative one counting as 256 more. A pass
 * (engine/compile/passes/keep_bytes.c) makes it of any function of single elements that stands
 * between DequantizeLinear and QuantizeLinear; files never have it. */
#include "engine/graph/op.h"

static bool is_byte(enum dtype type)
{
    return type == DTYPE_U8 || type == DTYPE_I8;
}

static enum status infer(const struct infer *c, struct error *err)
{
    if (!is_byte(c->in[0]->dtype) || !is_byte(c->in[1]->dtype) ||
        shape_count(&c->in[1]->shape) != 256)
        return FAIL(err, STATUS_FAILED, "TableBytes takes bytes and a table of 256");
    infer_set(c, 0, c->in[1]->dtype, &c->in[0]->shape);
    return STATUS_OK;
}

static enum status reference(const struct ref_call *call, struct error *err)
{
    const struct ref_tensor *x = call->in[0], *table = call->in[1], *y = call->out[0];
    (void)err;
    for (int64_t i = 0; i < y->count; i++)
        y->i[i] = table->i[(uint8_t)x->i[i]];
    return STATUS_OK;
}

static const struct op_case cases[] = {
    {.name = "u8", .inputs = "u8[2,33,5]{0:256} u8[256]{0:256}!"},
    {.name = "i8", .inputs = "i8[2,3,5,7]{-128:128} i8[256]{-128:128}!"},
    {.name = "to_i8", .inputs = "u8[3,70001]{0:256} i8[256]{-128:128}!"},
    {.name = "given_late", .inputs = "u8[67]{0:256} u8[256]{0:256}"},
    {.name = "of_nothing", .inputs = "u8[0,3] u8[256]{0:256}!"},
};

REGISTER(op, table_bytes) = {
    .name = "TableBytes",
    .domain = "ridge",
    .inputs_min = 2,
    .layout = LAYOUT_RULE_AXIS,
    .infer = infer,
    .reference = reference,
    .no_gradient = "quantised networks are not trained",
    OP_CASES(cases),
};
