/* SPDX-License-Identifier: Apache-2.0
 * A device that is gone for the process, as after a kernel that wrote where it must not: who lost
 * it is told, and nothing else is asked of it. All of it on the host's runtime (tests/gpu/host/).
 */

#include <string.h>

#include "engine/compile/compile.h"
#include "engine/run/exe.h"
#include "tests/lib/host_gpu.h"
#include "tests/lib/noise.h"
#include "tests/lib/unit.h"
#include "tests/lib/unit/files.h"
#include "tests/lib/unit/graphs.h"
#include "workloads/lib/layers.h"

enum { ILLEGAL_ADDRESS = 700, INVALID_VALUE = 1, COMMAND_NS = 1000000 };

/* One product, which two kernels of the device compute, one of them in two sizes of tile. */
static struct graph *product(void)
{
    struct graph *g = graph_new("one");
    int x = noise_input(g, "x", shape_of(16, 32));
    graph_output(g, dense(g, x, "gemm", 24));
    return g;
}

static struct exe_options tuned(const char *cache)
{
    struct exe_options options = gpu_options(gpu_name());
    options.no_tune = false;
    options.cache = cache;
    options.precision = PRECISION_TF32;
    return options;
}

static int heal(void **state)
{
    (void)state;
    host_gpu()->lose("", 0, 0);
    host_gpu()->script("", 0, 0);
    host_gpu()->clock(0);
    return 0;
}

/* ---- which errors ---- */

static enum status opened_with(int error)
{
    struct error err = {0};
    struct device device;
    host_gpu()->script("set_device", 1, error);
    enum status status = device_open("cuda", &device, &err);
    host_gpu()->script("", 0, 0);
    if (status == STATUS_OK)
        device_close(&device);
    return status;
}

TEST(errors_that_spoil_the_context_are_told_apart)
{
    static const int lost[] = {214, 220, 700, 702, 709, 710, 714, 715, 716, 717, 718, 719, 999};
    static const int refused[] = {1, 3, 9, 98, 200, 209, 400, 600, 701, 720, 801, 802, 900, 901};
    for (int k = 0; k < ARRAY_COUNT(lost); k++)
        assert_int_equal(opened_with(lost[k]), STATUS_LOST);
    for (int k = 0; k < ARRAY_COUNT(refused); k++)
        assert_int_equal(opened_with(refused[k]), STATUS_FAILED);
    assert_int_equal(opened_with(2), STATUS_NO_MEMORY);
    assert_int_equal(opened_with(0), STATUS_OK);
}

/* A library says of such a failure what it likes; the device is asked. */
TEST(a_device_says_that_a_librarys_failure_lost_it)
{
    struct device device;
    struct error why = {.code = STATUS_FAILED, .message = "EXECUTION_FAILED"};
    MUST(device_open, "cuda", &device);
    assert_int_equal(device_blame(&device, NULL, &why), STATUS_FAILED);
    assert_string_equal(why.message, "EXECUTION_FAILED");
    host_gpu()->lose("stream_query", 1, ILLEGAL_ADDRESS);
    assert_int_equal(device_blame(&device, NULL, &why), STATUS_LOST);
    SAYS(why.message, "EXECUTION_FAILED; ");
    SAYS(why.message, "cudaErrorIllegalAddress");
    why = (struct error){0};
    assert_int_equal(device_blame(&device, NULL, &why), STATUS_OK);
    device_close(&device);
}

/* ---- tuning ---- */

static enum status tune(const struct graph *g, const char *cache, struct error *err)
{
    struct exe_options options = tuned(cache);
    struct exe *exe = NULL;
    enum status status = exe_new(g, &options, &exe, err);
    exe_free(exe);
    return status;
}

/* How many launches a trial of the product takes by the made clock. */
static int launches_of(const struct graph *g)
{
    host_gpu()->clock(COMMAND_NS);
    host_gpu()->script("launch", 0, 0);
    MUST(tune, g, NULL);
    return host_gpu()->calls();
}

TEST(whoever_loses_the_device_is_named_and_the_last)
{
    struct graph *g = product();
    int launches = launches_of(g), first = 0, second = 0;
    long before = host_gpu()->live();
    assert_true(launches >= 9); /* three candidates are run, timed and captured */
    for (int at = 1; at < launches; at++) {
        struct error err = {0};
        host_gpu()->lose("launch", at, ILLEGAL_ADDRESS);
        host_gpu()->script("launch", 0, 0);
        assert_int_equal(tune(g, NULL, &err), STATUS_LOST);
        SAYS(err.message, "cudaErrorIllegalAddress");
        if (strstr(err.message, " on trial: "))
            SAYS(err.message, "node \"gemm\"");
        first += strstr(err.message, "device lost with cuda_matmul, variant ") != NULL;
        second += strstr(err.message, "device lost with cuda_matmul_tensor, variant ") != NULL;
        assert_int_equal(host_gpu()->live(), before);
        host_gpu()->lose("", 0, 0);
    }
    assert_true(first > 0 && second > 0);
    graph_free(g);
}

/* Calls that put work into the device after it was lost: none but those that end what was begun. */
TEST(nobody_is_tried_on_a_lost_device)
{
    static const char *const calls[] = {"launch", "malloc", "stream_create", "capture_begin"};
    struct graph *g = product();
    struct error err = {0};
    launches_of(g);
    for (int k = 0; k < ARRAY_COUNT(calls); k++) {
        host_gpu()->lose("launch", 1, ILLEGAL_ADDRESS);
        host_gpu()->script(calls[k], 0, 0);
        assert_int_equal(tune(g, NULL, &err), STATUS_LOST);
        int lost_at_once = host_gpu()->calls();
        host_gpu()->lose("", 0, 0);
        host_gpu()->script(calls[k], 0, 0);
        MUST(tune, g, NULL);
        assert_true(lost_at_once * 3 <= host_gpu()->calls() || lost_at_once <= 5);
    }
    graph_free(g);
}

TEST(the_loser_is_not_tried_by_the_next_process)
{
    assert_int_equal(test_file_open(state), 0);
    struct graph *g = product();
    launches_of(g);
    host_gpu()->lose("launch", 1, ILLEGAL_ADDRESS);
    FAILS(STATUS_LOST, "device lost with cuda_matmul, variant 0", tune, g, test_file);
    host_gpu()->lose("", 0, 0);
    struct exe_options options = tuned(test_file);
    struct exe *exe = NULL;
    for (int round = 0; round < 2; round++) { /* tuned, and as the cache knows it */
        MUST(exe_new, g, &options, &exe);
        struct exe_step step = exe_step_at(exe, 0);
        SAYS(step.candidates[0].reason, "lost the device");
        assert_string_equal(step.candidates[0].kernel->name, "cuda_matmul");
        assert_string_equal(step.candidates[1].reason, "");
        exe_free(exe);
    }
    options.retune = true;
    MUST(exe_new, g, &options, &exe);
    assert_string_equal(exe_step_at(exe, 0).candidates[0].reason, "");
    exe_graph_free(exe, g);
    test_file_remove(state);
}

/* ---- running ---- */

TEST(a_run_tells_that_its_device_is_lost)
{
    struct graph *g = gpu_small_net();
    long before = host_gpu()->live();
    for (int captured = 0; captured <= 1; captured++) {
        struct exe_options options = gpu_options(gpu_name());
        struct exe *exe = NULL;
        options.no_capture = !captured;
        MUST(exe_new, g, &options, &exe);
        host_gpu()->lose(captured ? "graph_launch" : "launch", 1, ILLEGAL_ADDRESS);
        exe_run(exe);
        FAILS(STATUS_LOST, "cudaErrorIllegalAddress", exe_status, exe);
        exe_free(exe);
        host_gpu()->lose("", 0, 0);
        assert_int_equal(host_gpu()->live(), before);
    }
    graph_free(g);
}

TEST(another_device_goes_on)
{
    struct graph *g = gpu_small_net();
    struct error err = {0};
    struct exe_options options = gpu_options("cuda");
    struct exe *exe = NULL;
    host_gpu()->lose("launch", 1, ILLEGAL_ADDRESS);
    assert_int_equal(exe_new(g, &options, &exe, &err), STATUS_LOST);
    assert_int_equal(exe_new(g, &options, &exe, &err), STATUS_LOST);
    options.device = "cuda:1";
    MUST(exe_new, g, &options, &exe);
    exe_run(exe);
    MUST(exe_status, exe);
    exe_graph_free(exe, g);
}

const struct unit_fixture unit_fixture = {
    .start = host_gpu_start, .before_each = heal, .after_each = heal};
