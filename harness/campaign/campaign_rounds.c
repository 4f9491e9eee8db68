/* SPDX-License-Identifier: Apache-2.0
 *
 * The rounds of a campaign: each comes to every point once, in an order of its own. What was
 * compiled waits in memory for its next visit as long as there is room. Then visits that do not
 * count, because others disturbed them or the machine's CPUs lay otherwise than usual, are made up
 * for by further ones, within a share of the time that the run has taken. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/system/clock.h"
#include "base/text/utc.h"
#include "engine/run/provider.h"
#include "harness/campaign/campaign_state.h"
#include "harness/campaign/plan_time.h"
#include "harness/campaign/record.h"
#include "harness/campaign/scale_point.h"
#include "harness/measure/visits.h"
#include "harness/roofs/ceilings.h"
#include "harness/watch/free_memory.h"
#include "harness/watch/interrupt.h"

enum { KEEP_PART = 2, LEVELS_PART = 16, ATTEMPTS_MAX = 2, GOOD_VISITS = 2 };
static const double make_up_share = 0.15; /* of the time until then */

/* A point among the rounds. */
struct stop {
    struct point_state state;
    bool done;              /* nothing is left to do */
    bool announced;         /* to the listener */
    struct placement usual; /* among points with as many threads in the same precision */
    char label[160];
};

struct rounds {
    struct campaign *c;
    struct stop *stops; /* one for each point of the plan */
    int *order;
    double keep_bytes; /* that waiting targets may take; what is free at the start, halved */
    double kept_bytes; /* that they take */
    int next;          /* the first point that is not announced */
    int at;            /* the point that is visited */
};

static const struct point *point_of(const struct rounds *r, int k)
{
    return &r->c->plan->points[k];
}

/* ---- rows ---- */

static void tally(struct campaign_result *result, const struct record *record)
{
    result->ok += record->status == RESULT_OK && record->valid;
    result->invalid += record->status == RESULT_OK && !record->valid;
    result->wrong += record->status == RESULT_WRONG;
    result->failed += record->status == RESULT_FAILED;
    result->skipped += record->status == RESULT_SKIPPED;
    result->unasked += record->status == RESULT_OK && record_reference_counts(record) &&
                       !provider_named(record->point.providers, "reference");
}

static void announce(struct rounds *r, int k)
{
    struct stop *stop = &r->stops[k];
    const struct campaign_options *options = r->c->options;
    if (stop->announced || !stop->state.has_record)
        return;
    stop->announced = true;
    tally(r->c->result, &stop->state.record);
    progress_clear(&r->c->progress);
    if (options->listener)
        options->listener(options->context, point_of(r, k), &stop->state.record);
}

/* Rows come in the order of the plan, whatever the order of the round. */
static void finish(struct rounds *r, int k)
{
    struct point_state *state = &r->stops[k].state;
    r->stops[k].done = true;
    if (state->open) /* it waited, or was about to */
        r->kept_bytes -= fmax(0, state->resident_bytes);
    point_close(state);
    for (; r->next < r->c->plan->count && r->stops[r->next].done; r->next++) {
        announce(r, r->next);
        point_release(&r->stops[r->next].state);
    }
}

/* ---- points that are not run ---- */

static enum status skip(struct rounds *r, int k, const char *reason, struct error *err)
{
    struct point_state *state = &r->stops[k].state;
    char *now = arena_alloc(&state->arena, UTC_TEXT);
    if (!now)
        return FAIL_NO_MEMORY(err);
    utc_now(now);
    TRY(record_skipped(point_of(r, k), k, reason, now, &state->arena, &state->record, err));
    state->has_record = true;
    TRY(campaign_put(r->c, &state->record, err));
    finish(r, k);
    return STATUS_OK;
}

/* A point under which the process ended twice is left out; NULL: it may begin. Where that cannot
 * be noted it begins all the same: its result will find the database as it is. */
static const char *why_left_out(struct rounds *r, int k)
{
    struct campaign *c = r->c;
    struct error ignored;
    int earlier = 0;
    if (!c->store || run_attempt(c->store, c->run, k, &earlier, &ignored) != STATUS_OK ||
        earlier < ATTEMPTS_MAX)
        return NULL;
    return arena_printf(&r->stops[k].state.arena,
                        "left out: the process ended %d times while this point was measured "
                        "(killed, out of memory, or crashed)",
                        earlier);
}

static void withdraw_attempt(const struct rounds *r, int k)
{
    struct error ignored;
    if (r->c->store)
        run_attempt_withdraw(r->c->store, r->c->run, k, &ignored);
}

/* What the next visit is thought to take: as long as the latest, or its share of what the whole
 * point took in earlier runs, or of the least that its stopping rule allows. */
static double visit_estimate(const struct rounds *r, int k)
{
    const struct point *point = point_of(r, k);
    const struct point_state *state = &r->stops[k].state;
    double whole = plan_takes(point);
    double share = whole / (point->protocol.rounds > 1 ? point->protocol.rounds : 1);
    return state->visit_count > 0 && state->visit_s > 0 ? fmin(share, state->visit_s) : share;
}

static bool fits(const struct rounds *r, int k)
{
    double budget = r->c->plan->budget_s;
    double spent = (double)(clock_now_ns() - r->c->began_ns) * 1e-9;
    return budget <= 0 || spent + visit_estimate(r, k) <= budget;
}

/* A point without a visit is skipped; one that has some stays with them. */
static enum status leave_out(struct rounds *r, int k, struct error *err)
{
    struct point_state *state = &r->stops[k].state;
    double spent = (double)(clock_now_ns() - r->c->began_ns) * 1e-9;
    r->c->result->over_budget++;
    if (state->has_record) {
        finish(r, k);
        return STATUS_OK;
    }
    double takes = visit_estimate(r, k), budget = r->c->plan->budget_s;
    double whole = plan_takes(point_of(r, k));
    const char *reason =
        !point_of(r, k)->over_budget
            ? arena_printf(&state->arena,
                           "budget of %g s: %.3g s were spent, and a visit takes about %.2g s",
                           budget, spent, takes)
        : whole > budget
            ? arena_printf(&state->arena, "budget of %g s: this point alone takes about %.2g s",
                           budget, whole)
            : arena_printf(&state->arena, "budget of %g s: the points before it need what is left",
                           budget);
    return reason ? skip(r, k, reason, err) : FAIL_NO_MEMORY(err);
}

/* ---- targets that wait ---- */

/* What it takes on a device is not known, and is scarce there. */
static bool may_wait(const struct rounds *r, const struct point_state *state)
{
    bool here = !state->target.exe || state->target.pool;
    double bytes = fmax(0, state->resident_bytes);
    return here && !isnan(bytes) && r->kept_bytes + bytes <= r->keep_bytes;
}

static void rest(struct rounds *r, int k, bool waited)
{
    struct point_state *state = &r->stops[k].state;
    double bytes = fmax(0, state->resident_bytes);
    point_rest(state);
    if (waited)
        r->kept_bytes -= bytes;
    if (may_wait(r, state))
        r->kept_bytes += bytes;
    else
        point_close(state);
}

/* What waits may be compiled again; the point that is at work needs the memory now. */
static bool make_room(void *context)
{
    struct rounds *r = context;
    bool had = r->kept_bytes > 0;
    for (int k = 0; k < r->c->plan->count && had; k++)
        if (k != r->at)
            point_close(&r->stops[k].state);
    r->kept_bytes = 0;
    return had;
}

/* ---- visits ---- */

static struct point_job job_of(struct rounds *r, int k, int round)
{
    struct campaign *c = r->c;
    return (struct point_job){.point = point_of(r, k),
                              .sequence = k,
                              .round = round,
                              .rounds = c->plan->rounds,
                              .model = c->options->model,
                              .ceilings = &c->ceilings,
                              .levels = c->levels,
                              .progress = &c->progress,
                              .make_room = make_room,
                              .make_room_context = r,
                              .apart = c->options->apart};
}

static enum status take_visit(struct rounds *r, int k, int round, struct error *lost,
                              struct error *err)
{
    struct stop *stop = &r->stops[k];
    struct point_job job = job_of(r, k, round);
    bool waited = stop->state.open;
    job.lost = lost;
    job.wait_for_usual = round >= point_of(r, k)->protocol.rounds;
    job.usual = job.wait_for_usual ? &stop->usual : NULL;
    r->at = k;
    enum status status = point_of(r, k)->ranks ? scale_point_visit(&job, &stop->state, err)
                                               : point_visit(&job, &stop->state, err);
    rest(r, k, waited);
    return status;
}

/* Points with several visits end when all rounds are over. */
static bool ends_with_this(const struct rounds *r, int k)
{
    return r->stops[k].state.record.status != RESULT_OK || point_of(r, k)->protocol.rounds <= 1;
}

static void compare_with_ceilings(struct campaign *c, const struct point *point,
                                  const struct record *record)
{
    double burst = record_value(record, "peak_flop_rate");
    if (!point_has_device(point) && !point->ranks && strcmp(point->precision, "f32") == 0 &&
        ceilings_are_low(c->ceilings.records, c->ceilings.count, point->threads, burst))
        c->ceilings_low = true;
}

static enum status visit(struct rounds *r, int k, int round, struct error *err)
{
    struct campaign *c = r->c;
    struct stop *stop = &r->stops[k];
    struct error lost = {0};
    TRY(take_visit(r, k, round, &lost, err));
    if (lost.code)
        TRY(campaign_note_lost(c, point_of(r, k)->device, stop->label, &lost, err));
    progress_clear(&c->progress);
    if (stop->state.interrupted) {
        withdraw_attempt(r, k);
        return STATUS_OK;
    }
    if (stop->state.passed_over)
        return STATUS_OK;
    TRY(campaign_put(c, &stop->state.record, err));
    compare_with_ceilings(c, point_of(r, k), &stop->state.record);
    if (ends_with_this(r, k))
        finish(r, k);
    return STATUS_OK;
}

static enum status come_to(struct rounds *r, int k, int round, struct error *err)
{
    struct campaign *c = r->c;
    struct stop *stop = &r->stops[k];
    const struct point *point = point_of(r, k);
    const char *why = point->skip ? point->skip : campaign_why_lost(c, point->device);
    if (stop->done || stop->state.visit_count > round)
        return STATUS_OK; /* in the run that is gone on with */
    c->result->lost = c->result->lost || (why && !point->skip);
    if (why && !stop->state.has_record)
        return skip(r, k, why, err);
    if (why) { /* what was measured before the device went stays */
        finish(r, k);
        return STATUS_OK;
    }
    if (point->over_budget || !fits(r, k))
        return leave_out(r, k, err);
    why = why_left_out(r, k);
    if (why && stop->state.has_record) { /* what earlier rounds measured stays */
        withdraw_attempt(r, k);
        finish(r, k);
        return STATUS_OK;
    }
    return why ? skip(r, k, why, err) : visit(r, k, round, err);
}

static enum status go_round(struct rounds *r, int round, struct error *err)
{
    struct campaign *c = r->c;
    for (int k = 0; k < c->plan->count; k++)
        r->order[k] = k;
    if (c->plan->rounds > 1) /* one round has nothing to spread */
        visits_order(c->order_seed, round, r->order, c->plan->count);
    for (int i = 0; i < c->plan->count && !interrupt_requested(); i++) {
        struct stop *stop = &r->stops[r->order[i]];
        const struct point *point = point_of(r, r->order[i]);
        char among[40] = "";
        if (c->plan->rounds > 1)
            snprintf(among, sizeof(among), "round %d of %d, ", round + 1, c->plan->rounds);
        snprintf(stop->label, sizeof(stop->label), "%s%.80s b%lld", among, point->spec,
                 (long long)point->batch);
        progress_point(&c->progress, round * c->plan->count + i, stop->label);
        TRY(come_to(r, r->order[i], round, err));
    }
    return STATUS_OK;
}

/* ---- after the planned rounds ---- */

static bool are_comparable(const struct point *a, const struct point *b)
{
    return a->threads == b->threads && strcmp(a->precision, b->precision) == 0 &&
           strcmp(a->device, b->device) == 0;
}

/* The usual placement of all points that are comparable with k. */
static enum status find_usual_of(struct rounds *r, int k, struct placement *readings, bool *known,
                                 struct error *err)
{
    int count = 0, points = r->c->plan->count;
    struct placement usual;
    for (int j = k; j < points; j++)
        for (int v = 0; v < r->stops[j].state.visit_count; v++)
            if (are_comparable(point_of(r, j), point_of(r, k)))
                readings[count++] = placement_of(&r->stops[j].state.visits[v]);
    TRY(placement_usual(readings, count, &usual, err));
    for (int j = k; j < points; j++)
        if (are_comparable(point_of(r, j), point_of(r, k))) {
            r->stops[j].usual = usual;
            known[j] = true;
        }
    return STATUS_OK;
}

static enum status find_usual(struct rounds *r, struct error *err)
{
    size_t points = (size_t)r->c->plan->count, visits = 0;
    for (int k = 0; k < r->c->plan->count; k++)
        visits += (size_t)r->stops[k].state.visit_count;
    struct placement *readings = calloc(visits + 1, sizeof(*readings));
    bool *known = calloc(points + 1, sizeof(*known));
    enum status status = readings && known ? STATUS_OK : FAIL_NO_MEMORY(err);
    for (int k = 0; k < r->c->plan->count && status == STATUS_OK; k++)
        if (!known[k])
            status = find_usual_of(r, k, readings, known, err);
    free(readings);
    free(known);
    return status;
}

/* How many more visits would be good to have; 0 where none can be had. */
static int visits_lacking(const struct rounds *r, int k)
{
    const struct stop *stop = &r->stops[k];
    int rounds = point_of(r, k)->protocol.rounds;
    if (stop->done || !stop->state.has_record || rounds <= 1 ||
        stop->state.visit_count + 1 >= POINT_VISITS(rounds))
        return 0;
    return rounds - visits_good(stop->state.visits, stop->state.visit_count, &stop->usual);
}

/* One more round, to points that lack visits: first to those that have too few to be judged by. */
static enum status make_up_round(struct rounds *r, int round, uint64_t until_ns, bool *lacking,
                                 struct error *err)
{
    struct campaign *c = r->c;
    *lacking = false;
    TRY(find_usual(r, err));
    visits_order(c->order_seed, round, r->order, c->plan->count);
    for (int i = 0; i < 2 * c->plan->count && !interrupt_requested(); i++) {
        int k = r->order[i % c->plan->count];
        int lacks = visits_lacking(r, k), rounds = point_of(r, k)->protocol.rounds;
        bool urgent = rounds - lacks < GOOD_VISITS;
        if (lacks <= 0 || urgent != (i < c->plan->count) ||
            campaign_why_lost(c, point_of(r, k)->device))
            continue;
        if (clock_now_ns() >= until_ns)
            return STATUS_OK;
        if (!fits(r, k))
            continue;
        struct stop *stop = &r->stops[k];
        const struct visit_record *last = &stop->state.visits[stop->state.visit_count - 1];
        *lacking = true;
        snprintf(stop->label, sizeof(stop->label), "again, %.80s", point_of(r, k)->spec);
        progress_point(&c->progress, c->progress.total, stop->label);
        TRY(visit(r, k, last->round + 1, err));
    }
    return STATUS_OK;
}

static enum status make_up(struct rounds *r, struct error *err)
{
    uint64_t now = clock_now_ns();
    uint64_t until = now + (uint64_t)(make_up_share * (double)(now - r->c->began_ns));
    bool lacking = r->c->plan->rounds > 1;
    for (int k = 0; k < r->c->plan->rounds && lacking && !interrupt_requested(); k++)
        TRY(make_up_round(r, r->c->plan->rounds + k, until, &lacking, err));
    return STATUS_OK;
}

static enum status settle(struct rounds *r, struct error *err)
{
    TRY(find_usual(r, err));
    for (int k = 0; k < r->c->plan->count; k++) {
        struct stop *stop = &r->stops[k];
        struct point_job job = job_of(r, k, stop->state.visit_count);
        bool changed = false;
        job.usual = &stop->usual;
        if (stop->done || !stop->state.has_record)
            continue;
        TRY(point_settle(&job, &stop->state, &changed, err));
        stop->state.record.settled = true;
        if (changed)
            TRY(campaign_put(r->c, &stop->state.record, err));
        finish(r, k);
    }
    return STATUS_OK;
}

/* ---- a run that is gone on with ---- */

/* What a point has so far, with room for what it lacks. */
static enum status load(struct rounds *r, int k, struct error *err)
{
    struct campaign *c = r->c;
    struct point_state *state = &r->stops[k].state;
    TRY(run_load(c->store, c->run, k, &state->arena, &state->record, err));
    struct record *record = &state->record;
    record->point = record_point(point_of(r, k));
    state->has_record = true;
    state->visit_count = record->visit_count;
    state->visits =
        arena_array(&state->arena, (size_t)(record->visit_count + POINT_VISITS(c->plan->rounds)),
                    sizeof(*state->visits));
    state->samples = (struct sample_record *)(uintptr_t)record->samples;
    state->sample_count = record->sample_count;
    if (!state->visits)
        return FAIL_NO_MEMORY(err);
    for (int v = 0; v < record->visit_count; v++)
        state->visits[v] = record->visits[v];
    return STATUS_OK;
}

static enum status find_done(struct rounds *r, struct error *err)
{
    struct campaign *c = r->c;
    for (int k = 0; c->store && k < c->plan->count; k++) {
        if (!run_has(c->store, c->run, k))
            continue;
        int rounds = point_of(r, k)->protocol.rounds; /* a single one leaves a result, once */
        r->stops[k].done = run_has_all(c->store, c->run, k, rounds > 1 ? rounds : 0);
        c->result->resumed += r->stops[k].done;
        if (!r->stops[k].done)
            TRY(load(r, k, err));
    }
    return STATUS_OK;
}

/* ---- all ---- */

static int64_t levels_room(double available)
{
    return available > 0 ? (int64_t)fmin(available / LEVELS_PART, 0x1p40) : 0;
}

static enum status begin(struct rounds *r, struct error *err)
{
    struct campaign *c = r->c;
    size_t count = (size_t)c->plan->count + 1;
    double available = free_memory_find("").bytes;
    r->stops = calloc(count, sizeof(*r->stops));
    r->order = calloc(count, sizeof(*r->order));
    if (!r->stops || !r->order)
        return FAIL_NO_MEMORY(err);
    r->keep_bytes = available > 0 ? available / KEEP_PART : 0;
    /* Without levels a run is worth less, but is one. */
    if (levels_open(levels_room(available), &c->levels, NULL) != STATUS_OK)
        c->levels = NULL;
    c->progress.total = c->plan->count * c->plan->rounds;
    return find_done(r, err);
}

enum status campaign_visit_all(struct campaign *c, struct error *err)
{
    struct rounds r = {.c = c};
    enum status status = begin(&r, err);
    for (int k = 0; k < c->plan->rounds && status == STATUS_OK && !interrupt_requested(); k++)
        status = go_round(&r, k, err);
    if (status == STATUS_OK && !interrupt_requested())
        status = make_up(&r, err);
    if (status == STATUS_OK && !interrupt_requested())
        status = settle(&r, err);
    c->result->interrupted = interrupt_requested();
    for (int k = 0; r.stops && k < c->plan->count; k++) {
        if (status == STATUS_OK)
            announce(&r, k); /* the visits before the interruption */
        point_release(&r.stops[k].state);
    }
    free(r.stops);
    free(r.order);
    levels_close(c->levels);
    c->levels = NULL;
    return status;
}
