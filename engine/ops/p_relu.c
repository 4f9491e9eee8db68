/* SPDX-License-Identifier: Apache-2.0
 *
 * The slope is broadcast to the input, never the other way round. */
#include "engine/ops/family/gradient.h"
#include "engine/ops/family/op_binary.h"

static int64_t integer(int64_t x, int64_t slope, enum dtype dtype)
{
    bool negative = x < 0 && !dtype_is_unsigned(dtype);
    return negative ? (int64_t)((uint64_t)slope * (uint64_t)x) : x;
}

static const struct binary p_relu = {.function = FN_PRELU, .integer = integer, .types = OP_NUMBER};

static enum status infer(const struct infer *c, struct error *err)
{
    char a[96], b[96];
    TRY(binary_infer(c, &p_relu, err));
    if (c->out[0] && !shape_equal(&c->out[0]->shape, &c->in[0]->shape))
        return FAIL(err, STATUS_FAILED, "the slope %s of PRelu does not broadcast to the input %s",
                    shape_text(&c->in[1]->shape, a), shape_text(&c->in[0]->shape, b));
    return STATUS_OK;
}

static void cost(const struct infer *c, struct cost *cost)
{
    binary_cost(c, &p_relu, cost);
}

static enum status reference(const struct ref_call *call, struct error *err)
{
    (void)err;
    return binary_reference(call, &p_relu);
}

static enum status gradient(const struct gradient_call *c, struct error *err)
{
    (void)err;
    struct graph *g = c->g;
    int x = gradient_in(c, 0), slope = gradient_in(c, 1), dy = c->dy[0];
    int above = make_function(g, FN_RELU_SLOPE, dy, x, 0, 0), below = make_sub(g, dy, above);
    if (c->wanted[0])
        c->dx[0] = make_add(g, above, make_mul(g, below, slope));
    if (c->wanted[1])
        c->dx[1] = make_sum_to(g, make_mul(g, below, x), slope);
    return STATUS_OK;
}

static const struct op_case cases[] = {
    {.name = "same", .inputs = "f32[3,4,5] f32[3,4,5]"},
    {.name = "channels", .inputs = "f32[2,5,3,7] f32[5,1,1]!"},
    {.name = "scalar", .inputs = "f32[2,5,3,7] f32[1]=0.25"},
    {.name = "row", .inputs = "f32[6,33] f32[33]"},
    {.name = "double", .inputs = "f64[3,5] f64[5]"},
    {.name = "special", .inputs = "f32[5]=nan,inf,-inf,0,-0 f32[]=0.5"},
    {.name = "integer", .inputs = "i32[33]{-9:9} i32[]=3"},
    {.name = "unsigned", .inputs = "u64[2]=18446744073709551615,3 u64[]=2"},
};

REGISTER(op, p_relu) = {
    .name = "PRelu",
    .inputs_min = 2,
    .layout = LAYOUT_RULE_ANY,
    .function = FN_PRELU,
    .infer = infer,
    .cost = cost,
    .reference = reference,
    .gradient = gradient,
    OP_CASES(cases),
};
