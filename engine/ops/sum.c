/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/ops/lib/op_binary.h"

static double value(double a, double b)
{
    return a + b;
}

static const struct op_case cases[] = {
    {.name = "one", .inputs = "f32[2,3,4]"},
    {.name = "three", .inputs = "f32[2,3] f32[2,3] f32[2,3]"},
    {.name = "three_broadcast", .inputs = "f32[2,1,4] f32[3,1] f32[]=0.25"},
    {.name = "same", .inputs = "f32[2,3,4] f32[2,3,4]"},
    {.name = "image", .inputs = "f32[2,5,3,7] f32[2,5,3,7]"},
    {.name = "channels", .inputs = "f32[2,5,3,7] f32[5,1,1]!"},
    {.name = "row", .inputs = "f32[6,33] f32[33]!"},
    {.name = "scalar", .inputs = "f32[2,5,3,7] f32[]=0.5"},
    {.name = "left", .inputs = "f32[5] f32[3,1]"},
    {.name = "both", .inputs = "f32[2,1,3,1] f32[4,1,7]"},
    {.name = "per_image", .inputs = "f32[2,5,3,7] f32[2,5,1,1]"},
    {.name = "double", .inputs = "f64[3,5] f64[5]"},
    {.name = "half", .inputs = "f16[3,5] f16[5]"},
    {.name = "empty", .inputs = "f32[0,3] f32[3]"},
    {.name = "special", .inputs = "f32[2,5]=1,nan,inf,-inf,0,-1,-0,inf,2,3 f32[5]=inf,1,-inf,0,2"},
};

VARIADIC_OP(sum, "Sum", cases, .value = value, .elementwise = 1);
