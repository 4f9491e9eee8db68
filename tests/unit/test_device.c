/* SPDX-License-Identifier: Apache-2.0
 * Devices: the CPU's table, and executables on the device "cuda" of the plug-in whose runtime is
 * the host (tests/gpu/host/): nothing here needs a GPU. */

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/numbers/stats.h"
#include "base/system/clock.h"
#include "engine/graph/op.h"
#include "engine/run/device.h"
#include "engine/run/exe.h"
#include "engine/run/exe_internal.h"
#include "engine/run/plugin.h"
#include "tests/lib/host_gpu.h"
#include "tests/lib/noise.h"
#include "tests/lib/unit.h"
#include "tests/lib/unit/graphs.h"
#include "workloads/lib/layers.h"

static const char *why_not(const char *device)
{
    static struct error err;
    struct device opened;
    assert_int_equal(device_open(device, &opened, &err), STATUS_UNSUPPORTED);
    assert_null(opened.kind);
    return err.message;
}

/* ---- names and machines ---- */

TEST(names_are_parsed)
{
    char kind[32];
    int index;
    MUST(device_parse, "cuda", kind, &index);
    assert_string_equal(kind, "cuda");
    assert_int_equal(index, 0);
    MUST(device_parse, "cuda:3", kind, &index);
    assert_int_equal(index, 3);
    const char *const wrong[] = {"", ":1", "cuda:", "cuda:x", "cuda:1x", "cuda:-1", "cuda:99999"};
    for (int k = 0; k < ARRAY_COUNT(wrong); k++) {
        FAILS(STATUS_FAILED, "is no device", device_parse, wrong[k], kind, &index);
    }
}

/* The first of several has one name, or it would count as two devices in plans and results. */
TEST(a_device_has_one_name)
{
    const char *const names[][2] = {
        {"cuda", "cuda"},      {"cuda:0", "cuda"}, {"cuda:00", "cuda"}, {"cuda:1", "cuda:1"},
        {"cuda:01", "cuda:1"}, {"cpu:0", "cpu"},   {NULL, "cpu"},       {"cuda:x", "cuda:x"},
    };
    for (int k = 0; k < ARRAY_COUNT(names); k++) {
        char text[DEVICE_NAME_SIZE];
        device_canonical(names[k][0], text);
        assert_string_equal(text, names[k][1]);
    }
}

TEST(the_cpu_is_a_device)
{
    struct error err;
    struct device device;
    void *memory, *from, *to;
    double ns = -1;
    MUST(device_open, NULL, &device);
    const struct device_kind *kind = device.kind;
    assert_true(kind->is_host);
    assert_string_equal(kind->name, "cpu");
    MUST(device_upload, &device, "hello", 6, &memory);
    assert_string_equal(memory, "hello");
    kind->free(&device, memory);
    MUST(kind->event_new, &device, &from);
    MUST(kind->event_new, &device, &to);
    kind->event_record(&device, from, NULL, &err);
    kind->event_record(&device, to, NULL, &err);
    MUST(kind->event_elapsed, &device, from, to, &ns);
    assert_true(ns >= 0);
    kind->event_free(&device, from);
    kind->event_free(&device, to);
    device_close(&device);
}

TEST(causes_are_told_apart)
{
    SAYS(why_not("tpu"), "there is no device \"tpu\"");
    SAYS(why_not("cuda:7"), "there are 2 cuda devices, numbered from 0");
    setenv("RIDGE_HOST_GPUS", "0", 1);
    SAYS(why_not("cuda"), "no GPU is");
    unsetenv("RIDGE_HOST_GPUS");
    setenv("RIDGE_HOST_DRIVER", "0", 1);
    SAYS(why_not("cuda"), "no CUDA driver (libcuda.so.1");
    SAYS(why_not("cuda"), "--device cpu");
    setenv("RIDGE_HOST_DRIVER", "12020", 1);
    SAYS(why_not("cuda"), "serves CUDA 12.2, this plug-in needs 13.0");
    unsetenv("RIDGE_HOST_DRIVER");
}

TEST(properties_are_read)
{
    struct device device;
    MUST(device_open, "cuda:1", &device);
    const struct device_properties *p = &device.properties;
    assert_int_equal(device.index, 1);
    assert_string_equal(p->name, "Host GPU");
    assert_string_equal(p->driver, "13.0");
    assert_string_equal(p->bus, "0000:02:00.0");
    assert_int_equal(p->units, 132);
    assert_true(p->memory_bytes_per_s > 4.9e12 && p->memory_bytes_per_s < 4.95e12);
    device_close(&device);
}

/* ---- executables ---- */

TEST(everything_there_is_captured)
{
    struct graph *g = gpu_small_net();
    struct exe_options options = gpu_options(gpu_name());
    long before = gpu_live();
    struct exe *exe = compiled(g, &options);
    assert_null(exe_not_captured(exe));
    assert_string_equal(exe_device(exe)->kind->name, "cuda");
    for (int s = 0; s < exe_step_count(exe); s++)
        assert_string_equal(exe_step_at(exe, s).kernel->device, "cuda");
    assert_true(run_error(exe, g) <= 1e-4);
    exe_graph_free(exe, g);
    assert_int_equal(gpu_live(), before);
}

TEST(changed_inputs_are_uploaded)
{
    struct graph *g = gpu_small_net();
    struct exe_options options = gpu_options(host_gpu()->live ? "cuda:1" : gpu_name());
    struct exe *exe = compiled(g, &options);
    for (int round = 0; round < 3; round++) {
        float *x = exe_input(exe, 0);
        for (int k = 0; k < 2 * 3 * 9 * 9; k++)
            x[k] = (float)((k * 7 + round * 3) % 11) - 5;
        assert_true(run_error(exe, g) <= 1e-4);
    }
    exe_graph_free(exe, g);
}

TEST(runs_in_a_row_give_the_last_result)
{
    struct graph *g = gpu_small_net();
    struct exe_options options = gpu_options(gpu_name());
    struct exe *exe = compiled(g, &options);
    for (int k = 0; k < 3; k++)
        exe_start(exe);
    exe_wait(exe);
    assert_true(run_error(exe, g) <= 1e-4);
    exe_graph_free(exe, g);
}

/* As many as take a millisecond are one graph; what is left over is launched one by one, and new
 * inputs are there for all of them. */
TEST(short_runs_share_a_graph)
{
    struct graph *g = gpu_small_net();
    struct exe_options options = gpu_options(gpu_name());
    struct exe *exe = compiled(g, &options);
    long before = gpu_live();
    assert_int_equal(exe_join_runs(exe, 1e-3), 1);
    assert_int_equal(exe_join_runs(exe, 0.3e-3), 4);
    assert_true(gpu_live() > before);
    float *x = exe_input(exe, 0);
    for (int k = 0; k < 8; k++)
        x[k] = (float)(k % 3) - 1;
    host_gpu()->script("graph_launch", 0, 0);
    exe_start_runs(exe, 10);
    assert_int_equal(host_gpu()->calls(), 2 + 2);
    exe_wait(exe);
    assert_true(run_error(exe, g) <= 1e-4);
    MUST(exe_capture_again, exe); /* launches may be others now */
    assert_int_equal(exe_joined_runs(exe), 1);
    assert_int_equal(gpu_live(), before);
    host_gpu()->script("capture_end", 1, 1);
    assert_int_equal(exe_join_runs(exe, 0.3e-3), 1);
    host_gpu()->script("graph_launch", 0, 0);
    exe_start_runs(exe, 10);
    assert_int_equal(host_gpu()->calls(), 10);
    exe_wait(exe);
    assert_int_equal(exe_status(exe, NULL), STATUS_OK);
    assert_true(run_error(exe, g) <= 1e-4);
    exe_free(exe);
    options.device = NULL;
    exe = compiled(g, &options);
    assert_int_equal(exe_join_runs(exe, 1e-6), 1);
    exe_start_runs(exe, 2);
    exe_graph_free(exe, g);
}

/* Of a decoder, one run after the other and two as one graph, like the CPU's. */
TEST(states_stay_there)
{
    struct graph *g = gpu_decoder(false);
    struct exe_options options = gpu_options(gpu_name()), on_cpu = gpu_options("cpu");
    struct exe *exe = compiled(g, &options), *cpu = compiled(g, &on_cpu);
    for (int round = 0; round < 2; round++) {
        for (int runs = 1; runs < 8; runs += 3) {
            exe_start_runs(exe, runs);
            exe_wait(exe);
            exe_start_runs(cpu, runs);
            MUST(exe_status, exe);
            for (int k = 0; k < 2 * 64; k++)
                assert_float_equal(((const float *)exe_output(exe, 0))[k],
                                   ((const float *)exe_output(cpu, 0))[k], 1e-4);
        }
        exe_reset(exe);
        exe_reset(cpu);
        assert_int_equal(exe_join_runs(exe, 0.6e-3), 2);
    }
    exe_free(cpu);
    exe_graph_free(exe, g);
}

TEST(the_host_computes_what_no_kernel_takes)
{
    struct graph *g = gpu_mixed_net();
    struct exe_options options = gpu_options(gpu_name());
    long before = gpu_live();
    int on_host = 0;
    struct exe *exe = compiled(g, &options);
    for (int s = 0; s < exe_step_count(exe); s++) {
        const char *device = exe_step_at(exe, s).kernel->device;
        on_host += !device || strcmp(device, "cuda") != 0;
    }
    assert_int_equal(on_host, 3);
    SAYS(exe_not_captured(exe), "3 of ");
    assert_true(run_error(exe, g) <= 1e-4);
    float *x = exe_input(exe, 0);
    for (int k = 0; k < 4 * 32; k++)
        x[k] = (float)(k % 5) - 2;
    assert_true(run_error(exe, g) <= 1e-4);
    exe_free(exe);
    options.keep_values = true;
    exe = compiled(g, &options);
    assert_true(run_error(exe, g) <= 1e-4);
    exe_graph_free(exe, g);
    assert_int_equal(gpu_live(), before);
}

TEST(the_tuner_times_on_the_device)
{
    struct graph *g = gpu_mixed_net();
    struct exe_options options = gpu_options(gpu_name());
    options.no_tune = false;
    struct exe *exe = compiled(g, &options);
    for (int s = 0; s < exe_step_count(exe); s++) {
        struct exe_step step = exe_step_at(exe, s);
        int timed = 0;
        for (int k = 0; k < step.candidate_count; k++)
            timed += step.candidates[k].time_ns > 0;
        if (strcmp(step.node->op->name, "Gemm") == 0)
            assert_true(timed >= 2); /* two sizes of tile */
    }
    assert_true(run_error(exe, g) <= 1e-4);
    exe_graph_free(exe, g);
}

TEST(steps_have_times)
{
    double times[16] = {0};
    struct graph *g = gpu_mixed_net();
    struct exe_options options = gpu_options(gpu_name());
    struct exe *exe = compiled(g, &options);
    exe_time_steps(exe, 3, times);
    for (int s = 0; s < exe_step_count(exe); s++)
        assert_true(times[s] > 0);
    assert_int_equal(exe_status(exe, NULL), STATUS_OK);
    exe_graph_free(exe, g);
}

/* One capture serves all repeats, and the device's clock goes on by itself. */
TEST(steps_are_timed_within_a_replay)
{
    enum { REPEATS = 3, COMMAND_NS = 1000 };
    static const char *const calls[] = {"launch", "graph_launch", "event_record"};
    double times[16] = {0};
    struct graph *g = gpu_small_net();
    struct exe_options options = gpu_options(gpu_name());
    struct exe *exe = compiled(g, &options);
    int steps = exe_step_count(exe);
    const int expected[] = {steps, REPEATS, steps + 1};
    long before = gpu_live();
    host_gpu()->clock(COMMAND_NS);
    for (int k = 0; k < ARRAY_COUNT(calls); k++) {
        host_gpu()->script(calls[k], 0, 0);
        exe_time_steps(exe, REPEATS, times);
        assert_true(host_gpu()->calls() == expected[k] || (k == 0 && host_gpu()->calls() > steps));
        for (int s = 0; s < steps; s++)
            assert_true(times[s] >= 0.999 * COMMAND_NS && times[s] <= 4.001 * COMMAND_NS);
    }
    host_gpu()->script("capture_end", 1, 1);
    exe_time_steps(exe, REPEATS, times);
    assert_true(times[0] >= 0.999 * COMMAND_NS);
    host_gpu()->clock(0);
    assert_int_equal(exe_status(exe, NULL), STATUS_OK);
    assert_null(exe_not_captured(exe));
    assert_int_equal(gpu_live(), before);
    exe_graph_free(exe, g);
}

/* What could not be captured again is launched, and computes the same. */
TEST(a_run_is_captured_again)
{
    struct graph *g = gpu_small_net();
    struct exe_options options = gpu_options(gpu_name());
    struct exe *exe = compiled(g, &options);
    float first[20];
    long before = gpu_live();
    exe_run(exe);
    memcpy(first, exe_output(exe, 0), sizeof(first));
    host_gpu()->script("graph_instantiate", 0, 0);
    MUST(exe_capture_again, exe);
    assert_int_equal(host_gpu()->calls(), 1);
    assert_null(exe_not_captured(exe));
    assert_int_equal(gpu_live(), before);
    exe_run(exe);
    assert_memory_equal(exe_output(exe, 0), first, sizeof(first));
    host_gpu()->script("graph_instantiate", 1, 1);
    MUST(exe_capture_again, exe);
    assert_non_null(exe_not_captured(exe));
    MUST(exe_capture_again, exe); /* there is nothing to capture */
    exe_run(exe);
    assert_memory_equal(exe_output(exe, 0), first, sizeof(first));
    exe_graph_free(exe, g);
}

/* A run is one launch of a graph and one wait; it allocates nothing on the device. */
TEST(a_run_is_a_replay)
{
    static const char *const calls[] = {"graph_launch", "stream_synchronize", "launch",
                                        "malloc",       "malloc_host",        "copy"};
    static const int expected[] = {5, 5, 0, 0, 0, 0};
    struct graph *g = gpu_small_net();
    struct exe_options options = gpu_options(gpu_name());
    struct exe *exe = compiled(g, &options);
    for (int k = 0; k < ARRAY_COUNT(calls); k++) {
        host_gpu()->script(calls[k], 0, 0);
        for (int run = 0; run < 5; run++)
            exe_run(exe);
        assert_int_equal(host_gpu()->calls(), expected[k]);
    }
    exe_graph_free(exe, g);
}

/* One run goes ahead; then as many as were asked for lie between two events. */
TEST(runs_are_timed_by_the_device)
{
    enum { RUNS = 7, COMMAND_NS = 1000 };
    struct graph *g = gpu_small_net();
    struct exe_options options = gpu_options(gpu_name());
    struct exe *exe = compiled(g, &options);
    long before = gpu_live();
    host_gpu()->clock(COMMAND_NS);
    double one_ns = exe_time_runs(exe, 1);
    assert_true(one_ns >= COMMAND_NS * exe_step_count(exe));
    host_gpu()->script("graph_launch", 0, 0);
    assert_true(fabs(exe_time_runs(exe, RUNS) - one_ns) < 1e-5 * one_ns); /* ms in a float */
    assert_int_equal(host_gpu()->calls(), RUNS + 1);
    host_gpu()->clock(0);
    assert_int_equal(exe_status(exe, NULL), STATUS_OK);
    assert_int_equal(gpu_live(), before);
    exe_free(exe);
    options.device = NULL;
    exe = compiled(g, &options);
    assert_true(exe_time_runs(exe, 2) > 0);
    exe_graph_free(exe, g);
}

/* Median time of exe_run (ns) while the device does nothing. */
static double dry_run_ns(const struct graph *g, int steps)
{
    enum { RUNS = 1001 };
    static double times[RUNS];
    struct exe_options options = gpu_options(gpu_name());
    options.no_fuse = true;
    struct exe *exe = compiled(g, &options);
    assert_null(exe_not_captured(exe));
    assert_int_equal(exe_step_count(exe), steps);
    host_gpu()->dry(1);
    for (int k = 0; k < RUNS; k++) {
        uint64_t start = clock_now_ns();
        exe_run(exe);
        times[k] = (double)(clock_now_ns() - start);
    }
    host_gpu()->dry(0);
    assert_int_equal(exe_status(exe, NULL), STATUS_OK);
    exe_free(exe);
    stats_sort(times, RUNS);
    return times[RUNS / 2];
}

/* Ridge's own part of a replay, beside what the runtime's two calls take: below 10 us, for one node
 * and for hundreds. The made runtime's calls are in it. */
TEST(a_replay_costs_the_host_little)
{
    static const int sizes[] = {1, 300};
    for (int k = 0; k < ARRAY_COUNT(sizes); k++) {
        struct graph *g = graph_new("chain");
        int x = noise_input(g, "x", shape_of(4));
        for (int node = 0; node < sizes[k]; node++)
            x = unary(g, "Sigmoid", x);
        graph_output(g, x);
        double ns = dry_run_ns(g, sizes[k]);
        print_message("%d nodes: %.0f ns per run\n", sizes[k], ns);
        assert_true(ns < 10e3);
        graph_free(g);
    }
}

/* ---- the program ---- */

/* Every activation in place, in groups of four and one by one; what lies after it stays. */
static void check_activation(const struct device *device, enum function act, enum dtype type,
                             int64_t count)
{
    enum { MOST = 1100 };
    struct post post = {.kind = POST_ACT, .act = act, .a = 0.25f, .b = 0.5f};
    float x[MOST], y[MOST];
    char memory[MOST * sizeof(float)];
    void *there;
    size_t bytes = (size_t)(count + 1) * dtype_size(type);
    for (int64_t k = 0; k <= count; k++)
        x[k] = (float)(k % 41 - 20) * 0.3f;
    floats_store(type, x, memory, count + 1);
    floats_load(type, memory, x, count + 1); /* as they were rounded */
    MUST(device_upload, device, memory, bytes, &there);
    MUST(device->kind->activate, device, &post, type, there, count, NULL);
    MUST(device->kind->copy, device, memory, there, bytes, COPY_TO_HOST, NULL);
    MUST(device->kind->wait, device, NULL);
    device->kind->free(device, there);
    floats_load(type, memory, y, count + 1);
    double bound = type == DTYPE_F32 ? 1e-6 : type == DTYPE_F16 ? 1e-3 : 8e-3;
    for (int64_t k = 0; k < count; k++) {
        double expected = function_value(act, (double)post.a, (double)post.b, (double)x[k], 0);
        if (!(fabs((double)y[k] - expected) <= bound * (1 + fabs(expected))))
            fail_msg("act %d of %s, %lld of %lld: %g -> %g, not %g", (int)act, dtype_name(type),
                     (long long)k, (long long)count, (double)x[k], (double)y[k], expected);
    }
    assert_true(y[count] == x[count]);
}

TEST(a_device_activates)
{
    static const enum dtype types[] = {DTYPE_F32, DTYPE_F16, DTYPE_BF16};
    static const int64_t counts[] = {1024, 1027, 1};
    struct device device;
    MUST(device_open, gpu_name(), &device);
    MUST(device.kind->bind, &device);
    for (int act = 0; act < FN_COUNT; act++) {
        if (!function_info((enum function)act)->activation)
            continue;
        for (int t = 0; t < ARRAY_COUNT(types); t++)
            for (int c = 0; c < ARRAY_COUNT(counts); c++)
                check_activation(&device, (enum function)act, types[t], counts[c]);
    }
    device_close(&device);
}

enum mask_kind { NO_MASK, SOME_KEYS, NO_KEYS, MASK_KINDS };

/* [1, 2, 3, keys] in place; a mask that is the same for both heads, and leaves the second query no
 * key where that shall give zeros. What lies after it stays. */
static void check_scores(const struct device *device, int64_t keys, enum mask_kind kind)
{
    enum { HEADS = 2, QUERIES = 3, ROWS = HEADS * QUERIES, MOST = 1100 };
    float x[ROWS * MOST + 1], y[ROWS * MOST + 1], mask[QUERIES * MOST];
    int64_t count = ROWS * keys;
    size_t bytes = (size_t)(count + 1) * sizeof(float);
    void *there, *mask_there;
    for (int64_t k = 0; k <= count; k++)
        x[k] = (float)(k * 7 % 41 - 20) * 0.3f;
    for (int64_t k = 0; k < QUERIES * keys; k++)
        mask[k] = k % 5 == 3 || (kind == NO_KEYS && k / keys == 1) ? -INFINITY : (float)(k % 3);
    bool masked = kind != NO_MASK;
    MUST(device_upload, device, x, bytes, &there);
    MUST(device_upload, device, mask, (size_t)(QUERIES * keys) * sizeof(float), &mask_there);
    struct device_softmax s = {.x = there,
                               .mask = masked ? mask_there : NULL,
                               .batch = 1,
                               .heads = HEADS,
                               .queries = QUERIES,
                               .keys = keys,
                               .mask_at = {0, 0, keys, 1},
                               .zero_empty = kind == NO_KEYS};
    MUST(device->kind->softmax, device, &s, NULL);
    MUST(device->kind->copy, device, y, there, bytes, COPY_TO_HOST, NULL);
    MUST(device->kind->wait, device, NULL);
    device->kind->free(device, there);
    device->kind->free(device, mask_there);
    for (int64_t row = 0; row < ROWS; row++) {
        const float *added = mask + row % QUERIES * keys;
        double sum = 0;
        for (int64_t k = 0; k < keys; k++)
            sum += exp((double)x[row * keys + k] + (masked ? (double)added[k] : 0));
        for (int64_t k = 0; k < keys; k++) {
            int64_t at = row * keys + k;
            double expected = exp((double)x[at] + (masked ? (double)added[k] : 0));
            expected = kind == NO_KEYS && sum == 0 ? 0 : expected / sum;
            if (!(fabs((double)y[at] - expected) <= 1e-6))
                fail_msg("%lld keys, row %lld, key %lld: %g, not %g", (long long)keys,
                         (long long)row, (long long)k, (double)y[at], expected);
        }
    }
    assert_true(y[count] == x[count]);
}

/* Rows that stay in registers, the longest of them, and longer ones. */
TEST(a_device_takes_the_softmax_of_scores)
{
    static const int64_t keys[] = {1, 7, 384, 512, 513, 1100};
    struct device device;
    MUST(device_open, gpu_name(), &device);
    MUST(device.kind->bind, &device);
    for (int k = 0; k < ARRAY_COUNT(keys); k++)
        for (enum mask_kind kind = NO_MASK; kind < MASK_KINDS; kind++)
            check_scores(&device, keys[k], kind);
    device_close(&device);
}

/* By the plan of memory for steps alone, where branches share much of it, and by that for branches.
 * The host's runtime replays the latest first of all that may be next, so that what is not ordered
 * comes too early; on a real device that is a race. */
TEST(any_network_computes_the_same_side_by_side)
{
    enum { COMMAND_NS = 1000000 }; /* long enough for branches to be faster side by side */
    int forked = 0;
    if (host_gpu()->clock)
        host_gpu()->clock(COMMAND_NS);
    for (unsigned seed = 1; seed <= 24; seed++) {
        struct exe_options options = gpu_unfused(false), tuned = gpu_unfused(true);
        struct exe *plain = compiled_owned(gpu_any_net(seed), &options);
        struct exe *by_steps = compiled_owned(gpu_any_net(seed), &options);
        assert_int_equal(lanes_open(by_steps, NULL), STATUS_OK);
        assert_int_equal(exe_use_branches(by_steps, true, NULL), STATUS_OK);
        assert_null(exe_not_captured(by_steps));
        assert_same_outputs(by_steps, plain);
        exe_free(by_steps);
        if (seed <= 3 && host_gpu()->clock) {
            struct exe *by_levels = compiled_owned(gpu_any_net(seed), &tuned);
            forked += lanes_count(by_levels) > 1;
            assert_int_equal(exe_use_branches(by_levels, true, NULL), STATUS_OK);
            assert_null(exe_not_captured(by_levels));
            assert_same_outputs(by_levels, plain);
            exe_free(by_levels);
        }
        exe_free(plain);
    }
    assert_true(forked > 0 || !host_gpu()->clock);
    if (host_gpu()->clock)
        host_gpu()->clock(0);
}

/* On a real device nothing can be scripted. */
static int test_real(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(everything_there_is_captured),
        cmocka_unit_test(changed_inputs_are_uploaded),
        cmocka_unit_test(runs_in_a_row_give_the_last_result),
        cmocka_unit_test(states_stay_there),
        cmocka_unit_test(the_host_computes_what_no_kernel_takes),
        cmocka_unit_test(the_tuner_times_on_the_device),
        cmocka_unit_test(steps_have_times),
        cmocka_unit_test(a_device_activates),
        cmocka_unit_test(a_device_takes_the_softmax_of_scores),
        cmocka_unit_test(any_network_computes_the_same_side_by_side),
    };
    plugins_load("cuda");
    return cmocka_run_group_tests(tests, NULL, NULL);
}

static int start(int argc, char **argv)
{
    if (getenv("RIDGE_TEST_GPU"))
        exit(test_real());
    return host_gpu_start(argc, argv);
}

const struct unit_fixture unit_fixture = {.start = start};
