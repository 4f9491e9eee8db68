/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/ops/lib/chain.h"

#include <math.h>
#include <string.h>

#include "base/registry.h"
#include "engine/graph/op.h"

static const struct chain_info infos[CHAIN_CODE_COUNT] = {
    [CHAIN_COPY] = {"copy", 1, 0, 0},
    [CHAIN_ABS] = {"abs", 1, 1, 0},
    [CHAIN_CEIL] = {"ceil", 1, 1, 0},
    [CHAIN_CELU] = {"celu", 1, 5, 1},
    [CHAIN_CLIP] = {"clip", 1, 2, 0},
    [CHAIN_COS] = {"cos", 1, 1, 1},
    [CHAIN_CUBE] = {"cube", 1, 1, 1},
    [CHAIN_ELU] = {"elu", 1, 4, 1},
    [CHAIN_ERF] = {"erf", 1, 1, 1},
    [CHAIN_EXP] = {"exp", 1, 1, 1},
    [CHAIN_FLOOR] = {"floor", 1, 1, 0},
    [CHAIN_GELU_ERF] = {"gelu", 1, 5, 1},
    [CHAIN_GELU_TANH] = {"gelu_tanh", 1, 12, 1},
    [CHAIN_HARD_SIGMOID] = {"hard_sigmoid", 1, 4, 0},
    [CHAIN_HARD_SWISH] = {"hard_swish", 1, 5, 0},
    [CHAIN_LEAKY_RELU] = {"leaky_relu", 1, 2, 0},
    [CHAIN_LOG] = {"log", 1, 1, 1},
    [CHAIN_MISH] = {"mish", 1, 9, 3},
    [CHAIN_NEG] = {"neg", 1, 1, 0},
    [CHAIN_RECIPROCAL] = {"reciprocal", 1, 1, 1},
    [CHAIN_RELU] = {"relu", 1, 1, 0},
    [CHAIN_ROUND] = {"round", 1, 1, 0},
    [CHAIN_SCALE] = {"scale", 1, 1, 0},
    [CHAIN_SELU] = {"selu", 1, 5, 1},
    [CHAIN_SHRINK] = {"shrink", 1, 2, 0},
    [CHAIN_SIGMOID] = {"sigmoid", 1, 4, 2},
    [CHAIN_SIGN] = {"sign", 1, 0, 0},
    [CHAIN_SILU] = {"silu", 1, 5, 2},
    [CHAIN_SIN] = {"sin", 1, 1, 1},
    [CHAIN_SOFTPLUS] = {"softplus", 1, 3, 2},
    [CHAIN_SOFTSIGN] = {"softsign", 1, 3, 1},
    [CHAIN_SQRT] = {"sqrt", 1, 1, 1},
    [CHAIN_SQUARE] = {"square", 1, 1, 1},
    [CHAIN_TANH] = {"tanh", 1, 5, 1},
    [CHAIN_THRESHOLD] = {"threshold", 1, 1, 0},
    [CHAIN_ADD] = {"add", 2, 1, 0},
    [CHAIN_DIV] = {"div", 2, 1, 1},
    [CHAIN_MAX] = {"max", 2, 1, 0},
    [CHAIN_MIN] = {"min", 2, 1, 0},
    [CHAIN_MUL] = {"mul", 2, 1, 0},
    [CHAIN_POW] = {"pow", 2, 1, 1},
    [CHAIN_PRELU] = {"prelu", 2, 2, 0},
    [CHAIN_SUB] = {"sub", 2, 1, 0},
};

const struct chain_info *chain_info(enum chain_code code)
{
    return &infos[code];
}

/* ---- from operators ---- */

/* Operators of one operand, with the attributes that become p and q. */
static const struct {
    const char *op;
    enum chain_code code;
    const char *p, *q;
    double p_default, q_default;
} unary_ops[] = {
    {"Abs", CHAIN_ABS, NULL, NULL, 0, 0},
    {"Ceil", CHAIN_CEIL, NULL, NULL, 0, 0},
    {"Celu", CHAIN_CELU, "alpha", NULL, 1, 0},
    {"Cos", CHAIN_COS, NULL, NULL, 0, 0},
    {"Elu", CHAIN_ELU, "alpha", NULL, 1, 0},
    {"Erf", CHAIN_ERF, NULL, NULL, 0, 0},
    {"Exp", CHAIN_EXP, NULL, NULL, 0, 0},
    {"Floor", CHAIN_FLOOR, NULL, NULL, 0, 0},
    {"HardSigmoid", CHAIN_HARD_SIGMOID, "alpha", "beta", 0.2, 0.5},
    {"HardSwish", CHAIN_HARD_SWISH, NULL, NULL, 0, 0},
    {"LeakyRelu", CHAIN_LEAKY_RELU, "alpha", NULL, 0.01, 0},
    {"Log", CHAIN_LOG, NULL, NULL, 0, 0},
    {"Mish", CHAIN_MISH, NULL, NULL, 0, 0},
    {"Neg", CHAIN_NEG, NULL, NULL, 0, 0},
    {"Reciprocal", CHAIN_RECIPROCAL, NULL, NULL, 0, 0},
    {"Relu", CHAIN_RELU, NULL, NULL, 0, 0},
    {"Round", CHAIN_ROUND, NULL, NULL, 0, 0},
    {"Selu", CHAIN_SELU, "alpha", "gamma", 1.67326319217681884765625, 1.05070102214813232421875},
    {"Shrink", CHAIN_SHRINK, "bias", "lambd", 0, 0.5},
    {"Sigmoid", CHAIN_SIGMOID, NULL, NULL, 0, 0},
    {"Sign", CHAIN_SIGN, NULL, NULL, 0, 0},
    {"Sin", CHAIN_SIN, NULL, NULL, 0, 0},
    {"Softplus", CHAIN_SOFTPLUS, NULL, NULL, 0, 0},
    {"Softsign", CHAIN_SOFTSIGN, NULL, NULL, 0, 0},
    {"Sqrt", CHAIN_SQRT, NULL, NULL, 0, 0},
    {"Tanh", CHAIN_TANH, NULL, NULL, 0, 0},
    {"ThresholdedRelu", CHAIN_THRESHOLD, "alpha", NULL, 1, 0},
};

/* Folded from the left over any number of operands. */
static const struct {
    const char *op;
    enum chain_code code;
} folded_ops[] = {
    {"Add", CHAIN_ADD}, {"Div", CHAIN_DIV}, {"Max", CHAIN_MAX}, {"Mean", CHAIN_ADD},
    {"Min", CHAIN_MIN}, {"Mul", CHAIN_MUL}, {"Pow", CHAIN_POW}, {"PRelu", CHAIN_PRELU},
    {"Sub", CHAIN_SUB}, {"Sum", CHAIN_ADD},
};

static int unary_row(const char *op)
{
    for (int k = 0; k < ARRAY_COUNT(unary_ops); k++)
        if (strcmp(unary_ops[k].op, op) == 0)
            return k;
    return -1;
}

static int folded_row(const char *op)
{
    for (int k = 0; k < ARRAY_COUNT(folded_ops); k++)
        if (strcmp(folded_ops[k].op, op) == 0)
            return k;
    return -1;
}

bool chain_knows(const char *op)
{
    return unary_row(op) >= 0 || folded_row(op) >= 0 || strcmp(op, "Clip") == 0 ||
           strcmp(op, "Gelu") == 0 || strcmp(op, "Chain") == 0;
}

bool chain_reads(const struct chain *chain, int k)
{
    for (int s = 0; s < chain->count; s++)
        if (chain->steps[s].a == k ||
            (infos[chain->steps[s].code].operands == 2 && chain->steps[s].b == k))
            return true;
    return false;
}

/* Appends a step; returns the operand that its result is. A full chain keeps counting, so that
 * the end can tell. */
static int push(struct chain *chain, struct chain_step step)
{
    if (chain->count < CHAIN_STEPS)
        chain->steps[chain->count] = step;
    return chain->inputs + chain->count++;
}

static int push_clip(const struct node *node, const float *const *scalars, struct chain *chain)
{
    float bound[2] = {(float)node_float(node, "min", (double)-INFINITY),
                      (float)node_float(node, "max", (double)INFINITY)};
    bool known[2] = {true, true};
    for (int k = 0; k < 2; k++) {
        int input = k + 1;
        if (input >= node->op_inputs || node->inputs[input] == NONE)
            continue;
        known[k] = scalars && scalars[input];
        if (known[k])
            bound[k] = *scalars[input];
    }
    if (known[0] && known[1])
        return push(chain, (struct chain_step){CHAIN_CLIP, 0, 0, bound[0], bound[1]});
    int x = 0;
    for (int k = 0; k < 2; k++) {
        enum chain_code code = k ? CHAIN_MIN : CHAIN_MAX;
        if (!known[k])
            x = push(chain, (struct chain_step){code, x, k + 1, 0, 0});
        else
            x = push(chain, (struct chain_step){CHAIN_CLIP, x, 0, k ? -INFINITY : bound[0],
                                                k ? bound[1] : INFINITY});
    }
    return x;
}

static int push_pow(float exponent, struct chain *chain)
{
    static const struct {
        float exponent;
        enum chain_code code;
    } known[] = {{1, CHAIN_COPY}, {2, CHAIN_SQUARE}, {3, CHAIN_CUBE}, {-1, CHAIN_RECIPROCAL}};
    for (int k = 0; k < ARRAY_COUNT(known); k++)
        if (exponent == known[k].exponent)
            return push(chain, (struct chain_step){known[k].code, 0, 0, 0, 0});
    return push(chain, (struct chain_step){CHAIN_POW, 0, 1, 0, 0});
}

static int push_folded(const struct node *node, enum chain_code code, const float *const *scalars,
                       struct chain *chain)
{
    if (code == CHAIN_POW && scalars && scalars[1])
        return push_pow(*scalars[1], chain);
    int x = 0;
    for (int k = 1; k < node->op_inputs; k++)
        x = push(chain, (struct chain_step){code, x, k, 0, 0});
    if (strcmp(node->op->name, "Mean") == 0 && node->op_inputs > 1)
        x = push(chain, (struct chain_step){CHAIN_SCALE, x, 0, 1.0f / (float)node->op_inputs, 0});
    return x;
}

static int push_gelu(const struct node *node, struct chain *chain)
{
    bool by_tanh = strcmp(node_string(node, "approximate", "none"), "tanh") == 0;
    return push(chain, (struct chain_step){by_tanh ? CHAIN_GELU_TANH : CHAIN_GELU_ERF, 0, 0, 0, 0});
}

static int push_unary(const struct node *node, int row, struct chain *chain)
{
    float p = 0, q = 0;
    if (unary_ops[row].p)
        p = (float)node_float(node, unary_ops[row].p, unary_ops[row].p_default);
    if (unary_ops[row].q)
        q = (float)node_float(node, unary_ops[row].q, unary_ops[row].q_default);
    return push(chain, (struct chain_step){unary_ops[row].code, 0, 0, p, q});
}

/* ---- operator Chain and posts ---- */

static enum status decode_step(const struct node *node, int s, const struct attr *code,
                               const struct attr *params, struct chain *chain, struct error *err)
{
    int64_t id = code->ints[3 * s], a = code->ints[3 * s + 1], b = code->ints[3 * s + 2];
    int operands = node->op_inputs + s; /* what has been computed so far */
    if (id < 0 || id >= CHAIN_CODE_COUNT || a < 0 || a >= operands || b < 0 || b >= operands)
        return FAIL(err, STATUS_FAILED, "step %d of Chain \"%s\" is %lld of operands %lld, %lld", s,
                    node->name, (long long)id, (long long)a, (long long)b);
    /* Operands of posts stand between the node's inputs and the results. */
    int shift = node->input_count - node->op_inputs;
    struct chain_step step = {(enum chain_code)id, (int)a, (int)b, (float)params->floats[2 * s],
                              (float)params->floats[2 * s + 1]};
    step.a += step.a >= node->op_inputs ? shift : 0;
    step.b += step.b >= node->op_inputs ? shift : 0;
    push(chain, step);
    return STATUS_OK;
}

static enum status decode(const struct node *node, struct chain *chain, struct error *err)
{
    const struct attr *code = node_attr(node, "code"), *params = node_attr(node, "params");
    if (!code || code->kind != ATTR_INTS || code->count == 0 || code->count % 3 != 0 || !params ||
        params->kind != ATTR_FLOATS || params->count * 3 != code->count * 2)
        return FAIL(err, STATUS_FAILED,
                    "Chain \"%s\" needs code (3 ints per step) and params (2 floats per step)",
                    node->name);
    for (int s = 0; s < code->count / 3; s++)
        TRY(decode_step(node, s, code, params, chain, err));
    return STATUS_OK;
}

static enum status push_post(const struct post *post, int *x, struct chain *chain,
                             struct error *err)
{
    static const enum chain_code acts[ACT_COUNT] = {
        [ACT_NONE] = CHAIN_COPY,
        [ACT_RELU] = CHAIN_RELU,
        [ACT_CLIP] = CHAIN_CLIP,
        [ACT_LEAKY_RELU] = CHAIN_LEAKY_RELU,
        [ACT_SIGMOID] = CHAIN_SIGMOID,
        [ACT_TANH] = CHAIN_TANH,
        [ACT_GELU_ERF] = CHAIN_GELU_ERF,
        [ACT_GELU_TANH] = CHAIN_GELU_TANH,
        [ACT_SILU] = CHAIN_SILU,
        [ACT_HARD_SIGMOID] = CHAIN_HARD_SIGMOID,
        [ACT_HARD_SWISH] = CHAIN_HARD_SWISH,
        [ACT_ELU] = CHAIN_ELU,
    };
    struct chain_step step = {CHAIN_COPY, *x, 0, post->a, post->b};
    if (post->kind == POST_ACT && post->act >= ACT_COUNT)
        return UNSUPPORTED(err, "no expression for activation %d", (int)post->act);
    if (post->kind == POST_ACT)
        step.code = acts[post->act];
    else
        step = (struct chain_step){post->kind == POST_ADD ? CHAIN_ADD : CHAIN_MUL, *x, post->input,
                                   0, 0};
    *x = push(chain, step);
    return STATUS_OK;
}

enum status chain_from_node(const struct node *node, const float *const *scalars,
                            struct chain *chain, struct error *err)
{
    const char *op = node->op->name;
    int row = unary_row(op), folded = folded_row(op), x = 0;
    *chain = (struct chain){.inputs = node->input_count};
    if (row >= 0)
        x = push_unary(node, row, chain);
    else if (folded >= 0)
        x = push_folded(node, folded_ops[folded].code, scalars, chain);
    else if (strcmp(op, "Clip") == 0)
        x = push_clip(node, scalars, chain);
    else if (strcmp(op, "Gelu") == 0)
        x = push_gelu(node, chain);
    else if (strcmp(op, "Chain") == 0)
        TRY(decode(node, chain, err));
    else
        return UNSUPPORTED(err, "%s is no elementwise expression", op);
    if (chain->count)
        x = chain->inputs + chain->count - 1;
    for (int k = 0; k < node->post_count; k++)
        TRY(push_post(&node->posts[k], &x, chain, err));
    if (chain->count == 0)
        push(chain, (struct chain_step){CHAIN_COPY, 0, 0, 0, 0});
    if (chain->inputs > CHAIN_INPUTS || chain->count > CHAIN_STEPS)
        return UNSUPPORTED(err, "%d inputs and %d steps; at most %d and %d", chain->inputs,
                           chain->count, (int)CHAIN_INPUTS, (int)CHAIN_STEPS);
    return STATUS_OK;
}
