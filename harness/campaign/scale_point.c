/* SPDX-License-Identifier: Apache-2.0 */
#include "harness/campaign/scale_point.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/system/clock.h"
#include "base/text/utc.h"
#include "harness/campaign/record.h"
#include "harness/scale/scale_store.h"
#include "harness/watch/interrupt.h"

/* A point is known to be trained, and its backend to be ready: others are skipped. */
static enum status run(const struct point_job *job, const struct scale_options *usual,
                       struct scale_result *result, struct error *err)
{
    const struct point *p = job->point;
    struct scale_options o = *usual;
    char text[48];
    TRY(backend_ready(backend_find(p->backend), &o.backend, err));
    o.job.model = target_options(p, job->model);
    o.job.model.batch = p->batch / p->ranks;
    o.job.recipe.schedule.steps = p->steps;
    o.ranks = p->ranks;
    o.shares = p->ranks_most;
    o.deadline_ns = SCALE_DEADLINE_S * UINT64_C(1000000000);
    snprintf(text, sizeof(text), "learning on %d rank%s", p->ranks, p->ranks > 1 ? "s" : "");
    progress_show(job->progress, text, NAN, NAN);
    fflush(NULL); /* processes are forked: what is buffered would come out twice */
    return scale_run(&o, result, err);
}

static enum status keep_result(const struct point_job *job, const struct scale_options *o,
                               const struct scale_result *result, struct point_state *state,
                               struct error *err)
{
    const struct point *p = job->point;
    struct model_options model = target_options(p, job->model);
    const struct scaling all = {.workload = p->spec,
                                .strong = p->strong,
                                .backend = p->backend,
                                .seed = o->job.seed,
                                .tables = "whole",
                                .moments = "whole",
                                .quick_tune = model_tunes_quickly(&model),
                                .code = p->code,
                                .providers = p->providers,
                                .recompute = model.recompute,
                                .segments = model.segments,
                                .points = result,
                                .count = 1};
    TRY(scaling_record(&all, 0, &state->arena, &state->record, err));
    state->record.point = record_point(p);
    state->record.sequence = job->sequence;
    return STATUS_OK;
}

static enum status keep_failure(const struct point_job *job, double wall_s,
                                const struct error *failure, struct point_state *state,
                                struct error *err)
{
    char *now = arena_alloc(&state->arena, UTC_TEXT);
    if (!now)
        return FAIL_NO_MEMORY(err);
    utc_now(now);
    const struct point_facts facts = {.point = job->point,
                                      .sequence = job->sequence,
                                      .started_utc = now,
                                      .wall_s = wall_s,
                                      .cost = &state->cost,
                                      .peak_rss_bytes = NAN,
                                      .failure = failure,
                                      .round_spread = NAN};
    return record_make(&facts, &state->arena, &state->record, err);
}

enum status scale_point_visit(const struct point_job *job, struct point_state *state,
                              struct error *err)
{
    struct scale_options o = {.ranks = 1};
    struct scale_result result = {0};
    struct error failure = {0};
    char *owned = NULL;
    uint64_t began = clock_now_ns();
    enum status status = train_job_of(job->point->spec, false, &o.job, &owned, &failure);
    if (status == STATUS_OK)
        status = run(job, &o, &result, &failure);
    state->visit_s = (double)(clock_now_ns() - began) * 1e-9;
    state->interrupted = interrupt_requested(); /* resuming measures it again */
    if (!state->interrupted) {
        status = status == STATUS_OK ? keep_result(job, &o, &result, state, err)
                                     : keep_failure(job, state->visit_s, &failure, state, err);
        state->has_record = status == STATUS_OK;
        state->record.wall_s = state->visit_s;
    }
    scale_result_release(&result);
    free(owned);
    return state->interrupted ? STATUS_OK : status;
}
