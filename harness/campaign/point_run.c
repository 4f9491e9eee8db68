/* SPDX-License-Identifier: Apache-2.0 */
#include "harness/campaign/point_run.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/system/clock.h"
#include "base/text/utc.h"
#include "engine/compile/compile.h"
#include "harness/campaign/phase_split.h"
#include "harness/campaign/point_work.h"
#include "harness/campaign/steps_check.h"
#include "harness/measure/visits.h"
#include "harness/model/verify_training.h"
#include "harness/watch/interrupt.h"
#include "harness/watch/resident.h"

enum { STEP_REPEATS_MAX = 9, PLACEMENT_LOOKS = 12, PLACEMENT_PAUSE_MS = 40 };

static const double layers_budget_s = 2; /* or half of what sampling may take */

/* ---- phases ---- */

static bool on_progress(void *context, double share, double seconds_left)
{
    progress_show(context, "measuring", share, seconds_left);
    return !interrupt_requested();
}

void work_phase(struct work *w, const char *phase)
{
    w->phase = phase;
    progress_show(w->job->progress, phase, NAN, NAN);
}

/* A step of training is verified by an executable that shows its gradients. */
static enum status verify_target(struct work *w, struct error *err)
{
    const struct point *point = w->job->point;
    struct exe *exe = w->target->exe;
    if (strcmp(point->mode, "training") != 0)
        return verify_exe(w->target->graph, exe, &w->verification, err);
    struct model_options m = target_options(point, w->job->model);
    m.retune = false;
    return verify_training(point->spec, &m, exe_pool(exe), &w->verification, err);
}

static enum status phase_verify(struct work *w, struct error *err)
{
    if (!w->target->exe || !w->job->point->protocol.verify)
        return STATUS_OK;
    work_phase(w, "verifying");
    TRY(verify_target(w, err));
    w->verified = true;
    return STATUS_OK;
}

static void read_levels(const struct work *w, struct levels_now *out)
{
    const char *none = !w->target->exe    ? "the null device computes nothing"
                       : !w->target->pool ? "no levels are read of this device"
                                          : "no memory was left to read levels from";
    if (w->target->pool && w->job->levels)
        levels_read(w->job->levels, w->target->pool, w->precision, out);
    else
        levels_none(none, out);
}

/* Other processes took the samples: only the peak remains to be measured here. */
static enum status phase_taken(struct work *w)
{
    read_levels(w, &w->before);
    w->peak = w->before.value[LEVEL_ARITHMETIC];
    w->measurement = *w->job->taken->whole;
    w->measurement.samples = NULL; /* which stay theirs */
    w->measured = true;
    return STATUS_OK;
}

/* Waits for the usual placement, which comes back within seconds or not at all. False: it did
 * not. */
static bool usual_placement_comes(struct work *w)
{
    const struct timespec pause = {.tv_nsec = PLACEMENT_PAUSE_MS * 1000000L};
    char how[160];
    for (int k = 0; k < PLACEMENT_LOOKS && !interrupt_requested(); k++) {
        if (k > 0)
            nanosleep(&pause, NULL);
        read_levels(w, &w->before);
        struct placement now = {w->before.value[LEVEL_HAND_OVER],
                                w->before.value[LEVEL_ARITHMETIC]};
        if (!placement_differs(&now, w->job->usual, how, sizeof(how)))
            return true;
    }
    return false;
}

/* The visit: its share of the samples between two readings of the levels, on threads of its own. */
static enum status phase_time(struct work *w, bool again, struct error *err)
{
    const struct point *point = w->job->point;
    struct protocol protocol = visit_protocol(&point->protocol, w->job->round, again);
    struct measure_options options = {.protocol = &protocol,
                                      .time = &w->target->time,
                                      .progress = on_progress,
                                      .progress_context = w->job->progress,
                                      .is_visit = protocol.rounds > 1,
                                      .cpus = point->threads,
                                      .seed = 1};
    w->phase = "measuring";
    if (w->job->taken)
        return phase_taken(w);
    if (w->job->wait_for_usual && w->job->usual) {
        w->state->passed_over = !usual_placement_comes(w);
        if (w->state->passed_over)
            return STATUS_OK;
    } else {
        read_levels(w, &w->before);
    }
    TRY(measure_run(&w->target->subject, &options, &w->measurement, err));
    TRY(w->target->exe ? exe_status(w->target->exe, err) : STATUS_OK);
    w->measured = true;
    read_levels(w, &w->after);
    /* The clock of a CPU changes, so the peak is taken at that moment, by a burst, where possible.
     */
    w->peak = fmax(w->before.value[LEVEL_ARITHMETIC], w->after.value[LEVEL_ARITHMETIC]);
    return STATUS_OK;
}

/* A time with which the sum of the steps can be compared. */
static double comparable_time(const struct work *w)
{
    const struct protocol *p = &w->job->point->protocol;
    return p->cold || p->scenario == SCENARIO_SERVER ? NAN : w->measurement.median_s;
}

/* Other programs may have disturbed the steps but not the whole. */
static enum status check_steps(struct work *w, const struct disturbance *d, struct error *err)
{
    char disturbed[200];
    if (!disturbance_judge(d, w->job->point->threads, disturbed, sizeof(disturbed)))
        disturbed[0] = '\0';
    struct steps_facts facts = {w->target->exe, w->step_ns, comparable_time(w), disturbed};
    return steps_check(&facts, w->arena, &w->counts[w->count_count++], err);
}

/* Steps are timed in a phase of their own: a clock between them would disturb the whole. */
static enum status phase_steps(struct work *w, struct error *err)
{
    const struct measurement *m = &w->measurement;
    struct exe *exe = w->target->exe;
    if (!exe || !w->job->point->protocol.layers || m->interrupted || m->timed == 0)
        return STATUS_OK;
    w->step_ns = calloc((size_t)exe_step_count(exe) + 1, sizeof(*w->step_ns));
    if (!w->step_ns)
        return FAIL_NO_MEMORY(err);
    work_phase(w, "timing layers");
    double budget = fmin(layers_budget_s, w->job->point->protocol.seconds_max / 2);
    w->step_repeats = (int)fmin(STEP_REPEATS_MAX, fmax(3, budget / m->median_s));
    const struct time_source *time = &w->target->time;
    struct disturbance disturbance = disturbance_unknown("nothing here watches it");
    if (time->watch)
        time->watch(time->context);
    exe_time_steps(exe, w->step_repeats, w->step_ns);
    if (time->watched)
        time->watched(time->context, &disturbance);
    TRY(exe_status(exe, err));
    return check_steps(w, &disturbance, err);
}

/* Of a training step. */
static void split_phases(struct work *w)
{
    struct phase_sums sums;
    if (!w->target->exe)
        return;
    phase_split(w->target->exe, w->step_ns, &sums);
    phase_rows(&sums, &w->counts[w->count_count], &w->counts[w->count_count + 1]);
    w->count_count += w->counts[w->count_count].count ? 2 : 0;
}

/* ---- the first visit, and those after it ---- */

static enum status open_target(struct work *w, bool again, struct error *err)
{
    struct model_options model = *w->job->model;
    model.retune = model.retune && !again; /* what was chosen stays chosen */
    work_phase(w, "compiling");
    enum status status = target_open(w->job->point, &model, w->target, err);
    if (status != STATUS_OK && status != STATUS_LOST &&
        w->job->make_room(w->job->make_room_context))
        status = target_open(w->job->point, &model, w->target, err);
    w->state->open = status == STATUS_OK;
    return status;
}

static enum status first_visit(struct work *w, struct error *err)
{
    bool reset = resident_reset();
    double others = resident_now();
    work_attach(w);
    TRY(open_target(w, false, err));
    TRY(graph_cost_in(w->target->graph, w->precision, &w->cost, err));
    TRY(phase_verify(w, err));
    reset = resident_reset() && reset;
    TRY(phase_time(w, false, err));
    w->rss = reset ? resident_peak() - others : NAN;
    TRY(phase_steps(w, err));
    w->state->resident_bytes = resident_now() - others;
    split_phases(w);
    return w->measurement.interrupted ? STATUS_OK : work_count(w, err);
}

/* A target that was opened again may have other kernels, if the tuner's cache was lost: its times
 * would be those of another program. */
static enum status check_kernels(const struct work *w, struct error *err)
{
    const struct record *earlier = &w->state->record;
    const struct exe *exe = w->target->exe;
    if (exe)
        for (int s = 0; s < exe_step_count(exe); s++) {
            struct exe_step step = exe_step_at(exe, s);
            if (s < earlier->op_count && strcmp(earlier->ops[s].kernel, step.kernel->name) == 0)
                continue;
            return FAIL(err, STATUS_FAILED,
                        "step %d was computed by %s before, and by %s when compiled again: is the "
                        "tuner's cache kept?",
                        s, s < earlier->op_count ? earlier->ops[s].kernel : "nothing",
                        step.kernel->name);
        }
    return STATUS_OK;
}

static enum status later_visit(struct work *w, struct error *err)
{
    bool kept = w->state->open;
    double others = resident_now();
    if (kept) {
        TRY(target_wake(w->target, w->job->point, err));
    } else {
        TRY(open_target(w, true, err));
        TRY(check_kernels(w, err));
    }
    graph_cost(w->target->graph, &w->cost);
    TRY(phase_time(w, kept, err));
    if (!kept)
        w->state->resident_bytes = resident_now() - others;
    return STATUS_OK;
}

/* Whether the point's device was lost, and what was being done then. */
static void tell_lost(const struct work *w, enum status status, struct error *failure)
{
    struct error why = {0};
    const char *device = w->job->point->device;
    bool failed = status == STATUS_LOST;
    if (failed)
        why = *failure;
    else if (!w->target->exe || exe_status(w->target->exe, &why) != STATUS_LOST)
        return;
    error_context(&why, "the device %s was lost while %s", device, w->phase);
    if (failed)
        *failure = why;
    if (w->job->lost)
        *w->job->lost = why;
}

/* ---- what it leaves ---- */

static enum status keep_samples(struct work *w, struct error *err)
{
    struct point_state *state = w->state;
    int64_t before = state->sample_count, more = w->measurement.count;
    struct sample_record *all = realloc(state->samples, (size_t)(before + more + 1) * sizeof(*all));
    if (!all)
        return FAIL_NO_MEMORY(err);
    memcpy(all + before, w->measurement.samples, (size_t)more * sizeof(*all));
    for (int64_t k = before; k < before + more; k++)
        all[k].visit = w->job->round;
    state->samples = all;
    state->sample_count = before + more;
    return STATUS_OK;
}

static enum status keep_visit(struct work *w, const char *started, const struct error *failure,
                              struct error *err)
{
    struct point_state *state = w->state;
    const struct measurement *m = &w->measurement;
    struct visit_record visit = {.round = w->job->round,
                                 .started_utc = started,
                                 .median_s = NAN,
                                 .ci_low_s = NAN,
                                 .ci_high_s = NAN,
                                 .steal_share = NAN,
                                 .wait_share = NAN,
                                 .clock_hz = NAN};
    if (!state->visits)
        state->visits = arena_array(w->arena, (size_t)POINT_VISITS(w->job->rounds), sizeof(visit));
    if (!state->visits)
        return FAIL_NO_MEMORY(err);
    if (w->measured) {
        visit.samples = m->timed;
        visit.median_s = m->median_s;
        visit.ci_low_s = m->ci_low_s;
        visit.ci_high_s = m->ci_high_s;
        visit.steal_share = m->steal_share;
        visit.wait_share = m->wait_share;
        visit.clock_hz = m->clock_hz;
        levels_join(&w->before, &w->after, &visit);
        state->latest = *m;
        state->latest.samples = NULL;
        TRY(keep_samples(w, err));
    }
    visit.reason = arena_strdup(w->arena, w->measured ? m->reason : failure->message);
    if (!visit.reason)
        return FAIL_NO_MEMORY(err);
    state->visits[state->visit_count++] = visit;
    return STATUS_OK;
}

/* Of the visits so far. */
static enum status join(struct work *w, struct measurement *out, double *spread, struct error *err)
{
    struct point_state *state = w->state;
    struct visits visits = {.protocol = &w->job->point->protocol,
                            .visits = state->visits,
                            .count = state->visit_count,
                            .samples = state->samples,
                            .sample_count = state->sample_count,
                            .stop_reason = w->measurement.stop_reason,
                            .usual = w->job->usual};
    double overhead = w->measurement.overhead_s, n = state->visit_count;
    if (state->has_record)
        overhead = (record_value(&state->record, "overhead_s") * (n - 1) + overhead) / n;
    TRY(visits_join(&visits, w->arena, out, spread, err));
    out->overhead_s = overhead;
    /* What is the reason of the visit is said there. */
    if (isnan(out->wait_share) || strcmp(w->measurement.wait_note, w->measurement.reason) != 0)
        memcpy(out->wait_note, w->measurement.wait_note, sizeof(out->wait_note));
    if (w->measurement.set_apart.count) { /* else the record says it already, or there is nothing */
        pauses_add(&state->set_apart, &w->measurement.set_apart);
        out->set_apart = state->set_apart;
    }
    if (isnan(out->rate_hz))
        out->rate_hz = w->measurement.rate_hz;
    return STATUS_OK;
}

static enum status make_record(struct work *w, struct point_facts facts, struct error *err)
{
    struct point_state *state = w->state;
    struct point_record stored = record_point(w->job->point);
    const struct visits_taken *taken = w->job->taken;
    struct measurement joined;
    struct record record;
    facts.visits = taken ? taken->visits : state->visits;
    facts.visit_count = taken ? taken->count : state->visit_count;
    if (w->measured && taken) {
        joined = *taken->whole;
        facts.round_spread = taken->spread;
    } else if (w->measured) {
        TRY(join(w, &joined, &facts.round_spread, err));
    }
    facts.measurement = w->measured ? &joined : NULL;
    work_peak(w, &stored, &facts);
    TRY(state->has_record ? record_again(&facts, &state->record, w->arena, &record, err)
                          : record_make(&facts, w->arena, &record, err));
    state->record = record;
    state->has_record = true;
    return STATUS_OK;
}

static enum status keep(struct work *w, const char *started, uint64_t begin,
                        const struct error *failure, struct error *err)
{
    struct point_state *state = w->state;
    struct point_facts facts = {.point = w->job->point,
                                .sequence = w->job->sequence,
                                .started_utc = started,
                                .wall_s = (double)(clock_now_ns() - begin) * 1e-9,
                                .cost = &w->cost,
                                .exe = w->target->exe,
                                .verification = w->verified ? &w->verification : NULL,
                                .step_ns = w->step_ns,
                                .step_repeats = w->step_repeats,
                                .peak_rss_bytes = w->rss,
                                .counts = w->counts,
                                .count_count = w->count_count,
                                .failure = failure,
                                .round_spread = NAN};
    state->visit_s = facts.wall_s;
    state->cost = w->cost;
    if (state->has_record)
        facts.wall_s += state->record.wall_s;
    if ((w->measured && !w->job->taken) || state->has_record)
        TRY(keep_visit(w, started, failure, err));
    return make_record(w, facts, err);
}

enum status point_visit(const struct point_job *job, struct point_state *state, struct error *err)
{
    struct work w = {.job = job,
                     .state = state,
                     .target = &state->target,
                     .arena = &state->arena,
                     .peak = NAN,
                     .rss = NAN};
    struct error failure = {0};
    char *started = arena_alloc(&state->arena, UTC_TEXT);
    state->passed_over = false;
    if (!started)
        return FAIL_NO_MEMORY(err);
    utc_now(started);
    uint64_t begin = clock_now_ns();
    enum status status = precision_from_name(job->point->precision, &w.precision, &failure);
    if (status == STATUS_OK)
        status = state->has_record ? later_visit(&w, &failure) : first_visit(&w, &failure);
    tell_lost(&w, status, &failure);
    if (interrupt_requested())
        state->interrupted = true; /* resuming measures this visit again */
    else if (!state->passed_over)
        status = keep(&w, started, begin, status == STATUS_OK ? NULL : &failure, err);
    free(w.step_ns);
    measurement_release(&w.measurement);
    work_detach(&w);
    return state->interrupted ? STATUS_OK : status;
}

enum status point_settle(const struct point_job *job, struct point_state *state, bool *changed,
                         struct error *err)
{
    struct work w = {.job = job,
                     .state = state,
                     .target = &state->target,
                     .arena = &state->arena,
                     .cost = state->cost,
                     .measurement = state->latest,
                     .measured = true,
                     .peak = record_value(&state->record, "peak_flop_rate")};
    struct point_facts facts = {.point = job->point,
                                .sequence = job->sequence,
                                .started_utc = state->record.started_utc,
                                .wall_s = state->record.wall_s,
                                .cost = &w.cost,
                                .peak_rss_bytes = NAN};
    int before = visits_apart(state->visits, state->visit_count);
    *changed = false;
    if (state->record.status != RESULT_OK || state->latest.timed == 0 ||
        visits_good(state->visits, state->visit_count, job->usual) == state->visit_count)
        return STATUS_OK;
    w.measurement.overhead_s = record_value(&state->record, "overhead_s");
    w.measurement.set_apart = (struct pauses){.count = 0};
    TRY(precision_from_name(job->point->precision, &w.precision, err));
    TRY(make_record(&w, facts, err));
    *changed = visits_apart(state->visits, state->visit_count) != before;
    return STATUS_OK;
}

void point_rest(struct point_state *state)
{
    if (state->open)
        target_rest(&state->target);
}

void point_close(struct point_state *state)
{
    if (state->open)
        target_close(&state->target);
    state->open = false;
    state->resident_bytes = 0;
}

void point_release(struct point_state *state)
{
    point_close(state);
    free(state->samples);
    arena_release(&state->arena);
    *state = (struct point_state){.open = false};
}
