/* SPDX-License-Identifier: Apache-2.0 */
#include "harness/turns/interleave.h"

#include <stdlib.h>
#include <string.h>

#include "base/system/clock.h"
#include "harness/turns/asked_child.h"

enum { PAIRS = 5, SAMPLES = 20, SAMPLES_MAX = 20000, WARMUP = 3 };

static struct interleave_options completed(const struct interleave_options *asked)
{
    struct interleave_options o = *asked;
    o.pairs = o.pairs > 0 ? o.pairs : PAIRS;
    o.pairs = o.pairs < INTERLEAVE_PAIRS_MAX ? o.pairs : INTERLEAVE_PAIRS_MAX;
    o.samples = o.samples > 0 ? o.samples : SAMPLES;
    o.samples = o.samples < SAMPLES_MAX ? o.samples : SAMPLES_MAX;
    o.seconds = o.seconds > 0 ? o.seconds : 3;
    o.warmup = o.warmup > 0 ? o.warmup : WARMUP;
    o.start_limit_s = o.start_limit_s > 0 ? o.start_limit_s : 300;
    o.sample_limit_s = o.sample_limit_s > 0 ? o.sample_limit_s : 300;
    return o;
}

static enum status start_pair(const struct interleave_options *o, int pair,
                              struct asked_child child[2], struct error *err)
{
    const struct interleave_side *sides[] = {&o->a, &o->b};
    child[0] = child[1] = (struct asked_child){.socket = -1};
    for (int k = 0; k < 2; k++) {
        int which = (k + pair) % 2;
        TRY(asked_child_start(&child[which], sides[which]->command, sides[which]->environment,
                              err));
        /* Not both at once: compiling in parallel would tune kernels on a busy machine. */
        TRY(asked_child_ready(&child[which], o->start_limit_s, err));
    }
    return STATUS_OK;
}

static enum status take_round(const struct interleave_options *o, struct asked_child child[2],
                              int round, double *ms[2], struct error *err)
{
    for (int k = 0; k < 2; k++) {
        int which = (round & 1) ? 1 - k : k;
        TRY(asked_child_sample(&child[which], o->sample_limit_s, ms[which], err));
    }
    return STATUS_OK;
}

static enum status take_pair(const struct interleave_options *o, struct asked_child child[2],
                             double *times[2], int *count, struct error *err)
{
    double lost[2], *warm[2] = {&lost[0], &lost[1]};
    for (int k = 0; k < o->warmup; k++)
        TRY(take_round(o, child, k, warm, err));
    uint64_t begin = clock_now_ns();
    for (*count = 0; *count < SAMPLES_MAX; ++*count) {
        double *at[2] = {times[0] + *count, times[1] + *count};
        if (*count >= o->samples && (double)(clock_now_ns() - begin) * 1e-9 >= o->seconds)
            break;
        TRY(take_round(o, child, *count, at, err));
    }
    return STATUS_OK;
}

static enum status keep_pair(struct interleave_result *r, double *times[2], int count,
                             struct error *err)
{
    for (int k = 0; k < 2; k++) {
        double *kept = malloc((size_t)count * sizeof(*kept));
        if (!kept)
            return FAIL_NO_MEMORY(err);
        memcpy(kept, times[k], (size_t)count * sizeof(*kept));
        r->times[k][r->pairs] = kept;
        r->side[k][r->pairs] =
            (struct compare_visit){.times = kept, .count = count, .run = r->pairs};
    }
    r->pairs++;
    return STATUS_OK;
}

static enum status run_pair(const struct interleave_options *o, struct interleave_result *r,
                            double *times[2], struct error *err)
{
    struct asked_child child[2];
    int count = 0;
    enum status status = start_pair(o, r->pairs, child, err);
    if (status == STATUS_OK)
        status = take_pair(o, child, times, &count, err);
    for (int k = 0; k < 2; k++) {
        enum status ended = asked_child_stop(&child[k], status == STATUS_OK ? err : NULL);
        status = status == STATUS_OK ? ended : status;
    }
    return status == STATUS_OK ? keep_pair(r, times, count, err) : status;
}

enum status interleave_run(const struct interleave_options *asked, struct interleave_result *result,
                           struct error *err)
{
    struct interleave_options o = completed(asked);
    *result = (struct interleave_result){.pairs = 0};
    double *all = malloc(2 * SAMPLES_MAX * sizeof(*all));
    if (!all)
        return FAIL_NO_MEMORY(err);
    double *times[2] = {all, all + SAMPLES_MAX};
    enum status status = STATUS_OK;
    bool wanted = true;
    while (status == STATUS_OK && wanted && result->pairs < o.pairs) {
        status = run_pair(&o, result, times, err);
        if (status == STATUS_OK && o.progress)
            wanted = o.progress(o.progress_context, result->pairs, o.pairs);
    }
    free(all);
    if (status != STATUS_OK)
        interleave_release(result);
    return status;
}

enum status interleave_judge(const struct interleave_result *result,
                             const struct compare_rules *rules, struct comparison *out,
                             struct error *err)
{
    struct compare_point point = {
        .base = {SIDE_USABLE, "", result->side[0], result->pairs},
        .head = {SIDE_USABLE, "", result->side[1], result->pairs},
        .paired = true,
    };
    return compare_points(&point, 1, rules, out, err);
}

void interleave_release(struct interleave_result *result)
{
    for (int side = 0; side < 2; side++)
        for (int k = 0; k < INTERLEAVE_PAIRS_MAX; k++)
            free(result->times[side][k]);
    *result = (struct interleave_result){.pairs = 0};
}
