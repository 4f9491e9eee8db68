/* SPDX-License-Identifier: Apache-2.0
 *
 * States on a device, on the host's runtime: what the CPU's executable of the same graph finds in
 * them and leaves there. */
#include <string.h>

#include "engine/reference/reference.h"
#include "engine/run/exe_internal.h"
#include "tests/lib/host_gpu.h"
#include "tests/lib/noise.h"
#include "tests/lib/unit.h"
#include "tests/lib/unit/graphs.h"
#include "workloads/lib/layers.h"

static const char *const states[] = {"at", "mean", "keys", "values"};

/* The same graph twice. */
struct pair {
    struct exe *there, *cpu;
};

static struct pair pair_of(bool odd, const struct exe_options *options)
{
    struct exe_options on_cpu = gpu_options("cpu");
    return (struct pair){compiled_owned(gpu_decoder(odd), options),
                         compiled_owned(gpu_decoder(odd), &on_cpu)};
}

static void pair_free(struct pair *p)
{
    exe_free(p->there);
    exe_free(p->cpu);
}

static void assert_close(enum dtype dtype, const struct shape *shape, const void *got,
                         const void *wanted, const char *name)
{
    struct ref_tensor a, b;
    MUST(ref_from_data, &a, dtype, shape, got);
    MUST(ref_from_data, &b, dtype, shape, wanted);
    if (!(ref_rel_error(&a, &b) <= 1e-5))
        fail_msg("%s: error %g", name, ref_rel_error(&a, &b));
    ref_release(&a);
    ref_release(&b);
}

static void assert_same(struct pair *p)
{
    const struct graph *g = exe_graph(p->cpu);
    MUST(exe_status, p->there);
    for (int k = 0; k < g->output_count; k++) {
        const struct value *value = &g->values[g->outputs[k]];
        assert_close(value->dtype, &value->shape, exe_output(p->there, k), exe_output(p->cpu, k),
                     value->name);
    }
}

static void *state_of(struct exe *exe, const char *name)
{
    return exe_input_named(exe, name);
}

static void assert_same_states(struct pair *p)
{
    const struct graph *g = exe_graph(p->cpu);
    for (int k = 0; k < ARRAY_COUNT(states); k++) {
        const struct value *value = &g->values[graph_find_value(g, states[k])];
        assert_close(value->dtype, &value->shape, state_of(p->there, states[k]),
                     state_of(p->cpu, states[k]), states[k]);
    }
}

static void change_x(struct pair *p, int run)
{
    float *x = exe_input_named(p->there, "x"), *y = exe_input_named(p->cpu, "x");
    int64_t count = shape_count(&exe_graph(p->cpu)->values[exe_graph(p->cpu)->inputs[0]].shape);
    for (int64_t e = 0; e < count; e++)
        x[e] = y[e] = (float)((e * 7 + run * 5) % 11) * 0.2f - 1;
}

static void run_both(struct pair *p)
{
    exe_run(p->there);
    exe_run(p->cpu);
}

static void decode(struct pair *p)
{
    for (int run = 0; run < 5; run++) {
        if (run % 3 != 1)
            change_x(p, run);
        run_both(p);
        assert_same(p);
    }
    assert_same_states(p);
    run_both(p); /* what was read and not changed is still there */
    assert_same(p);
}

/* ---- runs that follow each other ---- */

static int after_of(const struct graph *g, const char *name)
{
    int v = g->states[graph_state_of(g, graph_find_value(g, name))].after, k = 0;
    while (g->outputs[k] != v)
        k++;
    return k;
}

static bool is_in_place(struct exe *exe, const char *name)
{
    return state_of(exe, name) == exe_output(exe, after_of(exe_graph(exe), name));
}

TEST(a_state_is_changed_in_place_or_moved)
{
    struct exe_options options = gpu_options(gpu_name());
    long before = gpu_live();
    struct pair p = pair_of(false, &options);
    assert_null(exe_not_captured(p.there));
    for (int s = 0; s < exe_step_count(p.there); s++)
        assert_false(exe_step_at(p.there, s).on_host);
    assert_true(is_in_place(p.there, "keys") && is_in_place(p.there, "values"));
    assert_false(is_in_place(p.there, "at") || is_in_place(p.there, "mean"));
    decode(&p);
    pair_free(&p);
    assert_int_equal(gpu_live(), before);
}

TEST(runs_may_be_launched_step_by_step)
{
    struct exe_options options = gpu_options(gpu_name());
    options.no_capture = true;
    struct pair p = pair_of(false, &options);
    decode(&p);
    pair_free(&p);
}

TEST(all_states_may_be_moved)
{
    struct exe_options options = gpu_options(gpu_name());
    options.keep_values = true;
    struct pair p = pair_of(false, &options);
    assert_null(exe_not_captured(p.there));
    assert_false(is_in_place(p.there, "keys"));
    decode(&p);
    pair_free(&p);
}

TEST(joined_runs_follow_each_other)
{
    struct exe_options options = gpu_options(gpu_name());
    struct pair p = pair_of(false, &options);
    change_x(&p, 1);
    assert_int_equal(exe_join_runs(p.there, 0.3e-3), 4);
    exe_start_runs(p.there, 10);
    exe_wait(p.there);
    exe_start_runs(p.cpu, 10);
    assert_same(&p);
    assert_same_states(&p);
    exe_start_runs(p.there, 5); /* from states that are uploaded again */
    exe_wait(p.there);
    exe_start_runs(p.cpu, 5);
    assert_same(&p);
    pair_free(&p);
}

/* The replay takes the latest first of all that may be next. */
TEST(branches_leave_states_as_steps_do)
{
    struct exe_options options = gpu_unfused(true);
    struct pair p = pair_of(false, &options);
    MUST(lanes_open, p.there);
    assert_true(lanes_count(p.there) > 1);
    MUST(exe_use_branches, p.there, true);
    assert_null(exe_not_captured(p.there));
    decode(&p);
    assert_int_equal(exe_join_runs(p.there, 0.3e-3), 4);
    exe_start_runs(p.there, 9);
    exe_wait(p.there);
    exe_start_runs(p.cpu, 9);
    assert_same(&p);
    pair_free(&p);
}

static void ignore(void *context, int step)
{
    (void)context;
    (void)step;
}

TEST(watched_and_timed_runs_change_states_too)
{
    struct exe_watch watch = {.begin = ignore, .end = ignore};
    struct exe_options options = gpu_options(gpu_name());
    struct pair p = pair_of(false, &options);
    exe_run_watched(p.there, &watch);
    exe_run_watched(p.cpu, &watch);
    assert_same(&p);
    exe_time_runs(p.there, 2); /* and one ahead of them */
    exe_start_runs(p.cpu, 3);
    assert_same(&p);
    assert_same_states(&p);
    pair_free(&p);
}

/* Tuning, the first run and those that are timed leave no trace. */
TEST(a_tuned_executable_begins_with_its_fill)
{
    struct exe_options options = gpu_options(gpu_name());
    options.no_tune = false;
    options.quick_tune = true;
    struct pair p = pair_of(false, &options);
    assert_same_states(&p);
    run_both(&p);
    assert_same(&p);
    pair_free(&p);
}

/* ---- by the caller ---- */

TEST(a_reset_begins_anew)
{
    struct exe_options options = gpu_options(gpu_name());
    struct pair p = pair_of(false, &options);
    for (int round = 0; round < 2; round++) {
        for (int run = 0; run < 3; run++)
            run_both(&p);
        assert_same(&p);
        exe_reset(p.there);
        exe_reset(p.cpu);
        assert_same_states(&p);
    }
    exe_run(p.there);
    exe_reset(p.there); /* what the run left is not brought back by looking at it */
    assert_same_states(&p);
    run_both(&p);
    assert_same(&p);
    pair_free(&p);
}

TEST(a_changed_state_is_uploaded_and_no_other)
{
    struct exe_options options = gpu_options(gpu_name());
    struct pair p = pair_of(false, &options);
    for (int run = 0; run < 2; run++)
        run_both(&p);
    for (int k = 0; k < ARRAY_COUNT(states); k++) {
        struct exe *both[] = {p.there, p.cpu};
        for (int e = 0; e < 2; e++) {
            char *bytes = state_of(both[e], states[k]);
            float seven = 7;
            if (strcmp(states[k], "at") == 0)
                *(int64_t *)(void *)bytes = 9;
            else
                memcpy(bytes + sizeof(seven), &seven, sizeof(seven));
            exe_output(both[e], after_of(exe_graph(both[e]), "keys"));
            assert_ptr_equal(state_of(both[e], states[k]), bytes);
        }
        host_gpu()->script("copy", 0, 0);
        exe_run(p.there);
        assert_int_equal(host_gpu()->calls(), 1);
        exe_run(p.cpu);
        assert_same(&p);
    }
    assert_same_states(&p);
    pair_free(&p);
}

TEST(a_changed_input_leaves_states_alone)
{
    struct exe_options options = gpu_options(gpu_name());
    struct pair p = pair_of(false, &options);
    run_both(&p);
    for (int run = 0; run < 3; run++) {
        change_x(&p, run);
        host_gpu()->script("copy", 0, 0);
        exe_run(p.there);
        assert_int_equal(host_gpu()->calls(), 1);
        exe_run(p.cpu);
        assert_same(&p);
    }
    pair_free(&p);
}

/* ---- steps on the host ---- */

TEST(steps_on_the_host_read_states_and_what_follows_them)
{
    struct exe_options options = gpu_options(gpu_name());
    struct pair p = pair_of(true, &options);
    SAYS(exe_not_captured(p.there), "run on the host");
    assert_true(is_in_place(p.there, "keys"));
    decode(&p);
    exe_reset(p.there);
    exe_reset(p.cpu);
    decode(&p);
    pair_free(&p);
}

TEST(steps_on_the_host_change_states)
{
    struct exe_options options = gpu_options(gpu_name());
    options.providers = "native"; /* no kernel of the device is among them */
    struct pair p = pair_of(false, &options);
    assert_true(is_in_place(p.there, "keys"));
    decode(&p);
    pair_free(&p);
}

TEST(the_device_reads_what_the_host_changed)
{
    const int64_t one = 1;
    struct graph *g = graph_new("turns");
    struct exe_options options = gpu_options(gpu_name()), on_cpu = gpu_options("cpu");
    int x = noise_input(g, "x", shape_of(3, 4));
    int sum = graph_state(g, "sum", DTYPE_F32, shape_of(3, 4), noise());
    int rate = graph_const_f32(g, 0.5f), step = graph_const_i64(g, -1, &one);
    int next = graph_node(g, "Sgd", NULL, INPUTS(rate, step, NONE, sum, x), NO_ATTRS);
    graph_state_after(g, sum, next);
    graph_output(g, unary(g, "Tanh", next));
    MUST(graph_check, g);
    struct pair p = {compiled(g, &options), compiled_owned(g, &on_cpu)};
    assert_true(exe_step_at(p.there, 0).on_host && !exe_step_at(p.there, 1).on_host);
    assert_true(is_in_place(p.there, "sum"));
    for (int run = 0; run < 3; run++) {
        run_both(&p);
        assert_same(&p);
    }
    pair_free(&p);
}

/* ---- what cannot be ---- */

TEST(training_is_refused)
{
    struct graph *g = graph_new("learns");
    struct exe_options options = gpu_options(gpu_name());
    struct exe *exe;
    int x = noise_input(g, "x", shape_of(4));
    int sum = graph_state(g, "sum", DTYPE_F32, shape_of(4), noise());
    g->phase = PHASE_UPDATE;
    graph_state_after(g, sum, add(g, sum, x));
    FAILS(STATUS_UNSUPPORTED, "training runs on the CPU only", exe_new, g, &options, &exe);
    graph_free(g);
}

TEST(memory_that_is_short_names_states)
{
    enum { NO_MEMORY = 2 };
    struct graph *g = gpu_decoder(false);
    struct exe_options options = gpu_options(gpu_name());
    struct exe *exe;
    struct error err = {0};
    long before = gpu_live();
    for (int at = 1; !strstr(err.message, " MB for states and "); at++) {
        host_gpu()->script("malloc", at, NO_MEMORY);
        if (exe_new(g, &options, &exe, &err) == STATUS_OK)
            fail_msg("no refusal names the states");
        assert_int_equal(gpu_live(), before);
    }
    host_gpu()->script("", 0, 0);
    graph_free(g);
}

const struct unit_fixture unit_fixture = {.start = host_gpu_start};
