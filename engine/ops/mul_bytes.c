/* SPDX-License-Identifier: Apache-2.0
 * MulBytes: (a - a_zero) (b - b_zero) scale of two tensors of bytes, of which b may repeat along
 * axes; the integers' product is exact, the other is rounded to f32. Clamped, and rounded to bytes
 * (engine/ops/family/rescale.h). A pass (engine/compile/passes/absorb_bytes.c) makes it of
 * DequantizeLinear, Mul and QuantizeLinear; files never have it. */
#include "engine/ops/family/rescale.h"
#include "engine/ops/lib/op_args.h"

static const char *const attrs[] = {"a_zero", "b_zero", "scale", "to", "low", "high", "zero", NULL};

static enum status infer(const struct infer *c, struct error *err)
{
    struct shape both;
    const struct shape *a = &c->in[0]->shape, *b = &c->in[1]->shape;
    if (!shape_broadcast(a, b, &both) || !shape_equal(a, &both))
        return FAIL(err, STATUS_FAILED, "MulBytes: b does not repeat over a");
    TRY(rescale_check(c, 0, err));
    infer_set(c, 0, rescale_type(c->node), a);
    return STATUS_OK;
}

static void cost(const struct infer *c, struct cost *cost)
{
    cost->elementwise = 2 * (double)shape_count(&c->in[0]->shape);
}

static enum status reference(const struct ref_call *call, struct error *err)
{
    const struct ref_tensor *a = call->in[0], *b = call->in[1], *y = call->out[0];
    int64_t a_zero = node_int(call->node, "a_zero", 0), b_zero = node_int(call->node, "b_zero", 0);
    float scale = (float)node_float(call->node, "scale", 1);
    struct rescale r = rescale_of(call->node);
    (void)err;
    for (int64_t i = 0; i < y->count; i++) {
        int64_t other = b->i[ref_broadcast_index(&a->shape, i, &b->shape)];
        rescale_put(&r, (float)((a->i[i] - a_zero) * (other - b_zero)) * scale, y, i);
    }
    return STATUS_OK;
}

/* to: 1 f32, 2 u8, 3 i8. */
static const struct op_case cases[] = {
    {.name = "u8",
     .inputs = "u8[2,33,5]{0:256} u8[2,33,5]{0:256}",
     .attrs = "a_zero=3 b_zero=128 scale=0.012 to=2 zero=100"},
    {.name = "gate",
     .inputs = "u8[2,35,7,9]{0:256} u8[2,35,1,1]{0:256}",
     .attrs = "a_zero=99 scale=0.007 to=2 low=0.0 zero=9"},
    {.name = "gate_i8",
     .inputs = "i8[1,130,3,5]{-128:128} i8[1,130,1,1]{-128:128}",
     .attrs = "a_zero=-7 b_zero=-128 scale=0.0041 to=3 zero=-4"},
    {.name = "one_for_all",
     .inputs = "i8[3,70]{-128:128} u8[1]{0:256}",
     .attrs = "b_zero=7 scale=0.01 to=3"},
    {.name = "row", .inputs = "u8[3,4,50]{0:256} u8[50]{0:256}", .attrs = "scale=0.004 to=2"},
    {.name = "more_than_a_tile",
     .inputs = "u8[3,70000]{0:256} i8[3,70000]{-128:128}",
     .attrs = "scale=0.004 to=2 zero=128"},
    {.name = "to_f32", .inputs = "i8[31]{-128:128} u8[31]{0:256}", .attrs = "scale=0.3 to=1"},
    {.name = "of_nothing", .inputs = "u8[0,3] u8[3]", .attrs = "to=2"},
};

REGISTER(op, mul_bytes) = {
    .name = "MulBytes",
    .domain = "ridge",
    .inputs_min = 2,
    .attrs = attrs,
    .layout = LAYOUT_RULE_ANY,
    .infer = infer,
    .cost = cost,
    .reference = reference,
    .no_gradient = "quantised networks are not trained",
    OP_CASES(cases),
};
