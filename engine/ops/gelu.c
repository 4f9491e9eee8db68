/* SPDX-License-Identifier: Apache-2.0
 *
 * Gelu of opset 20: x Phi(x), exact (erf) or by the tanh form. The stated convention gives the tanh
 * form 12 FLOPs; the exact one is 4 operations and the erf. */
#include "engine/ops/lib/op_unary.h"

#include <math.h>
#include <string.h>

static const double SQRT_1_2 = 0.70710678118654752440;
static const double SQRT_2_OVER_PI = 0.79788456080286535588;

static bool by_tanh(const struct node *node)
{
    return strcmp(node_string(node, "approximate", "none"), "tanh") == 0;
}

static double value(double x, const struct node *node)
{
    if (by_tanh(node))
        return 0.5 * x * (1 + tanh(SQRT_2_OVER_PI * (x + 0.044715 * x * x * x)));
    return 0.5 * x * (1 + erf(x * SQRT_1_2));
}

static const struct unary gelu = {.value = value};

static enum status infer(const struct infer *c, struct error *err)
{
    const char *form = node_string(c->node, "approximate", "none");
    if (strcmp(form, "none") != 0 && strcmp(form, "tanh") != 0)
        return FAIL(err, STATUS_FAILED,
                    "attribute approximate of Gelu is \"%s\"; it may be \"none\" or \"tanh\"",
                    form);
    return unary_infer(c, &gelu, err);
}

static void cost(const struct infer *c, struct cost *cost)
{
    op_cost_each(c, by_tanh(c->node) ? 12 : 5, 1, cost);
}

static enum status reference(const struct ref_call *call, struct error *err)
{
    (void)err;
    return unary_reference(call, &gelu);
}

static const char *const attrs[] = {"approximate", NULL};

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
    .inputs_max = 1,
    .outputs_min = 1,
    .outputs_max = 1,
    .attrs = attrs,
    .layout = LAYOUT_RULE_ANY,
    .infer = infer,
    .cost = cost,
    .reference = reference,
    OP_CASES(cases),
};
