/* SPDX-License-Identifier: Apache-2.0
 *
 * Base and exponent may differ in type; the result has the type of the base. Integer powers of
 * integers are exact and wrap; a negative exponent truncates 1 / a^n towards zero. */
#include "engine/graph/op_list.h"
#include "engine/ops/family/gradient.h"
#include "engine/ops/family/op_binary.h"
#include "engine/ops/lib/chain.h"

#include <math.h>

static enum status infer(const struct infer *c, struct error *err)
{
    struct shape shape;
    char a[96], b[96];
    TRY(op_check_type(c, 0, OP_NUMBER, err));
    TRY(op_check_type(c, 1, OP_NUMBER, err));
    if (!shape_broadcast(&c->in[0]->shape, &c->in[1]->shape, &shape))
        return FAIL(err, STATUS_FAILED, "shapes %s and %s of Pow do not broadcast",
                    shape_text(&c->in[0]->shape, a), shape_text(&c->in[1]->shape, b));
    infer_set(c, 0, c->in[0]->dtype, &shape);
    return STATUS_OK;
}

static void cost(const struct infer *c, struct cost *cost)
{
    op_cost_each(c, 1, 1, cost);
}

/* By squaring; unsigned arithmetic wraps without undefined behaviour. */
static int64_t integer_power(int64_t base, uint64_t exponent)
{
    uint64_t result = 1, square = (uint64_t)base;
    for (; exponent; exponent >>= 1) {
        if (exponent & 1)
            result *= square;
        square *= square;
    }
    return (int64_t)result;
}

static int64_t power_of_integer(const struct ref_tensor *x, int64_t a, const struct ref_tensor *y,
                                int64_t b)
{
    if (y->f) {
        double power = pow(ref_get(x, a), y->f[b]);
        return power > -0x1p63 && power < 0x1p63 ? (int64_t)power : 0;
    }
    int64_t base = x->i[a], exponent = y->i[b];
    if (exponent >= 0 || dtype_is_unsigned(y->dtype))
        return integer_power(base, (uint64_t)exponent);
    if (base == 1)
        return 1;
    if (base == -1 && !dtype_is_unsigned(x->dtype))
        return exponent % 2 ? -1 : 1;
    return 0;
}

static enum status reference(const struct ref_call *call, struct error *err)
{
    (void)err;
    const struct ref_tensor *x = call->in[0], *y = call->in[1], *out = call->out[0];
    struct walk a, b;
    walk_start(&a, &out->shape, &x->shape, 0);
    walk_start(&b, &out->shape, &y->shape, 0);
    for (int64_t k = 0; k < out->count; k++, walk_next(&a), walk_next(&b)) {
        if (out->f)
            out->f[k] = function_value(FN_POW, 0, 0, x->f[a.at], ref_get(y, b.at));
        else
            out->i[k] = power_of_integer(x, a.at, y, b.at);
    }
    return STATUS_OK;
}

/* By products where the exponent is a small integer known now. */
static enum status expression(const struct node *node, const float *const *scalars,
                              struct chain *chain, struct error *err)
{
    static const struct {
        float exponent;
        enum function function;
    } known[] = {{1, FN_COPY}, {2, FN_SQUARE}, {3, FN_CUBE}, {-1, FN_RECIPROCAL}};
    (void)node;
    (void)err;
    struct chain_step step = {FN_POW, 0, 1, 0, 0};
    for (int k = 0; k < ARRAY_COUNT(known); k++)
        if (scalars && scalars[1] && *scalars[1] == known[k].exponent)
            step = (struct chain_step){known[k].function, 0, 0, 0, 0};
    chain_push(chain, step);
    return STATUS_OK;
}

/* Of x^2 the constant folder makes 2 x; the logarithm asks for a base above 0, as x^y does where y
 * is trained. */
static enum status gradient(const struct gradient_call *c, struct error *err)
{
    (void)err;
    struct graph *g = c->g;
    int a = gradient_in(c, 0), b = gradient_in(c, 1), dy = c->dy[0];
    int y = gradient_out(c, 0);
    if (c->wanted[0]) {
        int exponent = make_cast(g, b, g->values[a].dtype);
        int below = make_binary(g, &op_pow, a, make_plus(g, exponent, -1));
        c->dx[0] = make_sum_to(g, make_mul(g, make_mul(g, dy, exponent), below), a);
    }
    if (c->wanted[1]) {
        int log = make_unary(g, &op_log, a);
        int slope = make_cast(g, make_mul(g, make_mul(g, dy, y), log), g->values[b].dtype);
        c->dx[1] = make_sum_to(g, slope, b);
    }
    return STATUS_OK;
}

static const struct op_case cases[] = {
    {.name = "same", .inputs = "f32[2,3,4]{0.1:3} f32[2,3,4]{-2:2}"},
    {.name = "image", .inputs = "f32[2,5,3,7]{0.1:3} f32[2,5,3,7]{-2:2}"},
    {.name = "square", .inputs = "f32[2,5,3,7]{-3:3} f32[]=2"},
    {.name = "cube", .inputs = "f32[67]{-3:3} f32[]=3"},
    {.name = "root", .inputs = "f32[67]{0:3} f32[]=0.5"},
    {.name = "inverse", .inputs = "f32[67]{0.5:3} f32[]=-1"},
    {.name = "broadcast", .inputs = "f32[5]{0.1:3} f32[3,1]"},
    {.name = "double", .inputs = "f64[3,5]{0.1:3} f64[5]"},
    {.name = "special", .inputs = "f32[8]=nan,inf,0,-8,-2,1,0,-inf f32[8]=1,-1,-1,0.5,3,nan,0,2"},
    {.name = "float_int", .inputs = "f32[3]=1,2,3 i64[3]=4,5,-6"},
    {.name = "float_u32", .inputs = "f32[3]=1,2,3 u32[3]=4,5,6"},
    {.name = "int_float", .inputs = "i32[3]=1,2,3 f32[3]=4,5,6"},
    {.name = "int_int", .inputs = "i64[6]=1,2,-3,-1,2,3 i64[6]=4,62,5,-3,-1,39"},
};

REGISTER(op, pow) = {
    .name = "Pow",
    .inputs_min = 2,
    .layout = LAYOUT_RULE_ANY,
    .expression = expression,
    .infer = infer,
    .cost = cost,
    .reference = reference,
    .gradient = gradient,
    OP_CASES(cases),
};
