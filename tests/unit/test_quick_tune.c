/* SPDX-License-Identifier: Apache-2.0
 *
 * Quick tuning, on the sample plug-in's Relus: sample_relu is trusted, sample_slow and sample_wrong
 * are not. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/compile/compile.h"
#include "engine/compile/stages.h"
#include "engine/graph/op.h"
#include "engine/run/plugin.h"
#include "tests/lib/noise.h"
#include "tests/lib/sample_plugin.h"
#include "tests/lib/unit.h"
#include "tests/lib/unit/files.h"

/* ThreadSanitizer does not bear a new thread in the child of a program with threads. */
#if defined(__SANITIZE_THREAD__)
enum { CHILDREN_WITH_THREADS = 0 };
#else
enum { CHILDREN_WITH_THREADS = 1 };
#endif

/* An executable of one Relu on `count` numbers, tuned quickly with the cache at `test_file`. */
static struct exe *relu_of(int64_t count)
{
    struct exe *exe = NULL;
    struct graph *g = graph_new("relu");
    int x = noise_input(g, "x", shape_of(count));
    graph_output(g, graph_node(g, "Relu", NULL, INPUTS(x), NO_ATTRS));
    struct exe_options options = {.threads = 2,
                                  .isa = isa_detect(),
                                  .only_variant = NONE,
                                  .quick_tune = true,
                                  .providers = "sample",
                                  .cache = test_file};
    MUST(exe_new, g, &options, &exe);
    graph_free(g);
    return exe;
}

/* Of the only step's candidates; "" if it has none. */
static const char *reason_of(const struct exe *exe, const char *kernel)
{
    struct exe_step step = exe_step_at(exe, 0);
    for (int k = 0; k < step.candidate_count; k++)
        if (strcmp(step.candidates[k].kernel->name, kernel) == 0)
            return step.candidates[k].reason;
    fail_msg("%s is not a candidate", kernel);
    return "";
}

static double time_of(const struct exe *exe, const char *kernel)
{
    struct exe_step step = exe_step_at(exe, 0);
    for (int k = 0; k < step.candidate_count; k++)
        if (strcmp(step.candidates[k].kernel->name, kernel) == 0)
            return step.candidates[k].time_ns;
    return NAN;
}

TEST(one_of_similar_steps_is_tried)
{
    struct exe *first = relu_of(1 << 16);
    assert_string_equal(exe_step_at(first, 0).kernel->name, "sample_relu");
    assert_true(time_of(first, "sample_relu") > 0);
    exe_free(first);
    struct exe *similar = relu_of((1 << 16) + 3000);
    assert_string_equal(exe_step_at(similar, 0).kernel->name, "sample_relu");
    assert_true(time_of(similar, "sample_relu") == 0);
    exe_free(similar);
    struct exe *larger = relu_of(1 << 17);
    assert_true(time_of(larger, "sample_relu") > 0);
    exe_free(larger);
}

/* The cache names a winner that is wrong. */
TEST(a_distrusted_winner_is_on_trial_again)
{
    if (!CHILDREN_WITH_THREADS)
        skip();
    struct tune_cache cache;
    exe_free(relu_of(1 << 16));
    tune_cache_load(&cache, test_file);
    for (int k = 0; k < cache.count; k++)
        if (strcmp(cache.entries[k].kernel, "sample_relu") == 0)
            snprintf(cache.entries[k].kernel, sizeof(cache.entries[k].kernel), "sample_wrong");
    cache.dirty = true;
    tune_cache_save(&cache, test_file);
    tune_cache_release(&cache);
    struct exe *similar = relu_of((1 << 16) + 5);
    assert_string_equal(exe_step_at(similar, 0).kernel->name, "sample_relu");
    if (!strstr(reason_of(similar, "sample_wrong"), "wrong: relative error"))
        fail_msg("\"%s\"", reason_of(similar, "sample_wrong"));
    exe_free(similar);
}

TEST(who_loses_three_times_is_left_out)
{
    if (!CHILDREN_WITH_THREADS)
        skip();
    for (int k = 0; k < 3; k++) {
        struct exe *exe = relu_of(1 << (12 + k));
        assert_string_equal(reason_of(exe, "sample_slow"), "");
        assert_true(time_of(exe, "sample_slow") > 1e6);
        exe_free(exe);
    }
    struct exe *exe = relu_of(1 << 15);
    if (!strstr(reason_of(exe, "sample_slow"), "not tried by a quick tuning"))
        fail_msg("\"%s\"", reason_of(exe, "sample_slow"));
    assert_string_equal(exe_step_at(exe, 0).kernel->name, "sample_relu");
    exe_free(exe);
}

static int load(void **state)
{
    (void)state;
    char folder[256];
    folder_with_sample("sample.so", folder, sizeof(folder));
    setenv("RIDGE_PLUGIN_PATH", folder, 1);
    setenv("RIDGE_SAMPLE", CHILDREN_WITH_THREADS ? "slow,wrong" : "", 1);
    setenv("RIDGE_SAMPLE_DELAY_US", "2000", 1);
    plugins_load("sample");
    folder_remove(folder);
    return plugin_kernel_count() > 0 ? 0 : -1;
}

const struct unit_fixture unit_fixture = {
    .before_all = load, .before_each = test_file_open, .after_each = test_file_remove};
