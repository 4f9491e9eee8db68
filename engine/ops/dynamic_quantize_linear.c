/* SPDX-License-Identifier: Apache-2.0
 * DynamicQuantizeLinear: f32 to u8 with scale and zero point from the range of x, which is widened
 * to hold 0. Outputs y, scale, zero point. Computed in f32, since ties decide the results. */
#include "engine/ops/family/quantize.h"

static enum status infer(const struct infer *c, struct error *err)
{
    (void)err;
    struct shape scalar = shape_scalar();
    infer_set(c, 0, DTYPE_U8, &c->in[0]->shape);
    infer_set(c, 1, DTYPE_F32, &scalar);
    infer_set(c, 2, DTYPE_U8, &scalar);
    return STATUS_OK;
}

static void cost(const struct infer *c, struct cost *cost)
{
    cost->elementwise = 2 * (double)shape_count(&c->in[0]->shape);
}

static enum status reference(const struct ref_call *call, struct error *err)
{
    (void)err;
    const struct ref_tensor *x = call->in[0];
    double scale, zero_point;
    quantize_range(x, &scale, &zero_point);
    for (int64_t i = 0; i < x->count && call->out[0]; i++)
        ref_set(call->out[0], i, quantize_number(DTYPE_U8, x->f[i], scale, zero_point));
    if (call->out_count > 1 && call->out[1])
        ref_set(call->out[1], 0, scale);
    if (call->out_count > 2 && call->out[2])
        ref_set(call->out[2], 0, zero_point);
    return STATUS_OK;
}

static const struct op_case cases[] = {
    {.name = "both_signs", .inputs = "f32[5,67]{-3:5}", .outputs = 3},
    {.name = "positive", .inputs = "f32[40]{1:5}", .outputs = 3},
    {.name = "negative", .inputs = "f32[40]{-5:-1}", .outputs = 3},
    {.name = "zeros", .inputs = "f32[9]=0", .outputs = 3},
    {.name = "not_a_number", .inputs = "f32[6]=nan,-2,3,0.5,nan,1", .outputs = 3},
    {.name = "infinity", .inputs = "f32[4]=inf,-2,3,0.5", .outputs = 3},
    {.name = "more_than_a_tile", .inputs = "f32[3,11003]{-3:5}", .outputs = 3},
    {.name = "of_nothing", .inputs = "f32[0,3]", .outputs = 3},
    {.name = "values_alone", .inputs = "f32[7,11]{-3:5}"},
};

REGISTER(op, dynamic_quantize_linear) = {
    .name = "DynamicQuantizeLinear",
    .inputs_min = 1,
    .outputs_max = 3,
    .layout = LAYOUT_RULE_AXIS,
    .infer = infer,
    .cost = cost,
    .reference = reference,
    .no_gradient = "quantised networks are not trained",
    OP_CASES(cases),
};
