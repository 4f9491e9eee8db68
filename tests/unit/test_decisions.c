/* SPDX-License-Identifier: Apache-2.0
 * What a network in low precision is verified by, and how much it may be off. */

#include <math.h>
#include <string.h>

#include "engine/compile/compile.h"
#include "engine/compile/stages.h"
#include "engine/reference/reference.h"
#include "harness/model/decisions.h"
#include "harness/model/verify.h"
#include "tests/lib/noise.h"
#include "tests/lib/unit.h"
#include "workloads/lib/layers.h"

static int input(struct graph *g, const char *name)
{
    return noise_input(g, name, shape_of(4, 8));
}

/* The two largest of each row: values and places. */
static void best_two(struct graph *g, int x, int *best)
{
    const int64_t two = 2;
    graph_node_many(g, "TopK", NULL, INPUTS(x, graph_const_i64(g, 1, &two)), NO_ATTRS, 2, best);
}

static struct graph *before(const struct graph *g)
{
    struct graph *out;
    MUST(graph_check, g);
    MUST(graph_before_decisions, g, &out);
    return out;
}

TEST(what_is_decided_on_takes_the_place_of_what_follows)
{
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

TEST(a_part_is_taken_by_its_name)
{
    for (int part = 0; part < 3; part++) {
        struct graph *g = graph_new("decides");
        int best[2], score = dense(g, input(g, "x"), "score", 6);
        best_two(g, score, best);
        graph_rename(g, score, "asked");
        graph_output(g, sigmoid(g, score));
        graph_output(g, best[1]);
        const char *name = part == 2 ? "after-decisions" : part ? "before-decisions" : NULL;
        MUST(graph_take_part, g, name);
        assert_int_equal(g->input_count, 1);
        assert_string_equal(g->values[g->inputs[0]].name, part == 2 ? "asked" : "x");
        assert_int_equal(g->output_count, part == 2 ? 1 : 2);
        assert_int_equal(g->values[g->outputs[g->output_count - 1]].dtype,
                         part == 1 ? DTYPE_F32 : DTYPE_I64);
        assert_int_equal(g->node_count > 1, part != 2);
        graph_free(g);
    }
}

TEST(what_is_no_part_is_said)
{
    struct graph *g = graph_new("plain");
    graph_output(g, dense(g, input(g, "x"), "score", 6));
    FAILS(STATUS_FAILED, "plain decides nothing", graph_take_part, g, "before-decisions");
    FAILS(STATUS_FAILED, "\"before\" is not before-decisions", graph_take_part, g, "before");
    graph_free(g);
}

TEST(decisions_on_inputs_are_none)
{
    struct graph *g = graph_new("inputs");
    int best[2], x = input(g, "x");
    best_two(g, x, best);
    graph_output(g, best[1]);
    graph_output(g, dense(g, best[0], "dense", 3));
    assert_null(before(g)); /* the same numbers in every precision */
    graph_free(g);
}

/* Only the first: what the second one reads depends on what the first one chose. */
TEST(later_decisions_are_left_out)
{
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
    struct exe_options options = {.precision = precision};
    struct graph *g = graph_new("deep");
    int x = input(g, "x");
    for (int k = 0; k < layers; k++)
        x = relu(g, dense(g, reshape(g, x, 2, (const int64_t[]){4, 8}), name_of(g, "l%d", k), 8));
    graph_output(g, x);
    MUST(passes_run, g, &options, NULL, NULL);
    double bound = verify_bound(g, precision);
    graph_free(g);
    return bound;
}

TEST(bounds_grow_with_the_root_of_the_roundings)
{
    /* Layers with their epilogues, and the cast of the input; the output's is to f32. */
    assert_float_equal(bound_of(8, PRECISION_F32), 1e-5, 1e-12);
    assert_float_equal(bound_of(2, PRECISION_BF16), 2 * 0x1p-8 * sqrt(4), 1e-9);
    assert_float_equal(bound_of(14, PRECISION_BF16), 2 * 0x1p-8 * sqrt(16), 1e-9);
    assert_float_equal(bound_of(14, PRECISION_F16), 2 * 0x1p-11 * sqrt(16), 1e-9);
    assert_float_equal(bound_of(15, PRECISION_TF32), 2 * 0x1p-11 * sqrt(16), 1e-9);
}

enum { DEPTH = 4096 };

/* A sum of DEPTH products, compared with `limit` by `op`: its rounding in f32 may decide. */
static struct graph *decided(const char *op, double limit)
{
    struct graph *g = graph_new("tie");
    struct fill positive = {.kind = FILL_UNIFORM, .a = 0, .b = 1};
    int x = graph_input(g, "x", DTYPE_F32, shape_of(1, DEPTH), positive);
    int w = graph_param(g, "w", DTYPE_F32, shape_of(DEPTH, 1), positive);
    int v = graph_param(g, "limit", DTYPE_F32, shape_of(1, 1),
                        (struct fill){.kind = FILL_CONST, .a = limit});
    int score = graph_node(g, "MatMul", "score", INPUTS(x, w), NO_ATTRS);
    int yes = graph_node(g, op, NULL, INPUTS(score, v), NO_ATTRS);
    int one = graph_node(g, "Cast", NULL, INPUTS(yes), ATTRS(attr_int("to", 1)));
    graph_output(g, graph_node(g, "Add", NULL, INPUTS(one, w), NO_ATTRS));
    return g;
}

static double sum_of_products(void)
{
    struct ref_tensor sum;
    struct graph *g = decided("Greater", 0);
    g->output_count = 0;
    graph_output(g, graph_find_value(g, "score"));
    MUST(reference_run, g, NULL, &sum, NULL);
    double exact = sum.f[0];
    ref_release(&sum);
    graph_free(g);
    return exact;
}

/* Whether the outputs differ as a whole; verified in any case. */
static bool differs(const struct graph *g)
{
    struct exe *exe;
    struct ref_tensor want, got;
    struct verification v;
    struct exe_options options = {
        .threads = 1, .isa = isa_detect(), .no_tune = true, .only_variant = NONE};
    MUST(exe_new, g, &options, &exe);
    MUST(reference_run, g, NULL, &want, NULL);
    exe_run(exe);
    MUST(ref_from_data, &got, want.dtype, &want.shape, exe_output(exe, 0));
    bool differ = ref_rel_error(&got, &want) > 0.1;
    MUST(verify_exe, g, exe, &v);
    assert_true(v.error <= v.bound);
    assert_string_equal(v.how,
                        differ ? "reference f64, before and after decisions" : "reference f64");
    ref_release(&got);
    ref_release(&want);
    exe_free(exe);
    return differ;
}

/* Two of seglink's scores are 0.7 to seven digits, its threshold. Of all representable thresholds
 * near the sum one parts f32 and the reference. */
TEST(a_tie_within_f32_is_no_error)
{
    double sum = (double)(float)sum_of_products();
    int differ = 0;
    for (int step = -40; step <= 40; step++) {
        struct graph *greater = decided("Greater", sum * (1 + step * 0x1p-23));
        struct graph *less = decided("Less", sum * (1 + step * 0x1p-23));
        differ += differs(greater) + differs(less);
        graph_free(greater);
        graph_free(less);
    }
    assert_true(differ > 0);
}
