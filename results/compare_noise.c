/* SPDX-License-Identifier: Apache-2.0 */
#include "results/compare_noise.h"

#include <math.h>
#include <stdlib.h>

#include "base/numbers/distribution.h"
#include "base/numbers/rank.h"
#include "base/numbers/stats.h"
#include "results/compare_match.h"

enum {
    POINTS_MIN = 8,       /* fewer say too little of their machine */
    MEDIAN_MIN = 4,       /* differences from which on their median counts */
    SHOWN_DF = 2,         /* from which on a point shows its own noise */
    BETWEEN_DF = 4,       /* degrees of freedom between runs from which on visits are not asked */
    PRIOR_DF_MAX = 20,    /* points are never more alike than that */
    ALLOWANCE_DF = 10,    /* how many runs' worth of evidence the allowance is ... */
    ALLOWANCE_DF_MIN = 1, /* ... and when the runs contradict it */
};
#define MEDIAN_TO_SD   1.482602
#define MEDIAN_SHARE   0.37    /* efficiency of the median of absolute values */
#define DIFFERENCE_DF  0.67    /* successive differences share a value */
#define CONTAMINATED   2.5     /* sd over median-based sd from which on a run lies off */
#define VARIANCE_FLOOR 1e-6    /* of 0.1 %: below what any machine repeats */
#define PAIR_FLOOR     6.25e-8 /* in turns: 0.025 % */
#define BETWEEN_MAX    1e-2    /* in turns: 10 %, beside which no scatter of samples counts ... */
#define BETWEEN_HALVED 17      /* ... and how often it is halved to find it: down to the floor */
#define SPREAD_SHARE   0.25    /* of the distance of the quartiles, by which medians scattered */
#define SWING_UNKNOWN                                                                              \
    1.386294 /* log 4: kernels took up to 3.4 times as long on a shared machine                    \
              */

/* ---- one point ---- */

static double squares(const double *x, int count)
{
    double sd = stats_sd(x, count);
    return count > 1 ? sd * sd * (count - 1) : 0;
}

static void add_evidence(struct compare_known *known, double sum, double df, unsigned source)
{
    if (!(df > 0))
        return;
    known->variance = (known->variance * known->df + sum) / (known->df + df);
    known->df += df;
    known->sources |= source;
}

/* Differences of neighbours within one program, oldest first, and of the runs compared after them;
 * what lies between BASE and HEAD is the effect and no noise. */
static int program_differences(const struct compare_known *known, int program, double *out,
                               int *earlier)
{
    const struct compare_past_values *past = &known->past;
    const struct compare_side_values *side = program == COMPARE_BASE_PROGRAM   ? &known->base
                                             : program == COMPARE_HEAD_PROGRAM ? &known->head
                                                                               : NULL;
    double last = NAN;
    int count = 0;
    for (int k = 0; k < past->count + (side ? side->runs : 0); k++) {
        if (k < past->count && past->program[k] != program)
            continue;
        double value =
            k < past->count ? past->processes[k].value : side->processes[k - past->count].value;
        if (!isnan(last))
            out[count++] = fabs(value - last);
        *earlier += !isnan(last) && k <= past->count;
        last = value;
    }
    return count;
}

struct differences {
    double *all; /* the first `earlier` of each program come from the history */
    int count;
    double history; /* sum of squares of the earlier ones */
    int earlier;
};

static enum status find_differences(const struct compare_known *known, struct differences *d,
                                    struct error *err)
{
    int programs = COMPARE_HEAD_PROGRAM;
    *d = (struct differences){
        .all = calloc((size_t)(known->past.count + known->base.runs + known->head.runs) + 1,
                      sizeof(*d->all))};
    if (!d->all)
        return FAIL_NO_MEMORY(err);
    for (int k = 0; k < known->past.count; k++)
        programs = known->past.program[k] > programs ? known->past.program[k] : programs;
    for (int program = 0; program <= programs; program++) {
        int earlier = 0, from = d->count;
        d->count += program_differences(known, program, d->all + d->count, &earlier);
        for (int k = from; k < from + earlier; k++)
            d->history += d->all[k] * d->all[k];
        d->earlier += earlier;
    }
    stats_sort(d->all, d->count);
    return STATUS_OK;
}

/* Runs compared scatter around their side's mean, earlier ones from one to the next. A run that
 * lies off is no noise of the others: then it is the median difference that counts. */
static enum status add_runs(struct compare_known *known, struct error *err)
{
    struct differences d;
    TRY(find_differences(known, &d, err));
    double runs = known->base.runs + known->head.runs - 2, df = runs + DIFFERENCE_DF * d.earlier;
    double sum = squares(known->base.sorted, known->base.runs) +
                 squares(known->head.sorted, known->head.runs) + DIFFERENCE_DF * 0.5 * d.history;
    double sd = MEDIAN_TO_SD / sqrt(2) * stats_median(d.all, d.count);
    if (d.count >= MEDIAN_MIN && sd > 0 && sum > df * CONTAMINATED * CONTAMINATED * sd * sd) {
        df *= MEDIAN_SHARE;
        sum = df * sd * sd;
    }
    add_evidence(known, sum, df, 0);
    known->between = df;
    known->sources |= (runs > 0 ? (unsigned)COMPARE_FROM_RUNS : 0) |
                      (d.earlier ? (unsigned)COMPARE_FROM_HISTORY : 0);
    if (d.earlier >= MEDIAN_MIN)
        known->history = sqrt(known->variance);
    free(d.all);
    return STATUS_OK;
}

/* While few runs are known, the distance of the two lowest visits says how far the lowest holds. */
static void add_visits(struct compare_known *known, const struct compare_side_values *side)
{
    if (known->between >= BETWEEN_DF)
        return;
    for (int k = 0; k < side->runs; k++)
        if (!isnan(side->processes[k].noise))
            add_evidence(known, side->processes[k].noise, 1, COMPARE_FROM_VISITS);
}

/* The processes of the history are made of as many visits as those compared. */
static enum status past_read(struct compare_past_values *past, const struct compare_point *point,
                             int k, struct error *err)
{
    size_t count = (size_t)point->history_count + 1;
    *past = (struct compare_past_values){
        .processes = calloc(count, sizeof(*past->processes)),
        .program = calloc(count, sizeof(*past->program)),
        .medians = calloc(count, sizeof(*past->medians)),
        .slow = calloc(count, sizeof(*past->slow)),
        .visit_program = calloc(count, sizeof(*past->visit_program)),
    };
    if (!past->processes || !past->program || !past->medians || !past->slow || !past->visit_program)
        return FAIL_NO_MEMORY(err);
    for (int i = 0, first = 0; i < point->history_count; i++) {
        const struct compare_past *visit = &point->history[i];
        past->medians[i] = log(visit->median);
        past->visit_program[i] = visit->program;
        compare_log_slow(visit->slow, past->slow[i]);
        past->visits++;
        if (i + 1 < point->history_count && visit[1].run == visit->run)
            continue;
        past->program[past->count] = visit->program;
        past->processes[past->count++] =
            compare_process(past->medians + first, (const double(*)[LEVEL_COUNT])past->slow + first,
                            i + 1 - first, k);
        first = i + 1;
    }
    return STATUS_OK;
}

/* With what pairs have beside the error of their samples; until the points have shown it together,
 * that is the allowance. */
static void measure_pairs(struct compare_known *known, double between)
{
    struct compare_weighed weighed = compare_pairs_weigh(&known->pairs, between);
    known->effect = weighed.shift;
    known->expected = weighed.expected;
    known->variance = weighed.variance;
    known->df = known->pairs.count - 1;
    known->sources = known->pairs.count > 1 ? COMPARE_FROM_VISITS : 0;
    known->share = sqrt(2.0 / known->pairs.count);
}

static void widen(double *low, double *high, double from, double to)
{
    *low = fmin(*low, from);
    *high = fmax(*high, to);
}

static double side_range(const struct compare_side_values *side)
{
    double low = INFINITY, high = -INFINITY;
    for (int k = 0; k < side->runs; k++)
        widen(&low, &high, side->processes[k].lowest, side->processes[k].highest);
    return side->visits > 1 ? high - low : NAN;
}

/* BASE stands for its program: earlier runs of it count like those that were named. */
static enum status join_history(struct compare_known *known, struct error *err)
{
    const struct compare_past_values *past = &known->past;
    known->program = calloc((size_t)(known->base.runs + past->count) + 1, sizeof(double));
    if (!known->program)
        return FAIL_NO_MEMORY(err);
    for (int k = 0; k < known->base.runs; k++)
        known->program[known->program_runs++] = known->base.processes[k].value;
    for (int k = 0; k < past->count; k++)
        if (past->program[k] == COMPARE_BASE_PROGRAM)
            known->program[known->program_runs++] = past->processes[k].value;
    stats_sort(known->program, known->program_runs);
    return STATUS_OK;
}

static enum status measure_sides(struct compare_known *known, struct error *err)
{
    TRY(join_history(known, err));
    known->effect =
        shift_estimate(known->program, known->program_runs, known->head.sorted, known->head.runs);
    known->share = sqrt(1.0 / known->program_runs + 1.0 / known->head.runs);
    TRY(add_runs(known, err));
    add_visits(known, &known->base);
    add_visits(known, &known->head);
    known->range =
        fmax(fmax(side_range(&known->base), side_range(&known->head)),
             known->program_runs > 1 ? known->program[known->program_runs - 1] - known->program[0]
                                     : NAN);
    return STATUS_OK;
}

void compare_known_release(struct compare_known *known)
{
    compare_side_release(&known->base);
    compare_side_release(&known->head);
    free(known->program);
    free(known->past.processes);
    free(known->past.program);
    free(known->past.medians);
    free(known->past.slow);
    free(known->past.visit_program);
    *known = (struct compare_known){.judged = false};
}

static enum status known_fill(struct compare_known *known, const struct compare_point *point,
                              struct error *err)
{
    TRY(compare_side_read(&known->base, &point->base, err));
    TRY(compare_side_read(&known->head, &point->head, err));
    int a = known->base.visits_least, b = known->head.visits_least, k = a < b ? a : b;
    compare_side_settle(&known->base, k);
    compare_side_settle(&known->head, k);
    TRY(compare_pairs(point, &known->pairs, err));
    TRY(past_read(&known->past, point, k, err));
    return known->pairs.count ? STATUS_OK : measure_sides(known, err);
}

enum status compare_known_make(struct compare_known *known, const struct compare_point *point,
                               struct error *err)
{
    struct compare_matched matched;
    *known = (struct compare_known){.judged = true, .history = NAN, .range = NAN};
    TRY(compare_match(point, &matched, err));
    known->placed = matched.known;
    known->base_met = matched.base_met;
    known->head_met = matched.head_met;
    enum status status = known_fill(known, &matched.point, err);
    compare_match_release(&matched);
    if (status != STATUS_OK)
        compare_known_release(known);
    return status;
}

/* ---- all points ---- */

static void weigh_all(struct compare_known *known, int count, double between)
{
    for (int k = 0; k < count; k++)
        if (known[k].judged && known[k].pairs.count)
            measure_pairs(&known[k], between);
}

struct prior {
    double between, variance, df;
    double excess; /* variance of logarithms beyond what the degrees of freedom leave */
};

/* Moments of the logarithms of variances (Smyth, Stat. Appl. Genet. Mol. Biol. 3, 2004): what they
 * scatter beyond what their degrees of freedom leave, by more than its standard error, is how
 * little points are alike. */
static struct prior fit(struct compare_known *known, int count, double between)
{
    struct prior prior = {.between = between};
    double mean = 0, chance = 0;
    int used = 0;
    weigh_all(known, count, between);
    for (int pass = 0; pass < 2; pass++) {
        for (int k = 0; k < count; k++) {
            if (!known[k].judged || !(known[k].df > 0))
                continue;
            double half = 0.5 * known[k].df;
            double floor = known[k].pairs.count ? PAIR_FLOOR : VARIANCE_FLOOR;
            double e =
                log(fmax(known[k].variance, floor) / known[k].expected) - digamma(half) + log(half);
            if (pass == 0) {
                mean += e;
                used++;
            } else {
                prior.excess += (e - mean) * (e - mean) / (used - 1) - trigamma(half) / used;
                chance += 2 * trigamma(half) * trigamma(half) / used / used;
            }
        }
        mean = pass == 0 ? mean / used : mean;
    }
    double excess = prior.excess - sqrt(chance);
    double df = excess > 0 ? 2 * trigamma_inverse(excess) : PRIOR_DF_MAX;
    prior.df = fmin(fmax(df, 1), PRIOR_DF_MAX);
    prior.variance = exp(mean + digamma(0.5 * prior.df) - log(0.5 * prior.df));
    return prior;
}

/* In turns a variance is a multiple of what is expected of the point by the error of its samples
 * and what all points have in common; that is what makes them most alike (a trend of the prior, as
 * in limma). So points of many samples and of few lend each other what they know. */
static struct prior fit_pairs(struct compare_known *known, int count)
{
    struct prior best = fit(known, count, BETWEEN_MAX);
    for (int halved = 1; halved <= BETWEEN_HALVED; halved++) {
        struct prior prior = fit(known, count, ldexp(BETWEEN_MAX, -halved));
        if (prior.excess < best.excess)
            best = prior;
    }
    weigh_all(known, count, best.between);
    return best;
}

/* Runs that differ show it in all points: the effects scatter around what they have in common.
 * Points whose program changed are few, so the median distance does not see them. */
static double effect_scatter(const struct compare_known *known, int count, double *scratch)
{
    int used = 0;
    for (int k = 0; k < count; k++)
        if (known[k].judged && !known[k].pairs.count)
            scratch[used++] = known[k].effect;
    if (used < POINTS_MIN)
        return NAN;
    stats_sort(scratch, used);
    double shift = stats_median(scratch, used);
    used = 0;
    for (int k = 0; k < count; k++)
        if (known[k].judged && !known[k].pairs.count)
            scratch[used++] = fabs(known[k].effect - shift) / known[k].share;
    stats_sort(scratch, used);
    return MEDIAN_TO_SD * stats_median(scratch, used);
}

static double known_swing(const struct compare_known *known, int count, double *scratch)
{
    int used = 0;
    for (int k = 0; k < count; k++)
        if (known[k].judged && !isnan(known[k].range))
            scratch[used++] = known[k].range;
    stats_sort(scratch, used);
    return used ? scratch[used - 1] : SWING_UNKNOWN;
}

static int level_moves(const struct compare_side_values *side, int level, double *out)
{
    int used = 0;
    for (int run = 0; run < side->runs; run++)
        for (int k = side->first[run]; k + 1 < side->first[run + 1]; k++) {
            double apart = fabs(side->slow[k + 1][level] - side->slow[k][level]);
            if (!isnan(apart))
                out[used++] = apart;
        }
    return used;
}

/* Of a level between visits of one process; where each has but one, between points. */
static double level_noise(const struct compare_known *known, int count, int level, double *scratch)
{
    int used = 0;
    for (int k = 0; k < count; k++)
        if (known[k].judged) {
            used += level_moves(&known[k].base, level, scratch + used);
            used += level_moves(&known[k].head, level, scratch + used);
        }
    const struct compare_known *last = NULL;
    for (int k = 0; used == 0 && k < count; k++) {
        if (!known[k].judged)
            continue;
        double apart = last ? fabs(known[k].base.slow[0][level] - last->base.slow[0][level]) : NAN;
        last = &known[k];
        if (!isnan(apart))
            scratch[used++] = apart;
    }
    stats_sort(scratch, used);
    return used ? MEDIAN_TO_SD * stats_median(scratch, used) / sqrt(2) : 0;
}

static void pool(struct compare_known *known, int count, bool paired,
                 struct compare_machine_noise *machine)
{
    if (!machine->pooled)
        return;
    struct prior prior = paired ? fit_pairs(known, count) : fit(known, count, 0);
    machine->variance = prior.variance;
    machine->df = prior.df;
}

enum status compare_pool(struct compare_known *known, int count, const struct compare_rules *rules,
                         struct compare_machine_noise *machine, struct error *err)
{
    size_t room = 4 * (size_t)count + 4;
    int shown = 0, pairs = 0;
    double allowed = rules->allowance * rules->allowance;
    weigh_all(known, count, allowed);
    for (int k = 0; k < count; k++)
        if (known[k].judged) {
            if (!known[k].pairs.count)
                known[k].expected = allowed;
            room += (size_t)(known[k].base.visits + known[k].head.visits);
            shown += known[k].df > 0;
            pairs += known[k].pairs.count > 0;
        }
    double *scratch = calloc(room, sizeof(*scratch));
    if (!scratch)
        return FAIL_NO_MEMORY(err);
    *machine = (struct compare_machine_noise){
        .variance = allowed, .df = ALLOWANCE_DF, .pooled = shown >= POINTS_MIN};
    machine->scatter = effect_scatter(known, count, scratch);
    pool(known, count, pairs > 0, machine);
    machine->swing = known_swing(known, count, scratch);
    for (int level = 0; level < LEVEL_COUNT; level++)
        machine->level[level] = level_noise(known, count, level, scratch);
    free(scratch);
    return STATUS_OK;
}

/* The more the runs contradict the allowance, which is but a guess, the less it weighs. */
static double allowance_df(double allowed, const struct compare_known *known)
{
    double agreement = known->df > 0 && known->variance > allowed ? allowed / known->variance : 1;
    return fmax(ALLOWANCE_DF_MIN, ALLOWANCE_DF * agreement * agreement);
}

double compare_prior(const struct compare_known *known, const struct compare_machine_noise *machine)
{
    double floor = known->pairs.count ? PAIR_FLOOR : VARIANCE_FLOOR;
    double scale = machine->pooled ? known->expected : 1;
    return fmax(machine->variance * scale, floor);
}

void compare_moderate(const struct compare_known *known,
                      const struct compare_machine_noise *machine,
                      const struct compare_rules *rules, double *variance, double *df,
                      unsigned *sources)
{
    bool paired = known->pairs.count > 0;
    double within = paired ? known->pairs.within : 0.5 * (known->base.within + known->head.within);
    double prior = compare_prior(known, machine), weight = machine->df;
    *sources = known->sources | (machine->pooled ? COMPARE_FROM_POINTS : COMPARE_FROM_ALLOWANCE);
    if (!machine->pooled) {
        double spread = SPREAD_SHARE * fmax(known->base.spread, known->head.spread);
        if (!paired && spread > rules->allowance)
            prior = fmax(prior, spread * spread);
        prior += within;
        weight = allowance_df(prior, known);
    }
    /* Where runs say little, the other points' effects say how far runs differ. */
    if (known->between < SHOWN_DF && machine->scatter * machine->scatter > prior)
        prior = machine->scatter * machine->scatter;
    *df = weight + known->df;
    *variance = (weight * prior + known->df * known->variance) / *df;
    /* What scatters between visits or runs has the error of their medians in it already. */
    if (known->df < SHOWN_DF)
        *variance = fmax(*variance, within);
}

/* ---- ranks ---- */

double compare_rank(const struct compare_known *known, double *least)
{
    double sign = known->effect < 0 ? -1 : 1;
    const double *head = known->head.sorted, *base = known->program;
    int nx = known->head.runs, ny = known->program_runs;
    *least = 1;
    for (int k = 1; k <= nx; k++)
        *least *= (double)k / (ny + k);
    double above = sign * (mann_whitney_u(head, nx, base, ny) - 0.5 * nx * ny);
    if (above >= 0.5 * nx * ny)
        return *least;
    double two_sided = mann_whitney_p(head, nx, base, ny, 1);
    return above > 0 ? 0.5 * two_sided : 1 - 0.5 * two_sided;
}
