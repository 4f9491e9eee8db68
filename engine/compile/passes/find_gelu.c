/* SPDX-License-Identifier: Apache-2.0
 *
 * Gelu as exporters write it. Both forms are products of x, 1/2 and (1 + s(x)) in any order, with
 *   s = erf(x / sqrt 2)                                     (exact)
 *   s = tanh(sqrt(2 / pi) (x + 0.044715 x^3))               (tanh form) */
#include <math.h>

#include "engine/compile/passes/rewrite.h"
#include "engine/graph/op_list.h"

static double rounded(enum dtype type, double x)
{
    return (double)(type == DTYPE_F16 ? half_to_float(half_from_float((float)x))
                                      : bfloat_to_float(bfloat_from_float((float)x)));
}

/* To the six digits that some exporters write: what is further off is another function. In 16 bits
 * a is b as the type of `value` holds it, or, where it is divided by, 1 / b. */
static bool near(const struct graph *g, int value, double a, double b)
{
    enum dtype type = g->values[value].dtype;
    if (type == DTYPE_F16 || type == DTYPE_BF16)
        return !(a < rounded(type, b) || a > rounded(type, b)) ||
               !(a < 1 / rounded(type, 1 / b) || a > 1 / rounded(type, 1 / b));
    return fabs(a - b) <= 3e-6 * fabs(b);
}

/* value = other * number, written as Mul or Div by a scalar. */
static bool scaled(const struct graph *g, int value, double *number, int *other)
{
    const struct node *mul = rewrite_producer(g, value, &op_mul);
    if (mul)
        return rewrite_with_scalar(g, mul, number, other);
    const struct node *div = rewrite_producer(g, value, &op_div);
    if (!div || !rewrite_scalar(g, div->inputs[1], number))
        return false;
    *number = 1 / *number;
    *other = div->inputs[0];
    return true;
}

/* x * x * x, as Pow(x, 3) or two products. */
static bool is_cube(const struct graph *g, int value, int x)
{
    double power;
    const struct node *pow = rewrite_producer(g, value, &op_pow);
    if (pow)
        return pow->inputs[0] == x && rewrite_scalar(g, pow->inputs[1], &power) &&
               near(g, value, power, 3);
    const struct node *outer = rewrite_producer(g, value, &op_mul);
    if (outer)
        for (int k = 0; k < 2; k++) {
            const struct node *inner = rewrite_producer(g, outer->inputs[k], &op_mul);
            if (inner && outer->inputs[1 - k] == x && inner->inputs[0] == x &&
                inner->inputs[1] == x)
                return true;
        }
    return false;
}

static bool is_tanh_argument(const struct graph *g, int value, int x)
{
    double scale, cubic;
    int sum, cube;
    if (!scaled(g, value, &scale, &sum) || !near(g, value, scale, 0.7978845608))
        return false;
    const struct node *add = rewrite_producer(g, sum, &op_add);
    if (add)
        for (int k = 0; k < 2; k++)
            if (add->inputs[k] == x && scaled(g, add->inputs[1 - k], &cubic, &cube) &&
                near(g, value, cubic, 0.044715) && is_cube(g, cube, x))
                return true;
    return false;
}

/* Whether value = 1 + s(x); and of which form it is. */
static bool is_bell(const struct graph *g, int value, int x, bool *tanh_form)
{
    double one, factor;
    int s, argument;
    const struct node *add = rewrite_producer(g, value, &op_add);
    if (!add || !rewrite_with_scalar(g, add, &one, &s) || !near(g, value, one, 1))
        return false;
    const struct node *erf = rewrite_producer(g, s, &op_erf);
    const struct node *tanh = rewrite_producer(g, s, &op_tanh);
    *tanh_form = tanh != NULL;
    if (tanh)
        return is_tanh_argument(g, tanh->inputs[0], x);
    return erf && scaled(g, erf->inputs[0], &factor, &argument) && argument == x &&
           near(g, value, factor, 0.70710678);
}

/* value = a * b * 1/2 in any bracketing; gives the two factors. */
static bool halved_product(const struct graph *g, const struct node *mul, int *a, int *b)
{
    double half;
    int rest;
    const struct node *inner;
    if (rewrite_with_scalar(g, mul, &half, &rest)) {
        inner = rewrite_producer(g, rest, &op_mul);
        if (!inner || !near(g, mul->outputs[0], half, 0.5))
            return false;
        *a = inner->inputs[0];
        *b = inner->inputs[1];
        return true;
    }
    for (int k = 0; k < 2; k++) {
        if (scaled(g, mul->inputs[k], &half, &rest) && near(g, mul->outputs[0], half, 0.5)) {
            *a = rest;
            *b = mul->inputs[1 - k];
            return true;
        }
    }
    return false;
}

/* Scalars of shape [1, 1, 1] may give the product a higher rank than x has. */
static bool match(const struct graph *g, const struct node *mul, int *x, bool *tanh_form)
{
    int a, b;
    if (mul->op_inputs != 2 || !halved_product(g, mul, &a, &b))
        return false;
    bool found = is_bell(g, b, a, tanh_form);
    *x = found ? a : b;
    found = found || is_bell(g, a, b, tanh_form);
    return found && shape_equal(&g->values[*x].shape, &g->values[mul->outputs[0]].shape);
}

enum status pass_find_gelu(struct graph *g, struct error *err)
{
    int count = g->node_count;
    for (int n = 0; n < count; n++) {
        int x;
        bool tanh_form;
        const struct node *mul = &g->nodes[n];
        if (mul->dead || mul->post_count || mul->op != &op_mul || !match(g, mul, &x, &tanh_form))
            continue;
        int old = mul->outputs[0];
        g->phase = mul->phase;
        int gelu = graph_node(g, op_gelu.name, NULL, INPUTS(x),
                              ATTRS(attr_string("approximate", tanh_form ? "tanh" : "none")));
        if (g->failed)
            return graph_check(g, err);
        rewrite_replace(g, old, gelu);
    }
    return STATUS_OK;
}
