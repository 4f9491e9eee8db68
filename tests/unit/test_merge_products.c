/* SPDX-License-Identifier: Apache-2.0
 * Narrow products of one wide matrix: what the pass leaves, and that it computes the same. */
#include <string.h>

#include "engine/compile/compile.h"
#include "engine/compile/passes/rewrite.h"
#include "engine/graph/op_list.h"
#include "engine/reference/reference.h"
#include "tests/lib/noise.h"
#include "tests/lib/unit.h"
#include "tests/lib/unit/graphs.h"
#include "workloads/lib/layers.h"

enum { ROWS = 21, DEPTH = 700, OUTPUTS_MAX = 4 };

static int input(struct graph *g, int64_t rows, int64_t depth)
{
    return noise_input(g, "x", shape_of(rows, depth));
}

static int product(struct graph *g, int x, const char *name, int64_t columns)
{
    int w = noise_param(g, name, shape_of(dim_of(g, x, -1), columns));
    return graph_node(g, "MatMul", NULL, INPUTS(x, w), NO_ATTRS);
}

static void results_of(const struct graph *g, struct ref_tensor *results)
{
    MUST(graph_check, g);
    MUST(reference_run, g, NULL, results, NULL);
}

/* The executable computes what the reference says. */
static void runs_right(const struct graph *g)
{
    struct exe_options options = {
        .threads = 2, .isa = isa_detect(), .no_tune = true, .only_variant = NONE};
    struct exe *exe = compiled(g, &options);
    assert_true(run_error(exe, g) <= 2e-5);
    exe_free(exe);
}

/* Takes the graph: the pass leaves so many products, and cuts results up so often. */
static void leaves(struct graph *g, int products, int cuts)
{
    struct ref_tensor before[OUTPUTS_MAX] = {0}, after[OUTPUTS_MAX] = {0};
    assert_in_range(g->output_count, 1, OUTPUTS_MAX);
    results_of(g, before);
    runs_right(g);
    MUST(pass_merge_products, g);
    graph_compact(g);
    results_of(g, after);
    for (int k = 0; k < g->output_count; k++) {
        assert_true(ref_rel_error(&after[k], &before[k]) <= 1e-15);
        ref_release(&before[k]);
        ref_release(&after[k]);
    }
    assert_int_equal(count_ops(g, op_mat_mul.name), products);
    assert_int_equal(count_ops(g, op_split.name), cuts);
    graph_free(g);
}

TEST(siblings_become_one)
{
    struct graph *g = graph_new("bare");
    int x = input(g, ROWS, DEPTH);
    graph_output(g, product(g, x, "a", 16));
    graph_output(g, product(g, x, "b", 3));
    graph_output(g, sigmoid(g, product(g, x, "c", 5)));
    leaves(g, 2, 1); /* the sigmoid's is computed otherwise */
}

TEST(bias_and_activation_go_along)
{
    struct graph *g = graph_new("dense");
    int x = input(g, ROWS, DEPTH), y[3];
    for (int k = 0; k < 3; k++)
        y[k] = relu(g, dense(g, x, name_of(g, "d%d", k), 7 + k));
    graph_output(g, mul(g, y[0], y[0]));
    graph_output(g, y[1]);
    graph_output(g, concat(g, 1, 2, (const int[]){y[2], y[1]}));
    leaves(g, 1, 1);
}

TEST(others_stay)
{
    for (int kind = 0; kind < 5; kind++) {
        struct graph *g = graph_new("other");
        int x =
            input(g, kind == 4 ? 1 : ROWS, kind == 0 ? 50 : DEPTH); /* 0, 4: too little to read */
        graph_output(g, product(g, x, "a", kind == 1 ? 60 : 16));   /* 1: wide enough alone */
        if (kind == 3) { /* a weight that comes from outside */
            int w = noise_input(g, "w", shape_of(DEPTH, 16));
            graph_output(g, graph_node(g, "MatMul", NULL, INPUTS(x, w), NO_ATTRS));
        } else { /* 2: of another matrix */
            graph_output(g, product(g, kind == 2 ? relu(g, x) : x, "b", 16));
        }
        leaves(g, 2, 0);
    }
}
