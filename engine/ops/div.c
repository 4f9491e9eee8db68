/* SPDX-License-Identifier: Apache-2.0
 *
 * Integers are divided towards zero, as C does. */
#include "engine/ops/family/gradient.h"
#include "engine/ops/family/op_binary.h"

static int64_t integer(int64_t a, int64_t b, enum dtype dtype)
{
    if (b == 0)
        return 0; /* ONNX leaves it open; the reference must not trap */
    if (dtype == DTYPE_U64)
        return (int64_t)((uint64_t)a / (uint64_t)b);
    return b == -1 ? (int64_t)(0 - (uint64_t)a) : a / b; /* the least i64 / -1 wraps */
}

static enum status gradient(const struct gradient_call *c, struct error *err)
{
    (void)err;
    struct graph *g = c->g;
    int a = gradient_in(c, 0), b = gradient_in(c, 1), dy = c->dy[0];
    int y = gradient_out(c, 0), part = make_div(g, dy, b);
    if (c->wanted[0])
        c->dx[0] = make_sum_to(g, part, a);
    if (c->wanted[1])
        c->dx[1] = make_neg(g, make_sum_to(g, make_mul(g, part, y), b));
    return STATUS_OK;
}

static const struct op_case cases[] = {
    BINARY_RANDOM_CASES("{0.5:2}"),
    BINARY_SPECIAL_CASE,
    {.name = "bytes", .inputs = "u8[4]=0,7,200,255 u8[4]=3,2,7,16"},
    {.name = "signed", .inputs = "i32[6]=7,-7,7,-7,0,-2147483648 i32[6]=2,2,-2,-2,5,3"},
    {.name = "least", .inputs = "i32[4]=-2147483648,5,-5,0 i32[4]=-1,0,-1,0"},
    {.name = "wide", .inputs = "i64[2,3]{-90:90} i64[3]{1:9}"},
    {.name = "unsigned", .inputs = "u64[2]=18446744073709551615,9 u64[1]=2"},
};

BINARY_FUNCTION_OP(div, "Div", FN_DIV, cases, .integer = integer, .types = OP_NUMBER);
