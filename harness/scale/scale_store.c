/* SPDX-License-Identifier: Apache-2.0 */
#include "harness/scale/scale_store.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/numbers/stats.h"
#include "base/text/utc.h"
#include "harness/scale/command_run.h"
#include "harness/scale/scale_reproduce.h"
#include "harness/suite/plan.h"
#include "harness/suite/point_params.h"
#include "workloads/workload.h"

enum { METRICS_MAX = 24, UNIT_METRICS = 7 };

struct rows {
    struct metric_record *metrics;
    int count;
    const char *source; /* of times */
};

static struct metric_record *add(struct rows *rows, int op, const char *name, const char *unit,
                                 double value, enum better better)
{
    struct metric_record *row = &rows->metrics[rows->count++];
    *row = metric_alone(op, name, unit, value);
    row->source = rows->source;
    row->better = better;
    row->reason = isnan(value) ? "not known" : "";
    return row;
}

static void add_time(struct rows *rows, const struct scale_result *r, double *sorted)
{
    int counted = (int)(r->steps - r->warm_up);
    memcpy(sorted, r->step_times + r->warm_up, (size_t)counted * sizeof(*sorted));
    stats_sort(sorted, counted);
    struct metric_record *row = &rows->metrics[rows->count++];
    *row = command_run_time(sorted, counted, r->step_s);
    row->source = rows->source;
}

static void add_whole(struct rows *rows, const struct scale_result *r)
{
    struct scale_sums sums = scale_sums_of(r);
    add(rows, -1, "throughput", "1/s", r->samples_per_s, BETTER_HIGHER)->formula =
        "samples of all ranks / time_s";
    add(rows, -1, "ranks", "1", r->ranks, BETTER_NONE)->source = "command";
    add(rows, -1, "communication_s", "s", sums.communication_s, BETTER_LOWER)->formula =
        "sum over units, from started to ended; mean over ranks and steps";
    add(rows, -1, "exposed_s", "s", sums.exposed_s, BETTER_LOWER)->formula =
        "steps stood still for units, until they started, too; mean over ranks and steps";
    add(rows, -1, "computing_s", "s", sums.computing_s, BETTER_LOWER)->formula =
        "step by a rank's own clock - exposed - input wait; median of steps, mean over ranks";
    add(rows, -1, "hidden_s", "s", sums.hidden_s, BETTER_HIGHER)->formula =
        "communication_s - exposed_s of each rank, or 0; mean over ranks";
    add(rows, -1, "sent_bytes", "B", sums.bytes_sent, BETTER_LOWER)->source = "model";
    if (!r->simulated)
        add(rows, -1, "state_bytes", "B", sums.state_bytes, BETTER_LOWER)->source = "model";
    add(rows, -1, "messages", "1", sums.messages, BETTER_LOWER)->source = "model";
    if (!r->simulated)
        add(rows, -1, "input_wait_s", "s", sums.input_s, BETTER_LOWER)->formula =
            "steps stood still for samples; mean over ranks and steps";
    if (!r->simulated)
        add(rows, -1, "loss", "1", r->losses[r->steps - 1], BETTER_LOWER)->formula =
            "mean over all ranks, last step";
}

/* Units of all ranks in the last step: what a timeline is drawn of. */
static void add_units(struct rows *rows, const struct scale_result *r)
{
    for (int rank = 0; rank < r->detailed; rank++)
        for (int k = 0; k < r->unit_count; k++) {
            const struct scale_unit *unit = &r->by_rank[rank].units[k];
            int op = rank * r->unit_count + k;
            add(rows, op, "rank", "1", rank, BETTER_NONE);
            add(rows, op, "ready_s", "s", (double)unit->ready_ns * 1e-9, BETTER_NONE);
            add(rows, op, "started_s", "s", (double)unit->started_ns * 1e-9, BETTER_NONE);
            add(rows, op, "ended_s", "s", (double)unit->ended_ns * 1e-9, BETTER_NONE);
            add(rows, op, "waited_s", "s", (double)unit->waited_ns * 1e-9, BETTER_LOWER);
            add(rows, op, "bytes", "B", (double)unit->bytes, BETTER_NONE)->source = "model";
            add(rows, op, "sent_bytes", "B", (double)unit->bytes_sent, BETTER_NONE)->source =
                "model";
        }
}

/* The record outlives the result: texts of units are copied. */
static enum status make_ops(const struct scaling *s, const struct scale_result *r,
                            struct arena *arena, struct record *record, struct error *err)
{
    int count = r->detailed * r->unit_count;
    struct op_record *ops = arena_array(arena, (size_t)count + 1, sizeof(*ops));
    if (!ops)
        return FAIL_NO_MEMORY(err);
    for (int k = 0; k < count; k++) {
        const struct scale_unit *unit = &r->by_rank[k / r->unit_count].units[k % r->unit_count];
        ops[k].name =
            arena_printf(arena, "unit %d of rank %d", k % r->unit_count, k / r->unit_count);
        ops[k].kind = arena_strdup(arena, unit->operation);
        ops[k].shape = arena_printf(arena, "[%lld]", (long long)(unit->bytes / 4));
        ops[k].kernel = arena_strdup(arena, unit->algorithm);
        ops[k].provider = s->backend;
        if (!ops[k].name || !ops[k].kind || !ops[k].shape || !ops[k].kernel)
            return FAIL_NO_MEMORY(err);
    }
    record->ops = ops;
    record->op_count = count;
    return STATUS_OK;
}

/* BEFORE and the strategy, where it is not the usual one. */
static const char *strategy(struct arena *arena, const char *before, const char *how)
{
    return !how || strcmp(how, "whole") == 0 ? "" : arena_printf(arena, "%s%s", before, how);
}

static const char *number(struct arena *arena, const char *before, int64_t number)
{
    return number ? arena_printf(arena, "%s%lld", before, (long long)number) : "";
}

/* "items=30,users=40,ranks=2" and what else makes another network of it. */
static const char *params_of(const struct scaling *s, int ranks, struct arena *arena)
{
    const char *own = point_params(arena, s->workload);
    if (!own)
        return NULL;
    const char *params =
        arena_printf(arena, "%s%sranks=%d%s%s%s", own, *own ? "," : "", ranks,
                     strategy(arena, ",tables=", s->tables),
                     strategy(arena, ",moments=", s->moments), s->sync_norms ? ",norms=all" : "");
    if (!params || !s->recompute)
        return params;
    return s->segments ? arena_printf(arena, "%s,recompute=%lld", params, (long long)s->segments)
                       : arena_printf(arena, "%s,recompute=auto", params);
}

/* How gradients are summed and samples are read, as far as it is not the usual way. A network on
 * paper has a word for all of it. */
static const char *way_of(const struct scaling *s, struct arena *arena)
{
    const char *data = "";
    if (s->network)
        return arena_printf(arena, " network=%s", s->network);
    if (s->data)
        data = arena_printf(arena, " data=%s readers=%d limit=%.10g", s->data,
                            s->reader_threads > 1 ? s->reader_threads : 1, s->read_limit);
    if (!data)
        return NULL;
    return arena_printf(arena, "%s%s%s%s%s%s%s%s%s", strategy(arena, " tables=", s->tables),
                        strategy(arena, " moments=", s->moments),
                        strategy(arena, " wire=", s->wire), number(arena, " lanes=", s->lanes),
                        number(arena, " unit=", s->unit_bytes), s->sync_norms ? " norms=all" : "",
                        s->no_overlap ? " overlap=no" : "", data,
                        strategy(arena, " optimiser=", s->optimiser));
}

static enum status make_point(const struct scaling *s, const struct scale_result *r,
                              struct arena *arena, struct point_record *out, struct error *err)
{
    const struct workload *w = workload_of(s->workload);
    const char *params = params_of(s, r->ranks, arena), *way = way_of(s, arena);
    const char *providers = point_words(arena, s->providers ? s->providers : "");
    const char *code = code_choice_canonical(arena, &s->code, "cpu");
    char *key = arena_alloc(arena, 17);
    if (!params || !way || !providers || !code || !key || !w)
        return FAIL_NO_MEMORY(err);
    *out = (struct point_record){.key = key,
                                 .workload = w->name,
                                 .params = params,
                                 .domain = w->domain,
                                 .mode = "training",
                                 .device = r->simulated ? "simulated" : "cpu",
                                 .precision = "f32",
                                 .batch = r->batch,
                                 .threads = r->threads,
                                 .scenario = "single_stream",
                                 .cache = "warm",
                                 .providers = providers};
    out->canonical =
        arena_printf(arena,
                     "workload=%s params=%s mode=training device=%s precision=f32 batch=%lld "
                     "threads=%d scenario=single_stream cache=warm providers=%s scaling=%s "
                     "backend=%s algorithm=%s%s%s%s",
                     w->name, params, out->device, (long long)r->batch, r->threads, providers,
                     s->strong ? "strong" : "weak", s->backend, s->algorithm ? s->algorithm : "",
                     way, s->quick_tune ? " tuning=quick" : "", code);
    if (!out->canonical)
        return FAIL_NO_MEMORY(err);
    plan_id(out->canonical, key);
    return STATUS_OK;
}

enum status scaling_record(const struct scaling *s, int index, struct arena *arena,
                           struct record *record, struct error *err)
{
    const struct scale_result *r = &s->points[index];
    size_t rows_most = METRICS_MAX + (size_t)(r->detailed * r->unit_count) * UNIT_METRICS;
    double *sorted = arena_array(arena, (size_t)r->steps + 1, sizeof(*sorted));
    struct rows rows = {.metrics = arena_array(arena, rows_most, sizeof(*rows.metrics)),
                        .source = r->simulated ? "simulation" : "clock"};
    char *started = arena_alloc(arena, UTC_TEXT);
    bool crowded = s->cpus && r->ranks * r->threads > s->cpus;
    *record = (struct record){.sequence = index,
                              .status = RESULT_OK,
                              .valid = !crowded && !r->simulated,
                              .reason = r->simulated ? "simulated, not measured"
                                        : crowded    ? "ranks share CPUs"
                                                     : "",
                              .verify_error = NAN,
                              .verify_bound = NAN,
                              .verify_how = r->simulated ? "" : "weights of all ranks agree",
                              .stop_reason = "steps",
                              .started_utc = started};
    if (!sorted || !rows.metrics || !started)
        return FAIL_NO_MEMORY(err);
    utc_now(started);
    add_time(&rows, r, sorted);
    add_whole(&rows, r);
    add_units(&rows, r);
    record->metrics = rows.metrics;
    record->metric_count = rows.count;
    for (int64_t k = 0; k < r->steps; k++)
        record->wall_s += r->step_times[k];
    record->reproduce = scaling_reproduce(s, r, arena);
    if (!record->reproduce)
        return FAIL_NO_MEMORY(err);
    TRY(make_point(s, r, arena, &record->point, err));
    TRY(make_ops(s, r, arena, record, err));
    return command_run_samples(r->step_times, (int)r->steps, (int)r->warm_up, arena, record, err);
}

static enum status make_record(const void *context, int index, struct arena *arena,
                               struct record *record, struct error *err)
{
    return scaling_record(context, index, arena, record, err);
}

enum status scaling_store(const struct scaling *s, const char *db, const char *command,
                          struct error *err)
{
    return command_run_store(db, command, s->count, make_record, s, err);
}
