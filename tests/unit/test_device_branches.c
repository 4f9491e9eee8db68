/* SPDX-License-Identifier: Apache-2.0
 * Branches of a network side by side on a device, on the host's runtime: it replays the latest
 * first of all that may be next, so that what is not ordered comes too early. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/system/file.h"
#include "engine/compile/compile.h"
#include "engine/run/exe_internal.h"
#include "engine/run/plugin.h"
#include "tests/lib/host_gpu.h"
#include "tests/lib/noise.h"
#include "tests/lib/unit.h"
#include "tests/lib/unit/files.h"
#include "tests/lib/unit/graphs.h"
#include "workloads/lib/layers.h"

enum { COMMAND_NS = 1000000, ROWS = 4, COLUMNS = 8, ELEMENTS = ROWS * COLUMNS };

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

static int matrix(struct graph *g)
{
    return noise_input(g, "x", shape_of(ROWS, COLUMNS));
}

/* Eight nodes, five deep. */
static struct graph *three_branches(void)
{
    struct graph *g = graph_new("three");
    int x = matrix(g);
    int a = softmax(g, relu(g, x), -1);
    int b = softmax(g, unary(g, "Tanh", softmax(g, x, 0)), -1);
    graph_output(g, add(g, add(g, a, b), sigmoid(g, x)));
    return g;
}

static unsigned draw(unsigned *seed, unsigned below)
{
    *seed = *seed * 1664525u + 1013904223u;
    return (*seed >> 16) % below;
}

/* Nodes that read whatever there is. */
static struct graph *any_network(unsigned seed)
{
    enum { NODES = 40 };
    struct graph *g = graph_new("any");
    int values[NODES + 1] = {matrix(g)};
    for (int n = 0; n < NODES; n++) {
        unsigned count = (unsigned)n + 1, near = count < 6 ? count : 6;
        int a = values[count - 1 - draw(&seed, near)], b = values[draw(&seed, count)];
        switch (draw(&seed, 4)) {
        case 0:
            values[n + 1] = softmax(g, a, -1);
            break;
        case 1:
            values[n + 1] = unary(g, "Tanh", a);
            break;
        case 2:
            values[n + 1] = add(g, a, b);
            break;
        default:
            values[n + 1] = softmax(g, mul(g, a, b), 0);
        }
    }
    for (int n = NODES - 3; n <= NODES; n++)
        graph_output(g, values[n]);
    return g;
}

/* Nodes as they are: no pass joins them. */
static struct exe_options as_it_is(bool tuned)
{
    struct exe_options options = gpu_options(gpu_name());
    options.no_tune = !tuned;
    options.no_fuse = true;
    options.providers = "cuda";
    return options;
}

static double commands_of(struct exe *exe)
{
    return exe_time_runs(exe, 4) / COMMAND_NS;
}

/* Twice, so that what an earlier replay left in memory is not taken for an answer by chance. */
static void assert_same_outputs(struct exe *exe, struct exe *other)
{
    for (int run = 0; run < 2; run++) {
        float *x = exe_input(exe, 0), *y = exe_input(other, 0);
        for (int e = 0; e < ELEMENTS; e++)
            x[e] = y[e] = (float)((e * 7 + run * 5) % 11) * 0.2f - 1;
        exe_run(exe);
        exe_run(other);
        for (int k = 0; k < exe_graph(exe)->output_count; k++)
            assert_memory_equal(exe_output(exe, k), exe_output(other, k), ELEMENTS * sizeof(float));
        assert_int_equal(exe_status(exe, NULL), STATUS_OK);
    }
}

TEST(branches_run_side_by_side_where_that_is_faster)
{
    struct exe_options tuned = as_it_is(true), untuned = as_it_is(false);
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
    struct exe_options options = as_it_is(true);
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

/* By the plan of memory for steps alone, where branches share much of it, and by that for branches.
 */
TEST(any_network_computes_the_same_side_by_side)
{
    int forked = 0;
    for (unsigned seed = 1; seed <= 24; seed++) {
        struct exe_options options = as_it_is(false), tuned = as_it_is(true);
        struct exe *plain = compiled_owned(any_network(seed), &options);
        struct exe *by_steps = compiled_owned(any_network(seed), &options);
        assert_int_equal(lanes_open(by_steps, NULL), STATUS_OK);
        assert_int_equal(exe_use_branches(by_steps, true, NULL), STATUS_OK);
        assert_null(exe_not_captured(by_steps));
        assert_same_outputs(by_steps, plain);
        exe_free(by_steps);
        if (seed <= 3 && host_gpu()->clock) {
            struct exe *by_levels = compiled_owned(any_network(seed), &tuned);
            forked += lanes_count(by_levels) > 1;
            assert_int_equal(exe_use_branches(by_levels, true, NULL), STATUS_OK);
            assert_null(exe_not_captured(by_levels));
            assert_same_outputs(by_levels, plain);
            exe_free(by_levels);
        }
        exe_free(plain);
    }
    assert_true(forked > 0 || !host_gpu()->clock);
}

TEST(a_failure_of_any_call_leaves_nothing_behind)
{
    enum { LAUNCH_FAILED = 719, CALLS_MOST = 60 };
    static const char *const calls[] = {"event_mark",   "stream_follow", "stream_create",
                                        "event_create", "capture_begin", "capture_end"};
    struct exe_options options = as_it_is(true);
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

/* On a real device, with RIDGE_TEST_GPU, what is not ordered is a race. */
static int start(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_network_computes_the_same_side_by_side)};
    if (!getenv("RIDGE_TEST_GPU"))
        return host_gpu_start(argc, argv);
    plugins_load("cuda");
    exit(cmocka_run_group_tests(tests, NULL, NULL));
}

const struct unit_fixture unit_fixture = {.start = start, .before_each = begin, .after_each = end};
