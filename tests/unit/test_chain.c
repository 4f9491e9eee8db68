/* SPDX-License-Identifier: Apache-2.0
 *
 * Elementwise expressions: what a node becomes, that its price is the operator's, and that the pass
 * which joins nodes keeps the values and takes neither too much nor too little. */
#include <string.h>

#include "engine/compile/compile.h"
#include "engine/compile/passes/rewrite.h"
#include "engine/ops/lib/chain.h"
#include "engine/reference/reference.h"
#include "engine/run/exe.h"
#include "tests/lib/op_case.h"
#include "tests/lib/unit.h"
#include "tests/lib/unit/graphs.h"

static const struct fill noise = {.kind = FILL_UNIFORM, .a = -2, .b = 2};

static int alive(const struct graph *g, const char *op)
{
    int count = 0;
    for (int n = 0; n < g->node_count; n++)
        count += !g->nodes[n].dead && (!op || strcmp(g->nodes[n].op->name, op) == 0);
    return count;
}

static void run(const struct graph *g, struct ref_tensor *out)
{
    MUST(reference_run, g, NULL, out, NULL);
}

/* Runs the pass; the result must stay what it was (to the rounding of parameters to float). */
static void check_pass(struct graph *g, int nodes, int chains)
{
    struct ref_tensor before = {0}, after = {0};
    run(g, &before);
    MUST(pass_fuse_chain, g);
    graph_compact(g);
    MUST(graph_check, g);
    assert_int_equal(alive(g, NULL), nodes);
    assert_int_equal(alive(g, "Chain"), chains);
    run(g, &after);
    assert_true(shape_equal(&before.shape, &after.shape));
    assert_true(ref_rel_error(&after, &before) < 1e-7);
    ref_release(&before);
    ref_release(&after);
    graph_free(g);
}

static int input(struct graph *g, const char *name, struct shape shape)
{
    return graph_input(g, name, DTYPE_F32, shape, noise);
}

static int add(struct graph *g, const char *op, int input_count, const int *inputs, int attr_count,
               const struct attr *attrs)
{
    return graph_node(g, op, NULL, input_count, inputs, attr_count, attrs);
}

TEST(joins_a_diamond)
{
    struct graph *g = graph_new("dice");
    int x = input(g, "x", shape_of(6, 9)), alpha = input(g, "alpha", shape_of(9));
    int s = add(g, "Sigmoid", INPUTS(x), NO_ATTRS);
    int kept = add(g, "Mul", INPUTS(s, x), NO_ATTRS);
    int rest = add(g, "Sub", INPUTS(x, kept), NO_ATTRS);
    int scaled = add(g, "Mul", INPUTS(rest, alpha), NO_ATTRS);
    graph_output(g, add(g, "Add", INPUTS(kept, scaled), NO_ATTRS));
    check_pass(g, 1, 1);
}

/* An exponent of shape [1, 1, 1] gives its result a rank that the chain of the others lacked. */
TEST(an_exponent_that_raises_the_rank_stays)
{
    for (int whole = 0; whole < 2; whole++) {
        struct graph *g = graph_new("rank");
        int x = input(g, "x", shape_of(4, 5)), z = input(g, "z", shape_of(1, 2, 5));
        int two = graph_const(g, NULL, DTYPE_F32, shape_of(1, 1, 1), &(const float){2});
        int power = add(g, "Pow", INPUTS(x, two), NO_ATTRS);
        int y = add(g, "Tanh", INPUTS(power), NO_ATTRS);
        if (whole) /* of a rank that another operand has, too */
            y = add(g, "Mul", INPUTS(y, input(g, "w", shape_of(1, 4, 5))), NO_ATTRS);
        graph_output(g, add(g, "Concat", INPUTS(y, z), ATTRS(attr_int("axis", 1))));
        check_pass(g, whole ? 2 : 3, whole);
    }
}

TEST(keeps_what_others_read)
{
    struct graph *g = graph_new("shared");
    int x = input(g, "x", shape_of(4, 8));
    int shared = add(g, "Exp", INPUTS(x), NO_ATTRS);
    int sum = add(g, "ReduceSum", INPUTS(shared), ATTRS(attr_ints_of("axes", 1)));
    int divided = add(g, "Div", INPUTS(shared, sum), NO_ATTRS);
    graph_output(g, add(g, "Sqrt", INPUTS(divided), NO_ATTRS));
    check_pass(g, 3, 1); /* Exp, ReduceSum, Chain of Div and Sqrt */
}

TEST(keeps_outputs)
{
    struct graph *g = graph_new("outputs");
    int x = input(g, "x", shape_of(5));
    int y = add(g, "Tanh", INPUTS(x), NO_ATTRS);
    graph_output(g, y);
    graph_output(g, add(g, "Neg", INPUTS(y), NO_ATTRS));
    MUST(pass_fuse_chain, g);
    assert_int_equal(alive(g, "Chain"), 0);
    graph_free(g);
}

TEST(leaves_smaller_shapes)
{
    struct graph *g = graph_new("small");
    int x = input(g, "x", shape_of(7, 33)), row = input(g, "row", shape_of(33));
    int factor = add(g, "Exp", INPUTS(row), NO_ATTRS); /* once per column, not per element */
    int y = add(g, "Mul", INPUTS(x, factor), NO_ATTRS);
    graph_output(g, add(g, "Relu", INPUTS(y), NO_ATTRS));
    check_pass(g, 2, 1);
}

TEST(takes_constants_as_parameters)
{
    struct graph *g = graph_new("constants");
    int x = input(g, "x", shape_of(3, 11));
    int low = graph_const_f32(g, 0.1f), high = graph_const_f32(g, 1.5f);
    int two = graph_const_f32(g, 2), half = graph_const_f32(g, 0.5f);
    int y = add(g, "Clip", INPUTS(x, low, high), NO_ATTRS);
    y = add(g, "Pow", INPUTS(y, two), NO_ATTRS);
    graph_output(g, add(g, "Mul", INPUTS(y, half), NO_ATTRS));
    struct ref_tensor before = {0}, after = {0};
    run(g, &before);
    assert_int_equal(pass_fuse_chain(g, NULL), STATUS_OK);
    graph_compact(g);
    assert_int_equal(alive(g, NULL), 1);
    assert_int_equal(g->nodes[0].input_count, 2); /* x and the 0.5 */
    run(g, &after);
    assert_true(ref_rel_error(&after, &before) < 1e-7);
    ref_release(&before);
    ref_release(&after);
    graph_free(g);
}

TEST(leaves_integers)
{
    struct graph *g = graph_new("integers");
    int x = graph_input(g, "x", DTYPE_I64, shape_of(6), (struct fill){FILL_INDEX, 0, 9, 0});
    int y = add(g, "Add", INPUTS(x, x), NO_ATTRS);
    graph_output(g, add(g, "Mul", INPUTS(y, x), NO_ATTRS));
    check_pass(g, 2, 0);
}

TEST(splits_what_is_too_long)
{
    struct graph *g = graph_new("long");
    int y = input(g, "x", shape_of(40));
    for (int k = 0; k < CHAIN_STEPS + 5; k++)
        y = add(g, k % 2 ? "Tanh" : "Neg", INPUTS(y), NO_ATTRS);
    graph_output(g, y);
    check_pass(g, 2, 2);
}

TEST(splits_when_inputs_are_many)
{
    struct graph *g = graph_new("wide");
    int y = input(g, "x", shape_of(2, 3));
    for (int k = 0; k < CHAIN_INPUTS + 3; k++) {
        char name[16] = {'a', (char)('a' + k), 0};
        y = add(g, "Add", INPUTS(y, input(g, name, shape_of(2, 3))), NO_ATTRS);
    }
    graph_output(g, y);
    check_pass(g, 2, 2);
}

static const struct op_case price_cases[] = {
    {.name = "Abs", .inputs = "f32[8]"},
    {.name = "Add", .inputs = "f32[8] f32[8]"},
    {.name = "Ceil", .inputs = "f32[8]"},
    {.name = "Celu", .inputs = "f32[8]"},
    {.name = "Clip", .inputs = "f32[8]"},
    {.name = "Cos", .inputs = "f32[8]"},
    {.name = "Div", .inputs = "f32[8] f32[8]"},
    {.name = "Elu", .inputs = "f32[8]"},
    {.name = "Erf", .inputs = "f32[8]"},
    {.name = "Exp", .inputs = "f32[8]"},
    {.name = "Floor", .inputs = "f32[8]"},
    {.name = "Gelu", .inputs = "f32[8]"},
    {.name = "HardSigmoid", .inputs = "f32[8]"},
    {.name = "HardSwish", .inputs = "f32[8]"},
    {.name = "LeakyRelu", .inputs = "f32[8]"},
    {.name = "Log", .inputs = "f32[8]"},
    {.name = "Max", .inputs = "f32[8] f32[8]"},
    {.name = "Mean", .inputs = "f32[8] f32[8]"},
    {.name = "Min", .inputs = "f32[8] f32[8]"},
    {.name = "Mish", .inputs = "f32[8]"},
    {.name = "Mul", .inputs = "f32[8] f32[8]"},
    {.name = "Neg", .inputs = "f32[8]"},
    {.name = "PRelu", .inputs = "f32[8] f32[8]"},
    {.name = "Pow", .inputs = "f32[8] f32[8]"},
    {.name = "Reciprocal", .inputs = "f32[8]"},
    {.name = "Relu", .inputs = "f32[8]"},
    {.name = "Round", .inputs = "f32[8]"},
    {.name = "Selu", .inputs = "f32[8]"},
    {.name = "Shrink", .inputs = "f32[8]"},
    {.name = "Sigmoid", .inputs = "f32[8]"},
    {.name = "Sign", .inputs = "f32[8]"},
    {.name = "Sin", .inputs = "f32[8]"},
    {.name = "Softplus", .inputs = "f32[8]"},
    {.name = "Softsign", .inputs = "f32[8]"},
    {.name = "Sqrt", .inputs = "f32[8]"},
    {.name = "Sub", .inputs = "f32[8] f32[8]"},
    {.name = "Sum", .inputs = "f32[8] f32[8] f32[8]"},
    {.name = "Tanh", .inputs = "f32[8]"},
    {.name = "ThresholdedRelu", .inputs = "f32[8]"},
};

/* An operator must not get cheaper or dearer by becoming a step. */
TEST(prices_agree)
{
    for (int k = 0; k < ARRAY_COUNT(price_cases); k++) {
        struct error err = {0};
        const struct op *op = op_find(price_cases[k].name, NULL);
        struct graph *g = op_case_graph(op, &price_cases[k], &err);
        struct exe *exe;
        struct chain chain;
        struct cost sum = {0};
        if (!g || exe_new(g, &(struct exe_options){.threads = 1, .no_tune = true}, &exe, &err))
            fail_msg("%s: %s", price_cases[k].name, err.message);
        assert_true(op_is_expression(op));
        MUST(chain_from_node, &g->nodes[0], NULL, &chain);
        for (int s = 0; s < chain.count; s++) {
            sum.elementwise += 8 * function_info(chain.steps[s].code)->flops;
            sum.transcendentals += 8 * function_info(chain.steps[s].code)->calls;
        }
        struct cost own = exe_step_at(exe, 0).cost;
        if (sum.elementwise != own.elementwise || sum.transcendentals != own.transcendentals)
            fail_msg("%s: %g and %g, as a chain %g and %g", price_cases[k].name, own.elementwise,
                     own.transcendentals, sum.elementwise, sum.transcendentals);
        exe_graph_free(exe, g);
    }
}

TEST(refuses_broken_code)
{
    static const char *const broken[] = {
        "code=[35,0] params=[0.0,0.0]",    /* not three per step */
        "code=[35,0,2] params=[0.0,0.0]",  /* operand 2 does not exist yet */
        "code=[99,0,0] params=[0.0,0.0]",  /* no such code */
        "code=[20,-1,0] params=[0.0,0.0]", /* negative operand */
        "code=[20,0,0] params=[0.0]",      /* parameters missing */
        "params=[0.0,0.0]",
    };
    for (int k = 0; k < ARRAY_COUNT(broken); k++) {
        struct error err = {0};
        struct op_case c = {.name = "broken", .inputs = "f32[4] f32[4]", .attrs = broken[k]};
        struct graph *g = op_case_graph(op_find("Chain", "ridge"), &c, &err);
        if (g)
            fail_msg("accepted: %s", broken[k]);
        assert_true(err.message[0] != 0);
    }
}
