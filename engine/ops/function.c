/* SPDX-License-Identifier: Apache-2.0
 * Function (ridge): a function of the vocabulary (engine/graph/function.h) by its name, with the
 * parameters p and q, of one input or of two under broadcasting. Gradient rules write slopes so. */
#include "engine/ops/family/op_binary.h"
#include "engine/ops/lib/chain.h"

static const char *const attrs[] = {"function", "p", "q", NULL};

static enum function function_of(const struct node *node)
{
    return function_find(node_string(node, "function", ""));
}

static enum status infer(const struct infer *c, struct error *err)
{
    enum function function = function_of(c->node);
    if (function == FN_COUNT)
        return FAIL(err, STATUS_FAILED, "there is no elementwise function \"%s\"",
                    node_string(c->node, "function", ""));
    if (c->in_count != function_info(function)->operands)
        return FAIL(err, STATUS_FAILED, "the function \"%s\" has %d operands, not %d",
                    function_info(function)->name, function_info(function)->operands, c->in_count);
    for (int k = 0; k < c->in_count; k++) {
        if (!infer_has(c, k))
            return FAIL(err, STATUS_FAILED, "input %d of Function is absent", k);
        TRY(op_check_type(c, k, OP_FLOAT, err));
    }
    return infer_broadcast(c, err);
}

static void cost(const struct infer *c, struct cost *cost)
{
    const struct function_info *info = function_info(function_of(c->node));
    op_cost_each(c, info->flops, info->calls, cost);
}

static enum status reference(const struct ref_call *call, struct error *err)
{
    (void)err;
    const struct ref_tensor *x = call->in[0], *out = call->out[0];
    const struct ref_tensor *y = call->in[call->in_count - 1];
    enum function function = function_of(call->node);
    double p = node_float(call->node, "p", 0), q = node_float(call->node, "q", 0);
    struct walk a, b;
    walk_start(&a, &out->shape, &x->shape, 0);
    walk_start(&b, &out->shape, &y->shape, 0);
    for (int64_t k = 0; k < out->count; k++, walk_next(&a), walk_next(&b))
        out->f[k] = function_value(function, p, q, x->f[a.at], y->f[b.at]);
    return STATUS_OK;
}

static enum status expression(const struct node *node, const float *const *scalars,
                              struct chain *chain, struct error *err)
{
    (void)scalars;
    (void)err;
    float p = (float)node_float(node, "p", 0), q = (float)node_float(node, "q", 0);
    enum function function = function_of(node);
    chain_push(chain,
               (struct chain_step){function, 0, function_info(function)->operands - 1, p, q});
    return STATUS_OK;
}

#define SLOPE(function_, at, parameters)                                                           \
    {.name = function_,                                                                            \
     .inputs = "f32[2,5,3,7] f32[2,5,3,7]" at,                                                     \
     .attrs = "function=\"" function_ "\"" parameters},                                            \
    {                                                                                              \
        .name = function_ "_special", .inputs = "f32[9]=1 f32[9]=nan,inf,-inf,0,-0,88,-88,3,-3",   \
        .attrs = "function=\"" function_ "\"" parameters                                           \
    }

static const struct op_case cases[] = {
    SLOPE("abs_slope", "", ""),
    SLOPE("celu_slope", "", " p=1.5"),
    SLOPE("clip_slope", "", " p=-0.5 q=0.25"),
    SLOPE("cos_slope", "{-3:3}", ""),
    SLOPE("elu_slope", "", " p=1.5"),
    SLOPE("erf_slope", "{-3:3}", ""),
    SLOPE("gelu_erf_slope", "{-6:6}", ""),
    SLOPE("gelu_tanh_slope", "{-6:6}", ""),
    SLOPE("hard_sigmoid_slope", "{-1:2}", " p=0.2"),
    SLOPE("hard_swish_slope", "{-5:5}", ""),
    SLOPE("leaky_relu_slope", "", " p=0.1"),
    SLOPE("mish_slope", "{-6:6}", ""),
    SLOPE("reciprocal_slope", "", ""),
    SLOPE("relu_slope", "", ""),
    SLOPE("selu_slope", "{-1.5:3}", " p=1.6732632 q=1.050701"),
    SLOPE("shrink_slope", "", " p=0.1 q=0.5"),
    SLOPE("sigmoid_slope", "{0:1}", ""),
    SLOPE("silu_slope", "{-6:6}", ""),
    SLOPE("sin_slope", "{-3:3}", ""),
    SLOPE("softplus_slope", "{-9:9}", ""),
    SLOPE("softsign_slope", "", ""),
    SLOPE("sqrt_slope", "{0.5:2}", ""),
    SLOPE("tanh_slope", "", ""),
    SLOPE("threshold_slope", "{-1:3}", " p=1.0"),
    {.name = "one_operand", .inputs = "f32[67]", .attrs = "function=\"scale\" p=0.5"},
    {.name = "broadcast", .inputs = "f32[6,33] f32[33]", .attrs = "function=\"tanh_slope\""},
    {.name = "scalar", .inputs = "f32[67] f32[]=0.5", .attrs = "function=\"elu_slope\" p=1.0"},
    {.name = "special",
     .inputs = "f32[5]=nan,inf,-inf,0,-0 f32[5]=1,2,3,0,-1",
     .attrs = "function=\"relu_slope\""},
    {.name = "double", .inputs = "f64[3,5] f64[5]", .attrs = "function=\"relu_slope\""},
    {.name = "half", .inputs = "f16[3,5] f16[5]", .attrs = "function=\"tanh_slope\""},
    {.name = "empty", .inputs = "f32[0,3] f32[3]", .attrs = "function=\"relu_slope\""},
};

REGISTER(op, function) = {
    .name = "Function",
    .domain = "ridge",
    .inputs_min = 1,
    .inputs_max = 2,
    .attrs = attrs,
    .layout = LAYOUT_RULE_ANY,
    .expression = expression,
    .infer = infer,
    .cost = cost,
    .reference = reference,
    .no_gradient = "nothing is trained through a gradient",
    OP_CASES(cases),
};
