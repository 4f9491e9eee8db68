/* SPDX-License-Identifier: Apache-2.0
 * Devices: the CPU's table, and executables on the device "cuda" of the plug-in whose runtime is
 * the host (tests/gpu/host/): nothing here needs a GPU. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/device.h"
#include "engine/exe.h"
#include "engine/op.h"
#include "engine/plugin.h"
#include "workloads/lib/layers.h"

enum { SKIPPED = 77, LAUNCH_FAILED = 719, NO_MEMORY = 2 };

static struct {
    void (*script)(const char *call, int at, int error);
    int (*calls)(void);
    long (*live)(void);
} host;

static struct fill noise(void)
{
    return (struct fill){.kind = FILL_UNIFORM, .a = -1, .b = 1};
}

/* RIDGE_TEST_GPU=cuda: that device of the real plug-in, instead of the host's. */
static const char *gpu(void)
{
    const char *real = getenv("RIDGE_TEST_GPU");
    return real ? real : "cuda";
}

static long live(void)
{
    return host.live ? host.live() : 0;
}

static struct exe_options on(const char *device)
{
    return (struct exe_options){
        .threads = 1, .isa = isa_detect(), .no_tune = true, .only_variant = NONE, .device = device};
}

/* Every node has an own kernel. */
static struct graph *small_net(void)
{
    struct graph *g = graph_new("small");
    int x = graph_input(g, "x", DTYPE_F32, shape_of(2, 3, 9, 9), noise());
    x = relu(g, conv2d(g, x, .name = "conv", .out = 8, .kernel = 3, .pad = 1));
    x = flatten(g, global_average_pool(g, x));
    x = dense(g, x, "dense", 10);
    graph_output(g, softmax(g, x, -1));
    return g;
}

/* Asinh has none: the host computes it, in the middle and at the end. */
static struct graph *mixed_net(void)
{
    struct graph *g = graph_new("mixed");
    int x = graph_input(g, "x", DTYPE_F32, shape_of(4, 32), noise());
    int a = unary(g, "Asinh", dense(g, x, "first", 24));
    int b = dense(g, a, "second", 24);
    graph_output(g, softmax(g, add(g, a, b), -1));
    graph_output(g, unary(g, "Asinh", b));
    graph_output(g, unary(g, "Asinh", x));
    return g;
}

static struct exe *compiled(const struct graph *g, const struct exe_options *options)
{
    struct error err = {0};
    struct exe *exe = NULL;
    if (exe_new(g, options, &exe, &err) != STATUS_OK)
        fail_msg("%s", err.message);
    return exe;
}

/* Against the reference, with the inputs that the executable has now. */
static double error_of(struct exe *exe, const struct graph *g)
{
    struct error err = {0};
    struct ref_tensor inputs[2] = {{0}}, expected[4] = {{0}};
    double worst = 0;
    for (int k = 0; k < g->input_count; k++) {
        const struct value *v = &g->values[g->inputs[k]];
        assert_int_equal(ref_from_data(&inputs[k], v->dtype, &v->shape, exe_input(exe, k), &err),
                         STATUS_OK);
    }
    assert_int_equal(reference_run(g, inputs, expected, NULL, &err), STATUS_OK);
    exe_run(exe);
    assert_int_equal(exe_status(exe, &err), STATUS_OK);
    for (int k = 0; k < g->output_count; k++) {
        const struct value *v = &g->values[g->outputs[k]];
        struct ref_tensor got;
        assert_int_equal(ref_from_data(&got, v->dtype, &v->shape, exe_output(exe, k), &err),
                         STATUS_OK);
        double error = ref_rel_error(&got, &expected[k]);
        worst = error > worst ? error : worst;
        ref_release(&got);
        ref_release(&expected[k]);
    }
    for (int k = 0; k < g->input_count; k++)
        ref_release(&inputs[k]);
    return worst;
}

static const char *why_not(const char *device)
{
    static struct error err;
    struct device opened;
    assert_int_equal(device_open(device, &opened, &err), STATUS_UNSUPPORTED);
    assert_null(opened.kind);
    return err.message;
}

#define SAYS(text, part)                                                                           \
    do {                                                                                           \
        const char *text_ = (text);                                                                \
        if (!strstr(text_, part))                                                                  \
            fail_msg("\"%s\" does not say \"%s\"", text_, part);                                   \
    } while (0)

/* ---- names and machines ---- */

static void names_are_parsed(void **state)
{
    (void)state;
    char kind[32];
    int index;
    struct error err;
    assert_int_equal(device_parse("cuda", kind, &index, &err), STATUS_OK);
    assert_string_equal(kind, "cuda");
    assert_int_equal(index, 0);
    assert_int_equal(device_parse("cuda:3", kind, &index, &err), STATUS_OK);
    assert_int_equal(index, 3);
    const char *const wrong[] = {"", ":1", "cuda:", "cuda:x", "cuda:1x", "cuda:-1", "cuda:99999"};
    for (size_t k = 0; k < sizeof(wrong) / sizeof(wrong[0]); k++) {
        assert_int_equal(device_parse(wrong[k], kind, &index, &err), STATUS_FAILED);
        SAYS(err.message, "is no device");
    }
}

static void the_cpu_is_a_device(void **state)
{
    (void)state;
    struct error err;
    struct device device;
    void *memory, *from, *to;
    double ns = -1;
    assert_int_equal(device_open(NULL, &device, &err), STATUS_OK);
    const struct device_kind *kind = device.kind;
    assert_true(kind->is_host);
    assert_string_equal(kind->name, "cpu");
    assert_int_equal(device_upload(&device, "hello", 6, &memory, &err), STATUS_OK);
    assert_string_equal(memory, "hello");
    kind->free(&device, memory);
    assert_int_equal(kind->event_new(&device, &from, &err), STATUS_OK);
    assert_int_equal(kind->event_new(&device, &to, &err), STATUS_OK);
    kind->event_record(&device, from, NULL, &err);
    kind->event_record(&device, to, NULL, &err);
    assert_int_equal(kind->event_elapsed(&device, from, to, &ns, &err), STATUS_OK);
    assert_true(ns >= 0);
    kind->event_free(&device, from);
    kind->event_free(&device, to);
    device_close(&device);
}

static void causes_are_told_apart(void **state)
{
    (void)state;
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

static void properties_are_read(void **state)
{
    (void)state;
    struct error err;
    struct device device;
    assert_int_equal(device_open("cuda:1", &device, &err), STATUS_OK);
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

static void everything_there_is_captured(void **state)
{
    (void)state;
    struct graph *g = small_net();
    struct exe_options options = on(gpu());
    long before = live();
    struct exe *exe = compiled(g, &options);
    assert_null(exe_not_captured(exe));
    assert_string_equal(exe_device(exe)->kind->name, "cuda");
    for (int s = 0; s < exe_step_count(exe); s++)
        assert_string_equal(exe_step_at(exe, s).kernel->device, "cuda");
    assert_true(error_of(exe, g) <= 1e-4);
    exe_free(exe);
    graph_free(g);
    assert_int_equal(live(), before);
}

static void changed_inputs_are_uploaded(void **state)
{
    (void)state;
    struct graph *g = small_net();
    struct exe_options options = on(host.live ? "cuda:1" : gpu());
    struct exe *exe = compiled(g, &options);
    for (int round = 0; round < 3; round++) {
        float *x = exe_input(exe, 0);
        for (int k = 0; k < 2 * 3 * 9 * 9; k++)
            x[k] = (float)((k * 7 + round * 3) % 11) - 5;
        assert_true(error_of(exe, g) <= 1e-4);
    }
    exe_free(exe);
    graph_free(g);
}

static void runs_in_a_row_give_the_last_result(void **state)
{
    (void)state;
    struct graph *g = small_net();
    struct exe_options options = on(gpu());
    struct exe *exe = compiled(g, &options);
    for (int k = 0; k < 3; k++)
        exe_start(exe);
    exe_wait(exe);
    assert_true(error_of(exe, g) <= 1e-4);
    exe_free(exe);
    graph_free(g);
}

static void the_host_computes_what_no_kernel_takes(void **state)
{
    (void)state;
    struct graph *g = mixed_net();
    struct exe_options options = on(gpu());
    long before = live();
    int on_host = 0;
    struct exe *exe = compiled(g, &options);
    for (int s = 0; s < exe_step_count(exe); s++) {
        const char *device = exe_step_at(exe, s).kernel->device;
        on_host += !device || strcmp(device, "cuda") != 0;
    }
    assert_int_equal(on_host, 3);
    SAYS(exe_not_captured(exe), "3 of ");
    assert_true(error_of(exe, g) <= 1e-4);
    float *x = exe_input(exe, 0);
    for (int k = 0; k < 4 * 32; k++)
        x[k] = (float)(k % 5) - 2;
    assert_true(error_of(exe, g) <= 1e-4);
    exe_free(exe);
    options.keep_values = true;
    exe = compiled(g, &options);
    assert_true(error_of(exe, g) <= 1e-4);
    exe_free(exe);
    graph_free(g);
    assert_int_equal(live(), before);
}

static void the_tuner_times_on_the_device(void **state)
{
    (void)state;
    struct graph *g = mixed_net();
    struct exe_options options = on(gpu());
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
    assert_true(error_of(exe, g) <= 1e-4);
    exe_free(exe);
    graph_free(g);
}

static void steps_have_times(void **state)
{
    (void)state;
    double times[16] = {0};
    struct graph *g = mixed_net();
    struct exe_options options = on(gpu());
    struct exe *exe = compiled(g, &options);
    exe_time_steps(exe, 3, times);
    for (int s = 0; s < exe_step_count(exe); s++)
        assert_true(times[s] > 0);
    assert_int_equal(exe_status(exe, NULL), STATUS_OK);
    exe_free(exe);
    graph_free(g);
}

/* A run is one launch of a graph and one wait; it allocates nothing on the device. */
static void a_run_is_a_replay(void **state)
{
    (void)state;
    static const char *const calls[] = {"graph_launch", "stream_synchronize", "launch",
                                        "malloc",       "malloc_host",        "copy"};
    static const int expected[] = {5, 5, 0, 0, 0, 0};
    struct graph *g = small_net();
    struct exe_options options = on(gpu());
    struct exe *exe = compiled(g, &options);
    for (size_t k = 0; k < sizeof(calls) / sizeof(calls[0]); k++) {
        host.script(calls[k], 0, 0);
        for (int run = 0; run < 5; run++)
            exe_run(exe);
        assert_int_equal(host.calls(), expected[k]);
    }
    exe_free(exe);
    graph_free(g);
}

static void memory_that_is_short_names_the_plan(void **state)
{
    (void)state;
    struct error err = {0};
    struct graph *g = small_net();
    struct exe_options options = on(gpu());
    struct exe *exe = NULL;
    long before = host.live();
    host.script("malloc", 2, NO_MEMORY); /* 1: the convolution's packed weights */
    assert_int_equal(exe_new(g, &options, &exe, &err), STATUS_NO_MEMORY);
    SAYS(err.message, "the plan needs ");
    SAYS(err.message, "out of memory on GPU 0: asked for ");
    SAYS(err.message, "smaller --batch");
    host.script("", 0, 0);
    assert_int_equal(host.live(), before);
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
    "set",
    "event_create",
    "event_destroy",
    "event_record",
    "event_elapsed",
    "capture_begin",
    "capture_end",
    "graph_instantiate",
    "graph_launch",
    "graph_exec_destroy",
    "graph_destroy",
    "launch",
    "allow_shared",
};

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
    exe_time_steps(exe, 2, times);
    for (int k = 0; k < g->output_count; k++)
        assert_non_null(exe_output(exe, k));
    status = exe_status(exe, err);
    exe_free(exe);
    return status;
}

/* Returns how often the call was used; fails the at-th use. */
static int fail_once(const struct graph *g, const struct exe_options *options, const char *call,
                     int at, int *failed)
{
    struct error err = {0};
    long before = host.live();
    host.script(call, at, LAUNCH_FAILED);
    enum status status = whole_life(g, options, &err);
    int calls = host.calls();
    host.script("", 0, 0);
    if (host.live() != before)
        fail_msg("%s failed at use %d: %ld things were not given back", call, at,
                 host.live() - before);
    if (status != STATUS_OK) {
        SAYS(err.message, "unspecified launch failure (cudaErrorLaunchFailure)");
        (*failed)++;
    }
    return calls;
}

static void fail_everywhere(const struct graph *g, const struct exe_options *options)
{
    int failed = 0;
    for (size_t c = 0; c < sizeof(all_calls) / sizeof(all_calls[0]); c++) {
        int calls = fail_once(g, options, all_calls[c], 0, &failed);
        assert_int_equal(failed, 0);
        for (int at = 1; at <= calls; at++)
            fail_once(g, options, all_calls[c], at, &failed);
        failed = 0;
    }
}

static void no_failing_call_crashes_or_leaks(void **state)
{
    (void)state;
    struct exe_options options = on(gpu());
    struct graph *small = small_net(), *mixed = mixed_net();
    fail_everywhere(small, &options);
    fail_everywhere(mixed, &options);
    options.no_capture = true;
    fail_everywhere(small, &options);
    graph_free(small);
    graph_free(mixed);
}

/* Candidates that fail are refused; where all do, the host computes the node. */
static void failures_while_tuning_are_borne(void **state)
{
    (void)state;
    struct exe_options options = on(gpu());
    options.no_tune = false;
    struct graph *g = graph_new("one");
    graph_output(g, relu(g, graph_input(g, "x", DTYPE_F32, shape_of(3, 5), noise())));
    fail_everywhere(g, &options);
    graph_free(g);
}

/* What fails in a run is told once, with the node, and later runs do nothing. */
static void a_refused_launch_names_its_node(void **state)
{
    (void)state;
    struct error err = {0};
    struct graph *g = small_net();
    struct exe_options options = on(gpu());
    options.no_capture = true;
    struct exe *exe = compiled(g, &options);
    SAYS(exe_not_captured(exe), "switched off");
    host.script("launch", 2, LAUNCH_FAILED);
    exe_run(exe);
    assert_int_equal(exe_status(exe, &err), STATUS_FAILED);
    SAYS(err.message, "node \"");
    SAYS(err.message, "kernel cuda_");
    SAYS(err.message, "launching ");
    host.script("launch", 0, 0);
    exe_run(exe);
    assert_int_equal(host.calls(), 0);
    exe_free(exe);
    graph_free(g);
}

/* ---- the program ---- */

static void *symbol(void *library, const char *name)
{
    void *found = dlsym(library, name);
    if (!found) {
        fprintf(stderr, "%s\n", dlerror());
        exit(1);
    }
    return found;
}

/* BUILD/tests/unit/test_device finds BUILD/tests/gpu/host/plugins. */
static void load_host_plugin(const char *program)
{
    char folder[4096], path[4200];
    const char *slash = strrchr(program, '/');
    snprintf(folder, sizeof(folder), "%.*s/../gpu/host/plugins", slash ? (int)(slash - program) : 1,
             slash ? program : ".");
    snprintf(path, sizeof(path), "%s/cuda.so", folder);
    if (access(path, R_OK) != 0) {
        printf("skipped: the plug-in over the host is not built under sanitizers\n");
        exit(SKIPPED);
    }
    setenv("RIDGE_PLUGIN_PATH", folder, 1);
    plugins_load("cuda");
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    void *fail = symbol(library, "api_fail"), *calls = symbol(library, "api_calls");
    void *live = symbol(library, "api_live");
    memcpy(&host.script, &fail, sizeof(fail));
    memcpy(&host.calls, &calls, sizeof(calls));
    memcpy(&host.live, &live, sizeof(live));
}

/* On a real device nothing can be scripted. */
static int test_real(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(everything_there_is_captured),
        cmocka_unit_test(changed_inputs_are_uploaded),
        cmocka_unit_test(runs_in_a_row_give_the_last_result),
        cmocka_unit_test(the_host_computes_what_no_kernel_takes),
        cmocka_unit_test(the_tuner_times_on_the_device),
        cmocka_unit_test(steps_have_times),
    };
    plugins_load("cuda");
    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_are_parsed),
        cmocka_unit_test(the_cpu_is_a_device),
        cmocka_unit_test(causes_are_told_apart),
        cmocka_unit_test(properties_are_read),
        cmocka_unit_test(everything_there_is_captured),
        cmocka_unit_test(changed_inputs_are_uploaded),
        cmocka_unit_test(runs_in_a_row_give_the_last_result),
        cmocka_unit_test(the_host_computes_what_no_kernel_takes),
        cmocka_unit_test(the_tuner_times_on_the_device),
        cmocka_unit_test(steps_have_times),
        cmocka_unit_test(a_run_is_a_replay),
        cmocka_unit_test(memory_that_is_short_names_the_plan),
        cmocka_unit_test(a_refused_launch_names_its_node),
        cmocka_unit_test(no_failing_call_crashes_or_leaks),
        cmocka_unit_test(failures_while_tuning_are_borne),
    };
    (void)argc;
    if (getenv("RIDGE_TEST_GPU"))
        return test_real();
    load_host_plugin(argv[0]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
