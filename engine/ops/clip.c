/* SPDX-License-Identifier: Apache-2.0
 *
 * Bounds are attributes before opset 11, inputs from then on; a node that has inputs 1 or 2 goes by
 * them. NaN stays NaN; low above high gives high, as min(max(x, low), high) does. 2 FLOPs. */
#include "engine/ops/family/gradient.h"
#include "engine/ops/lib/chain.h"
#include "engine/ops/lib/op_unary.h"

#include <math.h>

static enum status infer(const struct infer *c, struct error *err)
{
    TRY(op_check_type(c, 0, OP_NUMBER, err));
    for (int k = 1; k < c->in_count; k++) {
        if (!infer_has(c, k))
            continue;
        if (c->in[k]->dtype != c->in[0]->dtype)
            return FAIL(err, STATUS_FAILED, "bound %d of Clip is %s but the input is %s", k,
                        dtype_name(c->in[k]->dtype), dtype_name(c->in[0]->dtype));
        if (shape_count(&c->in[k]->shape) != 1)
            return FAIL(err, STATUS_FAILED, "bound %d of Clip must be a scalar", k);
    }
    return infer_same(c, err);
}

static void cost(const struct infer *c, struct cost *cost)
{
    op_cost_each(c, function_info(FN_CLIP)->flops, 0, cost);
}

static const struct ref_tensor *bound(const struct ref_call *call, int k)
{
    return k < call->in_count ? call->in[k] : NULL;
}

static void clip_floats(const struct ref_call *call, const struct ref_tensor *low,
                        const struct ref_tensor *high)
{
    double min = low ? low->f[0] : node_float(call->node, "min", (double)-INFINITY);
    double max = high ? high->f[0] : node_float(call->node, "max", (double)INFINITY);
    for (int64_t k = 0; k < call->in[0]->count; k++)
        call->out[0]->f[k] = function_value(FN_CLIP, min, max, call->in[0]->f[k], 0);
}

static bool less(int64_t a, int64_t b, enum dtype dtype)
{
    return dtype == DTYPE_U64 ? (uint64_t)a < (uint64_t)b : a < b;
}

static enum status reference(const struct ref_call *call, struct error *err)
{
    (void)err;
    const struct ref_tensor *low = bound(call, 1), *high = bound(call, 2), *in = call->in[0];
    if (in->f) {
        clip_floats(call, low, high);
        return STATUS_OK;
    }
    for (int64_t k = 0; k < in->count; k++) {
        int64_t x = in->i[k];
        x = low && less(x, low->i[0], in->dtype) ? low->i[0] : x;
        call->out[0]->i[k] = high && less(high->i[0], x, in->dtype) ? high->i[0] : x;
    }
    return STATUS_OK;
}

/* Bounds that are not known now are operands. */
static enum status expression(const struct node *node, const float *const *scalars,
                              struct chain *chain, struct error *err)
{
    (void)err;
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
    if (known[0] && known[1]) {
        chain_push(chain, (struct chain_step){FN_CLIP, 0, 0, bound[0], bound[1]});
        return STATUS_OK;
    }
    int x = known[0] ? chain_push(chain, (struct chain_step){FN_CLIP, 0, 0, bound[0], INFINITY})
                     : chain_push(chain, (struct chain_step){FN_MAX, 0, 1, 0, 0});
    if (known[1])
        chain_push(chain, (struct chain_step){FN_CLIP, x, 0, -INFINITY, bound[1]});
    else
        chain_push(chain, (struct chain_step){FN_MIN, x, 2, 0, 0});
    return STATUS_OK;
}

static const char *const attrs[] = {"min", "max", NULL};
static const struct attr_input attr_inputs[] = {{"min", 1, 11}, {"max", 2, 11}, {NULL, 0, 0}};

/* By the result, which lies on a bound where the input does not count. */
static enum status gradient(const struct gradient_call *c, struct error *err)
{
    struct graph *g = c->g;
    int y = gradient_out(c, 0), dy = c->dy[0], count = gradient_node(c)->op_inputs;
    double bound[2] = {node_float(gradient_node(c), "min", (double)-INFINITY),
                       node_float(gradient_node(c), "max", (double)INFINITY)};
    struct gradient_inputs inputs;
    gradient_args(c, &inputs);
    for (int k = 1; k < count; k++) {
        int found;
        if (!infer_has(&inputs.infer, k))
            continue;
        if (c->wanted[k])
            return UNSUPPORTED(err, "a bound of Clip is not trained");
        TRY(infer_floats(&inputs.infer, k, &bound[k - 1], 1, &found, err));
    }
    c->dx[0] = make_function(g, FN_CLIP_SLOPE, dy, y, bound[0], bound[1]);
    return STATUS_OK;
}

static const struct op_case cases[] = {
    {.name = "attributes", .inputs = "f32[2,5,3,7]{-9:9}", .attrs = "min=0.0 max=6.0"},
    {.name = "attribute_min", .inputs = "f32[67]{-9:9}", .attrs = "min=-1.5"},
    {.name = "inputs", .inputs = "f32[2,5,3,7]{-9:9} f32[]=0 f32[]=6"},
    {.name = "only_min", .inputs = "f32[67]{-9:9} f32[]=-1"},
    {.name = "only_max", .inputs = "f32[67]{-9:9} - f32[]=1"},
    {.name = "unbounded", .inputs = "f32[67]{-9:9}"},
    {.name = "run_time", .inputs = "f32[67]{-9:9} f32[]{-2:-1} f32[]{1:2}"},
    {.name = "crossed", .inputs = "f32[3]=-5,0,5 f32[]=2 f32[]=1"},
    {.name = "special", .inputs = "f32[5]=nan,inf,-inf,0,-0 f32[]=-1 f32[]=1"},
    {.name = "double", .inputs = "f64[3,5]{-9:9} f64[]=0 f64[]=6"},
    {.name = "integer", .inputs = "i32[33]{-9:9} i32[]=0 i32[]=6"},
    {.name = "byte", .inputs = "i8[5]=-128,-1,0,5,127 i8[]=-2 i8[]=100"},
    {.name = "unsigned", .inputs = "u64[3]=18446744073709551615,0,5 u64[]=1 u64[]=9"},
};

REGISTER(op, clip) = {
    .name = "Clip",
    .inputs_min = 1,
    .inputs_max = 3,
    .attrs = attrs,
    .layout = LAYOUT_RULE_ANY,
    .expression = expression,
    .attr_inputs = attr_inputs,
    .infer = infer,
    .cost = cost,
    .reference = reference,
    .gradient = gradient,
    OP_CASES(cases),
};
