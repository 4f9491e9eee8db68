/* SPDX-License-Identifier: Apache-2.0
 *
 * Gelu of opset 20: x Phi(x), exact (erf) or by the tanh form. The stated convention gives the tanh
 * form 12 FLOPs; the exact one is 4 operations and the erf. */
#include "engine/ops/family/gradient.h"
#include "engine/ops/lib/chain.h"
#include "engine/ops/lib/op_unary.h"

#include <string.h>

static enum function form_of(const struct node *node)
{
    const char *form = node_string(node, "approximate", "none");
    return strcmp(form, "tanh") == 0 ? FN_GELU_TANH : FN_GELU_ERF;
}

static double by_erf(double x)
{
    return function_value(FN_GELU_ERF, 0, 0, x, 0);
}

static double by_tanh(double x)
{
    return function_value(FN_GELU_TANH, 0, 0, x, 0);
}

static const struct unary exact = {.value = by_erf}, approximate = {.value = by_tanh};

static enum status infer(const struct infer *c, struct error *err)
{
    const char *form = node_string(c->node, "approximate", "none");
    if (strcmp(form, "none") != 0 && strcmp(form, "tanh") != 0)
        return FAIL(err, STATUS_FAILED,
                    "attribute approximate of Gelu is \"%s\"; it may be \"none\" or \"tanh\"",
                    form);
    return unary_infer(c, &exact, err);
}

static void cost(const struct infer *c, struct cost *cost)
{
    const struct function_info *info = function_info(form_of(c->node));
    op_cost_each(c, info->flops, info->calls, cost);
}

static enum status reference(const struct ref_call *call, struct error *err)
{
    (void)err;
    return unary_reference(call, form_of(call->node) == FN_GELU_ERF ? &exact : &approximate);
}

static enum status expression(const struct node *node, const float *const *scalars,
                              struct chain *chain, struct error *err)
{
    (void)scalars;
    (void)err;
    chain_push(chain, (struct chain_step){form_of(node), 0, 0, 0, 0});
    return STATUS_OK;
}

static const char *const attrs[] = {"approximate", NULL};

static enum status gradient(const struct gradient_call *c, struct error *err)
{
    (void)err;
    struct graph *g = c->g;
    enum function form = form_of(gradient_node(c));
    c->dx[0] = make_function(g, function_slope(form).function, c->dy[0], gradient_in(c, 0), 0, 0);
    return STATUS_OK;
}

static const struct op_case cases[] = {
    {.name = "exact", .inputs = "f32[67]{-5:5}"},
    {.name = "tanh", .inputs = "f32[67]{-5:5}", .attrs = "approximate=\"tanh\""},
    {.name = "image", .inputs = "f32[2,5,3,7]{-3:3}"},
    {.name = "image_tanh", .inputs = "f32[2,5,3,7]{-3:3}", .attrs = "approximate=\"tanh\""},
    {.name = "double", .inputs = "f64[3,5]{-3:3}"},
    {.name = "half", .inputs = "f16[19]{-3:3}"},
    {.name = "special", .inputs = "f32[5]=nan,inf,0,50,-50"},
    {.name = "special_tanh", .inputs = "f32[5]=nan,inf,0,50,-50", .attrs = "approximate=\"tanh\""},
};

REGISTER(op, gelu) = {
    .name = "Gelu",
    .inputs_min = 1,
    .since = 20,
    .attrs = attrs,
    .layout = LAYOUT_RULE_ANY,
    .expression = expression,
    .infer = infer,
    .cost = cost,
    .reference = reference,
    .gradient = gradient,
    OP_CASES(cases),
};
