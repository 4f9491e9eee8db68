/* SPDX-License-Identifier: Apache-2.0
 * Scatter: what ScatterElements was called before opset 11. */
#include "engine/graph/op_list.h"
#include "engine/ops/family/op_index.h"

static const char *const attrs[] = {"axis", NULL};

static enum status gradient(const struct gradient_call *c, struct error *err)
{
    return scatter_gradient(c, &op_scatter_elements, &op_gather_elements, err);
}

static const struct op_case cases[] = {
    {.name = "rows", .inputs = "f32[3,3] i64[2,3]=1,0,2,0,2,1 f32[2,3]"},
    {.name = "columns", .inputs = "f32[1,5] i64[1,2]=1,3 f32[1,2]", .attrs = "axis=1"},
};

REGISTER(op, scatter) = {
    .name = "Scatter",
    .narrow = NARROW_MOVE,
    .inputs_min = 3,
    .int_inputs = 1u << 1,
    .attrs = attrs,
    .indices = INDICES_EITHER_WAY,
    .infer = scatter_elements_infer,
    .reference = scatter_elements_reference,
    .gradient = gradient,
    OP_CASES(cases),
};
