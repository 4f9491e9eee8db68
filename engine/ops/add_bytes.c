/* SPDX-License-Identifier: Apache-2.0
 * AddBytes: a a_scale + b b_scale + offset of two tensors of bytes of one shape, in f32 from the
 * left, each operation rounded by itself; clamped, and rounded to bytes (engine/ops/family/
 * rescale.h). A pass (engine/compile/passes/absorb_bytes.c) makes it of DequantizeLinear, Add and
 * QuantizeLinear; files never have it. */
#include "engine/ops/family/rescale.h"
#include "engine/ops/lib/op_args.h"

static const char *const attrs[] = {"a_scale", "b_scale", "offset", "to",
                                    "low",     "high",    "zero",   NULL};

static enum status infer(const struct infer *c, struct error *err)
{
    if (!shape_equal(&c->in[0]->shape, &c->in[1]->shape))
        return FAIL(err, STATUS_FAILED, "AddBytes of two shapes");
    TRY(rescale_check(c, 0, err));
    infer_set(c, 0, rescale_type(c->node), &c->in[0]->shape);
    return STATUS_OK;
}

static void cost(const struct infer *c, struct cost *cost)
{
    cost->elementwise = 4 * (double)shape_count(&c->in[0]->shape);
}

static enum status reference(const struct ref_call *call, struct error *err)
{
    const struct ref_tensor *a = call->in[0], *b = call->in[1], *y = call->out[0];
    float a_scale = (float)node_float(call->node, "a_scale", 1);
    float b_scale = (float)node_float(call->node, "b_scale", 1);
    float offset = (float)node_float(call->node, "offset", 0);
    struct rescale r = rescale_of(call->node);
    (void)err;
    for (int64_t i = 0; i < y->count; i++) {
        float left = (float)a->i[i] * a_scale, right = (float)b->i[i] * b_scale;
        float sum = left + right;
        rescale_put(&r, sum + offset, y, i);
    }
    return STATUS_OK;
}

/* to: 1 f32, 2 u8, 3 i8. */
static const struct op_case cases[] = {
    {.name = "u8",
     .inputs = "u8[2,33,5]{0:256} u8[2,33,5]{0:256}",
     .attrs = "a_scale=0.71 b_scale=0.33 offset=-17.25 to=2 zero=3"},
    {.name = "relu",
     .inputs = "u8[1,16,7,7]{0:256} i8[1,16,7,7]{-128:128}",
     .attrs = "a_scale=0.5 b_scale=1.5 offset=-60.0 to=2 low=0.0 zero=9"},
    {.name = "i8",
     .inputs = "i8[3,130]{-128:128} i8[3,130]{-128:128}",
     .attrs = "a_scale=0.6 b_scale=0.6 to=3 zero=-4"},
    {.name = "more_than_a_tile",
     .inputs = "u8[3,70000]{0:256} u8[3,70000]{0:256}",
     .attrs = "a_scale=0.25 b_scale=0.5 offset=1.0 to=2 high=200.0"},
    {.name = "to_f32",
     .inputs = "i8[31]{-128:128} u8[31]{0:256}",
     .attrs = "a_scale=0.1 b_scale=0.2 offset=-3.0 to=1"},
    {.name = "of_nothing", .inputs = "u8[0,3] u8[0,3]", .attrs = "to=2"},
};

REGISTER(op, add_bytes) = {
    .name = "AddBytes",
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
