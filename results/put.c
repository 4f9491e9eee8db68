/* SPDX-License-Identifier: Apache-2.0
 *
 * Writing runs and results. Each function is one transaction, on disk when it returns. */
#include <math.h>
#include <string.h>

#include "base/registry.h"
#include "results/sqlite.h"
#include "results/store.h"

enum statement {
    PUT_HOST,
    PUT_ENV,
    FIND_ENV,
    PUT_FACT,
    PUT_BUILD,
    PUT_RUN,
    PUT_RUN_FACT,
    PUT_POINT,
    PUT_RESULT,
    PUT_OP,
    PUT_METRIC,
    PUT_SAMPLE,
    PUT_VISIT,
    PUT_LEVEL,
    DROP_RESULT,
    PUT_CEILING,
    END_RUN,
    PUT_BASELINE,
    STATEMENT_COUNT
};
_Static_assert((int)STATEMENT_COUNT <= (int)STORE_STATEMENTS,
               "struct store has room for all statements");

static const char *const texts[] = {
    [PUT_HOST] = "INSERT INTO host (uid, label) VALUES (?, ?) "
                 "ON CONFLICT (uid) DO UPDATE SET label = excluded.label RETURNING id",
    [PUT_ENV] = "INSERT INTO env_set (hash) VALUES (?) ON CONFLICT (hash) DO NOTHING RETURNING id",
    [FIND_ENV] = "SELECT id FROM env_set WHERE hash = ?",
    [PUT_FACT] = "INSERT OR REPLACE INTO env_fact VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
    [PUT_BUILD] = "INSERT INTO build (uid, version, git, config, compiler, flags, features) "
                  "VALUES (?, ?, ?, ?, ?, ?, ?) "
                  "ON CONFLICT (uid) DO UPDATE SET uid = excluded.uid RETURNING id",
    [PUT_RUN] =
        "INSERT INTO run (uuid, host, env_set, build, command, suite, suite_text, plan_hash, "
        "planned, rounds, order_seed, turns_uuid, started_utc, order_key, branch, tag, state, "
        "verdict, reason) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 'running', 'valid', '') "
        "RETURNING id",
    [PUT_RUN_FACT] = "INSERT OR REPLACE INTO run_fact VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
    [PUT_POINT] =
        "INSERT INTO point (key, canonical, workload, params, domain, mode, device, precision, "
        "batch, threads, scenario, cache, providers) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) "
        "ON CONFLICT (key) DO UPDATE SET key = excluded.key RETURNING id",
    [PUT_RESULT] =
        "INSERT INTO result (id, run, sequence, point, status, verdict, reason, verify_error, "
        "verify_bound, verify_how, stop_reason, started_utc, wall_s, reproduce) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING id",
    [PUT_OP] = "INSERT INTO op VALUES (?, ?, ?, ?, ?, ?, ?)",
    [PUT_METRIC] =
        "INSERT INTO metric (result, op, name, unit, source, better, value, reason, formula, n, "
        "min, q1, q3, max, mad, ci_low, ci_high) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
    [PUT_SAMPLE] =
        "INSERT INTO sample (result, idx, visit, phase, time_ns, queue_ns, context_switches, "
        "migrations, page_faults, steal_ns, clock_hz) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
    [PUT_VISIT] = "INSERT INTO visit VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
    [PUT_LEVEL] = "INSERT INTO level VALUES (?, ?, ?, ?, ?, ?, ?)",
    [DROP_RESULT] = "DELETE FROM result WHERE run = ? AND sequence = ? AND point = ? "
                    "AND (SELECT count(*) FROM visit WHERE result = id) < ? RETURNING id",
    [PUT_CEILING] =
        "INSERT OR REPLACE INTO ceiling (run, device, kind, name, level, precision, isa, pattern, "
        "threads, working_set_bytes, value, unit, reason, how, n, min, max, clock_hz) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
    [END_RUN] = "UPDATE run SET state = ?2, verdict = ?3, reason = ?4, "
                "ended_utc = strftime('%Y-%m-%dT%H:%M:%fZ', 'now') WHERE id = ?1",
    [PUT_BASELINE] = "INSERT OR REPLACE INTO baseline "
                     "VALUES (?, ?, ?, strftime('%Y-%m-%dT%H:%M:%fZ', 'now'))",
};

static const char *const class_names[] = {"identity", "tuning", "volatile"};
static const char *const fact_status_names[] = {"ok", "denied", "absent"};
const char *const better_names[BETTER_COUNT] = {"lower", "higher", "none"};
const char *const phase_names[SAMPLE_PHASE_COUNT] = {"warmup", "time", "discarded"};
const char *const result_status_names[RESULT_STATUS_COUNT] = {"ok", "wrong", "failed", "skipped"};

static enum status start(struct store *store, enum statement which, struct binder *binder,
                         struct error *err)
{
    if (!store->statements[which])
        TRY(sql_prepare(store, texts[which], &store->statements[which], err));
    *binder = binder_on(store->statements[which]);
    return STATUS_OK;
}

/* A number that is not there has a reason: the schema insists, and a record is not lost for it. */
static const char *reason_of(double value, const char *reason)
{
    return isnan(value) && !reason[0] ? "no reason was given" : reason;
}

/* ---- run ---- */

static void bind_fact(struct binder *b, const struct fact *fact)
{
    bind_text(b, fact->category);
    bind_text(b, fact->key);
    bind_text(b, fact->status == FACT_OK ? fact->value : NULL);
    bind_text(b, fact->unit);
    bind_text(b, fact->source);
}

static enum status put_environment(struct store *store, const struct environment *environment,
                                   int64_t *id, struct error *err)
{
    static const char doing[] = "storing the environment";
    struct binder b;
    TRY(start(store, PUT_ENV, &b, err));
    bind_text(&b, environment->hash);
    TRY(binder_run(store, &b, id, doing, err));
    if (*id == 0) { /* known: so are its facts */
        TRY(start(store, FIND_ENV, &b, err));
        bind_text(&b, environment->hash);
        return binder_run(store, &b, id, doing, err);
    }
    for (int k = 0; k < environment->fact_count; k++) {
        const struct fact *fact = &environment->facts[k];
        if (fact->class == FACT_VOLATILE)
            continue;
        TRY(start(store, PUT_FACT, &b, err));
        bind_int(&b, *id);
        bind_fact(&b, fact);
        bind_text(&b, class_names[fact->class]);
        bind_text(&b, fact_status_names[fact->status]);
        TRY(binder_run(store, &b, NULL, doing, err));
    }
    return STATUS_OK;
}

static enum status put_build(struct store *store, const struct build_record *build, int64_t *id,
                             struct error *err)
{
    struct binder b;
    TRY(start(store, PUT_BUILD, &b, err));
    bind_text(&b, build->uid);
    bind_text(&b, build->version);
    bind_text(&b, build->git);
    bind_text(&b, build->config);
    bind_text(&b, build->compiler);
    bind_text(&b, build->flags);
    bind_text(&b, build->features);
    return binder_run(store, &b, id, "storing the build", err);
}

static enum status put_run(struct store *store, const struct run_head *head, int64_t *run,
                           struct error *err)
{
    struct binder b;
    int64_t host, env, build;
    TRY(start(store, PUT_HOST, &b, err));
    bind_text(&b, head->environment->host_uid);
    bind_text(&b, head->environment->host_label);
    TRY(binder_run(store, &b, &host, "storing the host", err));
    TRY(put_environment(store, head->environment, &env, err));
    TRY(put_build(store, head->build, &build, err));
    TRY(start(store, PUT_RUN, &b, err));
    bind_text(&b, head->uuid);
    bind_int(&b, host);
    bind_int(&b, env);
    bind_int(&b, build);
    bind_text(&b, head->command);
    bind_text(&b, head->suite);
    bind_text(&b, head->suite_text);
    bind_text(&b, head->plan_hash);
    bind_int(&b, head->planned);
    bind_int(&b, head->rounds > 0 ? head->rounds : 1);
    bind_int(&b, head->order_seed);
    bind_text(&b, head->turns_uuid ? head->turns_uuid : "");
    bind_text(&b, head->started_utc);
    bind_int(&b, head->order_key);
    bind_text(&b, head->branch);
    bind_text(&b, head->tag);
    return binder_run(store, &b, run, "storing the run", err);
}

enum status run_begin(struct store *store, const struct run_head *head, int64_t *run,
                      struct error *err)
{
    static const char doing[] = "storing the run";
    TRY(sql_begin(store, doing, err));
    return sql_finish(store, put_run(store, head, run, err), doing, err);
}

static enum status put_facts(struct store *store, int64_t run, const char *phase,
                             const struct environment *environment, struct error *err)
{
    struct binder b;
    for (int k = 0; k < environment->fact_count; k++) {
        const struct fact *fact = &environment->facts[k];
        if (fact->class != FACT_VOLATILE)
            continue;
        TRY(start(store, PUT_RUN_FACT, &b, err));
        bind_int(&b, run);
        bind_text(&b, phase);
        bind_fact(&b, fact);
        bind_text(&b, fact_status_names[fact->status]);
        TRY(binder_run(store, &b, NULL, "storing facts of the run", err));
    }
    return STATUS_OK;
}

enum status run_put_facts(struct store *store, int64_t run, const char *phase,
                          const struct environment *environment, struct error *err)
{
    static const char doing[] = "storing facts of the run";
    TRY(sql_begin(store, doing, err));
    return sql_finish(store, put_facts(store, run, phase, environment, err), doing, err);
}

enum status run_end(struct store *store, int64_t run, bool finished, bool valid, const char *reason,
                    struct error *err)
{
    static const char doing[] = "storing the end of the run";
    struct binder b;
    TRY(start(store, END_RUN, &b, err));
    bind_int(&b, run);
    bind_text(&b, finished ? "finished" : "interrupted");
    bind_text(&b, valid ? "valid" : "invalid");
    bind_text(&b, reason);
    TRY(sql_begin(store, doing, err));
    return sql_finish(store, binder_run(store, &b, NULL, doing, err), doing, err);
}

/* ---- result ---- */

static enum status put_point(struct store *store, const struct point_record *point, int64_t *id,
                             struct error *err)
{
    struct binder b;
    TRY(start(store, PUT_POINT, &b, err));
    bind_text(&b, point->key);
    bind_text(&b, point->canonical);
    bind_text(&b, point->workload);
    bind_text(&b, point->params);
    bind_text(&b, point->domain);
    bind_text(&b, point->mode);
    bind_text(&b, point->device);
    bind_text(&b, point->precision);
    bind_int(&b, point->batch);
    bind_int(&b, point->threads);
    bind_text(&b, point->scenario);
    bind_text(&b, point->cache);
    bind_text(&b, point->providers);
    return binder_run(store, &b, id, "storing the point", err);
}

/* What is stored of fewer visits of the same point goes (of as many, when settled), with all that
 * hangs on it; *id is what it had, 0 where there was nothing. */
static enum status drop_shorter(struct store *store, int64_t run, const struct record *record,
                                int64_t point, int64_t *id, struct error *err)
{
    struct binder b;
    TRY(start(store, DROP_RESULT, &b, err));
    bind_int(&b, run);
    bind_int(&b, record->sequence);
    bind_int(&b, point);
    bind_int(&b, record->visit_count + record->settled);
    return binder_run(store, &b, id, "replacing the result", err);
}

static enum status put_result(struct store *store, int64_t run, const struct record *record,
                              int64_t *id, struct error *err)
{
    struct binder b;
    int64_t point, before;
    TRY(put_point(store, &record->point, &point, err));
    TRY(drop_shorter(store, run, record, point, &before, err));
    TRY(start(store, PUT_RESULT, &b, err));
    bind_int(&b, before ? before : RECORD_NONE);
    bind_int(&b, run);
    bind_int(&b, record->sequence);
    bind_int(&b, point);
    bind_text(&b, result_status_names[record->status]);
    bind_text(&b, record->valid ? "valid" : "invalid");
    bind_text(&b, record->reason);
    bind_number(&b, record->verify_error);
    bind_number(&b, record->verify_bound);
    bind_text(&b, record->verify_how);
    bind_text(&b, record->stop_reason);
    bind_text(&b, record->started_utc);
    bind_number(&b, isnan(record->wall_s) ? 0 : record->wall_s);
    bind_text(&b, record->reproduce);
    return binder_run(store, &b, id, "storing the result", err);
}

static enum status put_ops(struct store *store, int64_t result, const struct record *record,
                           struct error *err)
{
    struct binder b;
    for (int k = 0; k < record->op_count; k++) {
        const struct op_record *op = &record->ops[k];
        TRY(start(store, PUT_OP, &b, err));
        bind_int(&b, result);
        bind_int(&b, k);
        bind_text(&b, op->name);
        bind_text(&b, op->kind);
        bind_text(&b, op->shape);
        bind_text(&b, op->kernel);
        bind_text(&b, op->provider);
        TRY(binder_run(store, &b, NULL, "storing the steps", err));
    }
    return STATUS_OK;
}

static enum status put_metric(struct store *store, int64_t result,
                              const struct metric_record *metric, struct error *err)
{
    struct binder b;
    TRY(start(store, PUT_METRIC, &b, err));
    bind_int(&b, result);
    bind_int(&b, metric->op < 0 ? RECORD_NONE : metric->op);
    bind_text(&b, metric->name);
    bind_text(&b, metric->unit);
    bind_text(&b, metric->source);
    bind_text(&b, better_names[metric->better]);
    bind_number(&b, metric->value);
    bind_text(&b, reason_of(metric->value, metric->reason));
    bind_text(&b, metric->formula);
    bind_int(&b, metric->n);
    const double spread[] = {metric->min, metric->q1,     metric->q3,     metric->max,
                             metric->mad, metric->ci_low, metric->ci_high};
    for (int k = 0; k < ARRAY_COUNT(spread); k++)
        bind_number(&b, metric->n ? spread[k] : NAN);
    return binder_run(store, &b, NULL, "storing the metrics", err);
}

static enum status put_sample(struct store *store, int64_t result, int64_t index,
                              const struct sample_record *sample, struct error *err)
{
    struct binder b;
    TRY(start(store, PUT_SAMPLE, &b, err));
    bind_int(&b, result);
    bind_int(&b, index);
    bind_int(&b, sample->visit);
    bind_text(&b, phase_names[sample->phase]);
    bind_int(&b, sample->time_ns);
    bind_int(&b, sample->queue_ns);
    bind_int(&b, sample->context_switches);
    bind_int(&b, sample->migrations);
    bind_int(&b, sample->page_faults);
    bind_int(&b, sample->steal_ns);
    bind_number(&b, sample->clock_hz);
    return binder_run(store, &b, NULL, "storing the samples", err);
}

static enum status put_levels(struct store *store, int64_t result, const struct visit_record *visit,
                              struct error *err)
{
    struct binder b;
    for (int k = 0; k < visit->level_count; k++) {
        const struct level_record *level = &visit->levels[k];
        TRY(start(store, PUT_LEVEL, &b, err));
        bind_int(&b, result);
        bind_int(&b, visit->round);
        bind_text(&b, level->name);
        bind_text(&b, level->unit);
        bind_text(&b, better_names[level->better]);
        bind_number(&b, level->value);
        bind_text(&b, reason_of(level->value, level->reason));
        TRY(binder_run(store, &b, NULL, "storing the levels", err));
    }
    return STATUS_OK;
}

static enum status put_visit(struct store *store, int64_t result, const struct visit_record *visit,
                             struct error *err)
{
    struct binder b;
    TRY(start(store, PUT_VISIT, &b, err));
    bind_int(&b, result);
    bind_int(&b, visit->round);
    bind_text(&b, visit->started_utc);
    bind_int(&b, visit->samples);
    bind_number(&b, visit->median_s);
    bind_number(&b, visit->ci_low_s);
    bind_number(&b, visit->ci_high_s);
    bind_number(&b, visit->steal_share);
    bind_number(&b, visit->wait_share);
    bind_number(&b, visit->clock_hz);
    bind_text(&b, visit->reason);
    TRY(binder_run(store, &b, NULL, "storing the visits", err));
    return put_levels(store, result, visit, err);
}

static enum status put_record(struct store *store, int64_t run, const struct record *record,
                              struct error *err)
{
    int64_t result;
    TRY(put_result(store, run, record, &result, err));
    TRY(put_ops(store, result, record, err));
    for (int k = 0; k < record->metric_count; k++)
        TRY(put_metric(store, result, &record->metrics[k], err));
    for (int64_t k = 0; k < record->sample_count; k++)
        TRY(put_sample(store, result, k, &record->samples[k], err));
    for (int k = 0; k < record->visit_count; k++)
        TRY(put_visit(store, result, &record->visits[k], err));
    return attempt_forget(store, run, record->sequence, err);
}

enum status run_put(struct store *store, int64_t run, const struct record *record,
                    struct error *err)
{
    static const char doing[] = "storing the result";
    TRY(sql_begin(store, doing, err));
    return sql_finish(store, put_record(store, run, record, err), doing, err);
}

/* ---- ceilings and names ---- */

const char *ceiling_kind_name(enum ceiling_kind kind)
{
    static const char *const names[CEILING_KIND_COUNT] = {[CEILING_BANDWIDTH] = "bandwidth",
                                                          [CEILING_COMPUTE] = "compute",
                                                          [CEILING_LATENCY] = "latency",
                                                          [CEILING_CAPACITY] = "capacity"};
    return names[kind];
}

static enum status put_ceiling(struct store *store, int64_t run,
                               const struct ceiling_record *ceiling, struct error *err)
{
    struct binder b;
    TRY(start(store, PUT_CEILING, &b, err));
    bind_int(&b, run);
    bind_text(&b, ceiling->device);
    bind_text(&b, ceiling_kind_name(ceiling->kind));
    bind_text(&b, ceiling->name);
    bind_text(&b, ceiling->level);
    bind_text(&b, ceiling->precision);
    bind_text(&b, ceiling->isa);
    bind_text(&b, ceiling->pattern);
    bind_int(&b, ceiling->threads);
    bind_int(&b, ceiling->working_set_bytes);
    bind_number(&b, ceiling->value);
    bind_text(&b, ceiling->unit);
    bind_text(&b, reason_of(ceiling->value, ceiling->reason));
    bind_text(&b, ceiling->datasheet ? "datasheet" : "measured");
    bind_int(&b, ceiling->n);
    bind_number(&b, ceiling->min);
    bind_number(&b, ceiling->max);
    bind_number(&b, ceiling->clock_hz > 0 ? ceiling->clock_hz : NAN);
    return binder_run(store, &b, NULL, "storing the ceilings", err);
}

enum status run_put_ceilings(struct store *store, int64_t run,
                             const struct ceiling_record *ceilings, int count, struct error *err)
{
    static const char doing[] = "storing the ceilings";
    enum status status = STATUS_OK;
    TRY(sql_begin(store, doing, err));
    for (int k = 0; status == STATUS_OK && k < count; k++)
        status = put_ceiling(store, run, &ceilings[k], err);
    return sql_finish(store, status, doing, err);
}

enum status baseline_set(struct store *store, const char *name, const char *run_uuid,
                         const char *note, struct error *err)
{
    static const char doing[] = "storing the baseline";
    struct binder b;
    TRY(start(store, PUT_BASELINE, &b, err));
    bind_text(&b, name);
    bind_text(&b, run_uuid);
    bind_text(&b, note);
    TRY(sql_begin(store, doing, err));
    return sql_finish(store, binder_run(store, &b, NULL, doing, err), doing, err);
}
