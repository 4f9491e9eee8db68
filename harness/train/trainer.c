/* SPDX-License-Identifier: Apache-2.0 */
#include "harness/train/trainer.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/numbers/random.h"
#include "base/system/clock.h"
#include "engine/run/provider.h"
#include "engine/train/checkpoint.h"
#include "harness/train/judge.h"
#include "workloads/workload.h"

enum { BUFFERS = 4, STEPS_USUAL = 1000 };

struct trainer {
    struct train_job job;
    const struct training *training;
    struct graph *graph;
    struct exe *exe;
    struct reader *reader;
    struct judge *judge;
    struct train_judgement *judged;
    double *losses;
    int rate; /* graph input */
    struct checkpoint from;
    bool resumed;
};

/* ---- the job ---- */

enum status train_job_of(const char *spec, bool tiny, struct train_job *job, char **owned_spec,
                         struct error *err)
{
    const struct workload *w = workload_of(spec);
    const struct training *t = w ? w->training : NULL;
    *owned_spec = NULL;
    if (!w && !workload_is_file(spec))
        return FAIL(err, STATUS_FAILED, "workload \"%s\" is not known; see `ridge list`", spec);
    if (!t)
        return UNSUPPORTED(err, "%s is not trained: %s", spec,
                           w ? "it has no loss" : "a file says nothing of a loss");
    bool some = strchr(spec, ':') != NULL, more = tiny && t->tiny && *t->tiny;
    size_t size = strlen(spec) + (more ? strlen(t->tiny) : 0) + 2;
    *owned_spec = malloc(size);
    if (!*owned_spec)
        return FAIL_NO_MEMORY(err);
    snprintf(*owned_spec, size, "%s%s%s", spec, !more ? "" : some ? "," : ":", more ? t->tiny : "");
    *job = (struct train_job){.spec = *owned_spec, .recipe = *t->recipe};
    struct schedule *s = &job->recipe.schedule;
    s->steps = s->steps > 0 ? s->steps : STEPS_USUAL;
    if (!tiny)
        return STATUS_OK;
    *s = (struct schedule){.kind = SCHEDULE_CONSTANT, .rate = t->tiny_rate, .steps = t->tiny_steps};
    job->recipe.decay = 0; /* so few steps need none, and few samples bear none */
    job->model.batch = t->tiny_batch;
    return STATUS_OK;
}

/* ---- opening ---- */

/* Other first weights than those that belong to the values' names. */
static void seed_weights(struct graph *g, uint64_t seed)
{
    for (int s = 0; seed && s < g->state_count; s++) {
        struct value *value = &g->values[g->states[s].before];
        if (value->fill.seed == 0)
            value->fill.seed = random_hash(value->name) + seed * 0x9e3779b97f4a7c15u;
    }
}

static int ranks_of(const struct trainer *t)
{
    return t->job.model.comm ? t->job.model.comm->ranks : 1;
}

static enum status open_step(struct trainer *t, struct error *err)
{
    const struct train_job *job = &t->job;
    TRY(workload_open_loss(job->spec, job->model.batch, &t->graph, &t->training, err));
    struct train_options options = {
        .ranks = ranks_of(t), .sync_norms = job->sync_norms, .unit_bytes = job->unit_bytes};
    TRY(train_step(t->graph, &job->recipe, &options, err));
    seed_weights(t->graph, job->seed);
    t->rate = NONE;
    for (int k = 0; k < t->graph->input_count; k++)
        if (strcmp(t->graph->values[t->graph->inputs[k]].name, TRAIN_RATE) == 0)
            t->rate = k;
    return STATUS_OK;
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

/* ---- checkpoints ---- */

static int64_t first_step(const struct trainer *t)
{
    return t->resumed ? t->from.step : 0;
}

/* Samples are numbered: after as many steps of another batch they would be others. */
static bool same_batch(const struct trainer *t)
{
    const struct safetensors *file = &t->from.contents;
    for (int k = 0; k < file->note_count; k++)
        if (strcmp(file->notes[k].key, "batch") == 0)
            return strtoll(file->notes[k].text, NULL, 10) == batch_of(t);
    return false;
}

static enum status open_checkpoint(struct trainer *t, struct error *err)
{
    struct train_job *job = &t->job;
    if (!job->resume)
        return STATUS_OK;
    enum status status = checkpoint_open(job->resume, &t->from, err);
    t->resumed = true; /* to be closed in any case */
    TRY(status);
    if (strcmp(t->from.workload, job->spec) != 0)
        return FAIL(err, STATUS_FAILED, "%s is of %s, not of %s", job->resume, t->from.workload,
                    job->spec);
    if (!same_batch(t))
        return FAIL(err, STATUS_FAILED, "%s was trained in batches of another size than %lld",
                    job->resume, (long long)batch_of(t));
    if (t->from.step >= job->recipe.schedule.steps)
        return FAIL(err, STATUS_FAILED, "%s has made %lld steps: --steps must be more", job->resume,
                    (long long)t->from.step);
    job->seed = t->from.seed;
    return STATUS_OK;
}

static enum status save(struct trainer *t, int64_t step, struct error *err)
{
    const struct train_job *job = &t->job;
    char recipe[120], batch[32];
    if (!job->save || (job->model.comm && job->model.comm->rank != 0))
        return STATUS_OK;
    snprintf(recipe, sizeof(recipe), "%s, rate %g, %lld steps", job->recipe.optimiser,
             job->recipe.schedule.rate, (long long)job->recipe.schedule.steps);
    snprintf(batch, sizeof(batch), "%lld", (long long)batch_of(t));
    const struct safetensors_note more = {.key = "batch", .text = batch};
    const struct checkpoint_about about = {.workload = job->spec,
                                           .recipe = recipe,
                                           .step = step,
                                           .seed = job->seed,
                                           .more = &more,
                                           .more_count = 1};
    return checkpoint_save(job->save, t->exe, &about, err);
}

/* ---- all of it ---- */

static enum status open_all(struct trainer *t, struct error *err)
{
    const struct train_job *job = &t->job;
    TRY(open_checkpoint(t, err));
    size_t steps = (size_t)job->recipe.schedule.steps;
    size_t judged = job->eval_every > 0 ? steps / (size_t)job->eval_every : 0;
    TRY(providers_load(job->model.providers, err));
    if (open_step(t, err) != STATUS_OK)
        return error_context(err, "training of %s", job->spec);
    t->losses = calloc(steps + 1, sizeof(*t->losses));
    t->judged = calloc(judged + 1, sizeof(*t->judged));
    if (!t->losses || !t->judged)
        return FAIL_NO_MEMORY(err);
    int64_t before = job->model.comm ? job->model.comm->rank * own_batch(t) : 0;
    struct reader_options options = {.graph = t->graph,
                                     .training = t->training,
                                     .seed = job->seed,
                                     .first = first_step(t) * batch_of(t) + before,
                                     .batch = own_batch(t),
                                     .stride = batch_of(t),
                                     .buffers = BUFFERS};
    /* Before the executable, whose threads have a CPU each, this one included. */
    TRY(reader_open(&options, &t->reader, err));
    TRY(model_compile(t->graph, &job->model, &t->exe, err));
    if (t->resumed)
        TRY(checkpoint_restore(&t->from, t->exe, err));
    struct model_options model = job->model;
    model.batch = own_batch(t);
    if (model.comm)
        return STATUS_OK;
    return judge_open(job->spec, &model, job->seed, t->exe, &t->judge, err);
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
    judge_close(t->judge);
    if (t->resumed)
        checkpoint_close(&t->from);
    exe_free(t->exe);
    reader_close(t->reader);
    graph_free(t->graph);
    free(t->losses);
    free(t->judged);
    free(t);
}

const struct training *trainer_of(const struct trainer *t)
{
    return t->training;
}

struct exe *trainer_exe(struct trainer *t)
{
    return t->exe;
}

/* ---- running ---- */

static void give_batch(struct trainer *t)
{
    const struct graph *g = t->graph;
    void *const *data = reader_next(t->reader);
    for (int k = 0; k < g->input_count; k++) {
        const struct value *value = &g->values[g->inputs[k]];
        if (data[k])
            memcpy(exe_input(t->exe, k), data[k],
                   (size_t)shape_count(&value->shape) * dtype_size(value->dtype));
    }
}

static enum status one_step(struct trainer *t, int64_t step, struct train_result *r,
                            struct error *err)
{
    uint64_t begin = clock_now_ns();
    float rate = (float)schedule_rate(&t->job.recipe.schedule, step);
    give_batch(t);
    *(float *)exe_input(t->exe, t->rate) = rate;
    exe_run(t->exe);
    double loss = (double)*(const float *)exe_output(t->exe, 0);
    r->time_ns += clock_now_ns() - begin;
    r->waited_ns = reader_waited_ns(t->reader);
    TRY(exe_status(t->exe, err));
    t->losses[step - r->first] = loss;
    r->steps = step + 1;
    if (isfinite(loss))
        return STATUS_OK;
    return FAIL(err, STATUS_INVALID,
                "the loss of step %lld is %g: a smaller --rate than %g may help",
                (long long)step + 1, loss, (double)rate);
}

static enum status judge_now(struct trainer *t, struct train_result *r, struct error *err)
{
    if (!t->judge)
        return STATUS_OK;
    if (r->judged_count && r->judged[r->judged_count - 1].step == r->steps)
        return STATUS_OK;
    struct train_judgement *judgement = &t->judged[r->judged_count];
    judgement->step = r->steps;
    TRY(judge_run(t->judge, judgement, err));
    r->judged_count++;
    return STATUS_OK;
}

enum status trainer_run(struct trainer *t, train_watch *watch, void *context,
                        struct train_result *result, struct error *err)
{
    const struct schedule *schedule = &t->job.recipe.schedule;
    *result = (struct train_result){.losses = t->losses, .judged = t->judged, .batch = batch_of(t)};
    result->first = result->steps = first_step(t);
    bool go_on = true;
    for (int64_t step = result->first; go_on && step < schedule->steps; step++) {
        TRY(one_step(t, step, result, err));
        if (t->job.eval_every > 0 && (step + 1) % t->job.eval_every == 0)
            TRY(judge_now(t, result, err));
        if (t->job.save_every > 0 && (step + 1) % t->job.save_every == 0)
            TRY(save(t, step + 1, err));
        struct train_progress progress = {
            .so_far = result, .steps = schedule->steps, .rate = schedule_rate(schedule, step)};
        go_on = watch(context, &progress);
    }
    TRY(save(t, result->steps, err));
    return judge_now(t, result, err);
}
