/* SPDX-License-Identifier: Apache-2.0
 * The gradient of a ReLU after a batch normalisation: the pass, and that it computes the same. */
#include <string.h>

#include "engine/compile/passes/rewrite.h"
#include "engine/reference/reference.h"
#include "engine/train/autodiff.h"
#include "tests/lib/noise.h"
#include "tests/lib/unit.h"
#include "tests/lib/unit/graphs.h"
#include "workloads/lib/layers.h"
#include "workloads/lib/losses.h"

enum { BY = 2, RESULTS_MAX = 8 };

/* Gradients by x and the scale of the mean square of relu(norm(x)); residual: of relu(norm(x) + x),
 * whose gradient the norm does not see alone. */
static struct graph *norm_graph(bool residual)
{
    struct graph *g = graph_new("norm");
    g->training = true;
    int x = noise_input(g, "x", shape_of(3, 5, 4, 6));
    int norm = batch_norm(g, x, "norm", 1e-3, 1.0);
    norm = residual ? add(g, norm, x) : norm;
    int y = relu(g, norm);
    int loss = mean_of(g, mul(g, y, y)), of[BY];
    int by[BY] = {x, graph_find_value(g, "norm.weight")};
    graph_output(g, loss);
    assert_int_not_equal(by[1], NONE);
    MUST(autodiff, g, loss, NONE, BY, by, of);
    for (int k = 0; k < BY; k++)
        graph_output(g, of[k]);
    return g;
}

static void results_of(const struct graph *g, struct ref_tensor *results)
{
    struct error err = {0};
    if (graph_check(g, &err) != STATUS_OK || reference_run(g, NULL, results, NULL, &err))
        fail_msg("%s", err.message);
}

TEST(the_gate_joins_the_norm)
{
    for (int residual = 0; residual < 2; residual++) {
        struct graph *g = norm_graph(residual);
        struct ref_tensor before[RESULTS_MAX] = {0}, after[RESULTS_MAX] = {0};
        assert_int_equal(count_ops(g, "Function"), 1);
        assert_in_range(g->output_count, 1 + BY, RESULTS_MAX);
        results_of(g, before);
        MUST(pass_fuse_gate, g);
        graph_compact(g);
        results_of(g, after);
        assert_int_equal(count_ops(g, "Function"), residual);
        for (int k = 0; k < g->output_count; k++) {
            assert_true(ref_rel_error(&after[k], &before[k]) <= 1e-12);
            ref_release(&before[k]);
            ref_release(&after[k]);
        }
        graph_free(g);
    }
}
