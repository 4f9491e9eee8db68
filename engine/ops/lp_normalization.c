/* SPDX-License-Identifier: Apache-2.0
 * LpNormalization: x / |x|_p along an axis; lines of zeros stay zero. */
#include <math.h>

#include "engine/graph/op_list.h"
#include "engine/ops/family/gradient.h"
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

/* (dy - y sum y dy) / |x| for squares, (dy - sign x sum y dy) / |x| for magnitudes; zeros alone
 * have a gradient of zero. */
static enum status gradient(const struct gradient_call *c, struct error *err)
{
    (void)err;
    struct graph *g = c->g;
    int x = gradient_in(c, 0), y = gradient_out(c, 0);
    int axis = shape_axis(&g->values[x].shape, node_int(gradient_node(c), "axis", -1));
    bool squares = node_int(gradient_node(c), "p", 2) == 2;
    int size = squares ? make_mul(g, x, x) : make_unary(g, &op_abs, x);
    int norm = make_sum_of_lines(g, size, axis, axis + 1);
    if (squares)
        norm = make_unary(g, &op_sqrt, norm);
    int along = make_sum_of_lines(g, make_mul(g, y, c->dy[0]), axis, axis + 1);
    int back = squares ? make_mul(g, y, along) : make_function(g, FN_ABS_SLOPE, along, x, 0, 0);
    int part = make_div(g, make_sub(g, c->dy[0], back), norm);
    c->dx[0] = make_function(g, FN_RELU_SLOPE, part, norm, 0, 0);
    return STATUS_OK;
}

static const struct op_case cases[] = {
    {.name = "last_axis", .inputs = "f32[7,33]"},
    {.name = "channels", .inputs = "f32[2,35,6,5]", .attrs = "axis=1"},
    {.name = "first_axis", .inputs = "f32[9,12]", .attrs = "axis=0 p=2"},
    {.name = "p_1", .inputs = "f32[3,17,4]", .attrs = "axis=-2 p=1"},
    {.name = "zeros", .inputs = "f32[3,4]=0"},
    {.name = "not_a_number", .inputs = "f32[2,4]=nan,1,2,3,1,2,3,4"},
    {.name = "not_a_number_first_axis", .inputs = "f32[3,2]=0,0,1,nan,2,3", .attrs = "axis=0"},
};

REGISTER(op, lp_normalization) = {
    .name = "LpNormalization",
    .narrow = NARROW_MATH,
    .inputs_min = 1,
    .attrs = attrs,
    .layout = LAYOUT_RULE_AXIS,
    .infer = infer,
    .cost = cost,
    .reference = reference,
    .gradient = gradient,
    OP_CASES(cases),
};
