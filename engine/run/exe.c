/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/run/exe.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/numbers/stats.h"
#include "base/system/clock.h"
#include "engine/ops/family/op_index.h"
#include "engine/run/exe_internal.h"

/* ---- running on the CPU ---- */

static inline void run_step(struct exe *exe, const struct step *step)
{
    if (step->kernel->own_threads)
        pool_park(exe->pool);
    step_launch(step);
}

/* What the next run finds, where it was not computed in its place. */
static void move_states(struct exe *exe)
{
    for (int k = 0; k < exe->moved_count; k++) {
        const struct state *state = &exe->g->states[exe->moved[k]];
        const struct place *to = &exe->places[state->before];
        memcpy(to->memory, value_memory(exe->places, state->after), to->bytes);
    }
}

static void run_steps_between_ranks(struct exe *exe)
{
    for (int s = 0; s < exe->step_count; s++)
        exe_run_rank_step(exe, s);
    exchanges_wait(exe);
    move_states(exe);
}

static void run_steps(struct exe *exe)
{
    const struct step *end = exe->steps + exe->step_count;
    for (const struct step *step = exe->steps; step < end; step++)
        run_step(exe, step);
    move_states(exe);
}

/* ---- linking: every tensor gets its address ---- */

static enum status place_value(struct exe *exe, int v, struct error *err)
{
    struct place *place = &exe->places[v];
    if (place->root != v || place->memory)
        return STATUS_OK;
    const struct value *value = &exe->g->values[v];
    if (place->offset >= 0) {
        place->memory = exe->memory + place->offset;
        return STATUS_OK;
    }
    if (value->kind == VALUE_RESULT || (value_is_fixed(value) && !place->kept && !place->used))
        return STATUS_OK;
    if (value_is_fixed(value) && place->used && !place->kept) {
        bool output = false; /* a weight that is itself an output of the graph */
        for (int k = 0; k < exe->g->output_count; k++)
            output = output || exe->places[exe->g->outputs[k]].root == v;
        if (!output)
            return STATUS_OK;
    }
    place->memory = memory_alloc(place->bytes);
    if (!place->memory)
        return FAIL_NO_MEMORY(err);
    place->owned = true;
    value_materialise_by(exe->pool, value, place->memory);
    return STATUS_OK;
}

static void *address(const struct exe *exe, int v)
{
    return v == NONE ? NULL : value_memory(exe->places, v);
}

static void link_step(struct exe *exe, struct step *step)
{
    const struct node *node = step->query.node;
    for (int k = 0; k < node->input_count; k++)
        step->in[k] = address(exe, node->inputs[k]);
    for (int k = 0; k < node->output_count; k++)
        step->out[k] = address(exe, node->outputs[k]);
    step->args = (struct kernel_args){
        .in = step->in, .out = step->out, .pool = exe->pool, .err = &exe->failed};
    if (step->workspace_offset >= 0)
        step->args.workspace = exe->memory + step->workspace_offset;
}

enum status exe_link(struct exe *exe, struct error *err)
{
    exe->memory = memory_alloc(exe->sizes.arena_bytes);
    if (!exe->memory)
        return FAIL(err, STATUS_NO_MEMORY, "the plan needs %.1f MB for activations",
                    (double)exe->sizes.arena_bytes * 1e-6);
    memset(exe->memory, 0, exe->sizes.arena_bytes); /* page faults belong here, not in runs */
    for (int v = 0; v < exe->g->value_count; v++) {
        TRY(place_value(exe, v, err));
        if (value_is_fixed(&exe->g->values[v]) && exe->places[v].memory)
            exe->sizes.weight_bytes += exe->places[v].bytes;
    }
    for (int s = 0; s < exe->step_count; s++)
        link_step(exe, &exe->steps[s]);
    exe->run = exe->exchange_count ? run_steps_between_ranks : run_steps;
    return exchanges_open(exe, err);
}

/* ---- life cycle ---- */

void exe_free(struct exe *exe)
{
    if (!exe)
        return;
    exe_device_idle(exe);
    exchanges_close(exe);
    for (int s = 0; s < exe->step_count; s++)
        kernel_release(exe->steps[s].kernel, exe->steps[s].state);
    for (int v = 0; exe->places && v < exe->g->value_count; v++)
        if (exe->places[v].owned)
            memory_free(exe->places[v].memory);
    exe_device_close(exe); /* takes the arena with it: it is pinned there */
    memory_free(exe->memory);
    if (exe->owns_pool)
        pool_free(exe->pool);
    graph_free(exe->g);
    arena_release(&exe->arena);
    free(exe);
}

void exe_start(struct exe *exe)
{
    exe->run(exe);
}

void exe_run(struct exe *exe)
{
    exe->run(exe);
    exe_wait(exe);
}

void exe_run_watched(struct exe *exe, const struct exe_watch *watch)
{
    if (exe_is_on_device(exe))
        exe_device_run_watched(exe, watch);
    for (int s = 0; s < exe->step_count && !exe_is_on_device(exe); s++) {
        watch->begin(watch->context, s);
        exe_run_rank_step(exe, s);
        watch->end(watch->context, s);
    }
    exchanges_wait(exe);
    if (!exe_is_on_device(exe))
        move_states(exe);
}

/* Indices in input k + 1 into input k. Results of data-dependent size are padded, also where the
 * data are empty. */
static enum status check_indices(const struct step *step, int k, struct error *err)
{
    const struct kernel_query *q = &step->query;
    if (!query_in(q, k) || !query_in(q, k + 1) || !step->in[k + 1] ||
        shape_count(&q->in[k].shape) == 0)
        return STATUS_OK;
    if (index_check(q->node, &q->in[k].shape, &q->in[k + 1], step->in[k + 1], err) == STATUS_OK)
        return STATUS_OK;
    return error_context(err, "%s node \"%s\"", q->node->op->name, q->node->name);
}

static enum status check_step(const struct step *step, struct error *err)
{
    const struct node *node = step->query.node;
    bool pairs = node->op->reads == READS_ROWS && node->op->inputs_max < 0;
    for (int k = 0; k + 1 < (pairs || node->op_inputs < 2 ? node->op_inputs : 2); k += 2)
        TRY(check_indices(step, k, err));
    return STATUS_OK;
}

enum status exe_run_checked(struct exe *exe, struct error *err)
{
    if (exe_is_on_device(exe))
        exe_run(exe);
    enum status status = STATUS_OK;
    for (int s = 0; s < exe->step_count && !exe_is_on_device(exe) && status == STATUS_OK; s++) {
        status = check_step(&exe->steps[s], err);
        if (status == STATUS_OK)
            exe_run_rank_step(exe, s);
    }
    exchanges_wait(exe);
    TRY(status);
    if (!exe_is_on_device(exe))
        move_states(exe);
    return exe_status(exe, err);
}

/* ---- what was decided ---- */

const struct graph *exe_graph(const struct exe *exe)
{
    return exe->g;
}

const struct pass_log *exe_passes(const struct exe *exe)
{
    return &exe->passes;
}

int exe_step_count(const struct exe *exe)
{
    return exe->step_count;
}

struct exe_step exe_step_at(const struct exe *exe, int index)
{
    const struct step *step = &exe->steps[index];
    return (struct exe_step){.node = step->query.node,
                             .kernel = step->kernel,
                             .variant = step->variant,
                             .query = &step->query,
                             .cost = step->cost,
                             .bytes_in = step->bytes_in,
                             .bytes_out = step->bytes_out,
                             .on_host = step->on_host,
                             .candidates = step->candidates,
                             .candidate_count = step->candidate_count};
}

double exe_step_byte_flops(const struct exe_step *step)
{
    const struct kernel_query *q = step->query;
    for (int k = 0; k < 2; k++)
        if (k >= q->in_count || (q->in[k].dtype != DTYPE_U8 && q->in[k].dtype != DTYPE_I8))
            return 0;
    return 2 * step->cost.macs;
}

double exe_byte_flops(const struct exe *exe)
{
    double flops = 0;
    for (int s = 0; s < exe->step_count; s++) {
        struct exe_step step = exe_step_at(exe, s);
        flops += exe_step_byte_flops(&step);
    }
    return flops;
}

struct exe_memory exe_memory(const struct exe *exe)
{
    return exe->sizes;
}

const struct exe_options *exe_options(const struct exe *exe)
{
    return &exe->options;
}

enum precision exe_precision(const struct exe *exe)
{
    return exe->options.precision;
}

struct pool *exe_pool(struct exe *exe)
{
    return exe->pool;
}

void exe_reset(struct exe *exe)
{
    exe_device_idle(exe); /* an upload may still be reading */
    for (int k = 0; k < exe->g->state_count; k++) {
        int v = exe->g->states[k].before;
        if (!exe->places[v].memory)
            continue;
        value_materialise_by(exe->pool, &exe->g->values[v], exe->places[v].memory);
        values_changed(exe, v);
    }
}

double exe_time_runs(struct exe *exe, int64_t runs)
{
    if (exe_is_on_device(exe))
        return exe_device_time_runs(exe, runs);
    uint64_t start = clock_now_ns();
    for (int64_t k = 0; k < runs; k++)
        exe_run(exe);
    return (double)(clock_now_ns() - start) / (double)runs;
}

void exe_time_steps(struct exe *exe, int repeats, double *times)
{
    double *samples = calloc((size_t)exe->step_count * (size_t)repeats + 1, sizeof(*samples));
    for (int s = 0; s < exe->step_count; s++)
        times[s] = NAN;
    if (!samples)
        return;
    if (exe_is_on_device(exe))
        exe_device_time_steps(exe, repeats, samples);
    for (int r = 0; r < repeats && !exe_is_on_device(exe); r++) {
        for (int s = 0; s < exe->step_count; s++) {
            uint64_t start = clock_now_ns();
            run_step(exe, &exe->steps[s]);
            samples[s * repeats + r] = (double)(clock_now_ns() - start);
        }
    }
    for (int s = 0; s < exe->step_count; s++) {
        stats_sort(samples + s * repeats, repeats);
        times[s] = stats_median(samples + s * repeats, repeats);
    }
    free(samples);
}
