/* SPDX-License-Identifier: Apache-2.0
 * Trials on a device, with kernels that play what a test wants (tests/gpu/actors/), on the host's
 * runtime, whose clock moves by as much for every command. */

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/compile/compile.h"
#include "engine/compile/stages.h"
#include "engine/run/plugin.h"
#include "tests/gpu/actors/actors.h"
#include "tests/lib/host_gpu.h"
#include "tests/lib/unit.h"
#include "tests/lib/unit/files.h"
#include "workloads/lib/layers.h"

enum { COMMAND_NS = 100000, SMALL = 1000, SIZE_LARGE = 160 * 8192 };

static struct actor *troupe;

static int begin(void **state)
{
    memset(troupe, 0, ACTORS * sizeof(*troupe));
    host_gpu()->clock(COMMAND_NS);
    return test_file_open(state);
}

static int end(void **state)
{
    host_gpu()->slow(0, 0);
    host_gpu()->script("", 0, 0);
    host_gpu()->clock(0);
    return test_file_remove(state);
}

static struct exe_options tuned(const char *providers)
{
    struct exe_options options = gpu_options("cuda");
    options.no_tune = false;
    options.providers = providers;
    return options;
}

static enum status try_relu(int64_t count, const struct exe_options *options, struct exe **exe,
                            struct error *err)
{
    struct graph *g = graph_new("relu");
    int x = graph_input(g, "x", DTYPE_F32, shape_of(count),
                        (struct fill){.kind = FILL_UNIFORM, .a = 0, .b = 1});
    graph_output(g, relu(g, x));
    enum status status = exe_new(g, options, exe, err);
    graph_free(g);
    return status;
}

static struct exe *relu_exe(int64_t count, const struct exe_options *options)
{
    struct exe *exe = NULL;
    MUST(try_relu, count, options, &exe);
    return exe;
}

static const struct candidate *candidate_of(const struct exe *exe, const char *kernel, int variant)
{
    struct exe_step step = exe_step_at(exe, 0);
    const struct candidate *all = step.candidates;
    for (int k = 0; k < step.candidate_count; k++)
        if (strcmp(all[k].kernel->name, kernel) == 0 && all[k].variant == variant)
            return &all[k];
    fail_msg("%s, variant %d, is no candidate", kernel, variant);
    return NULL;
}

static void assert_chosen(const struct exe *exe, const char *kernel, int variant)
{
    struct exe_step step = exe_step_at(exe, 0);
    if (strcmp(step.kernel->name, kernel) != 0 || step.variant != variant)
        fail_msg("%s, variant %d, is chosen, not %s, %d", step.kernel->name, step.variant, kernel,
                 variant);
}

/* ---- capture ---- */

TEST(what_cannot_be_captured_is_the_last_resort)
{
    struct exe_options options = tuned("actors");
    for (int order = 0; order < 2; order++) {
        memset(troupe, 0, ACTORS * sizeof(*troupe));
        troupe[order] = (struct actor){.variants = 1, .plays = {{.waits = true}}};
        troupe[1 - order] = (struct actor){.variants = 1, .plays = {{.copies = 5}}};
        const char *spoiler = order ? "actor_1" : "actor_0", *slow = order ? "actor_0" : "actor_1";
        struct exe *exe = relu_exe(SMALL, &options);
        assert_chosen(exe, slow, 0);
        SAYS(candidate_of(exe, spoiler, 0)->reason, "cannot be captured: ");
        SAYS(candidate_of(exe, spoiler, 0)->reason, "cudaErrorStreamCaptureUnsupported");
        assert_null(exe_not_captured(exe));
        exe_free(exe);
        options.no_capture = true;
        exe = relu_exe(SMALL, &options);
        assert_chosen(exe, spoiler, 0);
        exe_free(exe);
        options.no_capture = false;
    }
}

TEST(a_step_that_spoils_the_capture_is_named)
{
    struct exe_options options = tuned("actors");
    for (int silent = 0; silent < 2; silent++) {
        troupe[2] =
            (struct actor){.variants = 1, .plays = {{.waits = true, .silent = silent != 0}}};
        struct exe *exe = relu_exe(SMALL, &options);
        assert_chosen(exe, "actor_2", 0);
        assert_true(candidate_of(exe, "actor_2", 0)->uncaptured);
        SAYS(candidate_of(exe, "actor_2", 0)->note, "cannot be captured: ");
        SAYS(exe_not_captured(exe), "node \"Relu");
        SAYS(exe_not_captured(exe), "kernel actor_2");
        exe_run(exe);
        assert_int_equal(exe_status(exe, NULL), STATUS_OK);
        exe_free(exe);
    }
}

/* ---- time ---- */

/* Warming up counted the device's time alone: a thousand replays of 0.1 s were put where the device
 * told of none. */
TEST(warming_up_ends_by_the_hosts_time)
{
    struct exe_options options = tuned("actors");
    troupe[0] = (struct actor){.variants = 1, .plays = {{.copies = 1}}};
    host_gpu()->clock(1);
    setenv("RIDGE_HOST_REPLAY_NS", "20000000", 1);
    host_gpu()->script("graph_launch", 0, 0);
    struct exe *exe = relu_exe(SMALL, &options);
    int replays = host_gpu()->calls();
    unsetenv("RIDGE_HOST_REPLAY_NS");
    assert_chosen(exe, "actor_0", 0);
    assert_in_range(replays, 2, 30);
    exe_free(exe);
}

TEST(a_candidate_that_takes_too_long_is_given_up)
{
    struct exe_options options = tuned("actors");
    options.trial_s = 0.1;
    troupe[0] = troupe[1] = (struct actor){.variants = 1};
    troupe[1].plays[0].copies = 5;
    host_gpu()->slow(1, 0.3e9);
    struct exe *exe = relu_exe(SMALL, &options);
    SAYS(candidate_of(exe, "actor_0", 0)->reason, "given up: its launches lasted 0.3");
    SAYS(candidate_of(exe, "actor_0", 0)->reason, "the limit is 0.1 s");
    assert_chosen(exe, "actor_1", 0);
    exe_free(exe);
}

/* Nothing may wait for it, giving back memory neither; the made runtime ends who does. */
TEST(a_device_that_hangs_is_lost)
{
    struct exe_options options = tuned("actors");
    struct exe *exe = NULL;
    options.trial_s = 0.02;
    options.device = "cuda:1";
    troupe[0] = troupe[1] = (struct actor){.variants = 1};
    host_gpu()->slow(1, -1);
    FAILS(STATUS_LOST, "device lost with actor_0, variant 0 on trial: the device hangs: ", try_relu,
          SMALL, &options, &exe);
    assert_int_equal(troupe[1].plays[0].launches, 0);
    FAILS(STATUS_LOST, "the device hangs: ", try_relu, SMALL, &options, &exe);
    host_gpu()->slow(0, 0);
    options.device = "cuda";
    exe_free(relu_exe(SMALL, &options));
}

/* Ten milliseconds go ahead of the seven samples of about one, and a replay ahead of each. */
TEST(the_clock_is_warmed_up)
{
    struct exe_options options = tuned("actors");
    troupe[0].variants = 1;
    host_gpu()->clock(500000); /* an actor has two commands */
    host_gpu()->script("graph_launch", 0, 0);
    struct exe *exe = relu_exe(SMALL, &options);
    int calls = host_gpu()->calls();
    host_gpu()->clock(0);
    if (calls < 14 + 9 || calls > 14 + 11)
        fail_msg("%d replays", calls);
    exe_free(exe);
}

TEST(the_two_best_are_timed_again_if_nearly_alike)
{
    struct exe_options options = tuned("actors");
    int launches[2];
    for (int near = 0; near < 2; near++) {
        memset(troupe, 0, ACTORS * sizeof(*troupe));
        troupe[0] = (struct actor){.variants = 1, .plays = {{.copies = 98}}};
        troupe[1] = (struct actor){.variants = 1, .plays = {{.copies = near ? 101 : 110}}};
        troupe[2] = (struct actor){.variants = 1, .plays = {{.copies = 130}}};
        struct exe *exe = relu_exe(SMALL, &options);
        assert_chosen(exe, "actor_0", 0);
        launches[near] = troupe[1].plays[0].launches;
        exe_free(exe);
    }
    assert_true(launches[1] > launches[0]);
}

/* ---- variants ---- */

TEST(unlike_variants_are_all_tried)
{
    struct exe_options options = tuned("actors");
    troupe[0] = (struct actor){.variants = 2, .plays = {{.copies = 20}, {.copies = 0}}};
    troupe[2] = (struct actor){.variants = 1, .plays = {{.copies = 5}}};
    struct exe *exe = relu_exe(SMALL, &options);
    assert_chosen(exe, "actor_2", 0);
    SAYS(candidate_of(exe, "actor_0", 1)->reason, "not tried");
    exe_free(exe);
    troupe[1] = troupe[0];
    troupe[0].variants = 0;
    exe = relu_exe(SMALL, &options);
    assert_chosen(exe, "actor_1", 1);
    exe_free(exe);
}

/* The cache says that variant 1 won at a size like this one. */
static void variant_that_won_among_kin(const char *kernel, int actor, int wanted)
{
    struct exe_options options = tuned("actors");
    struct tune_cache cache;
    memset(troupe, 0, ACTORS * sizeof(*troupe));
    troupe[actor].variants = 2;
    options.quick_tune = true;
    options.cache = test_file;
    exe_free(relu_exe(SMALL, &options));
    tune_cache_load(&cache, test_file);
    assert_true(cache.count > 0);
    for (int k = 0; k < cache.count; k++)
        cache.entries[k].variant = 1;
    cache.dirty = true;
    tune_cache_save(&cache, test_file);
    tune_cache_release(&cache);
    struct exe *exe = relu_exe(SMALL + 3, &options);
    assert_chosen(exe, kernel, wanted);
    exe_free(exe);
}

TEST(a_librarys_ranks_are_not_taken_from_kin)
{
    variant_that_won_among_kin("actor_0", 0, 1);
    variant_that_won_among_kin("actor_2", 2, 0);
}

/* ---- right and wrong ---- */

TEST(own_kernels_say_what_is_right)
{
    struct exe_options options = tuned("actors,cuda");
    options.quick_tune = true; /* as what is too large for the reference */
    troupe[0] = (struct actor){.variants = 1, .plays = {{.wrong_count = 9, .wrong_at = 7}}};
    struct exe *exe = relu_exe(SMALL, &options);
    SAYS(candidate_of(exe, "actor_0", 0)->reason, "wrong: relative error ");
    SAYS(candidate_of(exe, "actor_0", 0)->reason, "compared with cuda_elementwise");
    assert_string_equal(exe_step_at(exe, 0).kernel->provider, "cuda");
    exe_free(exe);
    options.providers = "actors";
    exe = relu_exe(SMALL, &options);
    SAYS(candidate_of(exe, "actor_0", 0)->note, "compared with nothing");
    exe_free(exe);
}

TEST(samples_of_large_outputs_find_what_is_wrong)
{
    struct exe_options options = tuned("actors");
    troupe[1] = (struct actor){.variants = 4,
                               .plays = {{.copies = 1},
                                         {.wrong_at = SIZE_LARGE / 2, .wrong_count = 4 * 8192},
                                         {.wrong_at = SIZE_LARGE - 1, .wrong_count = 1},
                                         {.wrong_at = 0, .wrong_count = 1}}};
    host_gpu()->script("copy", 0, 0);
    struct exe *exe = relu_exe(SIZE_LARGE, &options);
    for (int v = 1; v < 4; v++)
        SAYS(candidate_of(exe, "actor_1", v)->reason, "wrong: relative error ");
    assert_chosen(exe, "actor_1", 0);
    int copies = host_gpu()->calls(); /* a call each for a hundred tiles and more, thrice */
    assert_true(copies > 3 * 100 && copies < 3 * 128 + 100);
    exe_free(exe);
}

/* ---- without a trial ---- */

TEST(without_tuning_the_next_is_taken_where_one_cannot_be_prepared)
{
    struct exe_options options = gpu_options("cuda");
    options.providers = "actors";
    troupe[0] = (struct actor){.variants = 1, .plays = {{.refuses = true}}};
    troupe[1] = (struct actor){.variants = 1};
    struct exe *exe = relu_exe(SMALL, &options);
    assert_chosen(exe, "actor_1", 0);
    SAYS(candidate_of(exe, "actor_0", 0)->reason, "does not want to be prepared");
    assert_false(candidate_of(exe, "actor_0", 0)->chosen);
    exe_free(exe);
    troupe[1] = troupe[0];
    exe = relu_exe(SMALL, &options);
    assert_true(exe_step_at(exe, 0).on_host);
    exe_run(exe);
    assert_int_equal(exe_status(exe, NULL), STATUS_OK);
    exe_free(exe);
    options.only = "actor_0"; /* who is asked for alone is not replaced */
    FAILS(STATUS_FAILED, "does not want to be prepared", try_relu, SMALL, &options, &exe);
}

/* Before the device's own kernels, so that theirs are not the first. */
static void load_actors(const char *program)
{
    struct actor *(*made)(void);
    char file[4200];
    snprintf(file, sizeof(file), "%s/actors.so", plugins_of_build(program, "gpu/actors", "actors"));
    void *library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
    void *found = library ? dlsym(library, "actors") : NULL;
    if (!found) {
        fprintf(stderr, "%s\n", dlerror());
        exit(1);
    }
    memcpy(&made, &found, sizeof(made));
    troupe = made();
}

static int start(int argc, char **argv)
{
    load_actors(argv[0]);
    return host_gpu_start(argc, argv);
}

const struct unit_fixture unit_fixture = {.start = start, .before_each = begin, .after_each = end};
