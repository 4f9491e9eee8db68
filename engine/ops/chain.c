/* SPDX-License-Identifier: Apache-2.0
 * Chain (ridge): an elementwise expression over broadcast inputs, see engine/ops/lib/chain.h. */
#include "engine/ops/lib/chain.h"

#include "engine/ops/family/op_binary.h"

enum { TILE = 1 << 12 }; /* elements that a thread takes at a time */

static const char *const attrs[] = {"code", "params", NULL};

static enum status decode_step(const struct node *node, int s, const struct attr *code,
                               const struct attr *params, struct chain *chain, struct error *err)
{
    int64_t id = code->ints[3 * s], a = code->ints[3 * s + 1], b = code->ints[3 * s + 2];
    int operands = node->op_inputs + s; /* what has been computed so far */
    if (id < 0 || id >= FN_COUNT || a < 0 || a >= operands || b < 0 || b >= operands)
        return FAIL(err, STATUS_FAILED, "step %d of Chain \"%s\" is %lld of operands %lld, %lld", s,
                    node->name, (long long)id, (long long)a, (long long)b);
    /* Operands of posts stand between the node's inputs and the results. */
    int shift = node->input_count - node->op_inputs;
    struct chain_step step = {(enum function)id, (int)a, (int)b, (float)params->floats[2 * s],
                              (float)params->floats[2 * s + 1]};
    step.a += step.a >= node->op_inputs ? shift : 0;
    step.b += step.b >= node->op_inputs ? shift : 0;
    chain_push(chain, step);
    return STATUS_OK;
}

static enum status expression(const struct node *node, const float *const *scalars,
                              struct chain *chain, struct error *err)
{
    (void)scalars;
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

/* The node's own steps, without the posts. */
static enum status own_chain(const struct node *node, struct chain *chain, struct error *err)
{
    struct node own = *node;
    own.post_count = 0;
    own.input_count = own.op_inputs;
    return chain_from_node(&own, NULL, chain, err);
}

static enum status infer(const struct infer *c, struct error *err)
{
    struct chain chain;
    for (int k = 0; k < c->in_count; k++)
        if (!infer_has(c, k))
            return FAIL(err, STATUS_FAILED, "input %d of Chain is absent", k);
    for (int k = 0; k < c->in_count; k++)
        TRY(op_check_type(c, k, OP_FLOAT, err));
    TRY(own_chain(c->node, &chain, err));
    return infer_broadcast(c, err);
}

static void cost(const struct infer *c, struct cost *cost)
{
    struct chain chain;
    if (own_chain(c->node, &chain, NULL) != STATUS_OK)
        return;
    for (int s = 0; s < chain.count; s++) {
        const struct function_info *info = function_info(chain.steps[s].code);
        op_cost_each(c, info->flops, info->calls, cost);
    }
}

struct job {
    const struct ref_call *call;
    struct chain chain;
};

static void run_tile(void *context, int64_t tile, int thread)
{
    (void)thread;
    const struct job *job = context;
    const struct chain *chain = &job->chain;
    const struct ref_tensor *out = job->call->out[0];
    struct walk walks[CHAIN_INPUTS];
    double values[CHAIN_INPUTS + CHAIN_STEPS];
    int64_t first = tile * TILE, last = first + TILE < out->count ? first + TILE : out->count;
    for (int k = 0; k < chain->inputs; k++)
        walk_start(&walks[k], &out->shape, &job->call->in[k]->shape, first);
    for (int64_t i = first; i < last; i++) {
        for (int k = 0; k < chain->inputs; k++) {
            values[k] = job->call->in[k]->f[walks[k].at];
            walk_next(&walks[k]);
        }
        for (int s = 0; s < chain->count; s++) {
            const struct chain_step *step = &chain->steps[s];
            values[chain->inputs + s] = function_value(step->code, (double)step->p, (double)step->q,
                                                       values[step->a], values[step->b]);
        }
        out->f[i] = values[chain->inputs + chain->count - 1];
    }
}

static enum status reference(const struct ref_call *call, struct error *err)
{
    struct job job = {.call = call};
    TRY(own_chain(call->node, &job.chain, err));
    pool_run(call->pool, (call->out[0]->count + TILE - 1) / TILE, run_tile, &job);
    return STATUS_OK;
}

/* Codes as in enum function: 14 hard swish, 20 relu, 25 sigmoid, 27 silu, 33 tanh, 35 add,
 * 36 div, 39 mul, 42 sub. */
static const struct op_case cases[] = {
    {.name = "one step", .inputs = "f32[3,40]", .attrs = "code=[20,0,0] params=[0.0,0.0]"},
    {.name = "add and relu",
     .inputs = "f32[2,5,3,7] f32[2,5,3,7]",
     .attrs = "code=[35,0,1,20,2,0] params=[0.0,0.0,0.0,0.0]"},
    {.name = "batch norm by hand",
     .inputs = "f32[2,5,3,7] f32[5,1,1]! f32[5,1,1]! f32[5,1,1]!",
     .attrs = "code=[42,0,1,39,4,2,35,5,3,25,6,0,39,6,7] "
              "params=[0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0]"},
    {.name = "rows and columns",
     .inputs = "f32[6,33] f32[33]! f32[6,1] f32[]=0.5",
     .attrs = "code=[39,0,1,35,4,2,33,5,0,36,6,3] params=[0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0]"},
    {.name = "groups of rows and columns",
     .inputs = "f32[6,48] f32[48]! f32[6,1] f32[6,48]",
     .attrs = "code=[39,0,1,35,4,2,33,5,0,36,6,3,35,7,4] "
              "params=[0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0]"},
    {.name = "fours of rows and columns",
     .inputs = "f32[6,20] f32[20]! f32[6,1] f32[]=0.5",
     .attrs = "code=[39,0,1,35,4,2,33,5,0,36,6,3] params=[0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0]"},
    {.name = "result of small parts",
     .inputs = "f32[4,1] f32[1,3]",
     .attrs = "code=[25,0,0,33,1,0,39,2,3] params=[0.0,0.0,0.0,0.0,0.0,0.0]"},
    {.name = "long rows",
     .inputs = "f32[3,2500] f32[2500] f32[3,1]",
     .attrs = "code=[35,0,1,14,3,0,39,4,2] params=[0.0,0.0,0.0,0.0,0.0,0.0]"},
    {.name = "many tiles",
     .inputs = "f32[70,3,31] f32[3,1] f32[31] f32[70,1,31]",
     .attrs = "code=[35,0,1,39,4,2,42,5,3,27,6,0] params=[0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0]"},
    {.name = "double", .inputs = "f64[3,5] f64[5]", .attrs = "code=[35,0,1] params=[0.0,0.0]"},
    {.name = "empty", .inputs = "f32[0,3] f32[3]", .attrs = "code=[35,0,1] params=[0.0,0.0]"},
};

REGISTER(op, chain) = {
    .name = "Chain",
    .domain = "ridge",
    .inputs_min = 1,
    .inputs_max = -1,
    .attrs = attrs,
    .layout = LAYOUT_RULE_ANY,
    .expression = expression,
    .infer = infer,
    .cost = cost,
    .reference = reference,
    .no_gradient = "passes make it, after the gradients",
    OP_CASES(cases),
};
