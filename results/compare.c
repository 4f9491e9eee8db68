/* SPDX-License-Identifier: Apache-2.0 */
#include "results/compare.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/distribution.h"
#include "base/rank.h"
#include "base/registry.h"
#include "base/series.h"
#include "base/stats.h"
#include "results/compare_pairs.h"

enum {
    HISTORY_MIN = 6,      /* one bad run among fewer is half of the differences */
    SAMPLES_MIN = 6,      /* fewer have no 95 % interval of the median */
    ALLOWANCE_DF = 10,    /* how many runs' worth of evidence the allowance is ... */
    ALLOWANCE_DF_MIN = 1, /* ... and when the runs contradict it */
};
#define HISTORY_FACTOR 2.0 /* the limit is at least so many sd of a difference in the history */
/* A disturbed machine shows inside the processes too: on a shared virtual machine medians scattered
 * by up to a quarter of the quartile distance of the samples. */
#define SPREAD_SHARE 0.25
#define DETECT_POWER 0.95
#define P_SHOWN      1e-6 /* the model is not exact enough for smaller ones */
#define RANK_ALPHA   0.05

const char *verdict_name(enum verdict verdict)
{
    static const char *const names[] = {"regressed", "improved", "unchanged", "inconclusive",
                                        "invalid",   "failed",   "missing",   "new"};
    return names[verdict];
}

static struct compare_rules completed(const struct compare_rules *rules)
{
    struct compare_rules r = rules ? *rules : (struct compare_rules){.limit = 0};
    r.limit = r.limit > 0 ? r.limit : 0.02;
    r.detect = fmax(r.detect > 0 ? r.detect : 0.05, r.limit);
    r.allowance = r.allowance > 0 ? r.allowance : 0.0075;
    r.alpha = r.alpha > 0 ? r.alpha : 0.01;
    return r;
}

/* ---- what a side says ---- */

struct side {
    double *medians; /* per process, logarithms, in order */
    double *sorted;  /* the same, sorted */
    double *all;     /* every sample, logarithms, sorted */
    int runs, samples;
    double within; /* mean square error of a median by its own samples */
    double spread; /* largest distance of the quartiles in one process */
    double effective;
};

static void side_release(struct side *side)
{
    free(side->medians);
    free(side->sorted);
    free(side->all);
}

/* Into all[from..]: log samples, sorted; the median and its error are noted. */
static void add_run(struct side *side, const struct compare_series *run, int k, double *order)
{
    double *sorted = side->all + side->samples;
    for (int i = 0; i < run->count; i++)
        sorted[i] = order[i] = log(run->times[i]);
    stats_sort(sorted, run->count);
    double median = stats_median(sorted, run->count);
    double effective = series_effective(order, run->count, median);
    double error = stats_median_error(sorted, run->count, effective);
    side->medians[k] = side->sorted[k] = median;
    side->within += error * error;
    side->spread = fmax(side->spread, stats_quantile(sorted, run->count, 0.75) -
                                          stats_quantile(sorted, run->count, 0.25));
    side->effective += effective;
    side->samples += run->count;
}

static enum status side_init(struct side *side, const struct compare_side *from, struct error *err)
{
    size_t runs = from->run_count > 0 ? (size_t)from->run_count : 0, total = 0, longest = 0;
    for (size_t k = 0; k < runs; k++) {
        size_t count = (size_t)from->runs[k].count;
        total += count;
        longest = longest > count ? longest : count;
    }
    *side = (struct side){.runs = from->run_count};
    side->medians = calloc(runs + 1, sizeof(double));
    side->sorted = calloc(runs + 1, sizeof(double));
    side->all = calloc(total + 1, sizeof(double));
    double *order = calloc(longest + 1, sizeof(double));
    if (!side->medians || !side->sorted || !side->all || !order) {
        free(order);
        side_release(side);
        return FAIL_NO_MEMORY(err);
    }
    for (int k = 0; k < from->run_count; k++)
        add_run(side, &from->runs[k], k, order);
    free(order);
    side->within /= side->runs;
    stats_sort(side->sorted, side->runs);
    stats_sort(side->all, side->samples);
    return STATUS_OK;
}

/* ---- noise between processes ---- */

static double squares(const double *x, int count)
{
    double sd = stats_sd(x, count);
    return count > 1 ? sd * sd * (count - 1) : 0;
}

/* Variance of a process's median as the runs show it; paired runs share what drifts, so only their
 * differences count. */
static double observed(const struct side *base, const struct side *head,
                       const struct compare_pairs *pairs, double *df)
{
    *df = pairs->count ? pairs->count - 1 : base->runs + head->runs - 2;
    if (*df <= 0)
        return 0;
    return (pairs->count
                ? 0.5 * squares(pairs->shift, pairs->count)
                : squares(base->medians, base->runs) + squares(head->medians, head->runs)) /
           *df;
}

static enum status history_noise(const struct compare_point *point, double *noise,
                                 struct error *err)
{
    int count = point->history_count;
    *noise = NAN;
    if (count < HISTORY_MIN)
        return STATUS_OK;
    double *x = calloc(2 * (size_t)count, sizeof(*x));
    if (!x)
        return FAIL_NO_MEMORY(err);
    for (int k = 0; k < count; k++)
        x[k] = log(point->history[k]);
    *noise = series_noise(x, count, x + count);
    free(x);
    return STATUS_OK;
}

/* A variance moderated by a prior (Smyth, Stat. Appl. Genet. Mol. Biol. 3, 2004): few runs are
 * quiet or noisy by chance, so they are drawn towards the allowance; many runs speak for
 * themselves. The more the runs contradict the allowance, the less it weighs. */
static void settle_noise(struct comparison *c, double allowed, double seen, double seen_df)
{
    double agreement = seen > allowed ? allowed / seen : 1;
    double weight = fmax(ALLOWANCE_DF_MIN, ALLOWANCE_DF * agreement * agreement);
    c->df = seen_df > 0 ? weight + seen_df : INFINITY;
    c->noise = sqrt((weight * allowed + seen_df * seen) / (weight + seen_df));
}

static void find_noise(struct comparison *c, const struct side *base, const struct side *head,
                       const struct compare_pairs *pairs, const struct compare_point *point,
                       double history, const struct compare_rules *rules)
{
    static const char *const names[] = {"allowance", "runs compared", "history",
                                        "runs compared and history"};
    double within = 0.5 * (base->within + head->within), allowance = rules->allowance;
    double runs_df, runs = observed(base, head, pairs, &runs_df);
    /* What disturbs the machine, and drift from run to run, hit both of a pair. */
    bool has_history = !isnan(history) && !pairs->count;
    if (pairs->count)
        within = pairs->within;
    else
        allowance = fmax(allowance, SPREAD_SHARE * fmax(base->spread, head->spread));
    double history_df = has_history ? series_noise_df(point->history_count) : 0;
    double before = has_history ? fmax(history * history, within) : 0;
    double df = runs_df + history_df;
    double seen = df > 0 ? (runs_df * runs + history_df * before) / df : 0;
    settle_noise(c, allowance * allowance + within, seen, df);
    c->noise_from = names[(runs_df > 0) + 2 * has_history];
}

/* ---- one point ---- */

static double student(double p, double df)
{
    return student_quantile(p, isinf(df) ? 1e7 : df);
}

/* tests: over how many points p is adjusted; the hardest case of that is p <= alpha / tests. */
static void judge_numbers(struct comparison *c, const struct compare_rules *rules, double effect,
                          double history, int tests)
{
    double share = sqrt(1.0 / c->base_runs + 1.0 / c->head_runs), error = c->noise * share;
    double limit = log1p(rules->limit);
    if (!isnan(history))
        limit = fmax(limit, HISTORY_FACTOR * history * share);
    double half = student(1 - rules->alpha / 2, c->df) * error;
    double needed = student(1 - rules->alpha / 2 / tests, c->df) * error;
    c->limit = expm1(limit);
    c->ratio = exp(effect);
    c->ci_low = exp(effect - half);
    c->ci_high = exp(effect + half);
    c->p = error > 0 ? 2 * student_cdf(-fabs(effect) / error, isinf(c->df) ? 1e7 : c->df) : NAN;
    c->mde = expm1(fmax(needed, limit) + student(DETECT_POWER, c->df) * error);
}

static void fill_sides(struct comparison *c, const struct side *base, const struct side *head)
{
    c->base_runs = base->runs;
    c->head_runs = head->runs;
    c->base_samples = base->samples;
    c->head_samples = head->samples;
    c->base_effective = base->effective;
    c->head_effective = head->effective;
    c->base_median = exp(stats_median(base->sorted, base->runs));
    c->head_median = exp(stats_median(head->sorted, head->runs));
}

static enum status measure(const struct compare_point *point, const struct compare_rules *rules,
                           int tests, struct comparison *c, struct error *err)
{
    struct side base, head;
    struct compare_pairs pairs;
    double history, effect;
    TRY(history_noise(point, &history, err));
    TRY(compare_pairs(point, &pairs, err));
    TRY(side_init(&base, &point->base, err));
    if (side_init(&head, &point->head, err) != STATUS_OK) {
        side_release(&base);
        return STATUS_NO_MEMORY;
    }
    fill_sides(c, &base, &head);
    find_noise(c, &base, &head, &pairs, point, history, rules);
    if (pairs.count) {
        effect = compare_pairs_shift(&pairs);
        c->p_rank = pairs.p_sign;
    } else {
        double inflation = (base.samples + head.samples) / (base.effective + head.effective);
        effect = shift_estimate(base.sorted, base.runs, head.sorted, head.runs);
        c->p_rank = mann_whitney_p(base.all, base.samples, head.all, head.samples, inflation);
    }
    judge_numbers(c, rules, effect, pairs.count ? NAN : history, tests);
    side_release(&base);
    side_release(&head);
    return STATUS_OK;
}

/* ---- gates and verdicts ---- */

static bool set(struct comparison *c, enum verdict verdict, const char *side, const char *why)
{
    c->verdict = verdict;
    snprintf(c->reason, sizeof(c->reason), "%s%s%s", side, why && *why ? ": " : "", why ? why : "");
    return false;
}

/* The first run with too few samples or an impossible time, or NULL. */
static const char *side_fault(const struct compare_side *side)
{
    for (int k = 0; k < side->run_count; k++) {
        if (side->runs[k].count < SAMPLES_MIN)
            return "fewer than 6 samples";
        for (int i = 0; i < side->runs[k].count; i++)
            if (!(side->runs[k].times[i] > 0 && isfinite(side->runs[k].times[i])))
                return "a sample that is not a positive time";
    }
    return side->run_count ? NULL : "no samples";
}

/* False when the verdict stands without looking at any time. */
static bool passes_gate(const struct compare_point *p, struct comparison *c)
{
    const struct compare_side *base = &p->base, *head = &p->head;
    if (head->state == SIDE_ABSENT)
        return set(c, VERDICT_MISSING, "only in BASE", head->reason);
    if (head->state == SIDE_FAILED)
        return base->state == SIDE_FAILED ? set(c, VERDICT_INVALID, "BASE and HEAD", head->reason)
                                          : set(c, VERDICT_FAILED, "HEAD", head->reason);
    if (base->state == SIDE_ABSENT)
        return set(c, VERDICT_NEW, "only in HEAD", base->reason);
    if (base->state != SIDE_USABLE)
        return set(c, VERDICT_INVALID, "BASE", base->reason);
    if (head->state != SIDE_USABLE)
        return set(c, VERDICT_INVALID, "HEAD", head->reason);
    if (side_fault(base))
        return set(c, VERDICT_INVALID, "BASE", side_fault(base));
    if (side_fault(head))
        return set(c, VERDICT_INVALID, "HEAD", side_fault(head));
    return true;
}

/* True when the machine's own speed moved as the point did, so that the program is not the cause.
 */
static bool machine_moved(const struct compare_point *point, const struct comparison *c)
{
    double machine = point->machine > 0 ? log(point->machine) : 0, effect = log(c->ratio);
    double limit = log1p(c->limit);
    return fabs(machine) >= limit && machine * effect > 0 && fabs(effect) - fabs(machine) < limit;
}

static void decide(const struct compare_point *point, struct comparison *c,
                   const struct compare_rules *rules)
{
    double effect = log(c->ratio), share = sqrt(1.0 / c->base_runs + 1.0 / c->head_runs);
    bool real = c->p_adjusted <= rules->alpha && c->p_rank <= RANK_ALPHA;
    /* Two one-sided tests at 5 % (Schuirmann 1987): the 90 % interval must lie inside. */
    double reach = fabs(effect) + student(0.95, c->df) * c->noise * share;
    real = real && fabs(effect) >= log1p(c->limit);
    if (real && machine_moved(point, c)) {
        c->verdict = VERDICT_INCONCLUSIVE;
        snprintf(
            c->reason, sizeof(c->reason),
            "%+.1f %%, but the machine's own ceilings moved by %+.1f %% of time: measure again",
            100 * (c->ratio - 1), 100 * (point->machine - 1));
    } else if (real) {
        c->verdict = effect > 0 ? VERDICT_REGRESSED : VERDICT_IMPROVED;
        snprintf(c->reason, sizeof(c->reason), "%+.1f %%, adjusted p %s%.1g, limit %.1f %%",
                 100 * (c->ratio - 1), c->p_adjusted < P_SHOWN ? "< " : "",
                 fmax(c->p_adjusted, P_SHOWN), 100 * c->limit);
    } else if (reach < log1p(fmax(rules->detect, c->limit))) {
        c->verdict = VERDICT_UNCHANGED;
        snprintf(c->reason, sizeof(c->reason),
                 "a change of %.1f %% is excluded; one below %.1f %% could stay unseen",
                 100 * fmax(rules->detect, c->limit), 100 * c->mde);
    } else {
        c->verdict = VERDICT_INCONCLUSIVE;
        snprintf(
            c->reason, sizeof(c->reason),
            "%+.1f %% is not proven and %.1f %% is not excluded; the noise of a run is %.1f %%: "
            "more runs decide (commas join runs)",
            100 * (c->ratio - 1), 100 * fmax(rules->detect, c->limit), 100 * c->noise);
    }
}

static const struct comparison nothing = {
    .base_median = NAN,
    .head_median = NAN,
    .ratio = NAN,
    .ci_low = NAN,
    .ci_high = NAN,
    .p = NAN,
    .p_adjusted = NAN,
    .p_rank = NAN,
    .mde = NAN,
    .limit = NAN,
    .noise = NAN,
    .df = NAN,
    .noise_from = "",
    .base_effective = NAN,
    .head_effective = NAN,
};

/* The median that a single good side has, for the tables. */
static double lone_median(const struct compare_side *side)
{
    if (side->state != SIDE_USABLE || side_fault(side))
        return NAN;
    struct side s;
    if (side_init(&s, side, NULL) != STATUS_OK)
        return NAN;
    double median = exp(stats_median(s.sorted, s.runs));
    side_release(&s);
    return median;
}

static enum status adjust(struct comparison *out, int count, struct error *err)
{
    double *p = calloc(2 * (size_t)count + 1, sizeof(*p));
    int *order = calloc((size_t)count + 1, sizeof(*order));
    if (p && order) {
        for (int k = 0; k < count; k++)
            p[k] = out[k].p;
        adjust_false_discovery(p, count, order, p + count);
        for (int k = 0; k < count; k++)
            out[k].p_adjusted = p[count + k];
    }
    enum status status = p && order ? STATUS_OK : FAIL_NO_MEMORY(err);
    free(p);
    free(order);
    return status;
}

enum status compare_points(const struct compare_point *points, int count,
                           const struct compare_rules *asked, struct comparison *out,
                           struct error *err)
{
    struct compare_rules rules = completed(asked);
    int tests = 0;
    for (int k = 0; k < count; k++) {
        out[k] = nothing;
        out[k].verdict = VERDICT_INCONCLUSIVE;
        tests += passes_gate(&points[k], &out[k]);
    }
    for (int k = 0; k < count; k++) {
        if (out[k].verdict == VERDICT_INCONCLUSIVE) {
            TRY(measure(&points[k], &rules, tests, &out[k], err));
        } else {
            out[k].base_median = lone_median(&points[k].base);
            out[k].head_median = lone_median(&points[k].head);
        }
    }
    TRY(adjust(out, count, err));
    for (int k = 0; k < count; k++)
        if (out[k].verdict == VERDICT_INCONCLUSIVE)
            decide(&points[k], &out[k], &rules);
    return STATUS_OK;
}
