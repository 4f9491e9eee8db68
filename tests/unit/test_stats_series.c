/* SPDX-License-Identifier: Apache-2.0
 * Spread, effective samples and change points: by hand and by simulation with seeded numbers. */

#include <math.h>
#include <stdlib.h>

#include "base/numbers/random.h"
#include "base/numbers/series.h"
#include "base/numbers/stats.h"
#include "tests/lib/unit.h"

TEST(spread_by_hand)
{
    double x[] = {2, 4, 4, 4, 5, 5, 7, 9};
    assert_true(stats_mean(x, 8) == 5);
    assert_true(fabs(stats_sd(x, 8) - sqrt(32.0 / 7)) < 1e-12);
    assert_true(isnan(stats_mean(x, 0)) && isnan(stats_sd(x, 1)));
    double y[101];
    for (int k = 0; k < 101; k++)
        y[k] = k;
    /* Ranks 0.5 -+ 0.98 / 10 of 0..100: 40.2 .. 59.8. */
    assert_true(fabs(stats_median_error(y, 101, 100) - 19.6 / 3.919928) < 1e-9);
    assert_true(stats_median_error(y, 101, 25) > 1.99 * stats_median_error(y, 101, 100));
}

/* x[k] = rho x[k-1] + sqrt(1 - rho^2) e[k] */
static void correlated(double *x, int count, double rho, uint64_t seed)
{
    double last = random_normal(seed, 0);
    for (int k = 0; k < count; k++) {
        last = rho * last + sqrt(1 - rho * rho) * random_normal(seed, (uint64_t)k + 1);
        x[k] = last;
    }
}

static double sorted_median(const double *x, int count, double *sorted)
{
    for (int k = 0; k < count; k++)
        sorted[k] = x[k];
    stats_sort(sorted, count);
    return stats_median(sorted, count);
}

/* The sd of the median over repetitions is the truth; the error from one series must tell it, also
 * when samples are correlated, where the plain count is wrong by half (rho .6) or by three. */
TEST(effective_samples_tell_the_error)
{
    enum { COUNT = 400, TRIALS = 300 };
    static const double rhos[] = {0, 0.6, 0.9};
    for (int r = 0; r < 3; r++) {
        static double medians[TRIALS], errors[TRIALS];
        for (int t = 0; t < TRIALS; t++) {
            double x[COUNT], sorted[COUNT];
            correlated(x, COUNT, rhos[r], (uint64_t)(1000 * r + t));
            medians[t] = sorted_median(x, COUNT, sorted);
            double effective = series_effective(x, COUNT, medians[t]);
            assert_true(effective >= 1 && effective <= COUNT);
            errors[t] = stats_median_error(sorted, COUNT, effective);
        }
        double truth = stats_sd(medians, TRIALS), estimate = stats_mean(errors, TRIALS);
        if (estimate < 0.85 * truth || estimate > 1.3 * truth)
            fail_msg("correlation %g: estimated error %g, true %g", rhos[r], estimate, truth);
    }
}

TEST(few_or_constant_samples)
{
    double same[] = {3, 3, 3, 3, 3, 3, 3, 3};
    assert_true(series_effective(same, 8, 3) >= 1);
    assert_true(series_effective(same, 2, 3) == 2);
}

static int changes_of(const double *x, int count, struct change_point *changes)
{
    static double scratch[400];
    struct change_rules rules = {.seed = 42};
    return series_changes(x, count, &rules, scratch, changes, 8);
}

TEST(steps_are_found_where_they_are)
{
    double x[60];
    struct change_point changes[8];
    for (int k = 0; k < 60; k++)
        x[k] = 100 + random_normal(9, (uint64_t)k) + (k >= 20 ? 8 : 0) - (k >= 45 ? 5 : 0);
    assert_int_equal(changes_of(x, 60, changes), 2);
    assert_int_equal(changes[0].index, 20);
    assert_int_equal(changes[1].index, 45);
    assert_true(fabs(changes[0].before - 100) < 1 && fabs(changes[0].after - 108) < 1);
    assert_true(fabs(changes[1].before - 108) < 1 && fabs(changes[1].after - 103) < 1);
    assert_true(changes[0].p <= 0.01);
    /* Three values at the end are enough, two are not, one outlier never. */
    double end[20];
    for (int last = 1; last <= 3; last++) {
        for (int k = 0; k < 20; k++)
            end[k] = 10 + 0.01 * (k * 7 % 5) + (k >= 20 - last ? 3 : 0);
        int found = changes_of(end, 20, changes);
        assert_int_equal(found, last == 3);
        assert_true(found == 0 || changes[0].index == 17);
    }
}

/* An order that keeps both sides together has the same distance but for rounding. When it was
 * missed for that, four values of eight were a change "at p 0.01", which chance makes in 1 of 35.
 */
TEST(few_values_are_no_change_by_rounding)
{
    enum { TRIALS = 100, COUNT_MAX = 13 };
    int found[COUNT_MAX + 1] = {0};
    for (int count = 6; count <= COUNT_MAX; count++)
        for (int t = 0; t < TRIALS; t++) {
            double x[COUNT_MAX];
            struct change_point changes[8];
            for (int k = 0; k < count; k++)
                x[k] = 0.005 * random_normal(33, (uint64_t)(t * COUNT_MAX + k)) +
                       (k >= count / 2 ? log(2) : 0);
            int changed = changes_of(x, count, changes);
            found[count] += changed;
            assert_true(!changed || (changed == 1 && changes[0].index == count / 2));
        }
    for (int count = 6; count < 10; count++)
        assert_int_equal(found[count], 0);
    for (int count = SERIES_TO_JUDGE; count <= COUNT_MAX; count++)
        assert_int_equal(found[count], TRIALS);
}

TEST(error_rates_of_change_points)
{
    enum { TRIALS = 200, COUNT = 30 };
    int alarms = 0, hits = 0;
    for (int t = 0; t < TRIALS; t++) {
        double quiet[COUNT], step[COUNT];
        struct change_point changes[8];
        for (int k = 0; k < COUNT; k++) {
            quiet[k] = random_normal(21, (uint64_t)(t * COUNT + k));
            step[k] = quiet[k] + (k >= 22 ? 4 : 0);
        }
        alarms += changes_of(quiet, COUNT, changes) > 0;
        hits += changes_of(step, COUNT, changes) > 0 && abs(changes[0].index - 22) <= 1;
    }
    if (alarms > 6 || hits < TRIALS * 95 / 100)
        fail_msg("%d false alarms, %d steps found in %d histories", alarms, hits, TRIALS);
}
