/* SPDX-License-Identifier: Apache-2.0 */
#include "harness/turns/turns_point.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/numbers/stats.h"
#include "harness/campaign/record.h"
#include "harness/cli/command.h"
#include "harness/measure/visits.h"

enum { SAMPLES_LEAST = 6 }; /* of all visits: fewer have no 95 % interval of the median */

static const char *const names[] = {"BASE", "HEAD"};

enum status turns_point_open(struct turns_point *tp, const struct point *point, int sequence,
                             int rounds, struct arena *arena, struct error *err)
{
    *tp = (struct turns_point){.point = point, .sequence = sequence, .failed = -1, .block = 1};
    for (int k = 0; k < 2; k++) {
        tp->visits[k] = arena_array(arena, (size_t)rounds, sizeof(*tp->visits[k]));
        if (!tp->visits[k])
            return FAIL_NO_MEMORY(err);
    }
    return STATUS_OK;
}

void turns_point_close(struct turns_point *tp)
{
    free(tp->samples[0]);
    free(tp->samples[1]);
    tp->samples[0] = tp->samples[1] = NULL;
}

/* ---- visits ---- */

static enum status add_samples(struct turns_point *tp, int side, const struct turns_visit *visit,
                               int round, struct error *err)
{
    size_t need = tp->count[side] + (size_t)visit->count;
    if (need > tp->capacity[side]) {
        struct sample_record *grown =
            realloc(tp->samples[side], 2 * need * sizeof(*tp->samples[side]));
        if (!grown)
            return FAIL_NO_MEMORY(err);
        tp->samples[side] = grown;
        tp->capacity[side] = 2 * need;
    }
    for (int k = 0; k < visit->count; k++)
        tp->samples[side][tp->count[side]++] =
            (struct sample_record){.visit = round,
                                   .phase = SAMPLE_TIME,
                                   .time_ns = (int64_t)llround(visit->ms[side][k] * 1e6),
                                   .queue_ns = RECORD_NONE,
                                   .context_switches = RECORD_NONE,
                                   .migrations = RECORD_NONE,
                                   .page_faults = RECORD_NONE,
                                   .steal_ns = RECORD_NONE,
                                   .clock_hz = NAN};
    return STATUS_OK;
}

/* sorted: room for the samples of the visit. */
static void summarise(struct visit_record *record, const double *ms, int count, double *sorted)
{
    for (int k = 0; k < count; k++)
        sorted[k] = ms[k] * 1e-3;
    stats_sort(sorted, count);
    record->samples = count;
    record->median_s = stats_median(sorted, count);
    if (!stats_median_interval(sorted, count, &record->ci_low_s, &record->ci_high_s))
        record->ci_low_s = record->ci_high_s = NAN;
}

/* A side with a failure, in words. */
static const char *failed_text(struct turns_point *tp, int side, struct arena *arena)
{
    const char *text = side == tp->failed ? arena_strdup(arena, tp->failure.message)
                                          : arena_printf(arena, "not measured: %s failed: %s",
                                                         names[tp->failed], tp->failure.message);
    return text ? text : "";
}

enum status turns_point_add(struct turns_point *tp, const struct turns_visit *visit, int round,
                            const struct error *failure, struct arena *arena, struct error *err)
{
    bool failed = failure->code != STATUS_OK;
    if (failed) {
        tp->failure = *failure;
        tp->failed = visit->failed;
        tp->lacks_it = visit->exit_code == EXIT_MISSING;
    }
    double *sorted = calloc((size_t)visit->count + 1, sizeof(*sorted));
    char *started = arena_strdup(arena, visit->started_utc);
    enum status status = sorted && started ? STATUS_OK : FAIL_NO_MEMORY(err);
    for (int k = 0; status == STATUS_OK && k < 2; k++) {
        struct visit_record *record = &tp->visits[k][tp->visit_count];
        *record = (struct visit_record){.round = round,
                                        .started_utc = started,
                                        .median_s = NAN,
                                        .ci_low_s = NAN,
                                        .ci_high_s = NAN,
                                        .steal_share = visit->seen.steal_share,
                                        .wait_share = visit->seen.wait_share,
                                        .clock_hz = visit->seen.clock_hz};
        /* A reason says that the visit does not count. */
        record->reason = failed ? failed_text(tp, k, arena) : "";
        if (!failed)
            levels_join(&visit->seen.before, &visit->seen.after, record);
        if (failed)
            continue;
        summarise(record, visit->ms[k], visit->count, sorted);
        status = add_samples(tp, k, visit, round, err);
    }
    free(sorted);
    tp->visit_count++;
    tp->complete += !failed;
    tp->block = tp->block > visit->block ? tp->block : visit->block;
    tp->wall_s += visit->seconds;
    return status;
}

/* ---- records ---- */

static double mean_clock(const struct turns_point *tp)
{
    double sum = 0;
    for (int k = 0; k < tp->complete; k++)
        sum += tp->visits[0][k].clock_hz;
    return sum / tp->complete; /* NAN without any */
}

/* Of all visits. A restless machine does not make it invalid, since the differences of neighbouring
 * samples are judged. */
static enum status join(const struct turns_point *tp, int side, struct arena *arena,
                        struct measurement *m, double *spread, struct error *err)
{
    struct visits visits = {.protocol = &tp->point->protocol,
                            .visits = tp->visits[side],
                            .count = tp->complete,
                            .samples = tp->samples[side],
                            .sample_count = (int64_t)tp->count[side],
                            .stop_reason = ""};
    TRY(visits_join(&visits, arena, m, spread, err));
    m->clock_hz = mean_clock(tp);
    m->reason[0] = '\0';
    m->valid = m->timed >= SAMPLES_LEAST;
    if (!m->valid)
        snprintf(m->reason, sizeof(m->reason), "%lld samples are fewer than %d",
                 (long long)m->timed, SAMPLES_LEAST);
    snprintf(m->stop_reason, sizeof(m->stop_reason),
             "%lld pairs of samples of %lld executions in %d visits, in turns with %s",
             (long long)m->timed, tp->block, tp->complete, names[1 - side]);
    if (tp->block > 1)
        m->p90_s = m->p99_s = m->p999_s = NAN;
    return STATUS_OK;
}

static bool is_called(const struct metric_record *metric, const char *prefix)
{
    return strncmp(metric->name, prefix, strlen(prefix)) == 0;
}

/* A mean of several executions has no tail: its quantiles are left out. So is the throughput where
 * the batch is that of a model file, which only HEAD's process has read. */
static enum status leave_out(struct record *record, const struct turns_point *tp, bool plain,
                             struct arena *arena, struct error *err)
{
    struct metric_record *metrics =
        arena_array(arena, (size_t)record->metric_count + 1, sizeof(*metrics));
    const char *why = arena_printf(arena, "each sample is the mean of %lld executions", tp->block);
    if (!metrics || !why)
        return FAIL_NO_MEMORY(err);
    if (record->metric_count)
        memcpy(metrics, record->metrics, (size_t)record->metric_count * sizeof(*metrics));
    for (int k = 0; k < record->metric_count; k++) {
        if (tp->block > 1 && is_called(&metrics[k], "latency_p"))
            metrics[k].reason = why;
        if (!plain || tp->point->batch || !is_called(&metrics[k], "throughput"))
            continue;
        metrics[k].value = NAN;
        metrics[k].reason = "how many items the model file takes at once was not asked";
    }
    record->metrics = metrics;
    return STATUS_OK;
}

/* By its samples alone. */
static enum status plain_record(struct turns_point *tp, int side, const struct measurement *m,
                                double spread, struct arena *arena, struct record *record,
                                struct error *err)
{
    const struct graph_cost cost = {.batch = tp->point->batch, .flops = NAN};
    const char *started = tp->visit_count ? tp->visits[side][0].started_utc : "";
    struct point_facts facts = {.point = tp->point,
                                .sequence = tp->sequence,
                                .started_utc = started,
                                .wall_s = tp->wall_s,
                                .cost = &cost,
                                .measurement = m->timed ? m : NULL,
                                .peak_flop_rate = NAN,
                                .peak_reason = "",
                                .peak_rss_bytes = NAN,
                                .failure = side == tp->failed ? &tp->failure : NULL,
                                .visits = tp->visits[side],
                                .visit_count = tp->visit_count,
                                .round_spread = spread};
    TRY(record_make(&facts, arena, record, err));
    record->verify_how =
        side == TURNS_BASE ? "not verified in turns" : "not verified before the last round";
    return STATUS_OK;
}

static enum status not_measured(struct turns_point *tp, int side, struct arena *arena,
                                struct record *record, struct error *err)
{
    const char *reason = tp->refused ? tp->refused : failed_text(tp, side, arena);
    char *now = arena_alloc(arena, UTC_TEXT);
    if (!now)
        return FAIL_NO_MEMORY(err);
    utc_now(now);
    return record_skipped(tp->point, tp->sequence, reason, now, arena, record, err);
}

/* A failure because the program cannot run such a point at all counts as skipped, as in any run. */
static enum status settle(struct turns_point *tp, int side, bool plain, struct arena *arena,
                          struct record *record, struct error *err)
{
    record->visits = tp->visits[side];
    record->visit_count = tp->visit_count;
    if (side == tp->failed && tp->lacks_it)
        record->status = RESULT_SKIPPED;
    return leave_out(record, tp, plain, arena, err);
}

/* HEAD once more, in this process: compiled, verified, its steps timed, counted. */
static enum status whole_record(struct turns_point *tp, const struct point_job *job,
                                const struct measurement *m, double spread,
                                struct point_state *state, struct record *record, struct error *err)
{
    const struct visits_taken taken = {m, tp->visits[TURNS_HEAD], tp->visit_count, spread};
    struct point_job with = *job;
    with.taken = &taken;
    TRY(point_visit(&with, state, err));
    if (!state->has_record)
        return STATUS_OK;
    *record = state->record;
    record->wall_s += tp->wall_s;
    return STATUS_OK;
}

enum status turns_point_record(struct turns_point *tp, enum turns_which side,
                               const struct point_job *job, struct point_state *state,
                               struct arena *arena, struct record *record, struct error *err)
{
    struct measurement *m = arena_alloc(arena, sizeof(*m)); /* the record points into it */
    bool other_failed = tp->failed == 1 - (int)side;
    bool plain = !job || side == TURNS_BASE || tp->failed == TURNS_HEAD;
    double spread;
    if (!m)
        return FAIL_NO_MEMORY(err);
    if (tp->refused || (other_failed && !tp->complete)) {
        TRY(not_measured(tp, side, arena, record, err));
        return settle(tp, side, true, arena, record, err);
    }
    TRY(join(tp, side, arena, m, &spread, err));
    if (!plain)
        TRY(whole_record(tp, job, m, spread, state, record, err));
    if (plain || !state->has_record) /* or interrupted in it */
        TRY(plain_record(tp, side, m, spread, arena, record, err));
    return settle(tp, side, plain, arena, record, err);
}
