/* SPDX-License-Identifier: Apache-2.0
 *
 * fmod=0: the remainder takes the sign of the divisor (Python), integers only. fmod=1: it takes
 * that of the dividend (C). */
#include "engine/ops/family/op_binary.h"

#include <math.h>

static double value(double a, double b)
{
    return fmod(a, b);
}

static int64_t truncated(int64_t a, int64_t b, enum dtype dtype)
{
    if (b == 0 || (b == -1 && dtype != DTYPE_U64))
        return 0; /* b = 0 is left open by ONNX, the other traps for the least i64 */
    return dtype == DTYPE_U64 ? (int64_t)((uint64_t)a % (uint64_t)b) : a % b;
}

static int64_t floored(int64_t a, int64_t b, enum dtype dtype)
{
    int64_t rest = truncated(a, b, dtype);
    return !dtype_is_unsigned(dtype) && rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

static const struct binary by_sign_of_dividend = {
    .value = value, .integer = truncated, .types = OP_NUMBER};
static const struct binary by_sign_of_divisor = {
    .value = value, .integer = floored, .types = OP_NUMBER};

static enum status infer(const struct infer *c, struct error *err)
{
    TRY(binary_infer(c, &by_sign_of_dividend, err));
    if (dtype_is_float(c->in[0]->dtype) && !node_int(c->node, "fmod", 0))
        return FAIL(err, STATUS_FAILED, "Mod of floats needs the attribute fmod=1");
    return STATUS_OK;
}

static void cost(const struct infer *c, struct cost *cost)
{
    op_cost_each(c, 1, 1, cost);
}

static enum status reference(const struct ref_call *call, struct error *err)
{
    (void)err;
    bool c_like = node_int(call->node, "fmod", 0) != 0;
    return binary_reference(call, c_like ? &by_sign_of_dividend : &by_sign_of_divisor);
}

static const char *const attrs[] = {"fmod", NULL};

static const struct op_case cases[] = {
    {.name = "float",
     .inputs = "f32[6]=-4.25,7.5,5,4.25,-7.5,8 f32[6]=2.25,-3.5,8,-2.25,3.5,5",
     .attrs = "fmod=1"},
    {.name = "float_broadcast", .inputs = "f32[2,5,3,7]{-9:9} f32[]=1.5", .attrs = "fmod=1"},
    {.name = "special", .inputs = "f32[4]=nan,inf,5,1 f32[4]=1,2,inf,0", .attrs = "fmod=1"},
    {.name = "signed", .inputs = "i32[6]=-4,7,5,4,-7,8 i32[6]=2,-3,8,-2,3,5"},
    {.name = "signed_fmod",
     .inputs = "i64[6]=-4,7,5,4,-7,8 i64[6]=2,-3,8,-2,3,5",
     .attrs = "fmod=1"},
    {.name = "byte", .inputs = "i8[4]=-128,-128,127,127 i8[4]=-1,3,-3,5"},
    {.name = "unsigned", .inputs = "u64[2]=18446744073709551615,9 u64[2]=10,4"},
    {.name = "broadcast", .inputs = "i64[3,5]{-9:9} i64[5]{1:9}"},
};

REGISTER(op, mod) = {
    .name = "Mod",
    .inputs_min = 2,
    .attrs = attrs,
    .layout = LAYOUT_RULE_ANY,
    .infer = infer,
    .cost = cost,
    .reference = reference,
    .no_gradient = "only foreign files use it",
    OP_CASES(cases),
};
