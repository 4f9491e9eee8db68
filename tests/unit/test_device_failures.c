/* SPDX-License-Identifier: Apache-2.0
 * A device that fails: memory that is short, refused launches, and every call of the CUDA runtime
 * at each of its uses. All of it on the host's runtime (tests/gpu/host/). */

#include <string.h>

#include "engine/compile/compile.h"
#include "engine/kernels/cuda/lib/api.h"
#include "engine/run/exe.h"
#include "tests/lib/host_gpu.h"
#include "tests/lib/noise.h"
#include "tests/lib/unit.h"
#include "tests/lib/unit/graphs.h"
#include "workloads/lib/layers.h"

/* The first is told of one candidate, the second ends the device for the process. */
enum { TOO_LARGE = 701, LAUNCH_FAILED = 719, NO_MEMORY = 2 };
/* By this clock what is timed takes as many launches in every run of the test. */
enum { COMMAND_NS = 1000000 };
static const double joined_s = 0.5e-3; /* two of them take a millisecond */

TEST(memory_that_is_short_names_the_plan)
{
    struct error err = {0};
    struct graph *g = gpu_small_net();
    struct exe_options options = gpu_options(gpu_name());
    struct exe *exe = NULL;
    long before = host_gpu()->live();
    host_gpu()->script("malloc", 2, NO_MEMORY); /* 1: the convolution's packed weights */
    assert_int_equal(exe_new(g, &options, &exe, &err), STATUS_NO_MEMORY);
    SAYS(err.message, "the plan needs ");
    SAYS(err.message, "out of memory on GPU 0: asked for ");
    SAYS(err.message, "smaller --batch");
    host_gpu()->script("", 0, 0);
    assert_int_equal(host_gpu()->live(), before);
    graph_free(g);
}

/* ---- every call fails once at each of its uses ---- */

static const char *const all_calls[] = {
    "driver_version",
    "runtime_version",
    "device_count",
    "set_device",
    "facts",
    "memory_info",
    "malloc",
    "free",
    "malloc_host",
    "free_host",
    "stream_create",
    "stream_destroy",
    "copy",
    "stream_synchronize",
    "stream_query",
    "set",
    "event_create",
    "event_destroy",
    "event_record",
    "event_elapsed",
    "event_mark",
    "stream_follow",
    "capture_begin",
    "capture_end",
    "graph_instantiate",
    "graph_launch",
    "graph_exec_destroy",
    "graph_destroy",
    "launch",
    "allow_shared",
    "code_version",
    "clusters_at_once",
};

/* All but error_name and error_text, which only tell. */
_Static_assert(ARRAY_COUNT(all_calls) + 2 == sizeof(struct cuda_api) / sizeof(void (*)(void)),
               "a call of the runtime fails in no test");

/* What a user does: compile, run, time, read. */
static enum status whole_life(const struct graph *g, const struct exe_options *options,
                              struct error *err)
{
    double times[16];
    struct exe *exe = NULL;
    enum status status = exe_new(g, options, &exe, err);
    if (status != STATUS_OK)
        return status;
    exe_run(exe);
    exe_time_runs(exe, 3);
    exe_join_runs(exe, joined_s);
    exe_start_runs(exe, 3);
    for (int k = 0; k < g->input_count; k++)
        assert_non_null(exe_input(exe, k));
    exe_run(exe);
    exe_reset(exe);
    exe_time_steps(exe, 2, times);
    for (int k = 0; k < g->output_count; k++)
        assert_non_null(exe_output(exe, k));
    status = exe_status(exe, err);
    exe_free(exe);
    return status;
}

/* Returns how often the call was used; fails the at-th use. */
static int fail_once(const struct graph *g, const struct exe_options *options, const char *call,
                     int at, int error, int *failed)
{
    struct error err = {0};
    long before = host_gpu()->live();
    host_gpu()->script(call, at, error);
    enum status status = whole_life(g, options, &err);
    int calls = host_gpu()->calls();
    host_gpu()->script("", 0, 0);
    if (host_gpu()->live() != before)
        fail_msg("%s failed at use %d: %ld things were not given back", call, at,
                 host_gpu()->live() - before);
    if (status != STATUS_OK) {
        SAYS(err.message, error == TOO_LARGE
                              ? "(cudaErrorLaunchOutOfResources)"
                              : "unspecified launch failure (cudaErrorLaunchFailure)");
        (*failed)++;
    }
    return calls;
}

static void fail_everywhere(const struct graph *g, const struct exe_options *options, int error)
{
    int failed = 0;
    for (int c = 0; c < ARRAY_COUNT(all_calls); c++) {
        int calls = fail_once(g, options, all_calls[c], 0, error, &failed);
        assert_int_equal(failed, 0);
        for (int at = 1; at <= calls; at++)
            fail_once(g, options, all_calls[c], at, error, &failed);
        failed = 0;
    }
}

TEST(no_failing_call_crashes_or_leaks)
{
    struct exe_options options = gpu_options(gpu_name());
    struct graph *small = gpu_small_net(), *mixed = gpu_mixed_net();
    fail_everywhere(small, &options, LAUNCH_FAILED);
    fail_everywhere(mixed, &options, LAUNCH_FAILED);
    options.no_capture = true;
    fail_everywhere(small, &options, LAUNCH_FAILED);
    graph_free(small);
    graph_free(mixed);
}

/* A state that is changed in place, and one that is moved; host: it reads both. */
static struct graph *two_states(bool host)
{
    struct graph *g = graph_new("states");
    int x = noise_input(g, "x", shape_of(2, 1, 4));
    int cache = graph_state(g, "cache", DTYPE_F32, shape_of(2, 3, 4), noise());
    int sum = graph_state(g, "sum", DTYPE_F32, shape_of(2, 1, 4), noise());
    int next = graph_node(g, "TensorScatter", NULL, INPUTS(cache, x), ATTRS(attr_int("axis", 1)));
    graph_state_after(g, cache, next);
    next = add(g, host ? unary(g, "Asinh", next) : x, sum);
    graph_state_after(g, sum, host ? slice(g, next, (struct range){.axis = 1, .stop = 1}) : next);
    return g;
}

TEST(no_failing_call_with_states_crashes_or_leaks)
{
    struct exe_options options = gpu_options(gpu_name());
    for (int host = 0; host < 2; host++) {
        struct graph *g = two_states(host);
        fail_everywhere(g, &options, LAUNCH_FAILED);
        graph_free(g);
    }
}

/* In 16 bits by a cluster of blocks. */
TEST(no_failing_call_of_a_recurrence_crashes_or_leaks)
{
    enum { INPUT = 32, HIDDEN = 32 };
    struct exe_options options = gpu_options(gpu_name());
    struct graph *g = graph_new("recurrence");
    int x = noise_input(g, "x", shape_of(2, 3, INPUT));
    int w = noise_param(g, "w", shape_of(1, 4 * HIDDEN, INPUT));
    int r = noise_param(g, "r", shape_of(1, 4 * HIDDEN, HIDDEN));
    graph_output(
        g, graph_node(g, "LSTM", NULL, INPUTS(x, w, r), ATTRS(attr_int("hidden_size", HIDDEN))));
    options.precision = PRECISION_BF16;
    fail_everywhere(g, &options, LAUNCH_FAILED);
    graph_free(g);
}

/* Candidates that fail are refused; where all do, the host computes the node. */
TEST(failures_while_tuning_are_borne)
{
    struct exe_options options = gpu_options(gpu_name());
    options.no_tune = false;
    struct graph *g = graph_new("one");
    graph_output(g, relu(g, noise_input(g, "x", shape_of(3, 5))));
    host_gpu()->clock(COMMAND_NS);
    fail_everywhere(g, &options, TOO_LARGE);
    fail_everywhere(g, &options, LAUNCH_FAILED);
    host_gpu()->clock(0);
    graph_free(g);
}

/* What fails in a run is reported once, with the node, and later runs do nothing. */
TEST(a_refused_launch_names_its_node)
{
    struct error err = {0};
    struct graph *g = gpu_small_net();
    struct exe_options options = gpu_options(gpu_name());
    options.no_capture = true;
    struct exe *exe = compiled(g, &options);
    SAYS(exe_not_captured(exe), "switched off");
    host_gpu()->script("launch", 2, TOO_LARGE);
    exe_run(exe);
    assert_int_equal(exe_status(exe, &err), STATUS_FAILED);
    SAYS(err.message, "node \"");
    SAYS(err.message, "kernel cuda_");
    SAYS(err.message, "launching ");
    host_gpu()->script("launch", 0, 0);
    exe_run(exe);
    assert_int_equal(host_gpu()->calls(), 0);
    exe_graph_free(exe, g);
}

const struct unit_fixture unit_fixture = {.start = host_gpu_start};
