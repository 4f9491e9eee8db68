/* SPDX-License-Identifier: Apache-2.0 */
#include "harness/measure/visits.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/numbers/distribution.h"
#include "base/numbers/integers.h"
#include "base/numbers/random.h"
#include "base/numbers/stats.h"
#include "harness/measure/sampler.h"

enum {
    GOOD_LEAST = 2,
    SAMPLES_LEAST = 3, /* so that the two visits that must be good have enough together */
};

/* Two or three visits are alike or unlike by chance: the variance that they show is drawn towards
 * this one, as if so many more visits had shown it (results/compare_noise.h does so, too). */
static const double usual_sd = 0.01, usual_df = 2;

static const char apart[] = "set apart: ";
static const double warm_again = 0.25; /* of what warming up takes at first */

/* ---- shares ---- */

/* The part of `whole` that falls to this round, so that the parts sum up. */
static int64_t part_of(int64_t whole, int round, int rounds)
{
    return whole * (round + 1) / rounds - whole * round / rounds;
}

struct protocol visit_protocol(const struct protocol *whole, int round, bool again)
{
    struct protocol p = *whole;
    int rounds = p.rounds > 1 ? p.rounds : 1;
    if (rounds == 1)
        return p;
    int64_t floor = divide_up(STOPPING_SAMPLES_FLOOR, rounds);
    p.samples_floor = floor > SAMPLES_LEAST ? floor : SAMPLES_LEAST;
    p.samples_max = part_of(p.samples_max, round, rounds);
    p.samples_min = part_of(p.samples_min, round, rounds);
    if (p.samples_min < STOPPING_SAMPLES_FLOOR)
        p.samples_min = STOPPING_SAMPLES_FLOOR;
    if (p.samples_min > p.samples_max)
        p.samples_min = p.samples_max;
    p.seconds_min /= rounds;
    p.seconds_max /= rounds;
    p.interval *= sqrt(rounds); /* that of all visits is so much narrower */
    if (again) {
        p.warmup_s *= warm_again;
        p.warmup_runs = p.warmup_runs > 0;
    }
    return p;
}

void visits_order(int64_t seed, int round, int *order, int count)
{
    for (int k = 0; k < count; k++)
        order[k] = k;
    for (int k = count - 1; k > 0; k--) {
        uint64_t draw = (uint64_t)round << 32 | (uint64_t)(unsigned)k;
        int other = (int)(random_uniform((uint64_t)seed, draw) * (k + 1));
        int kept = order[k];
        order[k] = order[other];
        order[other] = kept;
    }
}

/* ---- which of them count ---- */

static bool is_displaced(const struct visit_record *visit, const struct placement *usual, char *how,
                         size_t size)
{
    struct placement placement = placement_of(visit);
    return usual && placement_differs(&placement, usual, how, size);
}

static bool is_good(const struct visit_record *visit, const struct placement *usual)
{
    char how[160];
    return !visit->reason[0] && !isnan(visit->median_s) &&
           !is_displaced(visit, usual, how, sizeof(how));
}

static bool is_apart(const struct visit_record *visit)
{
    return strncmp(visit->reason, apart, strlen(apart)) == 0;
}

int visits_apart(const struct visit_record *visits, int count)
{
    int found = 0;
    for (int k = 0; k < count; k++)
        found += is_apart(&visits[k]);
    return found;
}

int visits_good(const struct visit_record *visits, int count, const struct placement *usual)
{
    int good = 0;
    for (int k = 0; k < count; k++)
        good += is_good(&visits[k], usual);
    return good;
}

/* Without a sample there is nothing to set apart. */
static void discard(struct visits *v, int round)
{
    for (int64_t k = 0; k < v->sample_count; k++)
        if (v->samples[k].visit == round && v->samples[k].phase == SAMPLE_TIME)
            v->samples[k].phase = SAMPLE_DISCARDED;
}

static enum status set_apart(struct visits *v, const struct placement *usual, struct arena *arena,
                             struct error *err)
{
    for (int k = 0; k < v->count; k++) {
        struct visit_record *visit = &v->visits[k];
        char how[160] = "";
        if (is_good(visit, usual) || is_apart(visit))
            continue;
        if (!visit->reason[0])
            is_displaced(visit, usual, how, sizeof(how));
        visit->reason = arena_printf(arena, "%s%s%s", apart, visit->reason, how);
        if (!visit->reason)
            return FAIL_NO_MEMORY(err);
        discard(v, visit->round);
    }
    return STATUS_OK;
}

/* ---- one number of all ---- */

/* Logarithms of the medians of the visits that have one and count. */
static int gather_medians(const struct visits *v, double *logs)
{
    int count = 0;
    for (int k = 0; k < v->count; k++)
        if (!is_apart(&v->visits[k]) && v->visits[k].median_s > 0)
            logs[count++] = log(v->visits[k].median_s);
    return count;
}

static double median_of_visit(const struct visits *v, int round)
{
    for (int k = 0; k < v->count; k++)
        if (v->visits[k].round == round)
            return v->visits[k].median_s;
    return NAN;
}

/* The interval of the median when every sample is taken as a multiple of its visit's median: what
 * is known within visits, whatever lies between them. False: too few samples. */
static bool interval_within(const struct visits *v, double *scratch, double *low, double *high)
{
    int count = 0;
    for (int64_t k = 0; k < v->sample_count; k++) {
        const struct sample_record *s = &v->samples[k];
        double median = median_of_visit(v, s->visit);
        if (s->phase == SAMPLE_TIME && median > 0)
            scratch[count++] = (double)s->time_ns * 1e-9 / median;
    }
    stats_sort(scratch, count);
    return stats_median_interval(scratch, count, low, high);
}

/* The mean of the visits in logarithms, each with the same weight; Student's t between them with a
 * moderated variance (Smyth 2004), and never less than what is known within them. */
static double join_times(const struct visits *v, struct measurement *m, double *scratch,
                         double *spread)
{
    double *logs = scratch + v->sample_count, low = NAN, high = NAN;
    int count = gather_medians(v, logs);
    bool within = interval_within(v, scratch, &low, &high);
    double mean = stats_mean(logs, count), half = NAN;
    *spread = stats_sd(logs, count);
    if (count >= GOOD_LEAST) {
        double df = count - 1 + usual_df;
        double square = (usual_df * usual_sd * usual_sd + (count - 1) * *spread * *spread) / df;
        half = student_quantile(0.975, df) * sqrt(square / count);
    }
    m->median_s = exp(mean);
    m->ci_low_s = m->median_s * fmin(exp(-half), low); /* fmin and fmax pass over NAN */
    m->ci_high_s = m->median_s * fmax(exp(half), high);
    return within ? (high - low) / 2 : NAN;
}

static double mean_of(const struct visits *v, size_t offset)
{
    double sum = 0;
    int count = 0;
    for (int k = 0; k < v->count; k++) {
        double value;
        memcpy(&value, (const char *)&v->visits[k] + offset, sizeof(value));
        if (isnan(value) || is_apart(&v->visits[k]))
            continue;
        sum += value;
        count++;
    }
    return count ? sum / count : NAN;
}

static int64_t count_timed(const struct visits *v)
{
    int64_t timed = 0;
    for (int64_t k = 0; k < v->sample_count; k++)
        timed += v->samples[k].phase == SAMPLE_TIME;
    return timed;
}

/* ---- the verdict ---- */

static int planned_or_more(const struct visits *v)
{
    return v->count > v->protocol->rounds ? v->count : v->protocol->rounds;
}

static void judge(const struct visits *v, double half, struct measurement *m)
{
    size_t size = sizeof(m->reason);
    for (int k = 0; k < v->count && !m->reason[0]; k++) {
        const struct visit_record *visit = &v->visits[k];
        if (!visit->reason[0] || is_apart(visit))
            continue;
        if (v->protocol->rounds > 1)
            snprintf(m->reason, size, "visit %d of %d: %s", visit->round + 1, planned_or_more(v),
                     visit->reason);
        else
            snprintf(m->reason, size, "%s", visit->reason);
    }
    if (!m->reason[0] && v->protocol->scenario != SCENARIO_SERVER)
        measurement_judge_interval(m, half);
    m->valid = !m->reason[0];
}

static void say_why_it_stopped(const struct visits *v, struct measurement *m)
{
    int set_apart = visits_apart(v->visits, v->count);
    char not_counted[32] = "";
    if (set_apart)
        snprintf(not_counted, sizeof(not_counted), ", %d set apart", set_apart);
    if (v->protocol->rounds > 1)
        snprintf(m->stop_reason, sizeof(m->stop_reason), "%d of %d visits%s; the latest: %.90s",
                 v->count, planned_or_more(v), not_counted, v->stop_reason);
    else
        snprintf(m->stop_reason, sizeof(m->stop_reason), "%s", v->stop_reason);
}

enum status visits_join(struct visits *v, struct arena *arena, struct measurement *out,
                        double *spread, struct error *err)
{
    *out = (struct measurement){.overhead_s = NAN, .rate_hz = NAN};
    if (visits_good(v->visits, v->count, v->usual) >= GOOD_LEAST)
        TRY(set_apart(v, v->usual, arena, err));
    else if (visits_good(v->visits, v->count, NULL) >= GOOD_LEAST)
        TRY(set_apart(v, NULL, arena, err));
    double *scratch = calloc((size_t)(v->sample_count + v->count) + 1, sizeof(*scratch));
    if (!scratch)
        return FAIL_NO_MEMORY(err);
    out->samples = v->samples;
    out->count = out->capacity = v->sample_count;
    out->timed = count_timed(v);
    measurement_summarise(out, scratch);
    *spread = NAN;
    double half = (out->ci_high_s - out->ci_low_s) / 2 / out->median_s;
    if (v->protocol->scenario != SCENARIO_SERVER && v->count > 1)
        half = join_times(v, out, scratch, spread);
    out->steal_share = mean_of(v, offsetof(struct visit_record, steal_share));
    out->wait_share = mean_of(v, offsetof(struct visit_record, wait_share));
    if (v->protocol->scenario != SCENARIO_SERVER && out->median_s > 0)
        out->rate_hz = 1 / out->median_s;
    judge(v, half, out);
    say_why_it_stopped(v, out);
    free(scratch);
    return STATUS_OK;
}
