/* SPDX-License-Identifier: Apache-2.0 */
#include "harness/train/span.h"

enum { MADE_UP_EPOCHS = 10 };

static int64_t all_steps(const struct span *s)
{
    return s->job->recipe.schedule.steps;
}

/* The first step after so many epochs. */
static int64_t steps_of(const struct span *s, int64_t epochs)
{
    return (epochs * s->epoch_samples + s->batch - 1) / s->batch;
}

/* What so many steps use, and what an epoch has of it. */
static int64_t used(const struct span *s, int64_t steps)
{
    return steps * (s->epoch_samples ? s->batch : MADE_UP_EPOCHS);
}

static int64_t epoch(const struct span *s)
{
    return s->epoch_samples ? s->epoch_samples : all_steps(s);
}

int64_t span_size_end(const struct span *s, int size)
{
    int64_t count = 0;
    for (int k = 0; k <= size; k++)
        count += s->job->sizes[k].count;
    return s->epoch_samples ? steps_of(s, count) : count;
}

enum status span_steps(const struct span *s, int64_t *steps, struct error *err)
{
    if (s->job->epochs && !s->epoch_samples)
        return FAIL(err, STATUS_FAILED,
                    "--epochs needs --data: samples that are made up never end; --steps says how "
                    "many are wanted");
    if (s->job->epochs)
        *steps = steps_of(s, s->job->epochs);
    if (s->job->size_count)
        *steps = span_size_end(s, s->job->size_count - 1);
    return STATUS_OK;
}

bool span_is_judged(const struct span *s, int64_t steps)
{
    if (s->job->eval_every > 0)
        return steps % s->job->eval_every == 0;
    return s->job->eval_epochs && used(s, steps) / epoch(s) > used(s, steps - 1) / epoch(s);
}

int64_t span_judgements(const struct span *s)
{
    int64_t steps = all_steps(s), epochs = used(s, steps) / epoch(s);
    if (s->job->eval_every > 0)
        return steps / s->job->eval_every + 1;
    return s->job->eval_epochs ? (epochs < steps ? epochs : steps) + 1 : 1;
}

double span_epoch(const struct span *s, int64_t steps)
{
    int64_t now = used(s, steps), each = epoch(s);
    bool ends = now / each > used(s, steps - 1) / each;
    return ends ? (double)(now / each) : (double)now / (double)each;
}
