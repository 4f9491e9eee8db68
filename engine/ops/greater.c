/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/ops/lib/op_binary.h"

static double value(double a, double b)
{
    return a > b;
}

static int64_t integer(int64_t a, int64_t b, enum dtype dtype)
{
    return integer_less(b, a, dtype);
}

static const struct op_case cases[] = {
    {.name = "ties", .inputs = "f32[2,5]=1,nan,inf,-inf,0,2,-0,3,4,5 f32[5]=1,nan,inf,inf,-0"},
    {.name = "same", .inputs = "f32[2,3,4] f32[2,3,4]"},
    {.name = "image", .inputs = "f32[2,5,3,7] f32[2,5,3,7]"},
    {.name = "channels", .inputs = "f32[2,5,3,7] f32[5,1,1]!"},
    {.name = "left", .inputs = "f32[5] f32[3,1]"},
    {.name = "double", .inputs = "f64[3,5] f64[5]"},
    {.name = "bytes", .inputs = "u8[67]{0:4} u8[67]{0:4}"},
    {.name = "signed", .inputs = "i32[3,5]{-3:3} i32[5]{-3:3}"},
    {.name = "wide", .inputs = "i64[67]{0:4} i64[1]=2"},
    {.name = "beyond_double",
     .inputs =
         "i64[2]=9007199254740993,-9007199254740993 i64[2]=9007199254740992,-9007199254740992"},
    {.name = "unsigned",
     .inputs = "u64[3]=18446744073709551615,9,1 u64[3]=2,18446744073709551614,1"},
};

BINARY_OP(greater, "Greater", cases, .value = value, .integer = integer, .types = OP_NUMBER,
          .predicate = true);
