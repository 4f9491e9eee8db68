/* SPDX-License-Identifier: Apache-2.0
 *
 * A GPU has few counters, so CUPTI spreads the metrics of a group over several passes and wants the
 * same work repeated for each. The groups of the chip are *units*: first each for the execution as
 * a whole, then those that count steps. The current unit is the first that is not complete.
 *
 *   begin   opens the unit's counters where this is its first pass, and starts the pass. A unit of
 *           the whole is one range around all executions; else the caller brackets every step.
 *   end     ends the pass. CUPTI says whether it was the unit's last; then the ranges are decoded
 *           and divided by the executions, the counters are closed, and the next unit is current.
 *
 * How many passes there will be is known only unit by unit: one whose condition (`zero_when`: no
 * tensor instruction ran, or none was asked for) is 0 after earlier units counts 0 without a pass.
 * Sampled units (cupti_pm) take one pass, with samples as far apart as its expected length asks
 * for. */
#include "profilers/lib/gpu_counting.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profilers/lib/formula.h"

enum { DEPTH_MAX = 4 };

/* A pass has as many samples as this, half of what the backend has room for: it may take twice as
 * long as expected. Short ones have fewer: their edges are one sample each. */
static const double samples_wanted = 4000, interval_least_s = 200e-6;

/* A group, of the whole execution or of its steps. */
struct unit {
    const struct group *group;
    bool by_step;
    int rows;                    /* 1, or one per step */
    struct cupti_config *config; /* NULL: it cannot be counted, for the reason */
    char reason[CUPTI_REASON];
    int done; /* passes */
    bool complete, is_zero;
    int64_t executions;
    double *values; /* rows x events, per execution; NAN until complete */
};

struct gpu_counting {
    const struct cupti_backend *backend;
    struct cupti *cupti;
    enum cupti_use use;
    bool halves, tensor_cores;
    struct arena arena;
    char chip[CUPTI_CHIP];
    struct unit *units; /* in the order of counting */
    int count, current, passes_done;
    struct cupti_ranges *ranges; /* of the current unit */
    struct cupti_sampler *sampler;
    uint64_t interval_ns;            /* of samples */
    const bool *on_host;             /* borrowed, per step; NULL: none */
    char step_failure[CUPTI_REASON]; /* the first that a step met */
    bool saw_no_kernel;              /* in all executions of a pass */
};

/* What a roofline wants to know: named even where no group has it. */
static const struct {
    const char *name, *unit;
    bool sampled;
} usual[] = {{"flops", "1", false},
             {"dram_read_bytes", "B", true},
             {"dram_write_bytes", "B", true},
             {"l2_bytes", "B", true},
             {"cycles", "1", true}};

/* ---- units ---- */

static enum status open_config(struct gpu_counting *c, struct unit *u, struct error *err)
{
    const char *names[GROUP_EVENTS_MAX];
    const struct group *g = u->group;
    struct cupti_wanted wanted = {.chip = c->chip,
                                  .use = c->use,
                                  .attached = true,
                                  .metrics = names,
                                  .count = g->event_count};
    size_t cells = (size_t)u->rows * (size_t)g->event_count;
    u->values = arena_array(&c->arena, cells + 1, sizeof(*u->values));
    if (!u->values)
        return FAIL_NO_MEMORY(err);
    for (size_t k = 0; k < cells; k++)
        u->values[k] = NAN;
    for (int k = 0; k < g->event_count; k++)
        names[k] = g->events[k].name;
    u->complete = g->event_count == 0;
    if (!u->complete)
        u->config = c->backend->config_open(c->cupti, &wanted, u->reason);
    return STATUS_OK;
}

/* Groups that use metrics of others come after all that do not. */
static enum status add_units(struct gpu_counting *c, const struct gpu_counting_setup *setup,
                             bool by_step, struct error *err)
{
    for (int using = 0; using <= 1; using ++)
        for (int k = 0; k < setup->group_count; k++) {
            const struct group *g = &setup->groups[k];
            if (!group_is_for_chip(g, c->chip) || (g->use_count > 0) != using ||
                g->samples != (c->use == CUPTI_SAMPLES) || (by_step && !g->steps))
                continue;
            struct unit *u = &c->units[c->count++];
            *u = (struct unit){.group = g, .by_step = by_step, .rows = by_step ? setup->steps : 1};
            TRY(open_config(c, u, err));
        }
    return STATUS_OK;
}

static bool is_open(const struct unit *u)
{
    return u->config && !u->complete && !u->is_zero;
}

/* ---- values ---- */

static double metric_value(const struct gpu_counting *c, bool by_step, int row, const char *name,
                           int depth);

static double evaluate(const struct gpu_counting *c, const struct unit *u, int row,
                       const char *formula, int depth)
{
    struct formula_value values[GROUP_VALUES_MAX];
    const struct group *g = u->group;
    double result = NAN;
    int count = 0;
    for (int k = 0; k < g->event_count; k++)
        values[count++] = (struct formula_value){
            g->events[k].id, u->is_zero ? 0 : u->values[row * g->event_count + k]};
    for (int k = 0; k < g->use_count; k++)
        values[count++] = (struct formula_value){
            g->uses[k], formula_uses(formula, g->uses[k])
                            ? metric_value(c, u->by_step, row, g->uses[k], depth + 1)
                            : NAN};
    count = group_add_known(g, c->halves, c->tensor_cores, values, count);
    formula_evaluate(formula, values, count, &result, NULL);
    return result;
}

/* NAN when no group of the chip has it. */
static double metric_value(const struct gpu_counting *c, bool by_step, int row, const char *name,
                           int depth)
{
    for (int k = 0; k < c->count && depth < DEPTH_MAX; k++) {
        const struct unit *u = &c->units[k];
        for (int m = 0; m < u->group->metric_count && u->by_step == by_step; m++)
            if (strcmp(u->group->metrics[m].name, name) == 0 && u->group->metrics[m].formula)
                return evaluate(c, u, row, u->group->metrics[m].formula, depth);
    }
    return NAN;
}

/* ---- passes ---- */

/* Of the whole, also where the unit is of steps. */
static double condition_of(const struct gpu_counting *c, const struct unit *u)
{
    struct formula_value values[GROUP_VALUES_MAX];
    const struct group *g = u->group;
    double result = NAN;
    int count = 0;
    for (int k = 0; k < g->use_count; k++)
        values[count++] =
            (struct formula_value){g->uses[k], metric_value(c, false, 0, g->uses[k], 0)};
    count = group_add_known(g, c->halves, c->tensor_cores, values, count);
    formula_evaluate(g->zero_when, values, count, &result, NULL);
    return result;
}

/* The first unit that is still to be counted; none when current reaches count. */
static void find_current(struct gpu_counting *c)
{
    for (c->current = 0; c->current < c->count; c->current++) {
        struct unit *u = &c->units[c->current];
        if (!is_open(u))
            continue;
        u->is_zero = u->group->zero_when && condition_of(c, u) <= 0;
        if (!u->is_zero)
            return;
    }
}

int gpu_counting_passes(const struct gpu_counting *c)
{
    int passes = c->passes_done;
    for (int k = c->current; k < c->count; k++) {
        const struct unit *u = &c->units[k];
        int left = is_open(u) ? c->backend->config_passes(u->config) - u->done : 0;
        passes += is_open(u) && left < 1 ? 1 : left;
    }
    return passes;
}

bool gpu_counting_saw_no_kernel(const struct gpu_counting *c)
{
    return c->saw_no_kernel;
}

bool gpu_counting_by_step(const struct gpu_counting *c)
{
    return c->current < c->count && c->units[c->current].by_step;
}

static bool open_counters(struct gpu_counting *c, char *reason)
{
    const struct unit *u = &c->units[c->current];
    if (c->use == CUPTI_SAMPLES)
        c->sampler = c->backend->sampler_open(u->config, c->interval_ns, reason);
    else
        c->ranges = c->backend->ranges_open(u->config, u->rows, reason);
    return c->sampler || c->ranges;
}

static void close_counters(struct gpu_counting *c)
{
    if (c->sampler)
        c->backend->sampler_close(c->sampler);
    if (c->ranges)
        c->backend->ranges_close(c->ranges);
    c->sampler = NULL;
    c->ranges = NULL;
}

static enum status say(const struct gpu_counting *c, const char *reason, struct error *err)
{
    return FAIL(err, STATUS_FAILED, "%s: %s", c->units[c->current].group->file, reason);
}

enum status gpu_counting_begin(struct gpu_counting *c, struct error *err)
{
    char reason[CUPTI_REASON] = "";
    if (c->current == c->count)
        return FAIL(err, STATUS_FAILED, "there is no pass left");
    c->step_failure[0] = '\0';
    if (!c->sampler && !c->ranges && !open_counters(c, reason))
        return say(c, reason, err);
    bool begun = c->sampler ? c->backend->sampler_start(c->sampler, reason)
                            : c->backend->ranges_start(c->ranges, reason);
    if (begun && c->ranges && !gpu_counting_by_step(c))
        begun = c->backend->ranges_push(c->ranges, "0", reason);
    return begun ? STATUS_OK : say(c, reason, err);
}

/* ---- steps: a range each, its number being its name ---- */

void gpu_counting_step_begin(struct gpu_counting *c, int step)
{
    char name[16];
    snprintf(name, sizeof(name), "%d", step);
    if (c->ranges && !c->step_failure[0])
        c->backend->ranges_push(c->ranges, name, c->step_failure);
}

void gpu_counting_step_end(struct gpu_counting *c)
{
    if (c->ranges && !c->step_failure[0])
        c->backend->ranges_pop(c->ranges, c->step_failure);
}

/* ---- what was counted ---- */

static bool read_range(struct gpu_counting *c, struct unit *u, int index, char *reason)
{
    char name[64], *end;
    double values[GROUP_EVENTS_MAX];
    int events = u->group->event_count;
    if (!c->backend->ranges_read(c->ranges, index, name, sizeof(name), values, reason))
        return false;
    long row = strtol(name, &end, 10);
    if (end == name || *end || row < 0 || row >= u->rows) {
        snprintf(reason, CUPTI_REASON, "CUPTI knows a range \"%s\" that nobody made", name);
        return false;
    }
    for (int k = 0; k < events; k++)
        u->values[row * events + k] = values[k] / (double)u->executions;
    return true;
}

/* CUPTI leaves out a range that no kernel ran in. What ran on the host counts 0; the row of another
 * step stays without values. */
static void begin_rows(const struct gpu_counting *c, struct unit *u)
{
    for (int row = 0; u->by_step && c->on_host && row < u->rows; row++)
        for (int k = 0; k < u->group->event_count && c->on_host[row]; k++)
            u->values[row * u->group->event_count + k] = 0;
}

static bool read_ranges(struct gpu_counting *c, struct unit *u, char *reason)
{
    int count = 0;
    if (!c->backend->ranges_decode(c->ranges, &count, reason))
        return false;
    c->saw_no_kernel |= count == 0 && !u->by_step;
    if (count > u->rows || (count == 0 && !u->by_step)) {
        snprintf(reason, CUPTI_REASON, "CUPTI has %d ranges, not %d", count, u->rows);
        return false;
    }
    begin_rows(c, u);
    for (int k = 0; k < count; k++)
        if (!read_range(c, u, k, reason))
            return false;
    return true;
}

static bool end_ranges(struct gpu_counting *c, struct unit *u, char *reason)
{
    bool last = false;
    if (c->step_failure[0]) {
        snprintf(reason, CUPTI_REASON, "%s", c->step_failure);
        return false;
    }
    if (!c->backend->synchronise(c->cupti, reason) ||
        (!u->by_step && !c->backend->ranges_pop(c->ranges, reason)) ||
        !c->backend->ranges_stop(c->ranges, &last, reason))
        return false;
    if (!last && u->done + 1 >= GROUP_PASSES_MAX) {
        snprintf(reason, CUPTI_REASON, "CUPTI is not content after %d passes", u->done + 1);
        return false;
    }
    u->complete = last;
    return !last || read_ranges(c, u, reason);
}

static bool end_samples(struct gpu_counting *c, struct unit *u, char *reason)
{
    int64_t samples = 0;
    u->complete = c->backend->synchronise(c->cupti, reason) &&
                  c->backend->sampler_stop(c->sampler, u->values, &samples, reason);
    for (int k = 0; k < u->group->event_count; k++)
        u->values[k] = u->complete ? u->values[k] / (double)u->executions : NAN;
    return u->complete;
}

enum status gpu_counting_end(struct gpu_counting *c, int64_t executions, struct error *err)
{
    char reason[CUPTI_REASON] = "";
    struct unit *u = &c->units[c->current];
    if (u->done > 0 && executions != u->executions)
        return FAIL(err, STATUS_FAILED,
                    "passes of %" PRId64 " and of %" PRId64 " executions make no sum",
                    u->executions, executions);
    u->executions = executions;
    if (!(c->sampler ? end_samples(c, u, reason) : end_ranges(c, u, reason)))
        return say(c, reason, err);
    u->done++;
    c->passes_done++;
    if (!u->complete)
        return STATUS_OK;
    close_counters(c);
    find_current(c);
    return STATUS_OK;
}

/* ---- metrics ---- */

/* Why a formula has no value. */
static const char *reason_of(const struct gpu_counting *c, const struct unit *u, int row,
                             const char *formula)
{
    if (u->reason[0])
        return u->reason;
    if (!u->complete && !u->is_zero)
        return u->executions ? "its last pass was not made" : "it was not counted";
    if (u->by_step && u->group->event_count && !u->is_zero &&
        isnan(u->values[row * u->group->event_count]))
        return "CUPTI saw no kernel in this step";
    for (int k = 0; k < u->group->use_count; k++)
        if (formula_uses(formula, u->group->uses[k]) &&
            isnan(metric_value(c, u->by_step, row, u->group->uses[k], 0)))
            return "a metric that it needs was not counted";
    return "the formula divides by zero";
}

/* "fadd + 2 * ffma; fadd = sm__..., per step only the formula: the events are those of the whole.
 */
static const char *describe(struct gpu_counting *c, const struct unit *u, const char *formula)
{
    const char *text = formula;
    for (int k = 0; k < u->group->event_count && text && !u->by_step; k++)
        if (formula_uses(formula, u->group->events[k].id))
            text = arena_printf(&c->arena, "%s; %s = %s", text, u->group->events[k].id,
                                u->group->events[k].name);
    if (text && u->is_zero)
        text = arena_printf(&c->arena, "%s; all 0, as %s was", text, u->group->zero_when);
    if (text && c->use == CUPTI_SAMPLES)
        text = arena_printf(&c->arena, "%s; whole device, sampled", text);
    return text ? text : formula;
}

static int add_metric(struct profiler_metric *metrics, int count, struct profiler_metric metric)
{
    for (int k = 0; k < count; k++)
        if (strcmp(metrics[k].name, metric.name) == 0)
            return count;
    if (count < PROFILER_METRICS_MAX)
        metrics[count++] = metric;
    return count;
}

static int read_row(struct gpu_counting *c, bool by_step, int row, struct profiler_metric *metrics)
{
    int count = 0;
    for (int k = 0; k < c->count; k++) {
        const struct unit *u = &c->units[k];
        for (int m = 0; m < u->group->metric_count && u->by_step == by_step; m++) {
            const struct group_metric *from = &u->group->metrics[m];
            struct profiler_metric metric = {from->name, from->unit, "", from->missing, NAN};
            if (from->formula) {
                metric.value = evaluate(c, u, row, from->formula, 0);
                metric.formula = describe(c, u, from->formula);
                metric.reason = isnan(metric.value) ? reason_of(c, u, row, from->formula) : "";
            }
            count = add_metric(metrics, count, metric);
        }
    }
    return count;
}

int gpu_counting_read(struct gpu_counting *c, struct profiler_metric *metrics)
{
    int count = read_row(c, false, 0, metrics);
    const char *reason = arena_printf(
        &c->arena, "no file in profilers/groups counts it on chip %s: add one", c->chip);
    for (int k = 0; k < ARRAY_COUNT(usual); k++)
        if (usual[k].sampled || c->use == CUPTI_RANGES)
            count = add_metric(metrics, count,
                               (struct profiler_metric){usual[k].name, usual[k].unit, "",
                                                        reason ? reason : "out of memory", NAN});
    return count;
}

int gpu_counting_read_step(struct gpu_counting *c, int step, struct profiler_metric *metrics)
{
    return read_row(c, true, step, metrics);
}

/* ---- life ---- */

static enum status open_all(struct gpu_counting *c, const struct gpu_counting_setup *setup,
                            struct error *err)
{
    char reason[CUPTI_REASON] = "";
    c->units = arena_array(&c->arena, 2 * (size_t)setup->group_count + 1, sizeof(*c->units));
    if (!c->units)
        return FAIL_NO_MEMORY(err);
    TRY(add_units(c, setup, false, err));
    if (c->count == 0)
        return UNSUPPORTED(err, "no file in profilers/groups counts the chip %s: add one", c->chip);
    if (setup->steps > 0 && c->use == CUPTI_RANGES)
        TRY(add_units(c, setup, true, err));
    find_current(c);
    if (c->current == c->count)
        return UNSUPPORTED(err, "%s: %s", c->units[0].group->file, c->units[0].reason);
    if (!open_counters(c, reason))
        return UNSUPPORTED(err, "%s", reason);
    return STATUS_OK;
}

enum status gpu_counting_open(const struct gpu_counting_setup *setup, struct gpu_counting **out,
                              struct error *err)
{
    struct gpu_counting *c = calloc(1, sizeof(*c));
    if (!c)
        return FAIL_NO_MEMORY(err);
    c->backend = setup->backend;
    c->cupti = setup->cupti;
    c->use = setup->use;
    c->on_host = setup->on_host;
    c->halves = setup->halves;
    c->tensor_cores = setup->tensor_cores;
    c->interval_ns = (uint64_t)(fmax(interval_least_s, setup->pass_s / samples_wanted) * 1e9);
    snprintf(c->chip, sizeof(c->chip), "%s", setup->chip);
    enum status status = open_all(c, setup, err);
    if (status != STATUS_OK)
        gpu_counting_close(c);
    else
        *out = c;
    return status;
}

void gpu_counting_close(struct gpu_counting *c)
{
    close_counters(c);
    for (int k = 0; k < c->count; k++)
        if (c->units[k].config)
            c->backend->config_close(c->units[k].config);
    arena_release(&c->arena);
    free(c);
}
