/* SPDX-License-Identifier: Apache-2.0
 * LpNormalization: x / |x|_p along an axis; lines of zeros stay zero. */
#include <math.h>

#include "engine/ops/lib/axis.h"
#include "engine/ops/lib/op_args.h"

static const char *const attrs[] = {"axis", "p", NULL};

static enum status infer(const struct infer *c, struct error *err)
{
    struct op_args args = args_of_infer(c);
    int64_t p = node_int(c->node, "p", 2);
    int axis;
    if (p != 1 && p != 2)
        return FAIL(err, STATUS_FAILED, "LpNormalization: p is %lld, not 1 or 2", (long long)p);
    TRY(args_axis(&args, &c->in[0]->shape, -1, &axis, err));
    return infer_same(c, err);
}

static void cost(const struct infer *c, struct cost *cost)
{
    const struct shape *x = &c->in[0]->shape;
    struct axis axis = axis_at(x, shape_axis(x, node_int(c->node, "axis", -1)));
    cost->elementwise = 4 * (double)shape_count(x);
    cost->transcendentals = node_int(c->node, "p", 2) == 2 ? (double)(axis.outer * axis.inner) : 0;
}

static enum status reference(const struct ref_call *call, struct error *err)
{
    (void)err;
    const struct shape *shape = &call->in[0]->shape;
    struct axis axis = axis_at(shape, shape_axis(shape, node_int(call->node, "axis", -1)));
    bool squares = node_int(call->node, "p", 2) == 2;
    for (int64_t l = 0; l < axis.outer * axis.inner; l++) {
        int64_t start = axis_line(&axis, l);
        const double *x = call->in[0]->f + start;
        double sum = 0;
        for (int64_t k = 0; k < axis.size; k++)
            sum += squares ? x[k * axis.inner] * x[k * axis.inner] : fabs(x[k * axis.inner]);
        double norm = squares ? sqrt(sum) : sum;
        for (int64_t k = 0; k < axis.size; k++)
            call->out[0]->f[start + k * axis.inner] = norm == 0 ? 0 : x[k * axis.inner] / norm;
    }
    return STATUS_OK;
}

static const struct op_case cases[] = {
    {.name = "last_axis", .inputs = "f32[7,33]"},
    {.name = "channels", .inputs = "f32[2,35,6,5]", .attrs = "axis=1"},
    {.name = "first_axis", .inputs = "f32[9,12]", .attrs = "axis=0 p=2"},
    {.name = "p_1", .inputs = "f32[3,17,4]", .attrs = "axis=-2 p=1"},
    {.name = "zeros", .inputs = "f32[3,4]=0"},
};

REGISTER(op, lp_normalization) = {
    .name = "LpNormalization",
    .narrow = NARROW_MATH,
    .inputs_min = 1,
    .inputs_max = 1,
    .outputs_min = 1,
    .outputs_max = 1,
    .attrs = attrs,
    .layout = LAYOUT_RULE_AXIS,
    .infer = infer,
    .cost = cost,
    .reference = reference,
    OP_CASES(cases),
};
