/* SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L
#include "harness/bench/bench_store.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/numbers/stats.h"
#include "base/text/shell.h"
#include "base/text/utc.h"
#include "harness/bench/bench_fit.h"
#include "harness/bench/platform.h"
#include "harness/scale/command_run.h"
#include "harness/suite/plan.h"

enum { METRICS_MAX = 16 };

struct storing {
    const struct bench *bench;
    const struct bench_part *parts;
    int cpus;
    char network[192]; /* of simulated ranks */
    double link_rate;  /* bytes/s */
};

/* One result: case `index` of a part. */
struct case_at {
    const struct storing *s;
    const struct bench_part *part;
    const struct timing_case *c;
    const struct timing *t;
};

static bool is_stored(const struct bench_part *part, int index)
{
    return !part->cases[index].copies && part->results[index].status == STATUS_OK;
}

static int count_stored(const struct storing *s)
{
    int count = 0;
    for (int p = 0; p < s->bench->backend_count; p++)
        for (int k = 0; k < s->parts[p].count; k++)
            count += is_stored(&s->parts[p], k);
    return count;
}

static struct case_at case_at(const struct storing *s, int number)
{
    for (int p = 0; p < s->bench->backend_count; p++)
        for (int k = 0; k < s->parts[p].count; k++)
            if (is_stored(&s->parts[p], k) && number-- == 0)
                return (struct case_at){s, &s->parts[p], &s->parts[p].cases[k],
                                        &s->parts[p].results[k]};
    return (struct case_at){.s = s};
}

/* ---- its numbers ---- */

struct rows {
    struct metric_record *of;
    int count;
    const char *source; /* of times and what is made of them */
};

static struct metric_record *add(struct rows *rows, const char *name, const char *unit,
                                 double value, enum better better)
{
    struct metric_record *row = &rows->of[rows->count++];
    *row = metric_alone(-1, name, unit, value);
    row->source = rows->source;
    row->better = better;
    return row;
}

/* The rate that busbw cannot pass: copying alone, or the link of a simulated host. */
static void add_roof(struct rows *rows, const struct case_at *at)
{
    int ranks = at->s->bench->timing.ranks;
    struct timing copy = {.bytes = at->t->bytes,
                          .seconds = bench_copy_seconds(at->part, at->c->bytes)};
    double roof =
        at->s->bench->platform ? at->s->link_rate : timing_bus_rate(&copy, at->c->operation, ranks);
    struct metric_record *row = add(rows, "roof_rate", "B/s", roof, BETTER_NONE);
    row->reason = isnan(roof) ? "copying alone was not timed" : "";
    row->formula = at->s->bench->platform ? "a host's link, in one direction"
                                          : "bus_rate if it took as long as each rank's copy";
    row->source = at->s->bench->platform ? "platform" : rows->source;
}

/* What a model makes of a case, and how. */
struct modelled {
    double seconds, residual;
    const char *formula;
};

static bool of_schedule(const struct case_at *at, struct arena *arena, struct modelled *out)
{
    struct alpha_beta fit;
    if (!at->c->algorithm ||
        !bench_fit(at->part, at->c->algorithm, at->c->operation, at->c->in_place, &fit))
        return false;
    *out = (struct modelled){
        alpha_beta_seconds(&fit, (double)at->t->work.messages,
                           (double)bench_bytes_sent(at->c, at->t)),
        fit.residual,
        arena_printf(arena, "messages x %.4g us + bytes sent x %.4g ps, fitted to %d sizes",
                     fit.message_s * 1e6, fit.byte_s * 1e12, fit.points)};
    return true;
}

static bool of_messages(const struct case_at *at, struct arena *arena, struct modelled *out)
{
    struct log_gp fit;
    const struct trip *trip = &at->c->trip;
    if (trip->apart_ns || !bench_log_gp(at->part, &fit))
        return false;
    *out = (struct modelled){
        log_gp_seconds(&fit, trip->messages, (double)trip->bytes), fit.residual,
        arena_printf(arena, "LogGP: L %.4g us, o %.4g us, g %.4g us, G %.4g ps, fitted to %d trips",
                     fit.latency_s * 1e6, fit.overhead_s * 1e6, fit.gap_s * 1e6, fit.byte_s * 1e12,
                     fit.points)};
    return true;
}

static enum status add_model(struct rows *rows, const struct case_at *at, struct arena *arena,
                             struct error *err)
{
    struct modelled model = {NAN, NAN, ""};
    bool known = (at->c->trip.messages ? of_messages : of_schedule)(at, arena, &model);
    struct metric_record *row = add(rows, "model_s", "s", model.seconds, BETTER_NONE);
    row->source = "model";
    row->reason = known ? "" : "no model fits what is measured here";
    row->formula = model.formula;
    if (!known)
        return STATUS_OK;
    row = add(rows, "model_residual", "1", model.residual, BETTER_LOWER);
    row->source = "model";
    row->formula = "root of the mean square of (model - time) / time, of all that it was fitted to";
    return model.formula ? STATUS_OK : FAIL_NO_MEMORY(err);
}

static void add_rates(struct rows *rows, const struct case_at *at)
{
    const struct timing *t = at->t;
    double bus_rate = timing_bus_rate(t, at->c->operation, at->s->bench->timing.ranks);
    add(rows, "in_place", "1", at->c->in_place, BETTER_NONE)->source = "command";
    add(rows, "chosen", "1", !at->c->algorithm, BETTER_NONE)->source = "command";
    add(rows, "algorithm_rate", "B/s", timing_algorithm_rate(t), BETTER_HIGHER)->formula =
        "bytes / time_s";
    add(rows, "bus_rate", "B/s", bus_rate, BETTER_HIGHER)->formula =
        "algorithm_rate x what a rank must send of it at least";
    add_roof(rows, at);
    if (!t->work.messages)
        return;
    add(rows, "messages", "1", (double)t->work.messages, BETTER_LOWER)->source = "model";
    add(rows, "sent_bytes", "B", (double)bench_bytes_sent(at->c, t), BETTER_LOWER)->source =
        "model";
}

static enum status make_metrics(const struct case_at *at, struct arena *arena,
                                struct record *record, struct error *err)
{
    const struct timing *t = at->t;
    double *sorted = arena_array(arena, (size_t)t->sample_count, sizeof(*sorted));
    struct rows rows = {.of = arena_array(arena, METRICS_MAX, sizeof(*rows.of)),
                        .source = at->s->bench->platform ? "simulation" : "clock"};
    if (!sorted || !rows.of)
        return FAIL_NO_MEMORY(err);
    memcpy(sorted, t->samples, (size_t)t->sample_count * sizeof(*sorted));
    stats_sort(sorted, t->sample_count);
    rows.of[rows.count] = command_run_time(sorted, t->sample_count, t->seconds);
    rows.of[rows.count++].source = rows.source;
    add(&rows, "ranks", "1", at->s->bench->timing.ranks, BETTER_NONE)->source = "command";
    add(&rows, "bytes", "B", (double)t->bytes, BETTER_NONE)->source = "command";
    if (!at->c->trip.messages)
        add_rates(&rows, at);
    TRY(add_model(&rows, at, arena, err));
    record->metrics = rows.of;
    record->metric_count = rows.count;
    return STATUS_OK;
}

/* ---- its identity ---- */

static const char *name_of(const struct timing_case *c)
{
    return c->trip.messages ? "message_trip" : operation_name(c->operation);
}

static char *make_params(const struct case_at *at, struct arena *arena)
{
    const struct timing_case *c = at->c;
    int ranks = at->s->bench->timing.ranks;
    if (c->trip.messages)
        return arena_printf(arena, "bytes=%" PRId64 ",ranks=%d,messages=%d,apart_us=%g", c->bytes,
                            ranks, c->trip.messages, (double)c->trip.apart_ns * 1e-3);
    return arena_printf(arena, "bytes=%" PRId64 ",ranks=%d,algorithm=%s,place=%s", at->t->bytes,
                        ranks, c->algorithm ? c->algorithm->name : "chosen",
                        c->in_place ? "in" : "out");
}

/* What is not as usual. */
static const char *settings(const struct case_at *at, struct arena *arena)
{
    const struct bench *b = at->s->bench;
    const struct schedule_options *o = &b->timing.schedule;
    char text[640] = "";
    FILE *to = fmemopen(text, sizeof(text), "w");
    if (!to)
        return "";
    if (b->reduction != COMM_SUM)
        fprintf(to, " reduction=%s", reduction_name(b->reduction));
    if (b->wire != DTYPE_NONE)
        fprintf(to, " wire=%s", dtype_name(b->wire));
    if (o->lanes)
        fprintf(to, " lanes=%d", o->lanes);
    if (o->segment_bytes)
        fprintf(to, " segment=%" PRId64, o->segment_bytes);
    if (o->node_ranks)
        fprintf(to, " per_node=%d", o->node_ranks);
    fprintf(to, "%s%s", b->timing.own_memory ? " memory=own" : "",
            b->timing.touch ? " touched=1" : "");
    if (b->platform)
        fprintf(to, " network=%s", at->s->network);
    fclose(to);
    return arena_strdup(arena, text);
}

static enum status make_point(const struct case_at *at, struct arena *arena,
                              struct point_record *out, struct error *err)
{
    const struct bench *b = at->s->bench;
    char *key = arena_alloc(arena, 17);
    const char *how = settings(at, arena);
    *out = (struct point_record){.key = key,
                                 .workload = name_of(at->c),
                                 .params = make_params(at, arena),
                                 .domain = "collective",
                                 .mode = "collective",
                                 .device = b->platform ? "simulated" : "cpu",
                                 .precision = dtype_name(b->dtype),
                                 .batch = 1,
                                 .threads = 1,
                                 .scenario = "single_stream",
                                 .cache = "warm",
                                 .providers = at->part->backend->name};
    if (!out->params || !key || !how)
        return FAIL_NO_MEMORY(err);
    out->canonical = arena_printf(
        arena,
        "workload=%s params=%s mode=collective device=%s precision=%s batch=1 threads=1 "
        "scenario=single_stream cache=warm providers=%s%s",
        out->workload, out->params, out->device, out->precision, out->providers, how);
    if (!out->canonical)
        return FAIL_NO_MEMORY(err);
    plan_id(out->canonical, key);
    return STATUS_OK;
}

static enum status make_op(const struct case_at *at, struct arena *arena, struct record *record,
                           struct error *err)
{
    struct op_record *op = arena_array(arena, 1, sizeof(*op));
    char *algorithm = arena_strdup(arena, at->t->algorithm);
    int64_t count = at->t->bytes / (int64_t)dtype_size(at->c->dtype);
    char *shape = arena_printf(arena, "[%" PRId64 "]", count);
    if (!op || !algorithm || !shape)
        return FAIL_NO_MEMORY(err);
    *op = (struct op_record){.name = name_of(at->c),
                             .kind = name_of(at->c),
                             .shape = shape,
                             .kernel = algorithm,
                             .provider = at->part->backend->name};
    record->ops = op;
    record->op_count = 1;
    return STATUS_OK;
}

static const char *unfit(const struct case_at *at)
{
    const struct bench *b = at->s->bench;
    return b->platform                                    ? "simulated, not measured"
           : !at->part->backend->for_measures             ? at->part->backend->summary
           : at->s->cpus && b->timing.ranks > at->s->cpus ? "ranks share CPUs"
                                                          : "";
}

static void say_settings(const struct bench *b, FILE *to)
{
    const struct schedule_options *o = &b->timing.schedule;
    if (b->reduction != COMM_SUM)
        fprintf(to, " --reduction %s", reduction_name(b->reduction));
    if (b->wire != DTYPE_NONE)
        fprintf(to, " --wire %s", dtype_name(b->wire));
    if (o->lanes)
        fprintf(to, " --lanes %d", o->lanes);
    if (o->segment_bytes)
        fprintf(to, " --segment %" PRId64, o->segment_bytes);
    if (o->node_ranks)
        fprintf(to, " --per-node %d", o->node_ranks);
    fprintf(to, "%s%s", b->timing.own_memory ? " --own-memory" : "",
            b->timing.touch ? " --touch" : "");
}

/* What is chosen by size is measured beside every algorithm, since it has no name. NULL: no
 * memory. */
static const char *make_command(const struct case_at *at, struct arena *arena)
{
    const struct bench *b = at->s->bench;
    const struct timing_case *c = at->c;
    const char *platform = b->platform ? shell_word(arena, b->platform) : "", *copy = NULL;
    char *text = NULL;
    size_t size;
    FILE *to = platform ? open_memstream(&text, &size) : NULL;
    if (!to)
        return NULL;
    fprintf(to, "ridge bench collectives --%s %d --operation %s",
            b->platform ? "simulate" : "ranks", b->timing.ranks, operation_name(c->operation));
    if (c->trip.messages)
        fputs(" --loggp", to);
    else if (c->algorithm)
        fprintf(to, " --algorithm %s", c->algorithm->name);
    fprintf(to, " --dtype %s --from %" PRId64 " --to %" PRId64, dtype_name(b->dtype), c->bytes,
            c->bytes);
    say_settings(b, to);
    fprintf(to, " --%s %s", b->platform ? "platform" : "backend",
            b->platform ? platform : at->part->backend->name);
    if (fclose(to) == 0)
        copy = arena_strdup(arena, text);
    free(text);
    return copy;
}

static enum status make_record(const void *context, int index, struct arena *arena,
                               struct record *record, struct error *err)
{
    struct case_at at = case_at(context, index);
    if (!at.t)
        return FAIL(err, STATUS_FAILED, "there is no case %d", index);
    char *started = arena_alloc(arena, UTC_TEXT);
    const char *reason = unfit(&at);
    bool trip = at.c->trip.messages;
    *record = (struct record){.sequence = index,
                              .status = at.t->wrong > 0 ? RESULT_WRONG : RESULT_OK,
                              .valid = !*reason && at.t->wrong <= 0,
                              .reason = at.t->wrong > 0 ? "elements are wrong" : reason,
                              .verify_error = NAN,
                              .verify_bound = NAN,
                              .verify_how =
                                  trip || at.t->wrong < 0 ? "" : "sums of small integers, exact",
                              .stop_reason = "blocks",
                              .started_utc = started};
    record->reproduce = make_command(&at, arena);
    if (!started || !record->reproduce)
        return FAIL_NO_MEMORY(err);
    utc_now(started);
    for (int k = 0; k < at.t->sample_count; k++)
        record->wall_s += at.t->samples[k] * (double)at.t->per_block;
    TRY(make_point(&at, arena, &record->point, err));
    TRY(make_op(&at, arena, record, err));
    TRY(make_metrics(&at, arena, record, err));
    return command_run_samples(at.t->samples, at.t->sample_count, 0, arena, record, err);
}

enum status bench_store(const struct bench *bench, const struct bench_part *parts, int cpus,
                        const char *db, const char *command, struct error *err)
{
    struct storing s = {.bench = bench, .parts = parts, .cpus = cpus};
    struct platform platform;
    if (bench->platform) {
        TRY(platform_read(bench->platform, &platform, err));
        platform_text(&platform, s.network, sizeof(s.network));
        s.link_rate = platform.link_gbit_s / 8 * 1e9;
    }
    return command_run_store(db, command, count_stored(&s), make_record, &s, err);
}
