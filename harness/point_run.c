/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "harness/point_run.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/utc.h"
#include "engine/compile.h"
#include "engine/cost.h"
#include "harness/interrupt.h"
#include "harness/peak.h"
#include "harness/record.h"
#include "harness/resident.h"
#include "harness/target.h"
#include "harness/verify.h"
#include "profilers/lib/profiler.h"

enum { SETTLE_RUNS = 3, COUNTS_MAX = 12, STEP_REPEATS_MAX = 9, COUNTED_S = 1, COUNTED_MAX = 1000 };

static const double layers_budget_s = 2; /* or half of what sampling may take */

struct work {
    const struct point_job *job;
    struct arena *arena; /* of the record */
    const char *phase;   /* what is done now */
    struct target target;
    struct graph_cost cost;
    struct verification verification;
    bool verified;
    struct measurement measurement;
    bool measured;
    double *step_ns;
    int step_repeats;
    enum precision precision;
    double peak, rss;
    struct counts counts[COUNTS_MAX];
    int count_count;
    bool *on_host; /* per step, of the record's arena */
};

/* ---- phases ---- */

static bool on_progress(void *context, double share, double seconds_left)
{
    progress_show(context, "measuring", share, seconds_left);
    return !interrupt_requested();
}

static void begin_phase(struct work *w, const char *phase)
{
    w->phase = phase;
    progress_show(w->job->progress, phase, NAN, NAN);
}

static enum status phase_verify(struct work *w, struct error *err)
{
    if (!w->target.exe || !w->job->point->protocol.verify)
        return STATUS_OK;
    begin_phase(w, "verifying");
    TRY(verify_exe(w->target.graph, w->target.exe, &w->verification, err));
    w->verified = true;
    return STATUS_OK;
}

/* The clock of a CPU moves, so the peak is that of the moment where a burst can tell it. */
static double peak_now(const struct work *w)
{
    return w->target.pool ? peak_rate(w->target.pool, isa_detect(), w->precision) : NAN;
}

static enum status phase_time(struct work *w, struct error *err)
{
    const struct point *point = w->job->point;
    struct measure_options options = {.protocol = &point->protocol,
                                      .time = &w->target.time,
                                      .progress = on_progress,
                                      .progress_context = w->job->progress,
                                      .cpus = point->threads,
                                      .seed = 1};
    bool reset = resident_reset();
    w->phase = "measuring";
    w->peak = peak_now(w);
    TRY(measure_run(&w->target.subject, &options, &w->measurement, err));
    TRY(w->target.exe ? exe_status(w->target.exe, err) : STATUS_OK);
    w->measured = true;
    w->peak = fmax(w->peak, peak_now(w));
    w->rss = reset ? resident_peak() : NAN;
    return STATUS_OK;
}

/* Steps are timed in a phase of their own: a clock between them would disturb the whole. */
static enum status phase_steps(struct work *w, struct error *err)
{
    const struct measurement *m = &w->measurement;
    if (!w->target.exe || !w->job->point->protocol.layers || m->interrupted || m->timed == 0)
        return STATUS_OK;
    w->step_ns = calloc((size_t)exe_step_count(w->target.exe) + 1, sizeof(*w->step_ns));
    if (!w->step_ns)
        return FAIL_NO_MEMORY(err);
    begin_phase(w, "timing layers");
    double budget = fmin(layers_budget_s, w->job->point->protocol.seconds_max / 2);
    w->step_repeats = (int)fmin(STEP_REPEATS_MAX, fmax(3, budget / m->median_s));
    exe_time_steps(w->target.exe, w->step_repeats, w->step_ns);
    return exe_status(w->target.exe, err);
}

/* ---- counting ---- */

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
    double most = profiler->executions_max ? (double)profiler->executions_max : COUNTED_MAX;
    return (int64_t)fmax(1, fmin(wanted / seconds_each(w), most));
}

/* What the subject was started with is done, and was done well. */
static enum status finish_runs(const struct work *w, struct error *err)
{
    if (w->target.subject.finish)
        w->target.subject.finish(w->target.subject.context);
    return w->target.exe ? exe_status(w->target.exe, err) : STATUS_OK;
}

static enum status settle(struct counting_of *c, int pass, struct error *err)
{
    const struct subject *subject = &c->w->target.subject;
    if (!c->profiler->settle)
        return STATUS_OK;
    for (int k = 0; k < SETTLE_RUNS; k++)
        subject->run(subject->context);
    TRY(finish_runs(c->w, err));
    return c->profiler->settle(c->session, pass, err);
}

static enum status count_pass(struct counting_of *c, int pass, struct error *err)
{
    struct work *w = c->w;
    const struct exe_watch watch = {step_begin, step_end, c}, none = {ignore_step, ignore_step, c};
    bool launches = c->profiler->launches && w->target.exe;
    bool by_step = c->profiler->by_step && c->profiler->by_step(c->session);
    int64_t executions = by_step ? 1 : executions_of(w, c->profiler);
    TRY(c->profiler->begin(c->session, pass, err));
    TRY(settle(c, pass, err));
    if (by_step)
        exe_run_watched(w->target.exe, &watch);
    for (int64_t k = 0; k < executions && !by_step; k++)
        if (launches)
            exe_run_watched(w->target.exe, &none);
        else
            w->target.subject.run(w->target.subject.context);
    TRY(finish_runs(w, err)); /* what did not run would count 0 */
    return c->profiler->end(c->session, pass, executions, err);
}

/* The session owns the text of its metrics, and the record lives longer. */
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
    for (int s = 0; s < steps && c->profiler->read_step; s++) {
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
    int steps = w->target.exe ? exe_step_count(w->target.exe) : 0;
    w->on_host = arena_array(w->arena, (size_t)steps + 1, sizeof(*w->on_host));
    for (int s = 0; s < steps && w->on_host; s++)
        w->on_host[s] = exe_step_at(w->target.exe, s).on_host;
    return w->on_host ? STATUS_OK : FAIL_NO_MEMORY(err);
}

static enum status count_with(struct work *w, const struct profiler *profiler, struct error *err)
{
    const char *folder = getenv("RIDGE_TRACE");
    struct profiler_model model = {.flops = w->cost.flops,
                                   .macs = w->cost.work.macs,
                                   .transcendentals = w->cost.work.transcendentals,
                                   .bytes_compulsory = w->cost.bytes_compulsory,
                                   .bytes_streamed = w->cost.bytes_streamed,
                                   .device = w->job->point->device,
                                   .steps = w->target.exe ? exe_step_count(w->target.exe) : 0,
                                   .pass_s = seconds_each(w) * (double)executions_of(w, profiler),
                                   .on_host = w->on_host,
                                   .label = w->job->point->id,
                                   .folder = folder && folder[0] ? folder : "out/trace"};
    struct counting_of c = {.w = w, .profiler = profiler};
    struct counts counts = {.count = 0};
    enum status status = profiler->open(&model, w->job->point->threads, &c.session, err);
    if (status != STATUS_OK)
        return status;
    for (int pass = 0; pass < profiler->passes(c.session) && status == STATUS_OK; pass++)
        status = count_pass(&c, pass, err);
    if (status == STATUS_OK)
        status = read_counts(&c, model.steps, &counts, err);
    if (status == STATUS_OK)
        w->counts[w->count_count++] = counts;
    profiler->close(c.session);
    return status;
}

/* "model" always counts; the others if the point names them. */
static bool is_wanted(const struct profiler *profiler, const char *list)
{
    size_t length = strlen(profiler->name);
    if (strcmp(profiler->name, "model") == 0)
        return true;
    for (const char *at = list; (at = strstr(at, profiler->name)); at += length)
        if ((at == list || at[-1] == ',') && (at[length] == ',' || !at[length]))
            return true;
    return false;
}

/* What cannot be counted must not cost the point: the reason becomes a metric without value. */
static void count_or_say_why(struct work *w, const struct profiler *profiler)
{
    struct error why = {0};
    char reason[sizeof(w->counts->why)] = "";
    begin_phase(w, "counting");
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

/* Energy and counters of the host first: from the moment when CUPTI attaches on, work is not what
 * it was. */
static void phase_count(struct work *w)
{
    for (int last = 0; last <= 1; last++)
        for (int k = 0; k < profiler_count() && w->count_count < COUNTS_MAX; k++)
            if (profiler_at(k)->attaches == (last > 0) &&
                is_wanted(profiler_at(k), w->job->point->profilers))
                count_or_say_why(w, profiler_at(k));
}

/* FLOPs are those of the graph in f32; bytes are of the types that its tensors have when it runs,
 * f8 factors being read as they are. */
static enum status count_work(struct work *w, struct error *err)
{
    struct exe_options narrowing = {.precision = w->precision, .no_fuse = true};
    graph_cost(w->target.graph, &w->cost);
    if (precision_floats(narrowing.precision) == DTYPE_F32 && narrowing.precision != PRECISION_F8)
        return STATUS_OK;
    struct graph *narrow = graph_copy(w->target.graph);
    enum status status = narrow ? passes_run(narrow, &narrowing, NULL, err) : FAIL_NO_MEMORY(err);
    if (status == STATUS_OK) {
        struct graph_cost cost;
        graph_cost(narrow, &cost);
        w->cost.bytes_streamed = cost.bytes_streamed;
        w->cost.bytes_compulsory = cost.bytes_compulsory;
    }
    graph_free(narrow);
    return status;
}

static enum status run_phases(struct work *w, struct error *err)
{
    begin_phase(w, "compiling");
    TRY(precision_from_name(w->job->point->precision, &w->precision, err));
    TRY(target_open(w->job->point, w->job->model, &w->target, err));
    TRY(count_work(w, err));
    TRY(phase_verify(w, err));
    TRY(phase_time(w, err));
    TRY(phase_steps(w, err));
    if (w->measurement.interrupted)
        return STATUS_OK;
    TRY(find_host_steps(w, err));
    phase_count(w);
    return STATUS_OK;
}

/* Whether the point's device is gone, and what was done when it went. */
static void tell_lost(const struct work *w, enum status status, struct error *failure)
{
    struct error why = {0};
    const char *device = w->job->point->device;
    bool failed = status == STATUS_LOST;
    if (failed)
        why = *failure;
    else if (!w->target.exe || exe_status(w->target.exe, &why) != STATUS_LOST)
        return;
    error_context(&why, "the device %s was lost while %s", device, w->phase);
    if (failed)
        *failure = why;
    if (w->job->lost)
        *w->job->lost = why;
}

enum status point_run(const struct point_job *job, struct arena *arena, struct record *record,
                      struct sample_record **samples, struct error *err)
{
    struct work w = {.job = job, .arena = arena, .peak = NAN, .rss = NAN};
    struct point_record own = record_point(job->point);
    struct error failure = {0};
    char *started = arena_alloc(arena, UTC_TEXT);
    if (!started)
        return FAIL_NO_MEMORY(err);
    utc_now(started);
    uint64_t begin = clock_now_ns();
    enum status status = run_phases(&w, &failure);
    tell_lost(&w, status, &failure);
    struct point_facts facts = {.point = job->point,
                                .sequence = job->sequence,
                                .started_utc = started,
                                .wall_s = (double)(clock_now_ns() - begin) * 1e-9,
                                .cost = &w.cost,
                                .exe = w.target.exe,
                                .measurement = w.measured ? &w.measurement : NULL,
                                .verification = w.verified ? &w.verification : NULL,
                                .step_ns = w.step_ns,
                                .step_repeats = w.step_repeats,
                                .peak_flop_rate = w.peak,
                                .peak_reason = "",
                                .peak_name = peak_name(isa_detect(), w.precision),
                                .peak_rss_bytes = w.rss,
                                .counts = w.counts,
                                .count_count = w.count_count,
                                .failure = status == STATUS_OK ? NULL : &failure};
    if (isnan(facts.peak_flop_rate)) {
        facts.peak_name = NULL;
        facts.peak_flop_rate = peak_of(&own, job->ceilings, &facts.peak_reason);
    }
    status = record_make(&facts, arena, record, err);
    *samples = w.measurement.samples;
    free(w.step_ns);
    target_close(&w.target);
    return status;
}
