/* SPDX-License-Identifier: Apache-2.0
 *
 * Turns that undo each other across what computes element by element go; those beside which
 * something else reads what is between them, or that give another order, stay. */
#include "engine/compile/passes/rewrite.h"
#include "engine/graph/op_list.h"
#include "tests/lib/noise.h"
#include "tests/lib/unit.h"
#include "tests/lib/unit/graphs.h"
#include "workloads/lib/layers.h"

enum { BATCH = 2, POSITIONS = 5, HEADS = 3, SIZE = 4 };

static const int64_t plain[] = {0, 2, 1, 3}, cyclic[] = {0, 2, 3, 1}, back[] = {0, 3, 1, 2};

static int apart(struct graph *g)
{
    int x = unary(g, "Tanh", noise_input(g, "x", shape_of(BATCH, POSITIONS, HEADS, SIZE)));
    return transpose(g, x, 4, plain);
}

static int half(struct graph *g, int x, int64_t start)
{
    return slice(g, x, (struct range){.axis = 3, .start = start, .stop = start + SIZE / 2});
}

/* Positions as they are rotated: x cos + (-x2 | x1) sin. */
static int rotated(struct graph *g, int x)
{
    struct shape angles = shape_of(1, 1, POSITIONS, SIZE);
    int other =
        concat(g, 3, 2, (const int[]){unary(g, "Neg", half(g, x, SIZE / 2)), half(g, x, 0)});
    return add(g, mul(g, x, noise_param(g, "cos", angles)),
               mul(g, other, noise_param(g, "sin", angles)));
}

static int rotated_heads(struct graph *g)
{
    return transpose(g, rotated(g, apart(g)), 4, plain);
}

/* What has three readers is computed once. */
static int normed_heads(struct graph *g)
{
    int scale = noise_param(g, "scale", shape_of(SIZE));
    int x = graph_node(g, "RMSNormalization", NULL, INPUTS(apart(g), scale), NO_ATTRS);
    return transpose(g, rotated(g, x), 4, plain);
}

static int split_heads(struct graph *g)
{
    int parts[2];
    graph_node_many(g, "Split", NULL, INPUTS(apart(g)), ATTRS(attr_int("axis", 3)), 2, parts);
    int x = concat(g, 3, 2, (const int[]){parts[1], unary(g, "Exp", parts[0])});
    return transpose(g, x, 4, plain);
}

/* Neighbours along an axis that moves, and along it one after the other. */
static int positions_apart(struct graph *g)
{
    int x = apart(g);
    int first = slice(g, x, (struct range){.axis = 2, .start = 0, .stop = 2});
    int last = slice(g, x, (struct range){.axis = 2, .start = 2, .stop = POSITIONS});
    return transpose(g, concat(g, 2, 2, (const int[]){last, first}), 4, plain);
}

static int every_second(struct graph *g)
{
    int x = slice(g, apart(g), (struct range){.axis = 3, .start = 0, .stop = SIZE, .step = 2});
    return transpose(g, x, 4, plain);
}

static int with_vector_and_scalar(struct graph *g)
{
    int x = add(g, apart(g), noise_param(g, "bias", shape_of(SIZE)));
    x = mul(g, x, graph_const_f32(g, 0.5F));
    return transpose(g, mul(g, x, noise_param(g, "heads", shape_of(HEADS, 1, 1))), 4, plain);
}

static int of_two(struct graph *g)
{
    int other = noise_input(g, "y", shape_of(BATCH, POSITIONS, HEADS, SIZE));
    return transpose(g, mul(g, apart(g), transpose(g, other, 4, plain)), 4, plain);
}

static int of_one_that_was_not_turned(struct graph *g)
{
    int other = noise_input(g, "y", shape_of(BATCH, HEADS, POSITIONS, SIZE));
    return transpose(g, mul(g, apart(g), other), 4, plain);
}

static int of_other_turns(struct graph *g)
{
    return transpose(g, unary(g, "Exp", apart(g)), 4, cyclic);
}

static int there_and_back(struct graph *g)
{
    int x = noise_input(g, "x", shape_of(BATCH, POSITIONS, HEADS, SIZE));
    int bias = noise_param(g, "bias", shape_of(POSITIONS));
    return transpose(g, add(g, transpose(g, x, 4, cyclic), bias), 4, back);
}

/* A norm of rows that would not be rows. */
static int norm_of_positions(struct graph *g)
{
    int x = noise_input(g, "x", shape_of(BATCH, POSITIONS, HEADS, SIZE));
    int scale = noise_param(g, "scale", shape_of(POSITIONS));
    x = transpose(g, x, 4, cyclic);
    x = graph_node(g, "RMSNormalization", NULL, INPUTS(x, scale), NO_ATTRS);
    return transpose(g, x, 4, back);
}

static int softmax_of_rows(struct graph *g)
{
    return transpose(g, softmax(g, apart(g), -1), 4, plain);
}

/* Of weights: those are turned, and later folded. */
static int turned(const struct graph *g)
{
    int count = 0;
    for (int n = 0; n < g->node_count; n++)
        if (g->nodes[n].op == &op_transpose)
            count += !value_is_fixed(&g->values[g->nodes[n].inputs[0]]) &&
                     (g->values[g->nodes[n].inputs[0]].producer == NONE ||
                      g->nodes[g->values[g->nodes[n].inputs[0]].producer].op != &op_reshape);
    return count;
}

TEST(turns_that_undo_each_other_go)
{
    static const struct {
        int (*make)(struct graph *g);
        int left;
    } cases[] = {{rotated_heads, 0},
                 {normed_heads, 0},
                 {split_heads, 0},
                 {positions_apart, 0},
                 {every_second, 2},
                 {with_vector_and_scalar, 0},
                 {of_two, 0},
                 {of_one_that_was_not_turned, 2},
                 {of_other_turns, 2},
                 {there_and_back, 0},
                 {norm_of_positions, 2},
                 {softmax_of_rows, 2}};
    for (int k = 0; k < ARRAY_COUNT(cases); k++) {
        struct graph *g = graph_new("turns");
        graph_output(g, unary(g, "Exp", cases[k].make(g)));
        pass_keeps_result(g, pass_cancel_transpose, 1e-6);
        assert_int_equal(turned(g), cases[k].left);
        if (cases[k].make == normed_heads)
            assert_int_equal(count_ops(g, "RMSNormalization"), 1);
        graph_free(g);
    }
}

/* Two rotations by the same angles turn these once. */
TEST(what_is_fixed_is_turned_once)
{
    struct graph *g = graph_new("twice");
    int angles = noise_param(g, "cos", shape_of(1, 1, POSITIONS, SIZE));
    int x = transpose(g, mul(g, apart(g), angles), 4, plain);
    int y = noise_input(g, "y", shape_of(BATCH, POSITIONS, HEADS, SIZE));
    y = transpose(g, mul(g, transpose(g, y, 4, plain), angles), 4, plain);
    graph_output(g, add(g, x, y));
    pass_keeps_result(g, pass_cancel_transpose, 1e-6);
    assert_int_equal(count_ops(g, "Transpose"), 1);
    graph_free(g);
}

/* What is between is read elsewhere, or is an output. */
TEST(what_others_read_stays)
{
    for (int output = 0; output < 2; output++) {
        struct graph *g = graph_new("read");
        int x = unary(g, "Exp", apart(g)), y = transpose(g, unary(g, "Neg", x), 4, plain);
        graph_output(g, y);
        graph_output(g, output ? x : unary(g, "Sqrt", x));
        MUST(graph_check, g);
        MUST(pass_cancel_transpose, g);
        graph_compact(g);
        assert_int_equal(count_ops(g, "Transpose"), 2);
        graph_free(g);
    }
}
