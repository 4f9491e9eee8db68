/* SPDX-License-Identifier: Apache-2.0
 * Branches of a network side by side on a device, on the host's runtime: it replays the latest
 * first of all that may be next, so that what is not ordered comes too early. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/system/file.h"
#include "engine/compile/compile.h"
#include "engine/run/exe_internal.h"
#include "tests/lib/host_gpu.h"
#include "tests/lib/noise.h"
#include "tests/lib/unit.h"
#include "tests/lib/unit/files.h"
#include "tests/lib/unit/graphs.h"
#include "workloads/lib/layers.h"

enum { COMMAND_NS = 1000000 };

static int begin(void **state)
{
    host_gpu()->clock(COMMAND_NS);
    return test_file_open(state);
}

static int end(void **state)
{
    host_gpu()->clock(0);
    host_gpu()->script("", 0, 0);
    return test_file_remove(state);
}

/* Eight nodes, five deep. */
static struct graph *three_branches(void)
{
    struct graph *g = graph_new("three");
    int x = noise_input(g, "x", shape_of(4, 8));
    int a = softmax(g, relu(g, x), -1);
    int b = softmax(g, unary(g, "Tanh", softmax(g, x, 0)), -1);
    graph_output(g, add(g, add(g, a, b), sigmoid(g, x)));
    return g;
}

static double commands_of(struct exe *exe)
{
    return exe_time_runs(exe, 4) / COMMAND_NS;
}

TEST(branches_run_side_by_side_where_that_is_faster)
{
    struct exe_options tuned = gpu_unfused(true), untuned = gpu_unfused(false);
    struct exe *exe = compiled_owned(three_branches(), &tuned);
    struct exe *plain = compiled_owned(three_branches(), &untuned);
    assert_int_equal(exe_step_count(exe), 8);
    assert_int_equal(lanes_count(exe), 3);
    assert_float_equal(commands_of(exe), 5, 1e-6);
    assert_float_equal(commands_of(plain), 8, 1e-6);
    assert_same_outputs(exe, plain);
    assert_int_equal(exe_capture_again(exe, NULL), STATUS_OK); /* as a profiler has it */
    assert_float_equal(commands_of(exe), 5, 1e-6);
    exe_free(plain);
    exe_free(exe);
}

TEST(what_was_faster_is_remembered)
{
    struct exe_options options = gpu_unfused(true);
    struct file text;
    struct error err = {0};
    options.cache = test_file;
    exe_free(compiled_owned(three_branches(), &options));
    assert_int_equal(file_map(test_file, &text, &err), STATUS_OK);
    char *copy = calloc(1, text.size + 1);
    assert_non_null(copy);
    memcpy(copy, text.data, text.size);
    file_unmap(&text);
    char *at = strstr(copy, " side_by_side ");
    assert_non_null(at);
    memcpy(at, " one_by_one   ", strlen(" side_by_side "));
    write_file(test_file, copy);
    free(copy);
    struct exe *exe = compiled_owned(three_branches(), &options);
    assert_float_equal(commands_of(exe), 8, 1e-6);
    exe_free(exe);
}

TEST(a_failure_of_any_call_leaves_nothing_behind)
{
    enum { LAUNCH_FAILED = 719, CALLS_MOST = 60 };
    static const char *const calls[] = {"event_mark",   "stream_follow", "stream_create",
                                        "event_create", "capture_begin", "capture_end"};
    struct exe_options options = gpu_unfused(true);
    struct graph *g = three_branches();
    long before = gpu_live();
    for (int c = 0; c < ARRAY_COUNT(calls); c++) {
        int count = 0, failed = 0;
        for (int at = 0; at <= count; at++) { /* 0: none fails */
            struct error err = {0};
            struct exe *exe = NULL;
            host_gpu()->script(calls[c], at, LAUNCH_FAILED);
            enum status status = exe_new(g, &options, &exe, &err);
            if (at == 0)
                count = host_gpu()->calls() < CALLS_MOST ? host_gpu()->calls() : CALLS_MOST;
            host_gpu()->script("", 0, 0);
            failed += status != STATUS_OK;
            if (status != STATUS_OK)
                SAYS(err.message, "cudaErrorLaunchFailure");
            exe_free(exe);
            assert_int_equal(gpu_live(), before);
        }
        if (failed == 0)
            fail_msg("%s failed nowhere", calls[c]);
    }
    graph_free(g);
}

const struct unit_fixture unit_fixture = {
    .start = host_gpu_start, .before_each = begin, .after_each = end};
