/* SPDX-License-Identifier: Apache-2.0 */
#include "harness/campaign/train_record.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/system/pool.h"
#include "base/text/utc.h"
#include "engine/graph/cost.h"
#include "harness/machine/environment.h"
#include "harness/suite/plan.h"
#include "harness/suite/point_params.h"
#include "results/store.h"
#include "workloads/workload.h"

enum { METRICS_MAX = 16 };

struct rows {
    struct metric_record metrics[METRICS_MAX];
    int count;
};

static void add(struct rows *rows, const char *name, const char *unit, enum better better,
                double value, const char *formula)
{
    struct metric_record *row = &rows->metrics[rows->count++];
    *row = metric_alone(-1, name, unit, value);
    row->source = "clock";
    row->better = better;
    row->reason = isnan(value) ? "none" : "";
    row->formula = formula;
}

static void add_padding(struct rows *rows, const struct train_facts *f)
{
    const struct data_set *set = trainer_data(f->trainer);
    if (!set || !set->words)
        return;
    add(rows, "padding_share", "1", BETTER_LOWER, set->padding,
        "places of a sample without a word / all of its places");
    rows->metrics[rows->count - 1].source = "data";
}

static int64_t parts_of(const struct train_job *job)
{
    return job->micro_batches > 1 ? job->micro_batches : 1;
}

/* Of a step, which is an execution for each part of the batch: the weights move in the last one. */
static double flops_of_step(const struct graph *g, double flops, int64_t parts)
{
    double update = 0;
    for (int n = 0; n < g->node_count; n++) {
        struct node_cost cost;
        const struct update_rule *rule = g->nodes[n].op->update;
        if (g->nodes[n].dead || !rule || !rule->name)
            continue;
        node_cost(g, n, &cost);
        update += cost.flops;
    }
    return (double)parts * flops - (double)(parts - 1) * update;
}

/* Of images that grow each size has its own: no count belongs to the mean step. */
static void add_work(struct rows *rows, const struct train_facts *f)
{
    struct graph_cost cost;
    const struct graph *g = trainer_graph(f->trainer);
    int64_t parts = parts_of(f->job);
    bool grows = f->job->size_count > 1;
    graph_cost(g, &cost);
    double flops = flops_of_step(g, cost.flops, parts);
    double bytes = (double)parts * cost.bytes_compulsory;
    add(rows, "flops", "1", BETTER_NONE, grows ? (double)NAN : flops, "");
    add(rows, "bytes_compulsory", "B", BETTER_NONE, grows ? (double)NAN : bytes, "");
    for (int k = rows->count - 2; k < rows->count; k++) {
        rows->metrics[k].source = "model";
        rows->metrics[k].reason = grows ? "images grew" : "";
    }
}

static void add_judgement(struct rows *rows, const struct train_facts *f)
{
    const struct train_result *r = f->result;
    const struct quality *q = trainer_quality(f->trainer);
    if (r->judged_count == 0)
        return;
    const struct train_judgement *last = &r->judged[r->judged_count - 1];
    add(rows, "held_out_loss", "1", BETTER_LOWER, last->loss, "");
    if (q && !isnan(last->quality))
        add(rows, "quality", "1", BETTER_HIGHER, last->quality, q->name);
    if (q && q->also && !isnan(last->also))
        add(rows, "quality_also", "1", BETTER_HIGHER, last->also, q->also->name);
    if (q && !isnan(last->bayes))
        add(rows, "quality_bayes", "1", BETTER_NONE, last->bayes,
            "of answers that know how samples are made");
    if (r->reached)
        add(rows, "time_to_quality_s", "s", BETTER_LOWER, (double)last->time_ns * 1e-9,
            "of the steps until the quality was what --until asks for");
}

static void make_rows(struct rows *rows, const struct train_facts *f)
{
    const struct train_result *r = f->result;
    double steps = (double)(r->steps - r->first), time_s = (double)r->time_ns * 1e-9;
    *rows = (struct rows){.count = 0};
    add(rows, "time_s", "s", BETTER_LOWER, time_s / steps, "mean step, waiting included");
    rows->metrics[0].n = r->steps - r->first;
    add(rows, "throughput", "1/s", BETTER_HIGHER, steps * (double)r->batch / time_s, "samples");
    add(rows, "input_wait_s", "s", BETTER_LOWER, (double)r->waited_ns * 1e-9 / steps,
        "mean of a step");
    add(rows, "input_wait_share", "1", BETTER_LOWER, train_input_wait(r),
        "time in which steps waited for samples / time of the steps");
    add(rows, "read_rate", "B/s", BETTER_NONE, (double)r->read_bytes / time_s,
        r->epoch_samples ? "read of files" : "size of samples that were made up");
    add(rows, "arena_bytes", "B", BETTER_LOWER, (double)r->arena_bytes,
        "planned for activations, gradients and scratch");
    rows->metrics[rows->count - 1].source = "model";
    add_padding(rows, f);
    add_work(rows, f);
    add_judgement(rows, f);
    if (f->price > 0)
        add(rows, "cost_dollars", "1", BETTER_LOWER, f->price * time_s / 3600,
            "time of the steps x price per hour");
}

/* Which code was trained with, where it is not the usual one. */
static enum status name_code(const struct model_options *m, struct arena *arena,
                             struct point_record *point, struct error *err)
{
    struct code_choice choice;
    TRY(model_code_choice(m, &choice, err));
    const char *code = code_choice_canonical(arena, &choice, point->device);
    if (point->canonical && code)
        point->canonical = arena_printf(arena, "%s%s%s", point->canonical,
                                        model_tunes_quickly(m) ? " tuning=quick" : "", code);
    return point->canonical && code ? STATUS_OK : FAIL_NO_MEMORY(err);
}

/* What is learnt by, where it is not as published. */
static enum status name_recipe(const struct train_facts *f, struct arena *arena,
                               struct point_record *point, struct error *err)
{
    if (point->canonical)
        point->canonical = arena_printf(
            arena, "%s%s%s%s%s", point->canonical, f->optimiser ? " optimiser=" : "",
            f->optimiser ? f->optimiser : "", f->sizes ? " sizes=" : "", f->sizes ? f->sizes : "");
    return point->canonical ? STATUS_OK : FAIL_NO_MEMORY(err);
}

static enum status make_point(const struct train_facts *f, struct arena *arena,
                              struct point_record *point, struct error *err)
{
    const struct train_job *job = f->job;
    const struct workload *w = workload_of(job->spec);
    const struct data_format *data = trainer_place(f->trainer)->format;
    char id[17];
    *point = (struct point_record){
        .workload = w->name,
        .params = point_params(arena, job->spec),
        .domain = w->domain,
        .mode = "training",
        .device = job->model.device ? job->model.device : "cpu",
        .precision = "f32",
        .batch = f->result->batch,
        .threads = pool_threads(exe_pool(trainer_exe(f->trainer))),
        .scenario = "train",
        .cache = "warm",
        .providers = point_words(arena, job->model.providers ? job->model.providers : "")};
    if (!point->params || !point->providers)
        return FAIL_NO_MEMORY(err);
    point->canonical = arena_printf(
        arena,
        "workload=%s params=%s mode=training device=%s precision=f32 batch=%lld threads=%d "
        "scenario=train data=%s readers=%d limit=%.10g providers=%s",
        point->workload, point->params, point->device, (long long)point->batch, point->threads,
        data ? data->name : "made", job->reader_threads > 1 ? job->reader_threads : 1,
        job->read_limit, point->providers);
    if (point->canonical && job->micro_batches > 1)
        point->canonical = arena_printf(arena, "%s micro_batches=%lld", point->canonical,
                                        (long long)job->micro_batches);
    if (point->canonical && job->model.recompute)
        point->canonical = job->model.segments
                               ? arena_printf(arena, "%s recompute=%lld", point->canonical,
                                              (long long)job->model.segments)
                               : arena_printf(arena, "%s recompute=auto", point->canonical);
    TRY(name_recipe(f, arena, point, err));
    TRY(name_code(&job->model, arena, point, err));
    plan_id(point->canonical, id);
    point->key = arena_strdup(arena, id);
    return point->key ? STATUS_OK : FAIL_NO_MEMORY(err);
}

static enum status put(struct store *store, const struct run_head *head,
                       const struct environment *environment, const struct record *record,
                       bool interrupted, struct error *err)
{
    int64_t run;
    TRY(run_begin(store, head, &run, err));
    TRY(run_put_facts(store, run, "before", environment, err));
    TRY(run_put(store, run, record, err));
    return run_end(store, run, !interrupted, true, interrupted ? record->reason : "", err);
}

static enum status store_all(struct store *store, const struct train_facts *f, struct arena *arena,
                             struct error *err)
{
    struct environment environment;
    struct build_record build;
    struct rows rows;
    int64_t steps = trainer_steps(f->trainer);
    bool interrupted = !f->failure && !f->result->reached && f->result->steps < steps;
    const char *reason = f->failure ? f->failure->message : "";
    const char *ended = interrupted ? "interrupted" : f->result->reached ? "quality" : "steps";
    if (interrupted)
        reason = arena_printf(arena, "interrupted after step %lld of %lld",
                              (long long)f->result->steps, (long long)steps);
    if (!reason)
        return FAIL_NO_MEMORY(err);
    struct record record = {.status = f->failure ? RESULT_FAILED : RESULT_OK,
                            .valid = !f->failure && !interrupted,
                            .reason = reason,
                            .verify_error = NAN,
                            .verify_bound = NAN,
                            .verify_how = "",
                            .stop_reason = f->failure ? "" : ended,
                            .started_utc = f->started_utc,
                            .reproduce = f->command,
                            .wall_s = f->wall_s};
    char uuid[UUID_TEXT];
    TRY(environment_probe(&environment, arena, false, err));
    TRY(build_probe(&build, arena, err));
    TRY(make_point(f, arena, &record.point, err));
    rows.count = 0;
    if (!f->failure) /* what steps on wrong numbers take says nothing */
        make_rows(&rows, f);
    record.metrics = rows.metrics;
    record.metric_count = rows.count;
    uuid_make(uuid);
    const struct run_head head = {.uuid = uuid,
                                  .environment = &environment,
                                  .build = &build,
                                  .command = f->command,
                                  .suite = "command line",
                                  .suite_text = "",
                                  .plan_hash = record.point.key,
                                  .planned = 1,
                                  .rounds = 1,
                                  .started_utc = f->started_utc,
                                  .order_key = (int64_t)time(NULL),
                                  .branch = "",
                                  .tag = ""};
    return put(store, &head, &environment, &record, interrupted, err);
}

enum status train_store(const char *db, const struct train_facts *facts, struct error *err)
{
    struct arena arena = {0};
    struct store *store;
    TRY(store_open(db, STORE_WRITE, &store, err));
    enum status status = store_all(store, facts, &arena, err);
    store_close(store);
    arena_release(&arena);
    return status;
}
