/* SPDX-License-Identifier: Apache-2.0
 * Quantised networks: sums in f32 that fall on the other side of a tie are no error, and a rounding
 * that is none is one. */

#include <math.h>
#include <string.h>

#include "engine/compile/compile.h"
#include "engine/reference/reference.h"
#include "harness/model/admission.h"
#include "harness/model/decisions.h"
#include "harness/model/roundings.h"
#include "harness/model/verify.h"
#include "tests/lib/noise.h"
#include "tests/lib/unit.h"
#include "workloads/lib/layers.h"

enum { ROWS = 64, COLUMNS = 256, DEPTH = 2048 };

static int constant(struct graph *g, float x)
{
    return graph_const_f32(g, x);
}

static int zero_point(struct graph *g, enum dtype dtype, uint16_t code)
{
    const uint8_t byte = (uint8_t)code;
    bool wide = dtype_size(dtype) == 2;
    return graph_const(g, NULL, dtype, shape_scalar(), wide ? (const void *)&code : &byte);
}

/* Sums of DEPTH products of numbers from `least` to 1. */
static int sums(struct graph *g, const char *x_name, double least)
{
    struct fill fill = {.kind = FILL_UNIFORM, .a = least, .b = 1};
    int x = graph_input(g, x_name, DTYPE_F32, shape_of(ROWS, DEPTH), fill);
    int w = graph_param(g, "w", DTYPE_F32, shape_of(DEPTH, COLUMNS), fill);
    return graph_node(g, "MatMul", "sums", INPUTS(x, w), NO_ATTRS);
}

static int quantise(struct graph *g, const char *name, int x, float scale, int zero)
{
    return graph_node(g, "QuantizeLinear", name, INPUTS(x, constant(g, scale), zero), NO_ATTRS);
}

static int dequantise(struct graph *g, int x, float scale, int zero)
{
    return graph_node(g, "DequantizeLinear", NULL, INPUTS(x, constant(g, scale), zero), NO_ATTRS);
}

/* Its outputs: integers of 16 bits, and a product of what they stand for. */
static struct graph *statically(float scale)
{
    struct graph *g = graph_new("static");
    int zero = zero_point(g, DTYPE_U16, 30000);
    int q = quantise(g, "rounded", sums(g, "x", -1), scale, zero);
    int x = dequantise(g, q, scale, zero);
    graph_output(g, q);
    graph_output(g, graph_node(g, "MatMul", "y",
                               INPUTS(x, noise_param(g, "w2", shape_of(COLUMNS, 8))), NO_ATTRS));
    MUST(graph_check, g);
    return g;
}

static struct graph *dynamically(int number)
{
    struct graph *g = graph_new("dynamic");
    int q[3], x = sums(g, name_of(g, "x%d", number), 0);
    graph_node_many(g, "DynamicQuantizeLinear", "dynamic", INPUTS(x), NO_ATTRS, 3, q);
    struct fill integers = {.kind = FILL_INDEX, .a = -128, .b = 128};
    int w = graph_param(g, "w2", DTYPE_I8, shape_of(COLUMNS, 8), integers);
    int y = graph_node(g, "MatMulInteger", NULL, INPUTS(q[0], w, q[2]), NO_ATTRS);
    y = graph_node(g, "Cast", NULL, INPUTS(y), ATTRS(attr_int("to", 1)));
    graph_output(g, q[0]);
    graph_output(g, graph_node(g, "Mul", "y", INPUTS(y, q[1]), NO_ATTRS));
    MUST(graph_check, g);
    return g;
}

static struct exe *compiled(const struct graph *g)
{
    struct exe *exe;
    struct exe_options options = {
        .threads = 1, .isa = isa_detect(), .no_tune = true, .only_variant = NONE};
    MUST(exe_new, g, &options, &exe);
    return exe;
}

static struct verification verified(const struct graph *graph, const struct graph *as)
{
    struct verification v;
    struct exe *exe = compiled(as);
    MUST(verify_exe, graph, exe, &v);
    exe_free(exe);
    return v;
}

/* Compared as a whole, one with ties was called wrong: some of 16384 integers are others. */
static bool has_ties(struct graph *g)
{
    struct verification v = verified(g, g);
    bool followed = strcmp(v.how, "reference f64, its roundings followed") == 0;
    assert_true(followed == (strstr(v.note, " roundings fell on the other side of a tie") != NULL));
    assert_string_equal(v.odd, "");
    assert_true(v.error <= v.bound && v.bound <= 1e-5);
    graph_free(g);
    return followed;
}

TEST(sums_on_ties_are_no_error)
{
    assert_true(has_ties(statically(0.003F)));
}

/* With 255 units for the whole range, and a scale that follows it, ties are rarer. */
TEST(sums_on_ties_of_a_scale_that_follows_them_are_no_error)
{
    int found = 0;
    for (int k = 0; k < 8; k++)
        found += has_ties(dynamically(k));
    assert_true(found > 0);
}

/* The network's roundings are right, but this is another one. */
TEST(another_executable_is_found)
{
    struct graph *g = statically(0.003F), *other = statically(0.00302F);
    struct verification v = verified(g, other);
    assert_true(v.error > v.bound);
    assert_non_null(strstr(v.odd, "something else than the same network"));
    graph_free(other);
    graph_free(g);
}

/* What the roundings of `made` are found to be; frees it. */
static struct roundings followed(const struct graph *g, struct exe *made)
{
    struct ref_tensor outputs[4];
    struct roundings r = {.made = made, .bound = 1e-5};
    struct graph *with;
    MUST(graph_with_roundings, g, &with);
    r.with = with;
    exe_run(made);
    assert_true(g->output_count <= 4);
    MUST(roundings_follow, &r, g, outputs);
    for (int k = 0; k < g->output_count; k++)
        ref_release(&outputs[k]);
    exe_free(made);
    graph_free(with);
    return r;
}

static struct exe *with_roundings(const struct graph *g)
{
    struct graph *with;
    MUST(graph_with_roundings, g, &with);
    struct exe *exe = compiled(with);
    graph_free(with);
    return exe;
}

/* One part in 3000: most roundings give the same all the same. */
TEST(roundings_by_another_scale_are_found)
{
    struct graph *g = statically(0.003F), *other = statically(0.003001F);
    struct roundings r = followed(g, with_roundings(other));
    assert_int_equal(r.count, ROWS * COLUMNS);
    assert_true(r.wrong > 100 && r.wrong < r.count);
    assert_string_equal(r.first->name, "rounded");
    assert_non_null(strstr(r.odd, "of 16384 roundings are wrong, first "));
    assert_non_null(strstr(r.odd, " before rounding) at ["));
    r = followed(g, with_roundings(g));
    assert_int_equal(r.wrong, 0);
    assert_true(r.ties > 0 && r.ties < 200);
    graph_free(other);
    graph_free(g);
}

/* ---- single numbers ---- */

/* Of [3, 4] equal numbers, rounded with scale 1 and zero point 5; the executable has another one at
 * [1, 3]. */
static struct roundings of_other_number(enum dtype dtype, double number, float other)
{
    struct fill equal = {.kind = FILL_CONST, .a = number};
    struct graph *g = graph_new("numbers");
    int x = graph_input(g, "x", DTYPE_F32, shape_of(3, 4), equal);
    int zero = zero_point(g, dtype, dtype == DTYPE_F8E4M3 ? 0 : 5);
    graph_output(g, quantise(g, "rounded", x, 1, zero));
    struct exe *made = with_roundings(g);
    ((float *)exe_input(made, 0))[7] = other;
    struct roundings r = followed(g, made);
    assert_int_equal(r.count, 12);
    graph_free(g);
    return r;
}

TEST(a_wrong_integer_is_shown)
{
    struct roundings r = of_other_number(DTYPE_U8, 3.2, 5.2F);
    assert_int_equal(r.wrong, 1);
    assert_string_equal(r.odd, "1 of 12 roundings are wrong, first 10 instead of 8 (8.2 before "
                               "rounding) at [1,3]");
    r = of_other_number(DTYPE_F8E4M3, 3.2, 5.2F);
    assert_int_equal(r.wrong, 1);
    assert_non_null(strstr(r.odd, "first 5 instead of 3.25"));
}

/* 1e-5 of the largest number, which is 3.5 or so: 3.5e-5. */
TEST(a_tie_is_as_wide_as_the_bound)
{
    static const struct {
        enum dtype dtype;
        double number;
        float other;
        int ties, wrong;
    } cases[] = {
        {DTYPE_U8, 3.49998, 3.50001F, 1, 0},     {DTYPE_U8, 3.49995, 3.50001F, 0, 1},
        {DTYPE_U8, 3.49998, 3.49999F, 0, 0},     {DTYPE_U8, 3.50002, 3.49999F, 1, 0},
        {DTYPE_U8, 3.50005, 3.49999F, 0, 1},     {DTYPE_U8, 900, 800, 0, 0},
        {DTYPE_F8E4M3, 3.37499, 3.37501F, 1, 0}, {DTYPE_F8E4M3, 3.37492, 3.37501F, 0, 1},
        {DTYPE_I16, -3.49998, -3.50001F, 1, 0},  {DTYPE_I16, -3.49995, -3.50001F, 0, 1},
        {DTYPE_U8, (double)NAN, 9, 0, 1},
    };
    for (size_t k = 0; k < ARRAY_COUNT(cases); k++) {
        struct roundings r = of_other_number(cases[k].dtype, cases[k].number, cases[k].other);
        assert_int_equal(r.ties, cases[k].ties);
        assert_int_equal(r.wrong, cases[k].wrong);
    }
}

/* With one of the executable's numbers another; first: the value that is found wrong, or NULL. */
static struct roundings of_other_range(float factor, int changed, const char *first)
{
    struct graph *g = graph_new("range");
    int q[3], x = graph_input(g, "x", DTYPE_F32, shape_of(3, 4), noise());
    graph_node_many(g, "DynamicQuantizeLinear", "d", INPUTS(x), NO_ATTRS, 3, q);
    for (int k = 0; k < 3; k++)
        graph_output(g, q[k]);
    struct exe *made = with_roundings(g);
    float *in = exe_input(made, 0);
    for (int k = 0; k < changed; k++)
        in[k] *= factor;
    struct roundings r = followed(g, made);
    assert_int_equal(r.count, 13);
    assert_int_equal(r.wrong, first ? 1 : 0);
    if (first)
        assert_string_equal(r.first->name, first);
    graph_free(g);
    return r;
}

TEST(another_range_is_found)
{
    struct roundings r = of_other_range(1.0001F, 12, "d:1");
    assert_non_null(strstr(r.odd, "1 of 1 roundings are wrong, first 0.00"));
    of_other_range(1.000001F, 12, NULL);
    of_other_range(0.1F, 1, "d");
}

/* ---- sums of integers ---- */

static struct graph *of_integers(float scale)
{
    struct graph *g = graph_new("integers");
    struct fill bytes = {.kind = FILL_INDEX, .a = 0, .b = 256};
    int a = graph_input(g, "a", DTYPE_U8, shape_of(40, 64), bytes);
    int b = graph_param(g, "b", DTYPE_U8, shape_of(64, 50), bytes);
    int one = constant(g, 0.01F), zero = zero_point(g, DTYPE_U8, 128);
    graph_output(g, graph_node(g, "QLinearMatMul", "y",
                               INPUTS(a, one, zero, b, one, zero, constant(g, scale), zero),
                               NO_ATTRS));
    return g;
}

TEST(many_sums_of_integers_do_not_lie_on_ties)
{
    struct graph *g = of_integers(0.1F), *other = of_integers(0.1004F);
    struct roundings r = followed(g, with_roundings(other));
    assert_true(r.wrong > 10 && r.wrong < 2000 && r.ties == 0);
    assert_non_null(strstr(r.odd, "of 2000 roundings are wrong, first "));
    r = followed(g, with_roundings(g));
    assert_true(r.wrong == 0 && r.count == 2000);
    graph_free(other);
    graph_free(g);
}

/* ---- which there are ---- */

TEST(constant_roundings_are_none)
{
    struct graph *g = graph_new("weights"), *with;
    int zero = zero_point(g, DTYPE_I8, 0);
    int w = quantise(g, "packed", noise_param(g, "w", shape_of(8, 4)), 0.01F, zero);
    w = dequantise(g, w, 0.01F, zero);
    int x = noise_input(g, "x", shape_of(4, 8));
    graph_output(g, graph_node(g, "MatMul", "y", INPUTS(x, w), NO_ATTRS));
    MUST(graph_with_roundings, g, &with);
    assert_null(with);
    graph_free(g);
}

/* What they make is followed: no network is cut there. */
TEST(roundings_are_no_decisions)
{
    struct graph *graphs[] = {statically(0.003F), dynamically(0)}, *before;
    for (size_t k = 0; k < ARRAY_COUNT(graphs); k++) {
        struct graph *g = graphs[k];
        int best[2], score = graph_find_value(g, "y");
        MUST(graph_before_decisions, g, &before);
        assert_null(before);
        const int64_t two = 2;
        graph_node_many(g, "TopK", NULL, INPUTS(score, graph_const_i64(g, 1, &two)), NO_ATTRS, 2,
                        best);
        g->output_count = 0;
        graph_output(g, best[1]);
        MUST(graph_before_decisions, g, &before);
        assert_non_null(before);
        assert_int_equal(before->output_count, 1);
        assert_int_equal(before->outputs[0], score);
        graph_free(before);
        graph_free(g);
    }
}

/* A second executable is made, which shows them. */
TEST(following_roundings_takes_memory)
{
    struct exe_options options = {.threads = 1};
    struct memory_need alone, all;
    struct graph *g = statically(0.003F);
    MUST(graph_need, g, &options, &alone);
    MUST(admission_need, g, &options, &all);
    assert_true(all.run == alone.run);
    assert_true(all.reference >= alone.reference + alone.run);
    graph_free(g);
}
