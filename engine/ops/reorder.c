/* SPDX-License-Identifier: Apache-2.0
 * Reorder: the same values in another memory layout. Passes insert it; ONNX has no such operator.
 */
#include "engine/ops/family/gradient.h"
#include "engine/ops/lib/move.h"

static const struct op_case cases[] = {
    {.name = "image", .inputs = "f32[2,5,3,7]"},
    {.name = "wide", .inputs = "f32[1,33,17,19]"},
    {.name = "tiles", .inputs = "f32[2,32,16,16]"},
    {.name = "bytes", .inputs = "u8[2,19,5,6]{0:256}"},
    {.name = "long", .inputs = "i64[1,3,4,5]"},
};

REGISTER(op, reorder) = {
    .name = "Reorder",
    .moves_in_passing = true,
    .domain = "ridge",
    .inputs_min = 1,
    .layout = LAYOUT_RULE_ANY,
    .infer = infer_same,
    .move = move_same,
    .reference = reference_move,
    .gradient = gradient_of_alias,
    OP_CASES(cases),
};
