/* SPDX-License-Identifier: Apache-2.0
 *
 * The references of elementwise operators judge all kernels; here they are judged themselves, by
 * results worked out by hand from the operator's definition where ONNX's own conformance cases say
 * nothing: wrapping, signs, ties, NaN, ends of types. Costs as well. */

#include <string.h>

#include "engine/reference/reference.h"
#include "engine/run/exe.h"
#include "tests/lib/op_case.h"
#include "tests/lib/unit.h"

static const struct {
    const char *op, *inputs, *attrs, *result;
} results[] = {
    {"Abs", "i8[3]=-128,-1,127", NULL, "i8[3]=-128,1,127"},
    {"Abs", "u64[1]=18446744073709551615", NULL, "u64[1]=18446744073709551615"},
    {"Add", "u8[3]=255,200,0 u8[3]=1,100,0", NULL, "u8[3]=0,44,0"},
    {"Add", "i8[1]=127 i8[1]=1", NULL, "i8[1]=-128"},
    {"Add", "f32[2]=inf,1 f32[2]=-inf,nan", NULL, "f32[2]=nan"},
    {"Sub", "u8[1]=0 u8[1]=1", NULL, "u8[1]=255"},
    {"Sub", "u64[1]=0 u64[1]=1", NULL, "u64[1]=18446744073709551615"},
    {"Mul", "i16[1]=300 i16[1]=300", NULL, "i16[1]=24464"},
    {"Div", "i32[4]=7,-7,7,-7 i32[4]=2,2,-2,-2", NULL, "i32[4]=3,-3,-3,3"},
    {"Div", "u64[1]=18446744073709551615 u64[1]=2", NULL, "u64[1]=9223372036854775807"},
    {"Div", "i64[1]=-9223372036854775808 i64[1]=-1", NULL, "i64[1]=-9223372036854775808"},
    {"Div", "f32[3]=1,-1,0 f32[3]=0", NULL, "f32[3]=inf,-inf,nan"},
    {"Mod", "i32[4]=7,-7,7,-7 i32[4]=3,3,-3,-3", NULL, "i32[4]=1,2,-2,-1"},
    {"Mod", "i32[4]=7,-7,7,-7 i32[4]=3,3,-3,-3", "fmod=1", "i32[4]=1,-1,1,-1"},
    {"Mod", "f32[2]=-7.5,7.5 f32[2]=2,-2", "fmod=1", "f32[2]=-1.5,1.5"},
    {"Mod", "u64[1]=18446744073709551615 u64[1]=10", NULL, "u64[1]=5"},
    {"Pow", "i32[4]=2,-2,3,0 i32[4]=10,3,0,0", NULL, "i32[4]=1024,-8,1,1"},
    {"Pow", "i64[4]=2,1,-1,-1 i64[4]=-1,-5,-3,-4", NULL, "i64[4]=0,1,-1,1"},
    {"Pow", "i64[1]=3 i64[1]=39", NULL, "i64[1]=4052555153018976267"},
    {"Pow", "i32[2]=4,8 f32[2]=0.5,-1", NULL, "i32[2]=2,0"},
    {"Pow", "f32[2]=2,4 i64[2]=-2,2", NULL, "f32[2]=0.25,16"},
    {"Max", "f32[3]=nan,1,-inf f32[3]=1,nan,2", NULL, "f32[3]=nan,nan,2"},
    {"Min", "f32[3]=nan,1,-inf f32[3]=1,nan,2", NULL, "f32[3]=nan,nan,-inf"},
    {"Max", "u64[1]=18446744073709551615 u64[1]=1", NULL, "u64[1]=18446744073709551615"},
    {"Min", "u64[1]=18446744073709551615 u64[1]=1", NULL, "u64[1]=1"},
    {"Max", "f32[2]=1,5 f32[1]=3 f32[]=4", NULL, "f32[2]=4,5"},
    /* Of nothing, as in ONNX's node tests test_reduce_*_empty_set. */
    {"ReduceMax", "bool[2,0,3]", "axes=[1]", "bool[2,1,3]=0"},
    {"ReduceMin", "bool[2,0,3]", "axes=[1]", "bool[2,1,3]=1"},
    {"ReduceMax", "i8[0]", NULL, "i8[1]=-128"},
    {"ReduceMin", "i8[0]", NULL, "i8[1]=127"},
    {"ReduceMax", "i32[0]", NULL, "i32[1]=-2147483648"},
    {"ReduceMin", "i32[0]", NULL, "i32[1]=2147483647"},
    {"ReduceMax", "u64[0]", NULL, "u64[1]=0"},
    {"ReduceMin", "u64[0]", NULL, "u64[1]=18446744073709551615"},
    {"ReduceMin", "i64[0]", NULL, "i64[1]=9223372036854775807"},
    {"ReduceMax", "f32[2,0]", "axes=[1]", "f32[2,1]=-inf"},
    {"ReduceMin", "f32[2,0]", "axes=[1]", "f32[2,1]=inf"},
    {"ReduceSum", "i32[2,0]", "axes=[1]", "i32[2,1]=0"},
    {"ReduceProd", "i32[2,0]", "axes=[1]", "i32[2,1]=1"},
    {"ReduceMax", "bool[2,2]=1,0,0,0", "axes=[1]", "bool[2,1]=1,0"},
    {"ReduceMin", "bool[2,2]=1,0,1,1", "axes=[1]", "bool[2,1]=0,1"},
    {"Mean", "f32[2]=1,5 f32[1]=3 f32[]=2", NULL, "f64[2]=2,3.3333333333333333"},
    {"Sum", "f32[2,1]=1,10 f32[3]=1,2,3", NULL, "f32[2,3]=2,3,4,11,12,13"},
    {"BitShift", "u8[3]=255,3,1 u8[3]=1,8,7", "direction=\"LEFT\"", "u8[3]=254,0,128"},
    {"BitShift", "u64[2]=18446744073709551615 u64[2]=63,64", "direction=\"RIGHT\"", "u64[2]=1,0"},
    {"Equal", "i64[1]=9007199254740993 i64[1]=9007199254740992", NULL, "bool[1]=0"},
    {"Less", "u64[2]=18446744073709551615,1 u64[2]=1,2", NULL, "bool[2]=0,1"},
    {"Less", "f32[3]=nan,1,-0 f32[3]=nan,nan,0", NULL, "bool[3]=0"},
    {"GreaterOrEqual", "f32[3]=nan,1,-0 f32[3]=nan,nan,0", NULL, "bool[3]=0,0,1"},
    {"Xor", "bool[4]=0,0,1,1 bool[4]=0,1,0,1", NULL, "bool[4]=0,1,1,0"},
    {"Where", "bool[2,1]=1,0 f32[2]=1,nan f32[]=3", NULL, "f32[2,2]=1,nan,3,3"},
    {"PRelu", "f32[2,2]=-1,2,-3,nan f32[2]=0.5,0.25", NULL, "f32[2,2]=-0.5,2,-1.5,nan"},
    {"Clip", "f32[4]=nan,-9,0,9 f32[]=-1 f32[]=1", NULL, "f32[4]=nan,-1,0,1"},
    {"Clip", "f32[2]=-9,9", "min=-2.0 max=3.0", "f32[2]=-2,3"},
    {"Clip", "f32[1]=0 f32[]=2 f32[]=1", NULL, "f32[1]=1"},
    {"Clip", "u64[2]=18446744073709551615,0 - u64[]=7", NULL, "u64[2]=7,0"},
    {"Round", "f32[6]=-2.5,-0.5,0.5,1.5,2.5,2.51", NULL, "f32[6]=-2,0,0,2,2,3"},
    {"Sign", "f32[4]=-inf,-0,nan,2", NULL, "f32[4]=-1,0,nan,1"},
    {"Sign", "u64[2]=18446744073709551615,0", NULL, "u64[2]=1,0"},
    {"Neg", "i8[2]=-128,5", NULL, "i8[2]=-128,-5"},
    {"IsInf", "f32[3]=inf,-inf,nan", "detect_negative=0", "bool[3]=1,0,0"},
    {"IsNaN", "f32[3]=inf,-inf,nan", NULL, "bool[3]=0,0,1"},
    {"Shrink", "f32[4]=-2,-1,1,2", "lambd=1.5 bias=0.5", "f32[4]=-1.5,0,0,1.5"},
    {"ThresholdedRelu", "f32[3]=1,1.5,-3", NULL, "f32[3]=0,1.5,0"},
    {"Softplus", "f32[3]=-1000,0,1000", NULL, "f64[3]=0,0.69314718055994530942,1000"},
    {"HardSwish", "f32[4]=-3,-1.5,3,4", NULL, "f32[4]=0,-0.375,3,4"},
    {"Celu", "f64[2]=-2,1", "alpha=2.0", "f64[2]=-1.2642411176571153569,1"},
    {"Selu", "f64[2]=0,2", "alpha=3.0 gamma=2.0", "f64[2]=0,4"},
    {"Cast", "f32[5]=-2.9,2.9,-0.5,300,nan", "to=3", "i8[5]=-2,2,0,127,0"},
    {"Cast", "f32[3]=1e30,-1e30,2e19", "to=13",
     "u64[3]=18446744073709551615,0,18446744073709551615"},
    {"Cast", "i32[3]=300,-1,128", "to=2", "u8[3]=44,255,128"},
    {"Cast", "i32[2]=300,-129", "to=3", "i8[2]=44,127"},
    {"Cast", "u64[1]=18446744073709551615", "to=11", "f64[1]=18446744073709551616"},
    {"Cast", "f32[4]=0,-0,nan,0.1", "to=9", "bool[4]=0,0,1,1"},
    {"Cast", "f32[3]=1.00390625,1.01171875,3.5e38", "to=16", "f32[3]=1,1.015625,inf"},
    {"Cast", "f32[4]=2049,2051,65520,5.9604645e-8", "to=10",
     "f64[4]=2048,2052,inf,5.9604644775390625e-8"},
    {"CastLike", "f32[2]=-1.5,2 i32[4]", NULL, "i32[2]=-1,2"},
};

static struct ref_tensor computed(const char *op, const char *inputs, const char *attrs)
{
    struct error err = {0};
    struct ref_tensor result = {0};
    struct op_case c = {.name = "test", .inputs = inputs, .attrs = attrs};
    struct graph *g = op_case_graph(op_find(op, NULL), &c, &err);
    if (!g || reference_run(g, NULL, &result, NULL, &err) != STATUS_OK)
        fail_msg("%s", err.message);
    graph_free(g);
    return result;
}

TEST(test_results)
{
    for (int k = 0; k < ARRAY_COUNT(results); k++) {
        struct ref_tensor got = computed(results[k].op, results[k].inputs, results[k].attrs);
        struct ref_tensor want = computed("Identity", results[k].result, NULL);
        bool same = shape_equal(&got.shape, &want.shape) && !got.i == !want.i;
        for (int64_t i = 0; same && i < want.count; i++)
            same = got.i ? got.i[i] == want.i[i] : true;
        if (!same || !(ref_rel_error(&got, &want) < 1e-14))
            fail_msg("%s \"%s\" %s is not %s: element 0 is %g", results[k].op, results[k].inputs,
                     results[k].attrs ? results[k].attrs : "", results[k].result, ref_get(&got, 0));
        ref_release(&got);
        ref_release(&want);
    }
}

TEST(test_dropout_masks_nothing)
{
    struct error err = {0};
    struct ref_tensor out[2];
    struct op_case c = {.name = "mask", .inputs = "f32[3]=1,nan,3 f32[]=0.5", .outputs = 2};
    struct graph *g = op_case_graph(op_find("Dropout", NULL), &c, &err);
    assert_non_null(g);
    MUST(reference_run, g, NULL, out, NULL);
    assert_true(out[0].f[0] == 1 && out[0].f[2] == 3);
    for (int k = 0; k < 3; k++)
        assert_true(out[1].i[k] == 1);
    ref_release(&out[0]);
    ref_release(&out[1]);
    graph_free(g);
}

/* What must be refused by the shape rule, with a word of the reason. */
static const struct {
    const char *op, *inputs, *attrs, *reason;
} refusals[] = {
    {"Sin", "i32[2]", NULL, "floats only"},
    {"Neg", "u8[2]", NULL, "signed integers only"},
    {"And", "i32[2] i32[2]", NULL, "bool only"},
    {"Add", "bool[2] bool[2]", NULL, "numbers only"},
    {"BitShift", "i32[2] i32[2]", "direction=\"LEFT\"", "unsigned integers only"},
    {"BitShift", "u32[2] u32[2]", NULL, "direction"},
    {"Mod", "f32[2] f32[2]", NULL, "fmod=1"},
    {"PRelu", "f32[3] f32[2,3]", NULL, "does not broadcast"},
    {"Clip", "f32[3] f32[2]=1", NULL, "scalar"},
    {"Clip", "f32[3] f64[]=1", NULL, "is f64"},
    {"Where", "bool[2] f32[2] i32[2]", NULL, "must agree"},
    {"Gelu", "f32[2]", "approximate=\"fast\"", "approximate"},
    {"Cast", "f32[2]", "to=8", "not supported"},
    {"Dropout", "f32[2] f32[]=0.5 bool[]=1", NULL, "training_mode"},
};

TEST(test_refusals)
{
    for (int k = 0; k < ARRAY_COUNT(refusals); k++) {
        struct error err = {0};
        struct op_case c = {
            .name = "test", .inputs = refusals[k].inputs, .attrs = refusals[k].attrs};
        struct graph *g = op_case_graph(op_find(refusals[k].op, NULL), &c, &err);
        if (g || !strstr(err.message, refusals[k].reason))
            fail_msg("%s: \"%s\" does not say \"%s\"", refusals[k].op,
                     g ? "(accepted)" : err.message, refusals[k].reason);
    }
}

static struct cost cost_of(const char *op, const char *inputs, const char *attrs)
{
    struct error err = {0};
    struct cost cost = {0};
    const struct value *in[8];
    struct op_case c = {.name = "test", .inputs = inputs, .attrs = attrs};
    struct graph *g = op_case_graph(op_find(op, NULL), &c, &err);
    if (!g)
        fail_msg("%s", err.message);
    const struct node *node = &g->nodes[0];
    for (int k = 0; k < node->input_count; k++)
        in[k] = node->inputs[k] == NONE ? NULL : &g->values[node->inputs[k]];
    struct value *out = &g->values[node->outputs[0]];
    struct infer infer = {
        .node = node, .in = in, .out = &out, .in_count = node->input_count, .out_count = 1};
    if (node->op->cost)
        node->op->cost(&infer, &cost);
    graph_free(g);
    return cost;
}

/* The prices that the stated convention names, per element of the broadcast output. */
TEST(test_costs)
{
    static const struct {
        const char *op, *inputs, *attrs;
        double elementwise, transcendentals;
    } prices[] = {
        {"Relu", "f32[4,5]", NULL, 20, 0},
        {"Add", "f32[4,1] f32[5]", NULL, 20, 0},
        {"Mul", "f32[4,5] f32[]", NULL, 20, 0},
        {"Sigmoid", "f32[4,5]", NULL, 80, 40},
        {"Tanh", "f32[4,5]", NULL, 100, 20},
        {"Gelu", "f32[4,5]", "approximate=\"tanh\"", 240, 20},
        {"Sum", "f32[4,5] f32[4,5] f32[5]", NULL, 40, 0},
        {"Div", "f32[4,5] f32[]", NULL, 20, 20},
        {"Add", "i64[4,5] i64[5]", NULL, 0, 0},
        {"Greater", "f32[4,5] f32[5]", NULL, 0, 0},
        {"Where", "bool[4,5] f32[4,5] f32[]", NULL, 0, 0},
        {"Cast", "i32[4,5]", "to=1", 0, 0},
    };
    for (int k = 0; k < ARRAY_COUNT(prices); k++) {
        struct cost cost = cost_of(prices[k].op, prices[k].inputs, prices[k].attrs);
        if (cost.elementwise != prices[k].elementwise ||
            cost.transcendentals != prices[k].transcendentals || cost.macs != 0)
            fail_msg("%s costs %g + %g, not %g + %g", prices[k].op, cost.elementwise,
                     cost.transcendentals, prices[k].elementwise, prices[k].transcendentals);
    }
}
