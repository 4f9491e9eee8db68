/* SPDX-License-Identifier: Apache-2.0
 *
 * What gives back its input goes; what changes type, shape or order stays, and so does what an
 * output or a state is told to be. */
#include "engine/compile/passes/rewrite.h"
#include "engine/graph/op_list.h"
#include "tests/lib/noise.h"
#include "tests/lib/unit.h"
#include "tests/lib/unit/graphs.h"
#include "workloads/lib/layers.h"

enum { ROWS = 4, COLUMNS = 6 };

static int cast_to_itself(struct graph *g, int x)
{
    return graph_node(g, "Cast", NULL, INPUTS(x), ATTRS(attr_int("to", 1)));
}

static int cast_and_back(struct graph *g, int x)
{
    x = graph_node(g, "Cast", NULL, INPUTS(x), ATTRS(attr_int("to", 11)));
    return graph_node(g, "Cast", NULL, INPUTS(x), ATTRS(attr_int("to", 1)));
}

static int identity(struct graph *g, int x)
{
    return unary(g, "Identity", x);
}

static int sliced(struct graph *g, int x)
{
    return slice(g, x, (struct range){.axis = 1, .start = 0, .stop = COLUMNS});
}

static int sliced_shorter(struct graph *g, int x)
{
    return slice(g, x, (struct range){.axis = 1, .start = 1, .stop = COLUMNS});
}

static int reshaped(struct graph *g, int x)
{
    static const int64_t dims[] = {ROWS, COLUMNS};
    return reshape(g, x, 2, dims);
}

static int reshaped_anew(struct graph *g, int x)
{
    static const int64_t dims[] = {COLUMNS, ROWS};
    return reshape(g, x, 2, dims);
}

static int expanded(struct graph *g, int x)
{
    static const int64_t dims[] = {ROWS, 1};
    int shape = graph_const_i64(g, 2, dims);
    return graph_node(g, "Expand", NULL, INPUTS(x, shape), NO_ATTRS);
}

static int left_as_it_is(struct graph *g, int x)
{
    static const int64_t same[] = {0, 1};
    return transpose(g, x, 2, same);
}

/* The shape is the same, the order is not. */
static int turned(struct graph *g, int x)
{
    static const int64_t square[] = {2, 3, 2, 2}, flat[] = {ROWS, COLUMNS}, swap[] = {0, 1, 3, 2};
    return reshape(g, transpose(g, reshape(g, x, 4, square), 4, swap), 2, flat);
}

static int padded(struct graph *g, int x)
{
    static const int64_t none[] = {0, 0, 0, 0};
    int pads = graph_const_i64(g, 4, none);
    return graph_node(g, "Pad", NULL, INPUTS(x, pads), NO_ATTRS);
}

/* What is left of the columns beside x itself. */
static int beside_nothing(struct graph *g, int x)
{
    int rest = slice(g, x, (struct range){.axis = 1, .start = COLUMNS, .stop = COLUMNS});
    return concat(g, 1, 2, (const int[]){rest, x});
}

static int beside_another(struct graph *g, int x)
{
    int first = slice(g, x, (struct range){.axis = 1, .start = 0, .stop = 1});
    return concat(g, 1, 2, (const int[]){first, x});
}

TEST(what_changes_nothing_goes)
{
    static const struct {
        int (*make)(struct graph *g, int x);
        int left; /* nodes beside the two around it */
    } cases[] = {{cast_to_itself, 0}, {cast_and_back, 2}, {identity, 0},      {sliced, 0},
                 {sliced_shorter, 1}, {reshaped, 0},      {reshaped_anew, 1}, {expanded, 0},
                 {left_as_it_is, 0},  {turned, 3},        {padded, 0},        {beside_nothing, 0},
                 {beside_another, 2}};
    for (int k = 0; k < ARRAY_COUNT(cases); k++) {
        struct graph *g = graph_new("idle");
        int x = unary(g, "Tanh", noise_input(g, "x", shape_of(ROWS, COLUMNS)));
        graph_output(g, unary(g, "Exp", cases[k].make(g, x)));
        pass_keeps_result(g, pass_drop_idle, 1e-6);
        assert_int_equal(g->node_count, 2 + cases[k].left);
        graph_free(g);
    }
}

TEST(outputs_keep_their_names)
{
    struct graph *g = graph_new("named");
    int x = unary(g, "Tanh", noise_input(g, "x", shape_of(ROWS, COLUMNS)));
    int y = graph_node(g, "Identity", "result", INPUTS(x), NO_ATTRS);
    graph_output(g, y);
    MUST(graph_check, g);
    MUST(pass_drop_idle, g);
    graph_compact(g);
    assert_int_equal(count_ops(g, "Identity"), 1);
    graph_free(g);
}

TEST(states_keep_what_follows)
{
    struct graph *g = graph_new("state");
    int x = noise_input(g, "x", shape_of(ROWS, COLUMNS));
    int w = graph_state(g, "w", DTYPE_F32, shape_of(ROWS, COLUMNS), noise());
    graph_state_after(g, w, identity(g, unary(g, "Tanh", x)));
    graph_output(g, identity(g, add(g, x, w)));
    MUST(graph_check, g);
    MUST(pass_drop_idle, g);
    graph_compact(g);
    assert_int_equal(count_ops(g, "Identity"), 2);
    graph_free(g);
}
