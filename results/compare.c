/* SPDX-License-Identifier: Apache-2.0 */
#include "results/compare.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clean.h"
#include "base/numbers/distribution.h"
#include "base/numbers/rank.h"
#include "base/numbers/stats.h"
#include "base/registry.h"
#include "results/compare_machine.h"

enum {
    SAMPLES_MIN = 6, /* of a process: fewer have no 95 % interval of the median */
};
#define HISTORY_FACTOR 2.0 /* the limit is at least so many sd of a difference in the history */
#define DETECT_POWER   0.95
#define DETECT_APART   0.15
#define P_SHOWN        1e-6      /* the model is not exact enough for smaller ones */
#define RANK_ALPHA     0.0500001 /* three runs against three are 1/20 */
#define IN_TURNS       "measure in turns (ridge run SUITE --against PROGRAM)"

const char *verdict_name(enum verdict verdict)
{
    static const char *const names[] = {"regressed",    "improved", "unchanged",
                                        "inconclusive", "machine",  "invalid",
                                        "failed",       "missing",  "new"};
    return names[verdict];
}

static struct compare_rules completed(const struct compare_rules *rules)
{
    struct compare_rules r = rules ? *rules : (struct compare_rules){.limit = 0};
    r.limit = r.limit > 0 ? r.limit : 0.02;
    r.allowance = r.allowance > 0 ? r.allowance : 0.0075;
    r.alpha = r.alpha > 0 ? r.alpha : 0.01;
    return r;
}

/* What a shared machine lets two runs show is less than what it lets two programs show in turns. */
static double detect_of(const struct compare_rules *rules, const struct compare_known *known)
{
    double usual = known->pairs.count > 0 ? COMPARE_DETECT_IN_TURNS : DETECT_APART;
    return fmax(rules->detect > 0 ? rules->detect : usual, rules->limit);
}

/* ---- one point ---- */

static void name_sources(struct comparison *c, unsigned sources, bool paired)
{
    static const char *const names[] = {"visits", "runs compared", "history", "all points",
                                        "allowance"};
    size_t used = 0;
    for (int k = 0; k < ARRAY_COUNT(names); k++)
        if (sources >> k & 1)
            used += (size_t)snprintf(c->noise_from + used, sizeof(c->noise_from) - used, "%s%s",
                                     used ? ", " : "", k == 0 && paired ? "pairs" : names[k]);
}

/* tests: over how many points p is adjusted; the hardest case of that is p <= alpha / tests. */
static void judge_numbers(struct comparison *c, const struct compare_known *known,
                          const struct compare_machine_noise *machine,
                          const struct compare_rules *rules, int tests)
{
    double variance, limit = log1p(rules->limit);
    unsigned sources;
    compare_moderate(known, machine, rules, &variance, &c->df, &sources);
    name_sources(c, sources, known->pairs.count > 0);
    c->noise = sqrt(variance);
    c->prior = sqrt(compare_prior(known, machine));
    c->prior_df = machine->df;
    double error = c->noise * known->share;
    if (!isnan(known->history))
        limit = fmax(limit, HISTORY_FACTOR * known->history * known->share);
    double half = student_quantile(1 - rules->alpha / 2, c->df) * error;
    double needed = student_quantile(1 - rules->alpha / 2 / tests, c->df) * error;
    c->limit = expm1(limit);
    c->ratio = exp(known->effect);
    c->ci_low = exp(known->effect - half);
    c->ci_high = exp(known->effect + half);
    c->p = error > 0            ? 2 * student_cdf(-fabs(known->effect) / error, c->df)
           : known->effect == 0 ? 1
                                : 0;
    limit = log1p(c->ranked ? c->limit : fmax(c->limit, c->swing));
    c->mde = expm1(fmax(needed, limit) + student_quantile(DETECT_POWER, c->df) * error);
}

/* In turns no visit counts more than another. */
static double middle_visit(const struct compare_side_values *side)
{
    double sorted[COMPARE_PAIRS_MAX];
    int count = side->visits < COMPARE_PAIRS_MAX ? side->visits : COMPARE_PAIRS_MAX;
    memcpy(sorted, side->medians, (size_t)count * sizeof(*sorted));
    stats_sort(sorted, count);
    return exp(stats_median(sorted, count));
}

static void fill_sides(struct comparison *c, const struct compare_known *known)
{
    const struct compare_side_values *base = &known->base, *head = &known->head;
    c->base_runs = base->runs;
    c->head_runs = head->runs;
    c->base_visits = base->visits;
    c->head_visits = head->visits;
    c->base_samples = base->samples;
    c->head_samples = head->samples;
    c->base_effective = base->effective;
    c->head_effective = head->effective;
    if (known->pairs.count) {
        c->base_median = middle_visit(base);
        c->head_median = middle_visit(head);
    } else {
        c->base_median = exp(stats_median(known->program, known->program_runs));
        c->head_median = exp(stats_median(head->sorted, head->runs));
    }
}

/* What an effect must exceed beside the limit: nothing where enough runs of BASE's program are
 * known to hold several runs of HEAD against; otherwise, and for a single run, which may have met a
 * level that was not seen before, the largest move that anything known shows. */
static void measure(struct comparison *c, const struct compare_known *known,
                    const struct compare_machine_noise *machine, const struct compare_rules *rules,
                    int tests)
{
    double least, shift[LEVEL_COUNT], range = isnan(known->range) ? 0 : known->range;
    fill_sides(c, known);
    compare_level_shifts(known, shift);
    for (int k = 0; k < LEVEL_COUNT; k++)
        c->level[k] = exp(shift[k]);
    c->explained_by = compare_explained_by(known, machine, shift);
    if (c->explained_by < 0)
        c->explained_by = compare_displaced_by(known, shift);
    c->swing = expm1(fmax(machine->swing, range));
    if (known->pairs.count) {
        c->p_rank = known->pairs.p_sign;
        c->ranked = true;
        judge_numbers(c, known, machine, rules, tests);
        return;
    }
    c->p_rank = compare_rank(known, &least);
    c->history_runs = known->program_runs - known->base.runs;
    c->ranked = least <= RANK_ALPHA && known->head.runs > 1;
    judge_numbers(c, known, machine, rules, tests);
}

/* ---- gates and verdicts ---- */

static bool set(struct comparison *c, enum verdict verdict, const char *side, const char *why)
{
    c->verdict = verdict;
    snprintf(c->reason, sizeof(c->reason), "%s%s%s", side, why && *why ? ": " : "", why ? why : "");
    clean_end(c->reason);
    return false;
}

/* The first run with too few samples or an impossible time, or NULL. */
static const char *side_fault(const struct compare_side *side)
{
    for (int k = 0, samples = 0; k < side->visit_count; k++) {
        const struct compare_visit *visit = &side->visits[k];
        bool ends = k + 1 == side->visit_count || visit[1].run != visit->run;
        if (visit->count < 1)
            return "a visit without samples";
        for (int i = 0; i < visit->count; i++)
            if (!(visit->times[i] > 0 && isfinite(visit->times[i])))
                return "a sample that is not a positive time";
        samples += visit->count;
        if (ends && samples < SAMPLES_MIN)
            return "fewer than 6 samples";
        samples = ends ? 0 : samples;
    }
    return side->visit_count ? NULL : "no samples";
}

/* False when the verdict stands without looking at any time. */
static bool passes_gate(const struct compare_point *p, struct comparison *c)
{
    const struct compare_side *base = &p->base, *head = &p->head;
    if (head->state == SIDE_ABSENT)
        return set(c, VERDICT_MISSING,
                   base->state == SIDE_FAILED ? "failed in BASE, not measured in HEAD"
                                              : "only in BASE",
                   head->reason);
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

/* ---- words ---- */

static void say_machine(struct comparison *c, const struct compare_point *point)
{
    double percent = 100 * (c->ratio - 1);
    c->verdict = VERDICT_MACHINE;
    if (c->explained_by < 0) {
        snprintf(c->reason, sizeof(c->reason),
                 "%+.1f %%, but the machine's own ceilings moved by %+.1f %% of time between these "
                 "runs: measure again, or in turns",
                 percent, 100 * (point->machine - 1));
        return;
    }
    double level = c->level[c->explained_by];
    snprintf(c->reason, sizeof(c->reason),
             "%+.*f %%, but %s took %.*f times as long beside these visits: measure again, or in "
             "turns",
             fabs(percent) < 10 ? 1 : 0, percent, level_kinds[c->explained_by].words,
             level > 0.9 && level < 1.2 ? 2 : 1, level);
}

static void say_real(struct comparison *c)
{
    c->verdict = c->ratio > 1 ? VERDICT_REGRESSED : VERDICT_IMPROVED;
    snprintf(c->reason, sizeof(c->reason), "%+.1f %%, adjusted p %s%.1g, limit %.1f %%",
             100 * (c->ratio - 1), c->p_adjusted < P_SHOWN ? "< " : "",
             fmax(c->p_adjusted, P_SHOWN), 100 * c->limit);
}

/* An effect that noise does not explain and that is not an alarm either. */
static void say_guarded(struct comparison *c, const struct compare_machine_noise *machine,
                        const struct compare_known *known)
{
    double percent = 100 * (c->ratio - 1);
    if (known->pairs.count)
        snprintf(c->reason, sizeof(c->reason),
                 "%+.1f %%, but not in most of the samples: more rounds decide", percent);
    else if (c->ranked)
        snprintf(c->reason, sizeof(c->reason),
                 "%+.1f %%, but runs of the same program took as long before (%d known): " IN_TURNS,
                 percent, c->history_runs + c->base_runs);
    else if (isnan(known->range))
        snprintf(c->reason, sizeof(c->reason),
                 "%+.1f %%, but one visit per side cannot tell the program from the machine, whose "
                 "speed may change for minutes: " IN_TURNS ", or in several rounds",
                 percent);
    else
        snprintf(c->reason, sizeof(c->reason),
                 "%+.1f %%, but what did not change moved by up to %.1f %% between %s: " IN_TURNS,
                 percent, 100 * c->swing,
                 expm1(known->range) >= c->swing * (1 - 1e-9) ? "visits of this point"
                 : machine->pooled                            ? "visits in these runs"
                                                              : "visits");
}

static void say_noisy(struct comparison *c, double detect, bool in_turns)
{
    snprintf(c->reason, sizeof(c->reason),
             "%+.1f %% is not proven and %.1f %% is not excluded; the noise of a %s is %.1f %%: %s",
             100 * (c->ratio - 1), 100 * detect, in_turns ? "visit" : "run", 100 * c->noise,
             in_turns ? "more rounds decide" : "more runs decide (commas join runs), or " IN_TURNS);
}

/* ---- verdicts ---- */

/* True when the machine's own speed, by its ceilings, moved as the point did. */
static bool ceilings_moved(const struct compare_point *point, const struct comparison *c)
{
    double machine = point->machine > 0 ? log(point->machine) : 0, effect = log(c->ratio);
    double limit = log1p(c->limit);
    return fabs(machine) >= limit && machine * effect > 0 && fabs(effect) - fabs(machine) < limit;
}

static void decide(const struct compare_point *point, const struct compare_known *known,
                   const struct compare_machine_noise *machine, const struct compare_rules *rules,
                   struct comparison *c)
{
    double effect = fabs(known->effect), asked = detect_of(rules, known);
    double detect = fmax(asked, c->limit);
    /* Two one-sided tests at 5 % (Schuirmann 1987): the 90 % interval must lie inside. */
    double reach = effect + student_quantile(0.95, c->df) * c->noise * known->share;
    bool large = c->p_adjusted <= rules->alpha && effect >= log1p(c->limit);
    bool beyond = c->ranked ? c->p_rank <= RANK_ALPHA : effect > log1p(c->swing);
    bool moved = c->explained_by >= 0 || (large && ceilings_moved(point, c));
    if (moved && (large || effect >= log1p(asked))) {
        say_machine(c, point);
    } else if (large && beyond) {
        say_real(c);
    } else if (reach < log1p(detect) && 2 * effect < log1p(detect)) {
        c->verdict = VERDICT_UNCHANGED;
        snprintf(c->reason, sizeof(c->reason),
                 "a change of %.1f %% is excluded; one below %.1f %% could stay unseen",
                 100 * expm1(reach), 100 * c->mde);
    } else if (large) {
        say_guarded(c, machine, known);
    } else {
        say_noisy(c, detect, known->pairs.count > 0);
    }
}

static const struct comparison nothing = {
    .verdict = VERDICT_INCONCLUSIVE,
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
    .swing = NAN,
    .noise = NAN,
    .df = NAN,
    .prior = NAN,
    .prior_df = NAN,
    .level = {NAN, NAN, NAN, NAN},
    .explained_by = -1,
    .base_effective = NAN,
    .head_effective = NAN,
};

/* The median that a single good side has, for the tables. */
static double lone_median(const struct compare_side *side)
{
    struct compare_side_values s;
    if (side->state != SIDE_USABLE || side_fault(side) ||
        compare_side_read(&s, side, NULL) != STATUS_OK)
        return NAN;
    compare_side_settle(&s, s.visits_least);
    double median = exp(stats_median(s.sorted, s.runs));
    compare_side_release(&s);
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

/* A program that hands work over more slowly must not pass for a machine whose CPUs lie apart: a
 * side counts as displaced in a point only if it met the usual placement in most others, or if both
 * are one program. */
static void settle_placements(const struct compare_point *points, struct compare_known *known,
                              int count)
{
    int placed = 0, base_met = 0, head_met = 0;
    for (int k = 0; k < count; k++)
        if (known[k].judged && known[k].placed) {
            placed++;
            base_met += known[k].base_met;
            head_met += known[k].head_met;
        }
    for (int k = 0; k < count; k++) {
        bool usual = points[k].same_program || (2 * base_met > placed && 2 * head_met > placed);
        known[k].placed = known[k].placed && usual;
    }
}

static enum status compare_known_points(const struct compare_point *points, int count,
                                        const struct compare_rules *rules,
                                        struct compare_known *known, struct comparison *out,
                                        struct error *err)
{
    struct compare_machine_noise machine;
    int tests = 0;
    for (int k = 0; k < count; k++) {
        out[k] = nothing;
        if (passes_gate(&points[k], &out[k])) {
            TRY(compare_known_make(&known[k], &points[k], err));
            tests++;
        } else {
            out[k].base_median = lone_median(&points[k].base);
            out[k].head_median = lone_median(&points[k].head);
        }
    }
    settle_placements(points, known, count);
    TRY(compare_pool(known, count, rules, &machine, err));
    for (int k = 0; k < count; k++)
        if (known[k].judged)
            measure(&out[k], &known[k], &machine, rules, tests);
    TRY(adjust(out, count, err));
    for (int k = 0; k < count; k++)
        if (known[k].judged)
            decide(&points[k], &known[k], &machine, rules, &out[k]);
    return STATUS_OK;
}

enum status compare_points(const struct compare_point *points, int count,
                           const struct compare_rules *asked, struct comparison *out,
                           struct error *err)
{
    struct compare_rules rules = completed(asked);
    struct compare_known *known = calloc((size_t)count + 1, sizeof(*known));
    if (!known)
        return FAIL_NO_MEMORY(err);
    enum status status = compare_known_points(points, count, &rules, known, out, err);
    for (int k = 0; k < count; k++)
        if (known[k].judged)
            compare_known_release(&known[k]);
    free(known);
    return status;
}
