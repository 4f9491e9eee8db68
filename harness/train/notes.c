/* SPDX-License-Identifier: Apache-2.0 */
#include "harness/train/notes.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/suite/point_params.h"

/* "mnist of 60000" */
static void describe_data(const struct data_set *data, char *text, size_t size)
{
    char by[48] = "";
    snprintf(text, size, "made up");
    if (!data)
        return;
    if (data->vocabulary)
        snprintf(by, sizeof(by), " by vocabulary %016llx", (unsigned long long)data->vocabulary);
    snprintf(text, size, "%s of %lld%s", data->format->name, (long long)data->count[DATA_LEARNT],
             by);
}

static void describe_sizes(const struct train_job *job, char *text, size_t size)
{
    size_t used = (size_t)snprintf(text, size, "%s", job->size_count ? "" : "one");
    for (int k = 0; k < job->size_count && used < size; k++)
        used += (size_t)snprintf(text + used, size - used, "%s%lld:%lld", k ? "," : "",
                                 (long long)job->sizes[k].image, (long long)job->sizes[k].count);
}

void train_notes_make(struct train_notes *n, const struct train_job *job, int64_t batch,
                      const struct data_set *data)
{
    int64_t parts = job->micro_batches > 1 ? job->micro_batches : 1;
    snprintf(n->batch, sizeof(n->batch), "%lld", (long long)batch);
    snprintf(n->micro_batches, sizeof(n->micro_batches), "%lld", (long long)parts);
    describe_data(data, n->data, sizeof(n->data));
    describe_sizes(job, n->sizes, sizeof(n->sizes));
    n->list[0] = (struct safetensors_note){"batch", n->batch};
    n->list[1] = (struct safetensors_note){"micro_batches", n->micro_batches};
    n->list[2] = (struct safetensors_note){"data", n->data};
    n->list[3] = (struct safetensors_note){"sizes", n->sizes};
    snprintf(n->rate, sizeof(n->rate), "%.17g", job->recipe.schedule.rate);
    n->list[4] = (struct safetensors_note){"rate", n->rate};
    snprintf(n->steps, sizeof(n->steps), "%lld", (long long)job->recipe.schedule.steps);
    n->list[5] = (struct safetensors_note){"steps", n->steps};
}

/* Of a file that is older than the note: what all trainings had then. */
static const char *note_of(const struct checkpoint *from, const char *key, const char *usual)
{
    const char *text = safetensors_note(&from->contents, key);
    return text ? text : usual;
}

enum status train_notes_check(const struct train_notes *n, const struct train_job *job,
                              const struct checkpoint *from, struct error *err)
{
    const char *parts = note_of(from, "micro_batches", "1"),
               *data = note_of(from, "data", "made up");
    const char *sizes = note_of(from, "sizes", "one");
    /* Samples are numbered: after as many steps of another batch they would be others. */
    if (strcmp(note_of(from, "batch", ""), n->batch) != 0)
        return FAIL(err, STATUS_FAILED, "%s was trained in batches of another size than %s",
                    job->resume, n->batch);
    if (strcmp(parts, n->micro_batches) != 0) /* its counter is of executions */
        return FAIL(err, STATUS_FAILED,
                    "%s was trained with --micro-batches %s: go on with as many", job->resume,
                    parts);
    if (strcmp(data, n->data) != 0)
        return FAIL(err, STATUS_FAILED, "%s was trained on samples that are %s, and these are %s",
                    job->resume, data, n->data);
    if (strcmp(sizes, n->sizes) != 0)
        return FAIL(err, STATUS_FAILED, "%s was trained on images of sizes \"%s\", not \"%s\"",
                    job->resume, sizes, n->sizes);
    return STATUS_OK;
}

/* A file that is older than the note has six digits of it in "adam, rate 0.05, 3 steps". */
static double rate_of(const struct checkpoint *from)
{
    const char *text = note_of(from, "rate", NULL), *in_recipe = strstr(from->recipe, ", rate ");
    if (!text && in_recipe)
        text = in_recipe + strlen(", rate ");
    double rate = text ? strtod(text, NULL) : (double)NAN;
    return rate > 0 && isfinite(rate) ? rate : (double)NAN;
}

/* The same of "adam, rate 0.05, 3 steps"; 0: it does not say. */
static int64_t steps_of(const struct checkpoint *from)
{
    const char *text = note_of(from, "steps", NULL), *comma = strrchr(from->recipe, ',');
    if (!text)
        text = comma ? comma + 1 : "";
    long long steps = strtoll(text, NULL, 10);
    return steps > 0 ? steps : 0;
}

/* Samples and masks are numbered from the seed: with another one it would be another training. */
static enum status take(struct train_job *job, const struct checkpoint *from,
                        const struct train_given *given, struct train_resumed *out,
                        struct error *err)
{
    struct schedule *schedule = &job->recipe.schedule;
    if (!point_same_model(from->workload, job->spec))
        return FAIL(err, STATUS_FAILED, "%s is of %s, not of %s", job->resume, from->workload,
                    job->spec);
    if (given->seed && job->seed != from->seed)
        return FAIL(err, STATUS_FAILED, "%s was trained with --seed %lld: go on with the same",
                    job->resume, (long long)from->seed);
    job->seed = from->seed;
    *out =
        (struct train_resumed){.step = from->step, .steps = steps_of(from), .rate = rate_of(from)};
    if (!given->rate && !isnan(out->rate))
        schedule->rate = out->rate;
    if (!given->steps && out->steps)
        schedule->steps = out->steps;
    return STATUS_OK;
}

enum status train_resume(struct train_job *job, const struct train_given *given,
                         struct train_resumed *out, struct error *err)
{
    struct checkpoint from;
    enum status status = checkpoint_open(job->resume, &from, err);
    if (status == STATUS_OK)
        status = take(job, &from, given, out, err);
    checkpoint_close(&from);
    return status;
}

/* " to step 40 of the checkpoint", or that a rate which spreads over all steps is another one now.
 */
static void end_text(const struct schedule *schedule, const struct train_given *given,
                     const struct train_resumed *from, char *text, size_t size)
{
    bool spreads = schedule->kind == SCHEDULE_POLYNOMIAL || schedule->kind == SCHEDULE_COSINE;
    snprintf(text, size, "%s", "");
    if (!given->steps && from->steps)
        snprintf(text, size, " to step %lld of the checkpoint", (long long)from->steps);
    else if (spreads && given->steps && from->steps && schedule->steps != from->steps)
        snprintf(text, size, " to step %lld, not %lld as before, so with other rates",
                 (long long)schedule->steps, (long long)from->steps);
}

void train_resume_text(const struct train_job *job, const struct train_given *given,
                       const struct train_resumed *from, char *text, size_t size)
{
    double rate = job->recipe.schedule.rate;
    char other[64] = "", end[100];
    end_text(&job->recipe.schedule, given, from, end, sizeof(end));
    if (given->rate && rate != from->rate && !isnan(from->rate))
        snprintf(other, sizeof(other), ", not %g as before", from->rate);
    snprintf(text, size, "%s: goes on after step %lld%s, with seed %lld%s and rate %g%s%s",
             job->resume, (long long)from->step, end, (long long)job->seed,
             given->seed ? "" : " of the checkpoint", rate,
             given->rate || isnan(from->rate) ? "" : " of the checkpoint", other);
}
