/* SPDX-License-Identifier: Apache-2.0
 *
 * Issue 15.8: a NaN or an infinity on one side alone is wrong on every way on which results are
 * compared, with how many and where; on both sides it is said. The sample plug-in has a mutant of
 * each kind. */

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/registry.h"
#include "engine/compile/compile.h"
#include "engine/reference/ref_odd.h"
#include "engine/reference/reference.h"
#include "engine/run/plugin.h"
#include "harness/model/verify.h"
#include "tests/lib/noise.h"
#include "tests/lib/sample_plugin.h"
#include "tests/lib/unit.h"
#include "tests/lib/unit/graphs.h"
#include "workloads/lib/layers.h"

static const double nan_value = (double)NAN, infinity = (double)INFINITY;

/* ---- counting ---- */

enum { ROWS = 3, COLUMNS = 2, COUNT = ROWS * COLUMNS };

static struct ref_tensor floats(double *values)
{
    return (struct ref_tensor){
        .dtype = DTYPE_F32, .shape = shape_of(ROWS, COLUMNS), .count = COUNT, .f = values};
}

TEST(what_is_odd_is_counted_with_its_first_place)
{
    struct {
        double got[COUNT], expected[COUNT];
        bool is_set;
        const char *text;
        int64_t both;
    } cases[] = {
        {{1, 2, 3, 4, 5, 6}, {1, 2, 3, 4, 5, 6}, false, "", 0},
        {{1, 2, nan_value, 4, 5, nan_value},
         {1, 2, 3, 4, 5, 6},
         false,
         "2 NaN where the reference has numbers, first at [1,0]",
         0},
        {{1, 2, 3, infinity, 5, 6},
         {1, 2, 3, -infinity, 5, 6},
         false,
         "1 infinity where the reference has numbers, first at [1,1]",
         0},
        {{1, nan_value, 3, infinity, 5, 6},
         {1, 2, 3, 4, 5, 6},
         false,
         "2 NaN and infinities where the reference has numbers, first at [0,1]",
         0},
        {{1, 2, 3, 4, 0, 6},
         {1, 2, 3, 4, nan_value, 6},
         false,
         "1 number where the reference has NaN or infinities, first at [2,0]",
         0},
        {{1, infinity, 3, 4, 5, nan_value}, {1, infinity, 3, 4, 5, nan_value}, false, "", 1},
        {{5, nan_value, 3, 4, 1, 2}, {1, 2, 3, 4, 5, nan_value}, true, "", 1},
        {{1, nan_value, nan_value, 4, 5, 6},
         {1, 2, 3, 4, 5, nan_value},
         true,
         "1 NaN where the reference has numbers, first at [0,1]",
         1},
    };
    for (int k = 0; k < ARRAY_COUNT(cases); k++) {
        char text[160];
        struct ref_odd odd;
        struct ref_tensor got = floats(cases[k].got), expected = floats(cases[k].expected);
        ref_odd_count(&got, &expected, cases[k].is_set, &odd);
        ref_odd_text(&odd, &got.shape, text, sizeof(text));
        assert_string_equal(text, cases[k].text);
        assert_int_equal(odd.both_nan, cases[k].both);
        double error =
            cases[k].is_set ? ref_set_error(&got, &expected) : ref_rel_error(&got, &expected);
        if ((error > 1e9) != (text[0] != '\0'))
            fail_msg("case %d: error %g", k, error);
    }
}

TEST(integers_are_compared_to_the_last_bit)
{
    char text[160];
    struct ref_odd odd;
    int64_t a[] = {7, INT64_C(9007199254740993)}, b[] = {7, INT64_C(9007199254740992)};
    struct ref_tensor got = {.dtype = DTYPE_I64, .shape = shape_of(2), .count = 2, .i = a};
    struct ref_tensor expected = {.dtype = DTYPE_I64, .shape = shape_of(2), .count = 2, .i = b};
    assert_true(ref_rel_error(&got, &expected) == 1);
    ref_odd_count(&got, &expected, false, &odd);
    ref_odd_text(&odd, &got.shape, text, sizeof(text));
    assert_string_equal(
        text, "1 integer differs, first 9007199254740993 instead of 9007199254740992 at [1]");
}

/* An infinity in a column of detections made every difference in it nothing. */
TEST(an_infinity_hides_no_difference_in_its_column)
{
    double a[] = {1, infinity, 2, 20, 3, 60}, b[] = {1, infinity, 2, 20, 3, 30};
    struct ref_tensor got = floats(a), expected = floats(b);
    assert_true(ref_set_error(&got, &expected) > 0.9);
}

/* ---- mutants in a network ---- */

enum { WIDTH = 13 };

/* Relu of the inputs; one of them is NaN if it is wanted. */
static struct graph *network(bool with_nan)
{
    static const double numbers[WIDTH] = {1, -2, 3, -4, 5, 6, -7, 8, 9, 10, 11, -12, 13};
    float values[WIDTH];
    struct graph *g = graph_new("mutants");
    for (int k = 0; k < WIDTH; k++)
        values[k] = with_nan && k == 4 ? NAN : (float)numbers[k];
    int x = noise_input(g, "x", shape_of(1, WIDTH));
    int add = graph_const(g, "numbers", DTYPE_F32, shape_of(1, WIDTH), values);
    int sum = graph_node(g, "Add", NULL, INPUTS(x, add), NO_ATTRS);
    int y = graph_node(g, "Relu", NULL, INPUTS(sum), NO_ATTRS);
    graph_rename(g, y, "scores");
    graph_output(g, y);
    return g;
}

static struct verification verified(bool with_nan, const char *kernel)
{
    struct error err = {0};
    struct verification v = {0};
    struct exe *exe;
    struct graph *g = network(with_nan);
    struct exe_options options = {.threads = 1,
                                  .isa = isa_detect(),
                                  .no_tune = true,
                                  .no_fuse = true,
                                  .only = kernel,
                                  .only_variant = NONE};
    if (exe_new(g, &options, &exe, &err) != STATUS_OK || verify_exe(g, exe, &v, &err) != STATUS_OK)
        fail_msg("%s", err.message);
    exe_graph_free(exe, g);
    return v;
}

TEST(a_mutant_of_each_kind_is_wrong)
{
    struct verification v = verified(false, "sample_relu");
    assert_true(v.error <= v.bound && !v.odd[0] && !v.note[0]);
    v = verified(false, "sample_nan");
    assert_false(v.error <= v.bound);
    assert_string_equal(v.odd,
                        "3 NaN where the reference has numbers, first at [0,2] of output scores");
    v = verified(false, "sample_infinite");
    assert_false(v.error <= v.bound);
    assert_string_equal(
        v.odd, "3 infinities where the reference has numbers, first at [0,2] of output scores");
    v = verified(true, "sample_number");
    assert_false(v.error <= v.bound);
    assert_string_equal(v.odd, "1 number where the reference has NaN or infinities, first at "
                               "[0,4] of output scores");
}

TEST(nan_in_both_is_said_and_right)
{
    struct verification v = verified(true, "sample_relu");
    assert_true(v.error <= v.bound);
    assert_string_equal(v.odd, "");
    assert_string_equal(v.note, "output scores has 1 NaN, where the reference has NaN, too");
    assert_int_equal(v.both_nan, 1);
}

/* What the tuner says of a kernel on trial. */
TEST(the_tuner_refuses_each_with_the_count)
{
    static const struct {
        const char *kernel, *reason;
    } cases[] = {
        {"sample_nan", "3 NaN where the reference has numbers, first at [0,2]"},
        {"sample_infinite", "3 infinities where the reference has numbers, first at [0,2]"},
    };
    struct exe *exe;
    struct graph *g = network(false);
    struct exe_options options = {
        .threads = 1, .isa = isa_detect(), .no_fuse = true, .only_variant = NONE};
    MUST(exe_new, g, &options, &exe);
    struct exe_step relu = exe_step_at(exe, exe_step_count(exe) - 1);
    for (int i = 0; i < ARRAY_COUNT(cases); i++) {
        const struct candidate *found = NULL;
        for (int k = 0; k < relu.candidate_count; k++)
            if (strcmp(relu.candidates[k].kernel->name, cases[i].kernel) == 0)
                found = &relu.candidates[k];
        assert_non_null(found);
        assert_false(found->chosen);
        if (!strstr(found->reason, cases[i].reason))
            fail_msg("%s: \"%s\"", cases[i].kernel, found->reason);
    }
    exe_graph_free(exe, g);
}

/* ---- the largest of a window ---- */

enum { TAPS = 4, CHANNELS = 70 }; /* channels: some vectors and a part of one */

/* Image k has NaN in tap k of its only window, the last image has none. */
static struct graph *windows(void)
{
    float values[TAPS + 1][CHANNELS][TAPS];
    struct shape shape = shape_of(TAPS + 1, CHANNELS, 2, 2);
    struct graph *g = graph_new("windows");
    for (int image = 0; image <= TAPS; image++)
        for (int c = 0; c < CHANNELS; c++)
            for (int tap = 0; tap < TAPS; tap++)
                values[image][c][tap] = tap == image ? NAN : (float)(tap - c);
    int x = noise_input(g, "x", shape);
    int numbers = graph_const(g, "numbers", DTYPE_F32, shape, values);
    int sum = graph_node(g, "Add", NULL, INPUTS(x, numbers), NO_ATTRS);
    graph_output(g, max_pool(g, sum, (struct window2d){.kernel = 2, .stride = 2}));
    return g;
}

/* Kernels lost a NaN that a number came after, the reference one that came after a number. */
TEST(max_pool_keeps_nan_on_every_instruction_set)
{
    for (int isa = ISA_SCALAR; isa <= (int)isa_detect(); isa++) {
        struct graph *g = windows();
        struct exe_options options = {
            .threads = 1, .isa = (enum isa)isa, .no_tune = true, .providers = "native"};
        struct exe *exe = compiled(g, &options);
        double error = run_error(exe, g);
        const float *y = exe_output(exe, 0);
        for (int k = 0; k < (TAPS + 1) * CHANNELS; k++)
            if (!isnan(y[k]) != (k >= TAPS * CHANNELS))
                fail_msg("%s: %g at %d", isa_name((enum isa)isa), (double)y[k], k);
        if (!(error <= 1e-6))
            fail_msg("%s: error %g", isa_name((enum isa)isa), error);
        exe_graph_free(exe, g);
    }
}

static int load(void **state)
{
    (void)state;
    char folder[256];
    folder_with_sample("sample.so", folder, sizeof(folder));
    setenv("RIDGE_PLUGIN_PATH", folder, 1);
    setenv("RIDGE_SAMPLE", "nan,infinite,number", 1);
    plugins_load(NULL);
    folder_remove(folder);
    return 0;
}

const struct unit_fixture unit_fixture = {.before_all = load};
