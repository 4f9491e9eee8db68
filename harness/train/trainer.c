/* SPDX-License-Identifier: Apache-2.0 */
#include "harness/train/trainer.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/system/clock.h"
#include "base/system/hash.h"
#include "engine/run/provider.h"
#include "engine/train/checkpoint.h"
#include "harness/suite/point_params.h"
#include "harness/train/broken.h"
#include "harness/train/judge.h"
#include "harness/train/notes.h"
#include "harness/train/span.h"
#include "harness/train/states.h"

#include "workloads/workload.h"

enum { BUFFERS = 4, SPEC_MAX = 1024 };

struct trainer {
    struct train_job job;
    char spec[SPEC_MAX]; /* of the graph: the job's, with the data set's parameters and the size */
    int size;            /* of job.sizes that is at work */
    struct data_place place;
    struct data_set data;
    bool has_data; /* samples are read */
    const struct training *training;
    struct graph *graph;
    struct exe *exe;
    struct reader *reader;
    struct judge *judge;
    struct train_judgement *judged;
    double *losses;
    int rate;               /* graph input */
    uint64_t waited_before; /* of readers of earlier sizes */
    int64_t read_before;
    struct shards shards; /* of the graph at work */
    struct checkpoint from;
    bool resumed;
};

/* ---- opening ---- */

static void seed_weight(struct value *value, uint64_t seed)
{
    if (value->fill.seed == 0)
        value->fill.seed = hash_fnv1a(value->name) + seed * 0x9e3779b97f4a7c15u;
}

/* Other first weights than those that belong to the values' names. */
static void seed_weights(struct graph *g, struct shards *shards, uint64_t seed)
{
    for (int s = 0; seed && s < g->state_count; s++)
        seed_weight(&g->values[g->states[s].before], seed);
    for (int k = 0; seed && k < shards->count; k++)
        seed_weight(&shards->of[k].whole, seed);
}

static int rank_of(const struct trainer *t)
{
    return t->job.model.comm ? t->job.model.comm->rank : 0;
}

static int ranks_of(const struct trainer *t)
{
    return t->job.model.comm ? t->job.model.comm->ranks : 1;
}

/* Samples of a step: this rank's, and all ranks'. */
static int64_t own_batch(const struct trainer *t)
{
    const struct workload *w = workload_of(t->job.spec);
    return t->job.model.batch ? t->job.model.batch : w->batch;
}

static int64_t batch_of(const struct trainer *t)
{
    return own_batch(t) * ranks_of(t);
}

static int64_t micro_batches(const struct trainer *t)
{
    return t->job.micro_batches > 1 ? t->job.micro_batches : 1;
}

/* Samples of an execution of this rank. */
static int64_t own_part(const struct trainer *t)
{
    return own_batch(t) / micro_batches(t);
}

static enum status check_parts(const struct trainer *t, struct error *err)
{
    if (own_batch(t) % micro_batches(t) == 0)
        return STATUS_OK;
    return FAIL(err, STATUS_FAILED,
                "--micro-batches %lld: a batch of %lld is not so many equal parts",
                (long long)micro_batches(t), (long long)own_batch(t));
}

static int64_t epoch_samples(const struct trainer *t)
{
    return t->has_data ? t->data.count[DATA_LEARNT] : 0;
}

static enum status add_parameters(struct trainer *t, const char *text, struct error *err)
{
    size_t used = strlen(t->spec);
    int length = snprintf(t->spec + used, sizeof(t->spec) - used, "%s%s",
                          strchr(t->spec, ':') ? "," : ":", text);
    return length < (int)(sizeof(t->spec) - used)
               ? STATUS_OK
               : FAIL(err, STATUS_FAILED, "%s,%s: too long", t->job.spec, text);
}

/* The spec of images of the size that is at work. */
static enum status make_spec(struct trainer *t, struct error *err)
{
    char text[700];
    if (snprintf(t->spec, sizeof(t->spec), "%s", t->job.spec) >= (int)sizeof(t->spec))
        return FAIL(err, STATUS_FAILED, "%.80s...: too long", t->job.spec);
    if (t->place.format && t->place.format->parameters) {
        TRY(t->place.format->parameters(t->place.folder, text, sizeof(text), err));
        TRY(add_parameters(t, text, err));
    }
    if (t->job.size_count == 0)
        return STATUS_OK;
    snprintf(text, sizeof(text), "image=%lld", (long long)t->job.sizes[t->size].image);
    return add_parameters(t, text, err);
}

static enum status open_step(struct trainer *t, struct error *err)
{
    const struct train_job *job = &t->job;
    struct train_options options;
    TRY(make_spec(t, err));
    TRY(check_parts(t, err));
    TRY(model_train_options(&job->model, &options, err));
    TRY(workload_open_loss(t->spec, own_part(t), &t->graph, &t->training, err));
    if (t->place.format && !t->place.format->parameters && !t->has_data) {
        t->has_data = true; /* to be closed in any case */
        TRY(data_open(&t->place, t->graph, &t->data, err));
    }
    options.micro_batches = (int)micro_batches(t);
    options.ranks = ranks_of(t);
    options.rank = rank_of(t);
    options.sync_norms = job->sync_norms;
    options.unit_bytes = job->unit_bytes;
    options.wire = job->wire;
    options.tables = job->tables;
    options.part_updates = job->part_updates;
    options.shards = &t->shards;
    TRY(train_step(t->graph, &job->recipe, &options, err));
    seed_weights(t->graph, &t->shards, job->seed);
    t->rate = NONE;
    for (int k = 0; k < t->graph->input_count; k++)
        if (strcmp(t->graph->values[t->graph->inputs[k]].name, TRAIN_RATE) == 0)
            t->rate = k;
    return STATUS_OK;
}

static struct span span_of(const struct trainer *t)
{
    return (struct span){.job = &t->job, .batch = batch_of(t), .epoch_samples = epoch_samples(t)};
}

/* The step after the last one of a size. */
static int64_t size_end(const struct trainer *t, int size)
{
    struct span span = span_of(t);
    return span_size_end(&span, size);
}

static enum status take_steps(struct trainer *t, struct error *err)
{
    struct span span = span_of(t);
    return span_steps(&span, &t->job.recipe.schedule.steps, err);
}

/* ---- checkpoints ---- */

static int64_t first_step(const struct trainer *t)
{
    return t->resumed ? t->from.step : 0;
}

static void make_notes(const struct trainer *t, struct train_notes *notes)
{
    train_notes_make(notes, &t->job, batch_of(t), t->has_data ? &t->data : NULL);
}

static enum status check_checkpoint(const struct trainer *t, struct error *err)
{
    struct train_notes notes;
    if (!t->resumed)
        return STATUS_OK;
    make_notes(t, &notes);
    TRY(train_notes_check(&notes, &t->job, &t->from, err));
    if (t->from.step >= t->job.recipe.schedule.steps)
        return FAIL(err, STATUS_FAILED, "%s has made %lld steps: --steps must be more",
                    t->job.resume, (long long)t->from.step);
    return STATUS_OK;
}

static enum status open_checkpoint(struct trainer *t, struct error *err)
{
    struct train_job *job = &t->job;
    if (!job->resume)
        return STATUS_OK;
    enum status status = checkpoint_open(job->resume, &t->from, err);
    t->resumed = true; /* to be closed in any case */
    TRY(status);
    if (!point_same_model(t->from.workload, job->spec))
        return FAIL(err, STATUS_FAILED, "%s is of %s, not of %s", job->resume, t->from.workload,
                    job->spec);
    job->seed = t->from.seed;
    return STATUS_OK;
}

static enum status save(struct trainer *t, int64_t step, struct error *err)
{
    const struct train_job *job = &t->job;
    char recipe[120];
    struct train_notes notes;
    if (!job->save || (rank_of(t) != 0 && t->shards.count == 0))
        return STATUS_OK;
    const char *broken = broken_state(t->exe);
    if (broken)
        return FAIL(err, STATUS_INVALID,
                    "after step %lld \"%s\" is not finite: a smaller --rate may help; nothing was "
                    "saved of this step in %s",
                    (long long)step, broken, job->save);
    snprintf(recipe, sizeof(recipe), "%s, rate %g, %lld steps", job->recipe.optimiser,
             job->recipe.schedule.rate, (long long)job->recipe.schedule.steps);
    make_notes(t, &notes);
    const struct checkpoint_about about = {.workload = job->spec,
                                           .recipe = recipe,
                                           .step = step,
                                           .seed = job->seed,
                                           .more = notes.list,
                                           .more_count = TRAIN_NOTES};
    return checkpoint_save(job->save, t->exe, &t->shards, &about, err);
}

/* ---- all of it ---- */

static enum status open_judge(struct trainer *t, struct error *err)
{
    struct model_options model = t->job.model;
    model.batch = own_part(t);
    if (model.comm)
        return STATUS_OK;
    return judge_open(t->spec, &model, t->job.seed, t->has_data ? &t->data : NULL, t->exe,
                      &t->judge, err);
}

/* From the graph of the step to all that runs it. */
static enum status open_run(struct trainer *t, int64_t step, struct error *err)
{
    const struct train_job *job = &t->job;
    int64_t all = own_part(t) * ranks_of(t); /* samples of an execution of all ranks */
    struct reader_options options = {.graph = t->graph,
                                     .training = t->training,
                                     .data = t->has_data ? &t->data : NULL,
                                     .seed = job->seed,
                                     .first = step * batch_of(t) + rank_of(t) * own_part(t),
                                     .batch = own_part(t),
                                     .stride = all,
                                     .buffers = BUFFERS,
                                     .threads = job->reader_threads,
                                     .bytes_per_s = job->read_limit};
    TRY(model_admits(t->graph, &job->model, err)); /* filling buffers takes as long as there are */
    /* Before the executable, whose threads have a CPU each, this one included. */
    TRY(reader_open(&options, &t->reader, err));
    TRY(model_compile(t->graph, &job->model, &t->exe, err));
    return shards_fill(&t->shards, t->exe, err);
}

static void close_run(struct trainer *t)
{
    judge_close(t->judge);
    exe_free(t->exe);
    reader_close(t->reader);
    graph_free(t->graph);
    shards_release(&t->shards);
    t->judge = NULL;
    t->exe = NULL;
    t->reader = NULL;
    t->graph = NULL;
}

static enum status open_graph(struct trainer *t, struct error *err)
{
    if (open_step(t, err) != STATUS_OK)
        return error_context(err, "training of %s", t->job.spec);
    return STATUS_OK;
}

/* Images of the next size: what was learnt goes on. */
static enum status grow(struct trainer *t, int64_t step, struct error *err)
{
    struct states states;
    enum status status = states_keep(t->exe, &states, err);
    t->waited_before += reader_waited_ns(t->reader);
    t->read_before += reader_bytes(t->reader);
    close_run(t);
    while (size_end(t, t->size) <= step)
        t->size++;
    if (status == STATUS_OK)
        status = open_graph(t, err);
    if (status == STATUS_OK)
        status = open_run(t, step, err);
    if (status == STATUS_OK)
        status = states_give(&states, t->exe, err);
    if (status == STATUS_OK)
        status = open_judge(t, err);
    states_release(&states);
    return status;
}

static enum status open_all(struct trainer *t, struct error *err)
{
    const struct train_job *job = &t->job;
    if (job->data)
        TRY(data_find(job->data, &t->place, err));
    t->place.letters = job->letters;
    TRY(open_checkpoint(t, err));
    TRY(providers_load(job->model.providers, err));
    TRY(open_graph(t, err));
    TRY(take_steps(t, err));
    TRY(check_checkpoint(t, err));
    if (job->size_count && size_end(t, 0) <= first_step(t)) { /* begun with another size */
        graph_free(t->graph);
        shards_release(&t->shards);
        t->graph = NULL;
        while (size_end(t, t->size) <= first_step(t))
            t->size++;
        TRY(open_graph(t, err));
    }
    t->losses = calloc((size_t)job->recipe.schedule.steps + 1, sizeof(*t->losses));
    struct span span = span_of(t);
    t->judged = calloc((size_t)span_judgements(&span) + 1, sizeof(*t->judged));
    if (!t->losses || !t->judged)
        return FAIL_NO_MEMORY(err);
    TRY(open_run(t, first_step(t), err));
    if (t->resumed)
        TRY(checkpoint_restore(&t->from, t->exe, &t->shards, err));
    return open_judge(t, err);
}

enum status trainer_open(const struct train_job *job, struct trainer **out, struct error *err)
{
    struct trainer *t = calloc(1, sizeof(*t));
    *out = NULL;
    if (!t)
        return FAIL_NO_MEMORY(err);
    t->job = *job;
    enum status status = open_all(t, err);
    if (status == STATUS_OK)
        *out = t;
    else
        trainer_close(t);
    return status;
}

void trainer_close(struct trainer *t)
{
    if (!t)
        return;
    close_run(t);
    if (t->resumed)
        checkpoint_close(&t->from);
    if (t->has_data)
        data_close(&t->data);
    free(t->losses);
    free(t->judged);
    free(t);
}

const struct training *trainer_of(const struct trainer *t)
{
    return t->training;
}

const struct graph *trainer_graph(const struct trainer *t)
{
    return t->graph;
}

const struct quality *trainer_quality(const struct trainer *t)
{
    return t->judge ? judge_quality(t->judge) : NULL;
}

int64_t trainer_steps(const struct trainer *t)
{
    return t->job.recipe.schedule.steps;
}

const struct data_place *trainer_place(const struct trainer *t)
{
    return &t->place;
}

const struct data_set *trainer_data(const struct trainer *t)
{
    return t->has_data ? &t->data : NULL;
}

double train_input_wait(const struct train_result *r)
{
    return r->time_ns ? (double)r->waited_ns / (double)r->time_ns : (double)NAN;
}

const struct shards *trainer_shards(const struct trainer *t)
{
    return &t->shards;
}

struct exe *trainer_exe(struct trainer *t)
{
    return t->exe;
}

/* ---- running ---- */

static enum status give_batch(struct trainer *t, struct error *err)
{
    const struct graph *g = t->graph;
    void *const *data;
    TRY(reader_next(t->reader, &data, err));
    for (int k = 0; k < g->input_count; k++) {
        const struct value *value = &g->values[g->inputs[k]];
        if (data[k])
            memcpy(exe_input(t->exe, k), data[k], value_size(value));
    }
    return STATUS_OK;
}

static enum status one_step(struct trainer *t, int64_t step, struct train_result *r,
                            struct error *err)
{
    uint64_t begin = clock_now_ns();
    float rate = (float)schedule_rate(&t->job.recipe.schedule, step);
    double loss = 0;
    for (int64_t part = 0; part < micro_batches(t); part++) {
        TRY(give_batch(t, err));
        *(float *)exe_input(t->exe, t->rate) = rate;
        exe_run(t->exe);
        loss += (double)*(const float *)exe_output(t->exe, 0);
    }
    loss /= (double)micro_batches(t);
    r->time_ns += clock_now_ns() - begin;
    r->waited_ns = t->waited_before + reader_waited_ns(t->reader);
    TRY(exe_status(t->exe, err));
    t->losses[step - r->first] = loss;
    r->steps = step + 1;
    if (isfinite(loss))
        return STATUS_OK;
    const struct broken_step broken = {.exe = t->exe,
                                       .loss = loss,
                                       .step = step + 1,
                                       .first = step == r->first,
                                       .resume = t->job.resume,
                                       .spec = t->job.spec,
                                       .rate = (double)rate};
    return broken_step_fail(&broken, err);
}

static enum status judge_now(struct trainer *t, struct train_result *r, struct error *err)
{
    if (!t->judge)
        return STATUS_OK;
    if (r->judged_count && r->judged[r->judged_count - 1].step == r->steps)
        return STATUS_OK;
    struct span span = span_of(t);
    struct train_judgement *judgement = &t->judged[r->judged_count];
    judgement->step = r->steps;
    judgement->time_ns = r->time_ns;
    judgement->epoch = span_epoch(&span, r->steps);
    TRY(judge_run(t->judge, judgement, err));
    r->judged_count++;
    r->reached |= judgement->quality >= t->job.until; /* never of a NAN */
    if (isfinite(judgement->loss))
        return STATUS_OK;
    return FAIL(err, STATUS_INVALID,
                "after step %lld the loss of held-out samples is %s: a smaller --rate may help%s%s",
                (long long)r->steps, isnan(judgement->loss) ? "not a number" : "infinite",
                t->job.save ? "; nothing was saved of this step in " : "",
                t->job.save ? t->job.save : "");
}

static enum status run_steps(struct trainer *t, train_watch *watch, void *context,
                             struct train_result *result, struct error *err)
{
    const struct schedule *schedule = &t->job.recipe.schedule;
    const struct span span = span_of(t);
    bool go_on = true;
    for (int64_t step = result->first; go_on && step < schedule->steps; step++) {
        if (t->job.size_count && size_end(t, t->size) <= step)
            TRY(grow(t, step, err));
        TRY(one_step(t, step, result, err));
        if (span_is_judged(&span, step + 1))
            TRY(judge_now(t, result, err));
        if (t->job.save_every > 0 && (step + 1) % t->job.save_every == 0)
            TRY(save(t, step + 1, err));
        struct train_progress progress = {
            .so_far = result, .steps = schedule->steps, .rate = schedule_rate(schedule, step)};
        go_on = watch(context, &progress) && !result->reached;
    }
    return STATUS_OK;
}

enum status trainer_run(struct trainer *t, train_watch *watch, void *context,
                        struct train_result *result, struct error *err)
{
    *result = (struct train_result){.losses = t->losses,
                                    .judged = t->judged,
                                    .batch = batch_of(t),
                                    .epoch_samples = epoch_samples(t)};
    result->first = result->steps = first_step(t);
    enum status status = run_steps(t, watch, context, result, err);
    if (t->exe) /* none where the next size did not compile */
        result->arena_bytes = exe_memory(t->exe).arena_bytes;
    if (t->reader)
        result->read_bytes = t->read_before + reader_bytes(t->reader);
    TRY(status);
    /* What is broken must not replace the last good file; what could not be judged may be good. */
    status = judge_now(t, result, err);
    if (status == STATUS_INVALID)
        return status;
    struct error second;
    enum status saved = save(t, result->steps, status == STATUS_OK ? err : &second);
    return status == STATUS_OK ? saved : status;
}
