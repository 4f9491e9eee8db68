/* SPDX-License-Identifier: Apache-2.0
 * Upsample: what Resize was called before opset 10. Scales are an attribute in opset 7, an input in
 * opset 9. */
#include "engine/ops/family/resize_gradient.h"
#include "engine/ops/lib/resize.h"

static const char *const attrs[] = {"mode", "scales", NULL};

static const struct op_case cases[] = {
    {.name = "nearest", .inputs = "f32[1,2,3,4] f32[4]=1,1,2,3"},
    {.name = "linear", .inputs = "f32[1,2,3,4] f32[4]=1,1,2,2", .attrs = "mode=\"linear\""},
    {.name = "attribute", .inputs = "f32[2,3,4,2]", .attrs = "scales=[1.0,1.0,1.5,2.0]"},
};

REGISTER(op, upsample) = {
    .name = "Upsample",
    .narrow = NARROW_MATH,
    .narrow_inputs = 1u << 0,
    .inputs_min = 1,
    .inputs_max = 2,
    .attrs = attrs,
    .const_inputs = 1u << 1,
    .layout = LAYOUT_RULE_AXIS,
    .infer = resize_infer,
    .cost = resize_cost,
    .reference = resize_reference,
    .gradient = resize_gradient,
    OP_CASES(cases),
};
