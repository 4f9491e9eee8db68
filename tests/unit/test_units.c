/* SPDX-License-Identifier: Apache-2.0
 * A step of training between ranks: units of gradients, what is exchanged when, and what comes out.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "engine/compile/compile.h"
#include "engine/graph/op_list.h"
#include "engine/ops/family/gradient.h"
#include "engine/run/exe_internal.h"
#include "engine/train/reduce.h"
#include "engine/train/train.h"
#include "tests/lib/unit.h"
#include "tests/lib/unit/graphs.h"

enum { LAYERS = 6, WIDTH = 24, ROWS = 5, RANKS = 3, STEPS = 4 };

/* Clipped, so that the norm must be that of the mean. */
static const struct recipe recipe = {.optimiser = "adam",
                                     .decay = 0.01,
                                     .clip_norm = 0.25,
                                     .schedule = {.kind = SCHEDULE_CONSTANT, .rate = 0.0625}};

/* The mean of the squares of what several layers make of `rows` rows. */
static struct graph *network_by(int64_t rows, const struct train_options *options)
{
    struct fill uniform = {.kind = FILL_UNIFORM, .a = -0.5, .b = 0.5};
    struct graph *g = graph_new("layers");
    char name[32];
    int x = graph_input(g, "x", DTYPE_F32, shape_of(rows, WIDTH), uniform);
    for (int k = 0; k < LAYERS; k++) {
        snprintf(name, sizeof(name), "w%d", k);
        int w = graph_param(g, name, DTYPE_F32, shape_of(WIDTH, WIDTH), uniform);
        snprintf(name, sizeof(name), "b%d", k);
        int b = graph_param(g, name, DTYPE_F32, shape_of(WIDTH), uniform);
        x = make_unary(g, &op_tanh, make_add(g, make_mat_mul(g, x, w), b));
    }
    struct attr whole = attr_int("keepdims", 0);
    int squares = make_mul(g, x, x);
    graph_output(g, graph_node(g, op_reduce_mean.name, "loss", INPUTS(squares), ATTRS(whole)));
    MUST(train_step, g, &recipe, options);
    return g;
}

static struct graph *network(int64_t rows, int ranks, int64_t unit_bytes)
{
    return network_by(rows, &(struct train_options){.ranks = ranks, .unit_bytes = unit_bytes});
}

/* ---- a communicator whose other ranks always have the same as this one ---- */

struct comm_plan {
    struct comm_call call;
    float *at;
    bool started;
    int starts;
};

struct alike {
    struct comm_plan plans[64];
    int plan_count, running, most_running;
    size_t given; /* bytes of memory */
    bool fails;
};

static enum status alike_prepare(struct comm *comm, const struct comm_call *call,
                                 struct comm_plan **out, struct error *err)
{
    struct alike *self = comm->state;
    (void)err;
    *out = &self->plans[self->plan_count++];
    **out = (struct comm_plan){.call = *call};
    return STATUS_OK;
}

static void alike_release(struct comm *comm, struct comm_plan *plan)
{
    (void)comm;
    assert_false(plan->started);
}

static enum status alike_start(struct comm *comm, struct comm_plan *plan, const void *from,
                               void *to, struct error *err)
{
    struct alike *self = comm->state;
    if (self->fails)
        return FAIL(err, STATUS_FAILED, "rank 1 was killed");
    assert_false(plan->started);
    assert_ptr_equal(from, to);
    plan->at = to;
    plan->started = true;
    plan->starts++;
    self->running++;
    self->most_running = self->running > self->most_running ? self->running : self->most_running;
    return STATUS_OK;
}

static enum status alike_wait(struct comm *comm, struct comm_plan *plan, struct error *err)
{
    struct alike *self = comm->state;
    if (self->fails)
        return FAIL(err, STATUS_FAILED, "rank 1 was killed");
    assert_true(plan->started);
    for (int64_t k = 0; k < plan->call.count; k++)
        plan->at[k] *= (float)comm->ranks;
    plan->started = false;
    self->running--;
    return STATUS_OK;
}

static struct comm alike_comm(struct alike *self, int ranks)
{
    return (struct comm){.ranks = ranks,
                         .state = self,
                         .prepare = alike_prepare,
                         .release = alike_release,
                         .start = alike_start,
                         .wait = alike_wait};
}

/* ---- the tests ---- */

/* Ranks that have the same samples learn what one alone would; the loss is their mean. */
TEST(equal_ranks_learn_what_one_does)
{
    struct alike self = {.plan_count = 0};
    struct comm comm = alike_comm(&self, RANKS);
    struct exe *one, *many;
    struct exe_options options = {.threads = 1, .no_tune = true};
    struct graph *alone = network(ROWS, 1, 0), *g = network(ROWS, RANKS, 4096);
    MUST(exe_new, alone, &options, &one);
    options.comm = &comm;
    MUST(exe_new, g, &options, &many);
    for (int step = 0; step < STEPS; step++) {
        exe_run(one);
        exe_run(many);
        assert_int_equal(self.running, 0);
        float expected = *(const float *)exe_output(one, 0);
        assert_true(fabsf(*(const float *)exe_output(many, 0) - expected) < 1e-6f * expected);
    }
    MUST(exe_status, many);
    for (int k = 0; k < LAYERS; k++) {
        char name[32];
        snprintf(name, sizeof(name), "w%d", k);
        const float *a = exe_input_named(one, name), *b = exe_input_named(many, name);
        for (int e = 0; e < WIDTH * WIDTH; e++)
            assert_true(fabsf(a[e] - b[e]) < 1e-5f);
    }
    exe_free(many);
    exe_free(one);
    graph_free(g);
    graph_free(alone);
}

/* Of even size but for a small first one, complete, and without a copy: what the backward pass
 * computes is what is sent. */
TEST(units_hold_all_gradients)
{
    struct alike self = {.plan_count = 0};
    struct comm comm = alike_comm(&self, RANKS);
    struct exe *exe;
    struct exe_options options = {.threads = 1, .no_tune = true, .comm = &comm};
    int64_t unit = 3 * WIDTH * WIDTH * 4, all = LAYERS * (WIDTH * WIDTH + WIDTH) * 4 + 4;
    struct graph *g = network(ROWS, RANKS, unit);
    MUST(exe_new, g, &options, &exe);
    int count = exe_exchange_count(exe);
    size_t bytes = 0;
    assert_true(count >= 3);
    assert_true(exe_exchange_at(exe, 0).bytes < (size_t)unit / 2);
    for (int k = 0; k < count; k++) {
        struct exe_exchange x = exe_exchange_at(exe, k);
        assert_true(x.bytes <= (size_t)unit * 3 / 2);
        bytes += x.bytes;
    }
    assert_true(bytes >= (size_t)all && bytes <= (size_t)all + (2 * LAYERS + 1) * 64);
    for (int s = 0; s < exe_step_count(exe); s++) {
        struct exe_step step = exe_step_at(exe, s);
        if (!step.node->op->between_ranks)
            continue;
        assert_int_equal(step.node->phase, PHASE_COMMUNICATION);
        for (int k = 0; k < step.node->input_count; k++)
            assert_ptr_equal(exe->steps[s].in[k], exe->steps[s].out[k]);
    }
    exe_graph_free(exe, g);
}

/* Memory that ranks share. */
static void *alike_memory(struct comm *comm, size_t bytes)
{
    static _Alignas(64) unsigned char memory[1 << 17];
    struct alike *self = comm->state;
    size_t at = (self->given + 63) & ~(size_t)63;
    if (at + bytes > sizeof(memory))
        return NULL;
    self->given = at + bytes;
    return memory + at;
}

/* Units lie where the communicator says, and what is learnt is the same. */
TEST(units_lie_where_ranks_reach_them)
{
    struct error err = {0};
    struct alike plain = {.plan_count = 0}, self = {.plan_count = 0};
    struct comm comms[2] = {alike_comm(&plain, RANKS), alike_comm(&self, RANKS)};
    struct exe_options options = {.threads = 1, .no_tune = true};
    struct graph *g = network(ROWS, RANKS, 4096);
    struct exe *exes[2];
    comms[1].memory = alike_memory;
    for (int k = 0; k < 2; k++) {
        options.comm = &comms[k];
        assert_int_equal(exe_new(g, &options, &exes[k], &err), STATUS_OK);
        for (int step = 0; step < STEPS; step++)
            exe_run(exes[k]);
        assert_int_equal(exe_status(exes[k], &err), STATUS_OK);
    }
    assert_memory_equal(exe_output(exes[0], 0), exe_output(exes[1], 0), sizeof(float));
    assert_memory_equal(exe_input_named(exes[0], "w0"), exe_input_named(exes[1], "w0"),
                        WIDTH * WIDTH * 4);
    struct exe_memory before = exe_memory(exes[0]), after = exe_memory(exes[1]);
    assert_int_equal(before.unit_bytes, 0);
    assert_true(after.unit_bytes >= LAYERS * WIDTH * WIDTH * sizeof(float));
    assert_true(after.arena_bytes < before.arena_bytes);
    for (int k = 0; k < 2; k++)
        exe_free(exes[k]);
    graph_free(g);
}

/* Gradients cross as halves where that is asked for; the loss crosses as it is, by itself. */
TEST(gradients_cross_as_the_wire_says)
{
    struct error err = {0};
    int alone = 0;
    struct alike self = {.plan_count = 0};
    struct comm comm = alike_comm(&self, RANKS);
    struct exe *exe;
    struct exe_options options = {.threads = 1, .no_tune = true, .comm = &comm};
    struct graph *g = network_by(
        ROWS, &(struct train_options){.ranks = RANKS, .unit_bytes = 4096, .wire = "bf16"});
    assert_int_equal(exe_new(g, &options, &exe, &err), STATUS_OK);
    assert_true(self.plan_count > 2);
    for (int k = 0; k < self.plan_count; k++) {
        const struct comm_call *call = &self.plans[k].call;
        assert_int_equal(call->wire, call->count == 1 ? DTYPE_NONE : DTYPE_BF16);
        alone += call->count == 1;
    }
    assert_int_equal(alone, 1);
    exe_graph_free(exe, g);
}

/* Few ranks have the usual units, many ranks larger ones. */
TEST(units_grow_with_the_ranks)
{
    int64_t bytes[40];
    int ends[40];
    assert_int_equal(reduce_unit_bytes(2), 4 << 20);
    assert_int_equal(reduce_unit_bytes(128), 4 << 20);
    assert_int_equal(reduce_unit_bytes(512), 16 << 20);
    for (int k = 0; k < 40; k++)
        bytes[k] = 1 << 20;
    int units = reduce_cut(8 << 20, 40, bytes, ends);
    assert_int_equal(units, 6); /* 1 MiB, then 39 in five parts */
    assert_int_equal(ends[0], 1);
    for (int k = 1; k < units; k++)
        assert_true(ends[k] - ends[k - 1] == 8 || ends[k] - ends[k - 1] == 7);
    assert_int_equal(ends[units - 1], 40);
    assert_int_equal(reduce_cut(64 << 20, 40, bytes, ends), 1);
    assert_int_equal(reduce_cut(1, 0, bytes, ends), 0);
}

/* The first units are on their way while the backward pass still computes. */
TEST(communication_begins_before_the_backward_pass_ends)
{
    struct alike self = {.plan_count = 0};
    struct comm comm = alike_comm(&self, RANKS);
    struct exe *exe;
    struct exe_options options = {.threads = 1, .no_tune = true, .comm = &comm};
    struct graph *g = network(ROWS, RANKS, 2 * WIDTH * WIDTH * 4);
    MUST(exe_new, g, &options, &exe);
    int last_backward = 0, early = 0, count = exe_exchange_count(exe);
    for (int s = 0; s < exe_step_count(exe); s++)
        if (exe_step_at(exe, s).node->phase == PHASE_BACKWARD)
            last_backward = s;
    for (int k = 0; k < count; k++)
        early += exe_exchange_at(exe, k).step < last_backward;
    assert_true(early >= count - 1);
    exe_run(exe);
    assert_int_equal(self.most_running, count);
    for (int k = 0; k < self.plan_count; k++)
        assert_int_equal(self.plans[k].starts, 1);
    exe_graph_free(exe, g);
}

TEST(a_failure_between_ranks_is_the_run_s)
{
    struct alike self = {.plan_count = 0};
    struct comm comm = alike_comm(&self, RANKS);
    struct exe *exe;
    struct exe_options options = {.threads = 1, .no_tune = true, .comm = &comm};
    struct graph *g = network(ROWS, RANKS, 0);
    MUST(exe_new, g, &options, &exe);
    exe_run(exe);
    MUST(exe_status, exe);
    self.fails = true;
    exe_run(exe);
    FAILS(STATUS_FAILED, "rank 1 was killed", exe_status, exe);
    exe_graph_free(exe, g);
}

/* A graph for several ranks does not run on one, nor on another number of them. */
TEST(a_graph_for_ranks_needs_as_many)
{
    struct error err = {0};
    struct alike self = {.plan_count = 0};
    struct comm comm = alike_comm(&self, RANKS - 1);
    struct exe *exe;
    struct exe_options options = {.threads = 1, .no_tune = true};
    struct graph *g = network(ROWS, RANKS, 0);
    FAILS(STATUS_FAILED, "between 3 ranks", exe_new, g, &options, &exe);
    options.comm = &comm;
    assert_int_equal(exe_new(g, &options, &exe, &err), STATUS_FAILED);
    graph_free(g);
}
