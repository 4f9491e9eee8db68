/* SPDX-License-Identifier: Apache-2.0
 * What a network in low precision is verified by, and how much it may be off. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "engine/compile.h"
#include "harness/decisions.h"
#include "harness/verify.h"
#include "workloads/lib/layers.h"

static int input(struct graph *g, const char *name)
{
    return graph_input(g, name, DTYPE_F32, shape_of(4, 8),
                       (struct fill){.kind = FILL_UNIFORM, .a = -1, .b = 1});
}

/* The two largest of each row: values and places. */
static void best_two(struct graph *g, int x, int *best)
{
    const int64_t two = 2;
    graph_node_many(g, "TopK", NULL, INPUTS(x, graph_const_i64(g, 1, &two)), NO_ATTRS, 2, best);
}

static struct graph *before(const struct graph *g)
{
    struct error err = {0};
    struct graph *out;
    assert_int_equal(graph_check(g, &err), STATUS_OK);
    assert_int_equal(graph_before_decisions(g, &out, &err), STATUS_OK);
    return out;
}

static void what_is_decided_on_takes_the_place_of_what_follows(void **state)
{
    (void)state;
    struct graph *g = graph_new("decides");
    int best[2], score = dense(g, input(g, "x"), "score", 6);
    best_two(g, score, best);
    int shown = relu(g, best[0]); /* a float, but of what was chosen */
    graph_rename(g, score, "asked");
    graph_output(g, shown);
    graph_output(g, best[1]);
    graph_output(g, sigmoid(g, score));
    struct graph *out = before(g);
    assert_non_null(out);
    assert_int_equal(out->output_count, 2);
    assert_string_equal(out->nodes[out->values[out->outputs[0]].producer].op->name, "Sigmoid");
    assert_string_equal(out->values[out->outputs[1]].name, "asked");
    graph_free(out);
    graph_free(g);
}

static void decisions_on_inputs_are_none(void **state)
{
    (void)state;
    struct graph *g = graph_new("inputs");
    int best[2], x = input(g, "x");
    best_two(g, x, best);
    graph_output(g, best[1]);
    graph_output(g, dense(g, best[0], "dense", 3));
    assert_null(before(g)); /* the same numbers in every precision */
    graph_free(g);
}

/* Only the first: what the second one reads depends on what the first one chose. */
static void later_decisions_are_left_out(void **state)
{
    (void)state;
    struct graph *g = graph_new("twice");
    int first[2], second[2], score = dense(g, input(g, "x"), "score", 6);
    best_two(g, score, first);
    best_two(g, dense(g, first[0], "again", 5), second);
    graph_output(g, second[1]);
    struct graph *out = before(g);
    assert_non_null(out);
    assert_int_equal(out->output_count, 1);
    assert_int_equal(out->node_count, 2); /* MatMul and Add of the score */
    graph_free(out);
    graph_free(g);
}

/* ---- bounds ---- */

static double bound_of(int layers, enum precision precision)
{
    struct error err = {0};
    struct exe_options options = {.precision = precision};
    struct graph *g = graph_new("deep");
    int x = input(g, "x");
    for (int k = 0; k < layers; k++)
        x = relu(g, dense(g, reshape(g, x, 2, (const int64_t[]){4, 8}), name_of(g, "l%d", k), 8));
    graph_output(g, x);
    assert_int_equal(passes_run(g, &options, &err), STATUS_OK);
    double bound = verify_bound(g, precision);
    graph_free(g);
    return bound;
}

static void bounds_grow_with_the_root_of_the_roundings(void **state)
{
    (void)state;
    /* Layers with their epilogues, and the cast of the input; the output's is to f32. */
    assert_float_equal(bound_of(8, PRECISION_F32), 1e-5, 1e-12);
    assert_float_equal(bound_of(2, PRECISION_BF16), 2 * 0x1p-8 * sqrt(4), 1e-9);
    assert_float_equal(bound_of(14, PRECISION_BF16), 2 * 0x1p-8 * sqrt(16), 1e-9);
    assert_float_equal(bound_of(14, PRECISION_F16), 2 * 0x1p-11 * sqrt(16), 1e-9);
    assert_float_equal(bound_of(15, PRECISION_TF32), 2 * 0x1p-11 * sqrt(16), 1e-9);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_decided_on_takes_the_place_of_what_follows),
        cmocka_unit_test(decisions_on_inputs_are_none),
        cmocka_unit_test(later_decisions_are_left_out),
        cmocka_unit_test(bounds_grow_with_the_root_of_the_roundings),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
