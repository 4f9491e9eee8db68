/* SPDX-License-Identifier: Apache-2.0
 *
 * Counting the work of a point: passes of its own through the profilers, after the timing. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/campaign/point_work.h"

enum { SETTLE_RUNS = 3, COUNTED_S = 1, COUNTED_MAX = 1000 };

/* A profiler at work. */
struct counting_of {
    struct work *w;
    const struct profiler *profiler;
    void *session;
};

static void step_begin(void *context, int step)
{
    const struct counting_of *c = context;
    c->profiler->step_begin(c->session, step);
}

static void step_end(void *context, int step)
{
    const struct counting_of *c = context;
    c->profiler->step_end(c->session, step);
}

static void ignore_step(void *context, int step)
{
    (void)context;
    (void)step;
}

static double seconds_each(const struct work *w)
{
    return w->measured && w->measurement.median_s > 0 ? w->measurement.median_s : 1;
}

/* In a pass of the whole. */
static int64_t executions_of(const struct work *w, const struct profiler *profiler)
{
    double wanted = profiler->pass_s > 0 ? profiler->pass_s : COUNTED_S;
    double limit = profiler->executions_max ? (double)profiler->executions_max : COUNTED_MAX;
    return (int64_t)fmax(1, fmin(wanted / seconds_each(w), limit));
}

/* Waits for the executions that were started; fails when one of them did. */
static enum status finish_runs(const struct work *w, struct error *err)
{
    if (w->target->subject.finish)
        w->target->subject.finish(w->target->subject.context);
    return w->target->exe ? exe_status(w->target->exe, err) : STATUS_OK;
}

static enum status settle(struct counting_of *c, int pass, struct error *err)
{
    const struct subject *subject = &c->w->target->subject;
    if (!c->profiler->settle)
        return STATUS_OK;
    for (int k = 0; k < SETTLE_RUNS; k++)
        subject->run(subject->context);
    TRY(finish_runs(c->w, err));
    return c->profiler->settle(c->session, pass, err);
}

/* A graph keeps its launches as they were before a profiler attached, or left. */
static enum status capture_again(const struct work *w, struct error *err)
{
    return w->target->exe ? exe_capture_again(w->target->exe, err) : STATUS_OK;
}

static enum status count_pass(struct counting_of *c, int pass, struct error *err)
{
    struct work *w = c->w;
    const struct exe_watch watch = {step_begin, step_end, c}, none = {ignore_step, ignore_step, c};
    bool launches = c->profiler->launches && w->target->exe;
    bool by_step = c->profiler->by_step && c->profiler->by_step(c->session);
    int64_t executions = by_step ? 1 : executions_of(w, c->profiler);
    TRY(c->profiler->begin(c->session, pass, err));
    if (c->profiler->attaches && !launches)
        TRY(capture_again(w, err));
    TRY(settle(c, pass, err));
    if (by_step)
        exe_run_watched(w->target->exe, &watch);
    for (int64_t k = 0; k < executions && !by_step; k++)
        if (launches)
            exe_run_watched(w->target->exe, &none);
        else
            w->target->subject.run(w->target->subject.context);
    TRY(finish_runs(w, err)); /* what did not run would count 0 */
    return c->profiler->end(c->session, pass, executions, err);
}

/* The session owns the text of its metrics; the record outlives it, so the text is copied. */
static enum status keep_text(struct work *w, struct profiler_metric *m, struct error *err)
{
    m->name = arena_strdup(w->arena, m->name);
    m->unit = arena_strdup(w->arena, m->unit);
    m->formula = arena_strdup(w->arena, m->formula);
    m->reason = arena_strdup(w->arena, m->reason);
    return m->name && m->unit && m->formula && m->reason ? STATUS_OK : FAIL_NO_MEMORY(err);
}

static enum status read_steps(struct counting_of *c, int steps, struct counts *counts,
                              struct error *err)
{
    struct profiler_metric metrics[PROFILER_METRICS_MAX];
    struct step_count *all = NULL;
    size_t capacity = 0;
    if (!c->profiler->read_step)
        return STATUS_OK;
    for (int s = 0; s < steps; s++) {
        int count = c->profiler->read_step(c->session, s, metrics);
        for (int k = 0; k < count; k++) {
            all = arena_grow(c->w->arena, all, &capacity, (size_t)counts->step_count + 1,
                             sizeof(*all));
            if (!all)
                return FAIL_NO_MEMORY(err);
            all[counts->step_count] = (struct step_count){s, metrics[k]};
            TRY(keep_text(c->w, &all[counts->step_count++].metric, err));
        }
    }
    counts->steps = all;
    return STATUS_OK;
}

static enum status read_counts(struct counting_of *c, int steps, struct counts *counts,
                               struct error *err)
{
    counts->source = c->profiler->name;
    counts->count = c->profiler->read(c->session, counts->metrics);
    for (int k = 0; k < counts->count; k++)
        TRY(keep_text(c->w, &counts->metrics[k], err));
    return read_steps(c, steps, counts, err);
}

static enum status find_host_steps(struct work *w, struct error *err)
{
    int steps = w->target->exe ? exe_step_count(w->target->exe) : 0;
    w->on_host = arena_array(w->arena, (size_t)steps + 1, sizeof(*w->on_host));
    if (w->on_host)
        for (int s = 0; s < steps; s++)
            w->on_host[s] = exe_step_at(w->target->exe, s).on_host;
    return w->on_host ? STATUS_OK : FAIL_NO_MEMORY(err);
}

static bool reads_bytes(const struct graph *g, const struct node *node)
{
    for (int k = 0; k < node->input_count; k++) {
        enum dtype dtype = node->inputs[k] == NONE ? DTYPE_NONE : g->values[node->inputs[k]].dtype;
        if (dtype == DTYPE_I8 || dtype == DTYPE_U8)
            return true;
    }
    return false;
}

/* Also in a point in f32: where a file's network has quantised parts, and where a kernel of ours
 * makes exact products of rounded ones. Only such are named for tensor cores
 * (tests/gpu/machine_code.sh). */
static bool uses_tensor_cores(const struct exe *exe)
{
    for (int k = 0; exe && k < exe_step_count(exe); k++) {
        struct exe_step step = exe_step_at(exe, k);
        if (reads_bytes(exe_graph(exe), step.node) || strstr(step.kernel->name, "_tensor"))
            return true;
    }
    return false;
}

static bool is_wanted(const struct profiler *profiler, const char *list)
{
    size_t length = strlen(profiler->name);
    if (profiler->always)
        return true;
    for (const char *at = list; (at = strstr(at, profiler->name)); at += length)
        if ((at == list || at[-1] == ',') && (at[length] == ',' || !at[length]))
            return true;
    return false;
}

/* ---- before anything runs ---- */

static bool counts_first(void)
{
    const char *text = getenv("RIDGE_COUNT_FIRST");
    return text && strcmp(text, "1") == 0;
}

/* What cannot attach says so when it is opened. */
void work_attach(struct work *w)
{
    struct error unused;
    for (int k = 0; k < profiler_count() && counts_first() && !w->attached; k++) {
        const struct profiler *profiler = profiler_at(k);
        if (!profiler->attach || !is_wanted(profiler, w->job->point->profilers))
            continue;
        w->attached_profiler = profiler;
        if (profiler->attach(w->job->point->device, &w->attached, &unused) != STATUS_OK)
            w->attached = NULL;
    }
}

void work_detach(struct work *w)
{
    if (w->attached)
        w->attached_profiler->detach(w->attached);
    w->attached = NULL;
}

/* Executions ran, and the profiler saw none of their work: what was loaded before it attached may
 * be closed to it. status: of what it did see. */
static enum status count_missed(struct work *w, const struct profiler *profiler,
                                struct counts *counts, enum status status, struct error *err)
{
    struct counts apart = {.count = 0};
    struct error why = {0};
    if (!w->job->apart || counts_first())
        return status;
    work_phase(w, "counting in a process of its own");
    target_rest(w->target); /* the process would have the one CPU of this thread */
    enum status there = w->job->apart(w->job->point, w->job->model, profiler, w->target->exe,
                                      w->arena, &apart, &why);
    TRY(target_wake(w->target, w->job->point, err));
    if (there == STATUS_OK) {
        *counts = apart;
        return STATUS_OK;
    }
    for (int k = 0; k < counts->count && status == STATUS_OK; k++) {
        struct profiler_metric *m = &counts->metrics[k];
        if (!isnan(m->value))
            continue;
        m->reason =
            arena_printf(w->arena, "%s; nor in a process of its own: %s", m->reason, why.message);
        if (!m->reason)
            return FAIL_NO_MEMORY(err);
    }
    return status;
}

static enum status count_with(struct work *w, const struct profiler *profiler, struct error *err)
{
    const char *folder = getenv("RIDGE_TRACE");
    struct profiler_model model = {.flops = w->cost.flops,
                                   .macs = w->cost.work.macs,
                                   .transcendentals = w->cost.work.transcendentals,
                                   .bytes_compulsory = w->cost.bytes_compulsory,
                                   .bytes_streamed = w->cost.bytes_streamed,
                                   .precision = w->job->point->precision,
                                   .tensor_cores = uses_tensor_cores(w->target->exe),
                                   .device = w->job->point->device,
                                   .steps = w->target->exe ? exe_step_count(w->target->exe) : 0,
                                   .pass_s = seconds_each(w) * (double)executions_of(w, profiler),
                                   .on_host = w->on_host,
                                   .label = w->job->point->id,
                                   .folder = folder && folder[0] ? folder : "out/trace"};
    struct counting_of c = {.w = w, .profiler = profiler};
    struct counts counts = {.count = 0};
    if (w->attached_profiler == profiler) {
        model.attached = w->attached;
        w->attached = NULL;
    }
    enum status status = profiler->open(&model, w->job->point->threads, &c.session, err);
    if (status != STATUS_OK)
        return status;
    for (int pass = 0; pass < profiler->passes(c.session) && status == STATUS_OK; pass++)
        status = count_pass(&c, pass, err);
    if (status == STATUS_OK)
        status = read_counts(&c, model.steps, &counts, err);
    bool missed = profiler->missed && profiler->missed(c.session);
    profiler->close(c.session);
    if (missed)
        status = count_missed(w, profiler, &counts, status, err);
    if (status == STATUS_OK)
        w->counts[w->count_count++] = counts;
    return status == STATUS_OK && profiler->attaches ? capture_again(w, err) : status;
}

/* A failure to count must not fail the point: the reason becomes a metric without a value. */
static void count_or_say_why(struct work *w, const struct profiler *profiler)
{
    struct error why = {0};
    char reason[sizeof(w->counts->why)] = "";
    work_phase(w, "counting");
    if (!profiler->available(reason, sizeof(reason)))
        (void)UNSUPPORTED(&why, "%s", reason);
    else if (count_with(w, profiler, &why) == STATUS_OK)
        return;
    struct counts *counts = &w->counts[w->count_count++];
    *counts = (struct counts){.source = profiler->name, .count = 1};
    counts->metrics[0] =
        (struct profiler_metric){.name = "counters", .unit = "1", .formula = "", .value = NAN};
    snprintf(counts->why, sizeof(counts->why), "%s", why.message);
    counts->metrics[0].reason = counts->why;
}

/* Energy and counters of the host come first: once CUPTI has attached, executions may be slower. */
static void count_all(struct work *w)
{
    for (int last = 0; last <= 1; last++)
        for (int k = 0; k < profiler_count() && w->count_count < COUNTS_MAX; k++)
            if (profiler_at(k)->attaches == (last > 0) &&
                is_wanted(profiler_at(k), w->job->point->profilers))
                count_or_say_why(w, profiler_at(k));
}

enum status work_count(struct work *w, struct error *err)
{
    TRY(find_host_steps(w, err));
    count_all(w);
    return STATUS_OK;
}
