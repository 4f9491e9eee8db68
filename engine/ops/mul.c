/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/ops/lib/op_binary.h"

static double value(double a, double b)
{
    return a * b;
}

static int64_t integer(int64_t a, int64_t b, enum dtype dtype)
{
    (void)dtype;
    return (int64_t)((uint64_t)a * (uint64_t)b);
}

static const struct op_case cases[] = {
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
    {.name = "special",
     .inputs = "f32[2,5]=1,nan,inf,-inf,0,-1,-0,inf,2,3 f32[5]=inf,1,-inf,0,nan"},
    {.name = "bytes", .inputs = "u8[7]=0,1,2,128,200,254,255 u8[7]=0,255,3,128,100,1,255"},
    {.name = "signed", .inputs = "i32[2,3]{-50:50} i32[3]{-9:9}"},
    {.name = "wide", .inputs = "i64[4] i64[4]"},
    {.name = "wrap", .inputs = "i8[4]=127,-128,100,-100 i8[4]=1,-1,100,-100"},
};

BINARY_OP(mul, "Mul", cases, .value = value, .integer = integer, .types = OP_NUMBER,
          .elementwise = 1);
