/* SPDX-License-Identifier: Apache-2.0
 * ScatterElements: the data with updates put, added, multiplied, maxed or minned in (opsets 16 and
 * 18) at places that the indices name along one axis, in row-major order. */
#include "engine/graph/op_list.h"
#include "engine/ops/family/op_index.h"

static const char *const attrs[] = {"axis", "reduction", NULL};

static enum status gradient(const struct gradient_call *c, struct error *err)
{
    return scatter_gradient(c, &op_scatter_elements, &op_gather_elements, err);
}

static const struct op_case cases[] = {
    {.name = "rows", .inputs = "f32[10,3] i64[2,3]=1,0,2,4,-1,3 f32[2,3]"},
    {.name = "columns", .inputs = "f32[2,5] i64[2,2]=1,3,-1,0 f32[2,2]", .attrs = "axis=1"},
    {.name = "add", .inputs = "f32[10,4] i64[20,4] f32[20,4]", .attrs = "reduction=\"add\""},
    {.name = "mul", .inputs = "i32[10] i64[12] i32[12]{1:3}", .attrs = "reduction=\"mul\""},
    {.name = "odd", .inputs = "f32[5] i64[3]=4,0,2 f32[3]"},
    {.name = "product", .inputs = "f32[13] i64[24] f32[24]", .attrs = "reduction=\"mul\""},
    {.name = "max", .inputs = "f32[3,10] i64[3,9] f32[3,9]", .attrs = "axis=-1 reduction=\"max\""},
    {.name = "min", .inputs = "i64[10,2] i32[7,2] i64[7,2]", .attrs = "reduction=\"min\""},
};

REGISTER(op, scatter_elements) = {
    .name = "ScatterElements",
    .narrow = NARROW_MOVE,
    .inputs_min = 3,
    .int_inputs = 1u << 1,
    .attrs = attrs,
    .indices = INDICES_EITHER_WAY,
    .infer = scatter_elements_infer,
    .cost = scatter_cost,
    .reference = scatter_elements_reference,
    .gradient = gradient,
    OP_CASES(cases),
};
