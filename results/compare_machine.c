/* SPDX-License-Identifier: Apache-2.0 */
#include "results/compare_machine.h"

#include <math.h>
#include <stdlib.h>

#include "base/numbers/rank.h"
#include "base/numbers/stats.h"

enum { VISITS_MIN = 8 }; /* fewer do not show what a point depends on */
#define MOVED       0.05 /* smaller moves of a level explain nothing */
#define MOVED_PAIRS 0.1  /* in turns both sides met the same machine */
#define MOVED_SD    3.0  /* of its own noise, or four levels find something to explain by chance */
#define EXPLAINED   0.65 /* share of the effect that must follow from the level */
#define CORRELATION 0.6  /* between visits, or the point does not depend on the level */
#define SHARE_MAX   1.25 /* a point moves little more than what it is made of */

static double pair_shift(const struct compare_known *known, int level)
{
    double sum = 0;
    int used = 0;
    for (int k = 0; k < known->pairs.count; k++) {
        double apart = known->head.slow[known->pairs.head_visit[k]][level] -
                       known->base.slow[known->pairs.base_visit[k]][level];
        if (isnan(apart))
            continue;
        sum += apart;
        used++;
    }
    return used ? sum / used : NAN;
}

/* Sorted levels of the processes of a side, and of earlier runs of BASE's program. */
static int side_levels(const struct compare_side_values *side,
                       const struct compare_past_values *past, int level, double *out)
{
    int used = 0;
    for (int k = 0; k < past->count && used < COMPARE_VISITS_MAX; k++)
        if (past->program[k] == COMPARE_BASE_PROGRAM && !isnan(past->processes[k].slow[level]))
            out[used++] = past->processes[k].slow[level];
    for (int k = 0; k < side->runs && used < COMPARE_VISITS_MAX; k++)
        if (!isnan(side->processes[k].slow[level]))
            out[used++] = side->processes[k].slow[level];
    stats_sort(out, used);
    return used;
}

void compare_level_shifts(const struct compare_known *known, double shift[LEVEL_COUNT])
{
    static const struct compare_past_values no_past = {0};
    double base[COMPARE_VISITS_MAX], head[COMPARE_VISITS_MAX];
    for (int level = 0; level < LEVEL_COUNT; level++) {
        int nb = side_levels(&known->base, &known->past, level, base);
        int nh = side_levels(&known->head, &no_past, level, head);
        shift[level] =
            known->pairs.count ? pair_shift(known, level) : shift_estimate(base, nb, head, nh);
    }
}

/* ---- what a point depends on ---- */

/* Sums over visits around their group's means: point x level. */
struct slope {
    double xx, xy, yy;
    int df;
};

static void add_group(struct slope *slope, const double *medians, const double (*slow)[LEVEL_COUNT],
                      const int *group, int which, int count, int level)
{
    double mean_x = 0, mean_y = 0;
    int used = 0;
    for (int pass = 0; pass < 2; pass++) {
        for (int k = 0; k < count; k++) {
            if ((group && group[k] != which) || isnan(slow[k][level]))
                continue;
            double x = slow[k][level], y = medians[k];
            if (pass == 0) {
                mean_x += x;
                mean_y += y;
                used++;
            } else {
                slope->xx += (x - mean_x) * (x - mean_x);
                slope->xy += (x - mean_x) * (y - mean_y);
                slope->yy += (y - mean_y) * (y - mean_y);
            }
        }
        if (!used)
            return;
        mean_x = pass ? mean_x : mean_x / used;
        mean_y = pass ? mean_y : mean_y / used;
    }
    slope->df += used - 1;
}

/* Visits within BASE, within HEAD and within the earlier runs of each program: nothing of the
 * effect is in it. */
static struct slope find_slope(const struct compare_known *known, int level)
{
    typedef const double(*levels)[LEVEL_COUNT];
    const struct compare_side_values *sides[] = {&known->base, &known->head};
    const struct compare_past_values *past = &known->past;
    struct slope slope = {.df = 0};
    int programs = 0;
    for (int k = 0; k < 2; k++)
        add_group(&slope, sides[k]->medians, (levels)sides[k]->slow, NULL, 0, sides[k]->visits,
                  level);
    for (int k = 0; k < past->visits; k++)
        programs = past->visit_program[k] >= programs ? past->visit_program[k] + 1 : programs;
    for (int program = 0; program < programs; program++)
        add_group(&slope, past->medians, (levels)past->slow, past->visit_program, program,
                  past->visits, level);
    return slope;
}

/* How far the point would have moved by the level alone, over the effect; NAN: it does not depend
 * on this level, or could not have moved so far. */
static double explained_share(const struct compare_known *known, int level, double shift,
                              double noise)
{
    struct slope slope = find_slope(known, level);
    double moved = fmax(MOVED, 2 * noise), ratio = shift / known->effect;
    bool shown = slope.df >= VISITS_MIN && slope.xx > slope.df * moved * moved && slope.yy > 0;
    if (!shown) /* a point that is made of nothing else moves as the level */
        return ratio;
    if (slope.xy < CORRELATION * sqrt(slope.xx * slope.yy))
        return NAN;
    return fmin(slope.xy / slope.xx, SHARE_MAX) * ratio;
}

int compare_explained_by(const struct compare_known *known,
                         const struct compare_machine_noise *machine,
                         const double shift[LEVEL_COUNT])
{
    int best = -1;
    double nearest = INFINITY;
    for (int level = 0; level < LEVEL_COUNT; level++) {
        double noise = machine->level[level] * known->share;
        double moved = known->pairs.count ? MOVED_PAIRS : MOVED;
        if (!(fabs(shift[level]) >= fmax(moved, MOVED_SD * noise)) ||
            shift[level] * known->effect <= 0)
            continue;
        double share = explained_share(known, level, shift[level], machine->level[level]);
        double apart = fabs(log(share));
        if (share >= EXPLAINED && share <= 1 / EXPLAINED && apart < nearest) {
            best = level;
            nearest = apart;
        }
    }
    return best;
}

int compare_displaced_by(const struct compare_known *known, const double shift[LEVEL_COUNT])
{
    bool head_alone = known->base_met && !known->head_met;
    bool base_alone = known->head_met && !known->base_met;
    if (!known->placed || !(known->effect > 0 ? head_alone : base_alone))
        return -1;
    double sign = known->effect > 0 ? 1 : -1;
    double far = sign * shift[LEVEL_HAND_OVER], crowded = sign * shift[LEVEL_ARITHMETIC];
    return crowded > 0 && !(far > crowded) ? LEVEL_ARITHMETIC : far > 0 ? LEVEL_HAND_OVER : -1;
}
