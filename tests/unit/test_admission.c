/* SPDX-License-Identifier: Apache-2.0
 * What a graph needs of memory, what is free on invented machines, and what is said when the one
 * exceeds the other. */

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/compile/compile.h"
#include "harness/model/admission.h"
#include "harness/model/verify.h"
#include "harness/watch/resident.h"
#include "tests/lib/made_results.h"
#include "tests/lib/noise.h"
#include "tests/lib/unit.h"
#include "tests/lib/unit/files.h"
#include "tests/lib/unit/graphs.h"
#include "workloads/workload.h"

/* ---- what is free ---- */

static char *machine(void)
{
    char *root = made_folder();
    assert_non_null(root);
    put_file(root, "/proc/meminfo", "MemTotal: 16000000 kB\nMemAvailable: 12000000 kB\n");
    put_file(root, "/proc/self/limits",
             "Limit                     Soft Limit           Hard Limit           Units     \n"
             "Max data size             unlimited            unlimited            bytes     \n"
             "Max address space         unlimited            unlimited            bytes     \n");
    put_file(root, "/proc/self/status", "VmSize:\t  500000 kB\nVmData:\t  200000 kB\n");
    return root;
}

static void expect_room(char *root, double bytes, const char *where, bool is_address)
{
    struct free_memory room = free_memory_find(root);
    assert_true(room.bytes == bytes);
    assert_non_null(strstr(room.where, where));
    assert_int_equal(room.is_address, is_address);
    made_folder_remove(root);
}

TEST(a_machine_alone)
{
    expect_room(machine(), 12e6 * 1024, "on this machine", false);
}

TEST(nothing_known_is_no_limit)
{
    struct free_memory room = free_memory_find("/nowhere");
    assert_true(isinf(room.bytes));
}

/* Pages of files are given back when memory runs short: they are not in use. */
TEST(group_version_2)
{
    char *root = machine();
    put_file(root, "/proc/self/cgroup", "0::/job/task\n");
    put_file(root, "/sys/fs/cgroup/job/task/memory.max", "1500000000\n");
    put_file(root, "/sys/fs/cgroup/job/task/memory.high", "max\n");
    put_file(root, "/sys/fs/cgroup/job/task/memory.current", "900000000\n");
    put_file(root, "/sys/fs/cgroup/job/task/memory.stat",
             "anon 100\nfile 700000000\ninactive_file 500000000\nactive_file 200000000\n"
             "slab_reclaimable 50000000\n");
    expect_room(root, 1500000000 - 900000000 + 750000000, "in this control group of 1.5 GB", false);
}

TEST(the_group_above_may_be_fuller)
{
    char *root = machine();
    put_file(root, "/proc/self/cgroup", "0::/job/task\n");
    put_file(root, "/sys/fs/cgroup/job/task/memory.max", "1500000000\n");
    put_file(root, "/sys/fs/cgroup/job/task/memory.current", "100000000\n");
    put_file(root, "/sys/fs/cgroup/job/memory.max", "2000000000\n");
    put_file(root, "/sys/fs/cgroup/job/memory.current", "1900000000\n");
    expect_room(root, 100000000, "in this control group of 2 GB", false);
}

TEST(group_version_1)
{
    char *root = machine();
    put_file(root, "/proc/self/cgroup", "5:cpu:/\n4:memory:/job\n0::/\n");
    put_file(root, "/sys/fs/cgroup/memory/job/memory.limit_in_bytes", "1500000000\n");
    put_file(root, "/sys/fs/cgroup/memory/job/memory.usage_in_bytes", "400000000\n");
    put_file(root, "/sys/fs/cgroup/memory/job/memory.stat",
             "inactive_file 1\ntotal_inactive_file 300000000\ntotal_active_file 50000000\n");
    put_file(root, "/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
    put_file(root, "/sys/fs/cgroup/memory/memory.usage_in_bytes", "800000000\n");
    expect_room(root, 1450000000, "in this control group of 1.5 GB", false);
}

/* In a container the path of the group is often one that cannot be seen from inside. */
TEST(a_container_shows_the_top_alone)
{
    char *root = machine();
    put_file(root, "/proc/self/cgroup", "4:memory:/docker/0123abcd\n");
    put_file(root, "/sys/fs/cgroup/memory/memory.limit_in_bytes", "1000000000\n");
    put_file(root, "/sys/fs/cgroup/memory/memory.usage_in_bytes", "400000000\n");
    expect_room(root, 600000000, "in this control group", false);
}

TEST(limits_of_the_shell)
{
    char *root = machine();
    put_file(root, "/proc/self/limits",
             "Max data size             unlimited            unlimited            bytes     \n"
             "Max address space         1024000000           unlimited            bytes     \n");
    expect_room(root, 512000000, "ulimit -v", true);
    root = machine();
    put_file(root, "/proc/self/limits",
             "Max data size             304800000            unlimited            bytes     \n"
             "Max address space         unlimited            unlimited            bytes     \n");
    expect_room(root, 100000000, "ulimit -d", true);
}

/* ---- what is needed ---- */

static struct memory_need need_of(const struct graph *g, const struct exe_options *options)
{
    struct memory_need need;
    MUST(graph_need, g, options, &need);
    return need;
}

/* x -> Relu -> Reshape -> Relu: what is renamed takes nothing, and a value goes after its use. */
TEST(a_chain_needs_two_of_its_values)
{
    struct graph *g = graph_new("chain");
    int64_t shape[] = {64, 64};
    int x = noise_input(g, "x", shape_of(4096));
    for (int k = 0; k < 6; k++)
        x = graph_node(g, "Relu", NULL, INPUTS(x), NO_ATTRS);
    x = graph_node(g, "Reshape", NULL, INPUTS(x, graph_const_i64(g, 2, shape)), NO_ATTRS);
    graph_output(g, graph_node(g, "Relu", NULL, INPUTS(x), NO_ATTRS));
    struct memory_need need = need_of(g, &(struct exe_options){.no_tune = true});
    const double one = 4096 * 4;
    assert_true(need.activations == one + 2 * one + 2 * one); /* input, values, scratch */
    assert_true(need.reference >= 2 * 2 * one && need.reference < 4 * 2 * one + 1000);
    graph_free(g);
}

static struct graph *conv3(int64_t size)
{
    struct graph *g = graph_new("conv");
    int x = noise_input(g, "x", shape_of(1, 64, size, size));
    int w = noise_param(g, "w", shape_of(64, 64, 3, 3));
    graph_output(g, graph_node(g, "Conv", NULL, INPUTS(x, w), NO_ATTRS));
    return g;
}

TEST(winograd_may_keep_four_times_the_weights)
{
    const double weights = 64 * 64 * 9 * 4;
    struct graph *g = conv3(20), *small = conv3(5);
    struct memory_need need = need_of(g, &(struct exe_options){.threads = 1});
    assert_true(need.weights == weights && need.prepared == 4 * weights);
    assert_true(need.compile > need.prepared);
    need = need_of(g, &(struct exe_options){.max_error = 1e-5}); /* --no-winograd */
    assert_true(need.prepared == weights);
    need = need_of(small, &(struct exe_options){.threads = 1});
    assert_true(need.prepared == weights);
    graph_free(g);
    graph_free(small);
}

/* A weight that is trained stands once, its update in its place; its packed form is scratch. */
TEST(states_stand_beside_activations)
{
    const double weights = 64 * 64 * 9 * 4, image = 64 * 20 * 20 * 4, result = 64 * 18 * 18 * 4;
    struct graph *g = graph_new("state");
    int x = noise_input(g, "x", shape_of(1, 64, 20, 20));
    int w = graph_state(g, "w", DTYPE_F32, shape_of(64, 64, 3, 3), noise());
    int dw = noise_input(g, "dw", shape_of(64, 64, 3, 3));
    int rate = noise_input(g, "rate", shape_scalar());
    int step = graph_input(g, "step", DTYPE_I64, shape_scalar(), (struct fill){.kind = FILL_INDEX});
    graph_output(g, graph_node(g, "Conv", NULL, INPUTS(x, w), NO_ATTRS));
    int next = graph_node(g, "Sgd", NULL, INPUTS(rate, step, NONE, w, dw), NO_ATTRS);
    graph_output(g, next);
    graph_state_after(g, w, next);
    struct memory_need need = need_of(g, &(struct exe_options){.threads = 1});
    assert_true(need.weights == 0 && need.prepared == 0);
    assert_true(need.states == weights);
    assert_true(need.activations == image + weights + 4 + 8 + result + 4 * weights);
    assert_true(need.run == need.states + need.activations);
    graph_free(g);
}

/* Of a 3x3 convolution whose images and results have as many channels. */
static struct graph *gradient3(int64_t batch, int64_t channels, int64_t size)
{
    struct graph *g = graph_new("gradient");
    struct fill noise = {.kind = FILL_UNIFORM, .a = -1, .b = 1};
    struct shape shape = shape_of(batch, channels, size, size);
    int64_t kernel[] = {3, 3}, pads[] = {1, 1, 1, 1};
    int x = graph_input(g, "x", DTYPE_F32, shape, noise);
    int dy = graph_input(g, "dy", DTYPE_F32, shape, noise);
    graph_output(
        g, graph_node(g, "ConvWeightGradient", NULL, INPUTS(x, dy),
                      ATTRS(attr_ints("kernel_shape", 2, kernel), attr_ints("pads", 4, pads))));
    return g;
}

TEST(winograd_gradients_add_up_four_times_the_weights)
{
    const double weights = 512 * 512 * 9 * 4, images = 2 * 8 * 512 * 7 * 7 * 4;
    struct graph *g = gradient3(8, 512, 7);
    struct memory_need need = need_of(g, &(struct exe_options){.threads = 2, .no_tune = true});
    assert_true(need.activations == images + weights + 4 * weights + 2.25 * images);
    need = need_of(g, &(struct exe_options){.threads = 2, .max_error = 1e-5});
    assert_true(need.activations == images + weights + images + weights);
    graph_free(g);
}

/* Candidates that take turns keep their sums all the while. */
TEST(trials_of_gradients_are_within_the_estimate)
{
    struct exe_options options = {.threads = 2, .isa = isa_detect(), .providers = "native"};
    struct graph *g = gradient3(8, 512, 7);
    struct memory_need need = need_of(g, &options);
    struct exe *exe;
    bool known = resident_reset();
    double before = resident_peak();
    MUST(exe_new, g, &options, &exe);
    exe_run(exe);
    double used = resident_peak() - before, estimate = admission_bytes(&need, false);
    print_message("# estimated %.1f MB, used %.1f MB\n", estimate * 1e-6, used * 1e-6);
    if (known && !UNIT_SANITIZED)
        assert_true(used < estimate + ADMISSION_MARGIN_BYTES);
    exe_graph_free(exe, g);
}

/* The estimate is held against what the kernel has seen of real networks. */
TEST(the_estimate_covers_what_is_used)
{
    static const struct {
        const char *spec;
        int64_t batch;
    } cases[] = {{"gemm:m=1500,n=1500,k=1500", 1}, {"densenet121", 1}, {"googlenet", 4}};
    for (int k = 0; k < ARRAY_COUNT(cases); k++) {
        struct exe_options options = {.threads = 2, .isa = isa_detect(), .quick_tune = true};
        struct verification verification;
        struct graph *g;
        struct exe *exe;
        MUST(workload_open, cases[k].spec, cases[k].batch, PRECISION_F32, &g);
        struct memory_need need = need_of(g, &options);
        bool known = resident_reset();
        double before = resident_peak();
        MUST(exe_new, g, &options, &exe);
        MUST(verify_exe, g, exe, &verification);
        double used = resident_peak() - before, estimate = admission_bytes(&need, true);
        print_message("# %s: estimated %.1f MB, used %.1f MB\n", cases[k].spec, estimate * 1e-6,
                      used * 1e-6);
        if (known && !UNIT_SANITIZED) {
            double margin = ADMISSION_MARGIN_BYTES + ADMISSION_MARGIN_SHARE * estimate;
            assert_true(used < estimate + margin);
            assert_true(estimate < 1.5 * used + ADMISSION_MARGIN_BYTES);
        }
        exe_graph_free(exe, g);
    }
}

/* ---- the judgement ---- */

TEST(the_reason_has_both_figures)
{
    const struct memory_need need = {.compile = 10e9, .run = 8e9, .reference = 22e9};
    struct free_memory room = {.bytes = 40e9, .where = "on this machine"};
    struct error err = {0};
    MUST(admission_judge, &need, true, 2, &room);
    room.bytes = 12e9;
    assert_int_equal(admission_judge(&need, true, 2, &room, &err), STATUS_UNSUPPORTED);
    assert_string_equal(err.message, "verifying needs 31.5 GB of memory, 12 GB are free on this "
                                     "machine: --no-verify measures it with 10.5 GB, or take a "
                                     "smaller batch");
    MUST(admission_judge, &need, false, 2, &room);
    room.bytes = 2e9;
    assert_int_equal(admission_judge(&need, true, 2, &room, &err), STATUS_UNSUPPORTED);
    assert_string_equal(err.message, "needs 31.5 GB of memory, 2 GB are free on this machine: "
                                     "take a smaller batch");
    FAILS(STATUS_UNSUPPORTED, "needs 10.5 GB", admission_judge, &need, false, 2, &room);
}
