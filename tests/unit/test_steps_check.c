/* SPDX-License-Identifier: Apache-2.0
 *
 * Issue 15.4: the sum of the steps against the whole, and steps against their own trials. */

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/registry.h"
#include "engine/compile/compile.h"
#include "harness/campaign/steps_check.h"
#include "tests/lib/noise.h"
#include "tests/lib/unit.h"
#include "workloads/lib/layers.h"

TEST(a_quarter_apart_is_said)
{
    static const struct {
        double sum_s, whole_s;
        const char *text;
    } cases[] = {
        {24e-3, 24e-3, ""},
        {29.9e-3, 24e-3, ""},
        {20e-3, 24e-3, ""},
        {64.9e-3, 24e-3,
         "the steps, timed one by one, together took 64.9 ms, 2.7 times the whole (24 ms)"},
        {15e-6, 24e-6,
         "the steps, timed one by one, together took 15 us, 0.62 times the whole (24 us)"},
        {1, (double)NAN, ""},
        {0, 1, ""},
    };
    for (int k = 0; k < ARRAY_COUNT(cases); k++) {
        char text[200];
        steps_apart_text(cases[k].sum_s, cases[k].whole_s, text, sizeof(text));
        assert_string_equal(text, cases[k].text);
    }
}

TEST(a_step_far_behind_its_trial_is_named)
{
    char text[400];
    struct step_time steps[] = {
        {"conv1", "Conv", 2e-3, 0.5e-3},      {"relu\033[2J", "Relu", 9e-3, 1e-3},
        {"quick", "Relu", 9e-3, (double)NAN}, {"tiny", "Add", 8e-6, 1e-6},
        {"fine", "Conv", 1.2e-3, 0.5e-3},
    };
    assert_true(steps_slow_text(steps, 5, text, sizeof(text)) == 2);
    assert_string_equal(text, "2 steps took more than three times what the tuner's trial took: "
                              "#1 relu?[2J (Relu) 9 ms instead of 1 ms, "
                              "#0 conv1 (Conv) 2 ms instead of 500 us");
    assert_true(steps_slow_text(steps + 3, 2, text, sizeof(text)) == 0);
    assert_string_equal(text, "");
    assert_true(isnan(steps_slow_text(steps + 2, 1, text, sizeof(text))));
    struct step_time many[5];
    for (int k = 0; k < 5; k++)
        many[k] = (struct step_time){"s", "Relu", 1e-3 * (k + 5), 1e-3};
    assert_true(steps_slow_text(many, 5, text, sizeof(text)) == 5);
    assert_non_null(strstr(text, "#4 s (Relu) 9 ms instead of 1 ms, #3 "));
    assert_non_null(strstr(text, "#2 s (Relu) 7 ms instead of 1 ms ..."));
}

static const struct profiler_metric *find(const struct counts *c, const char *name)
{
    for (int k = 0; k < c->count; k++)
        if (strcmp(c->metrics[k].name, name) == 0)
            return &c->metrics[k];
    return NULL;
}

/* The rows of a compiled network, whose steps are said to have taken a second each. */
TEST(rows_carry_sum_ratio_and_trials)
{
    struct arena arena = {0};
    struct counts counts;
    struct exe *exe;
    struct graph *g = graph_new("two");
    int x = noise_input(g, "x", shape_of(32, 64));
    graph_output(g, dense(g, relu(g, dense(g, x, "first", 64)), "second", 32));
    struct exe_options options = {.threads = 1, .isa = isa_detect(), .only_variant = NONE};
    for (int tuned = 0; tuned < 2; tuned++) {
        options.no_tune = !tuned;
        MUST(exe_new, g, &options, &exe);
        int steps = exe_step_count(exe);
        double *ns = calloc((size_t)steps + 1, sizeof(*ns));
        for (int k = 0; k < steps; k++)
            ns[k] = 1e9;
        struct steps_facts facts = {exe, ns, 0.5, "disturbed: by a test"};
        MUST(steps_check, &facts, &arena, &counts);
        assert_true(find(&counts, "steps_sum_s")->value == steps);
        assert_true(find(&counts, "steps_over_whole")->value == 2 * steps);
        assert_non_null(strstr(find(&counts, "steps_over_whole")->formula, "note: the steps"));
        assert_non_null(
            strstr(find(&counts, "steps_over_whole")->formula, "meanwhile it was disturbed: by"));
        const struct profiler_metric *slow = find(&counts, "slow_steps");
        assert_int_equal(counts.step_count > 0, tuned); /* without a trial nothing is known */
        assert_int_equal(isnan(slow->value), !tuned);
        assert_int_equal(strstr(slow->formula, "took more than three times") != NULL, tuned);
        facts.whole_s = (double)NAN;
        MUST(steps_check, &facts, &arena, &counts);
        assert_true(isnan(find(&counts, "steps_over_whole")->value));
        assert_non_null(strstr(find(&counts, "steps_over_whole")->reason, "warm caches"));
        free(ns);
        exe_free(exe);
    }
    graph_free(g);
    arena_release(&arena);
}
