/* SPDX-License-Identifier: Apache-2.0
 * Products of concatenations, part by part: what the pass leaves, and that it computes the same. */
#include <string.h>

#include "engine/compile/passes/rewrite.h"
#include "engine/reference/reference.h"
#include "tests/lib/noise.h"
#include "tests/lib/unit.h"
#include "tests/lib/unit/graphs.h"
#include "workloads/lib/layers.h"

enum { BATCH = 3, STEPS = 7, WIDTH = 5 };

static int product(struct graph *g, int x, int64_t depth)
{
    int w = noise_param(g, "w", shape_of(depth, 11));
    return graph_node(g, "MatMul", "product", INPUTS(x, w), NO_ATTRS);
}

/* What attention over a history compares: a query with each step of it. turned: step - query. */
static struct graph *attention_graph(bool turned)
{
    struct graph *g = graph_new("attention");
    int history = noise_input(g, "history", shape_of(BATCH, STEPS, WIDTH));
    int query = noise_input(g, "query", shape_of(BATCH, 1, WIDTH));
    int all = graph_const_i64(g, 3, (const int64_t[]){BATCH, STEPS, WIDTH});
    query = graph_node(g, "Expand", NULL, INPUTS(query, all), NO_ATTRS);
    int from = turned ? history : query, what = turned ? query : history;
    int difference = graph_node(g, "Sub", NULL, INPUTS(from, what), NO_ATTRS);
    int parts[] = {query, history, difference, mul(g, query, history)};
    graph_output(g, product(g, concat(g, -1, 4, parts), (int64_t)4 * WIDTH));
    return g;
}

static struct ref_tensor result_of(const struct graph *g)
{
    struct error err = {0};
    struct ref_tensor result = {0};
    if (graph_check(g, &err) != STATUS_OK || reference_run(g, NULL, &result, NULL, &err))
        fail_msg("%s", err.message);
    return result;
}

static void rewrite(struct graph *g)
{
    MUST(pass_share_product, g);
    graph_compact(g);
}

TEST(a_query_is_multiplied_once)
{
    for (int turned = 0; turned < 2; turned++) {
        struct graph *g = attention_graph(turned);
        struct ref_tensor before = result_of(g);
        rewrite(g);
        struct ref_tensor after = result_of(g);
        assert_int_equal(count_ops(g, "Concat"), 0);
        assert_int_equal(count_ops(g, "MatMul"), 3); /* query, history, query * history */
        assert_true(ref_rel_error(&after, &before) <= 1e-12);
        ref_release(&before);
        ref_release(&after);
        graph_free(g);
    }
}

/* Nothing would be saved, or what is concatenated is wanted elsewhere, too. */
TEST(other_concatenations_stay)
{
    for (int kind = 0; kind < 2; kind++) {
        struct graph *g = graph_new("other");
        int a = noise_input(g, "a", shape_of(BATCH, STEPS, WIDTH));
        int b = kind ? sigmoid(g, a) : noise_input(g, "b", shape_of(BATCH, STEPS, WIDTH));
        int difference = graph_node(g, "Sub", NULL, INPUTS(a, b), NO_ATTRS);
        int parts[] = {a, b, kind ? difference : mul(g, a, b)};
        int x = concat(g, 2, 3, parts);
        graph_output(g, product(g, x, (int64_t)3 * WIDTH));
        if (kind)
            graph_output(g, x);
        rewrite(g);
        assert_int_equal(count_ops(g, "Concat"), 1);
        assert_int_equal(count_ops(g, "MatMul"), 1);
        graph_free(g);
    }
}

/* A column minus a matrix: its weights are as many as the matrix's, not as the column's. */
TEST(a_difference_wider_than_one_of_its_parts_stays)
{
    for (int turned = 0; turned < 2; turned++) {
        struct graph *g = graph_new("column");
        int a = noise_input(g, "a", shape_of(BATCH, STEPS, WIDTH));
        int b = noise_input(g, "b", shape_of(BATCH, STEPS, 1));
        int parts[] = {a, b, turned ? binary(g, "Sub", b, a) : binary(g, "Sub", a, b)};
        graph_output(g, product(g, concat(g, 2, 3, parts), (int64_t)2 * WIDTH + 1));
        rewrite(g);
        assert_int_equal(count_ops(g, "Concat"), 1);
        graph_free(g);
    }
}
