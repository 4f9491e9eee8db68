/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdbool.h>

#include "base/numbers/random.h"
#include "base/numbers/stats.h"
#include "tests/lib/unit.h"

TEST(quantiles_lie_between_neighbours)
{
    double x[] = {4, 1, 3, 2, 5};
    stats_sort(x, 5);
    assert_true(x[0] == 1 && x[4] == 5);
    assert_true(stats_median(x, 5) == 3);
    assert_true(stats_median(x, 4) == 2.5);
    assert_true(stats_quantile(x, 5, 0) == 1);
    assert_true(stats_quantile(x, 5, 1) == 5);
    assert_true(fabs(stats_quantile(x, 5, 0.9) - 4.6) < 1e-12);
    assert_true(stats_quantile(x, 5, -1) == 1 && stats_quantile(x, 5, 2) == 5);
}

TEST(few_samples)
{
    double one = 7, low, high;
    assert_true(isnan(stats_median(&one, 0)));
    assert_true(stats_median(&one, 1) == 7);
    double five[] = {1, 2, 3, 4, 5};
    assert_false(stats_median_interval(five, 5, &low, &high));
    stats_sort(&one, 1);
    stats_sort(&one, 0);
}

/* An interval of 95 % must hold the true median in 95 of 100 experiments; it rounds outwards. */
TEST(the_interval_holds_the_median)
{
    enum { EXPERIMENTS = 2000 };
    static const int sizes[] = {6, 9, 25, 100};
    for (int s = 0; s < 4; s++) {
        int inside = 0;
        for (int e = 0; e < EXPERIMENTS; e++) {
            double x[100], low, high;
            for (int k = 0; k < sizes[s]; k++)
                x[k] = random_uniform(11, (uint64_t)(e * 100 + k));
            stats_sort(x, sizes[s]);
            assert_true(stats_median_interval(x, sizes[s], &low, &high));
            assert_true(low <= high);
            inside += low <= 0.5 && 0.5 <= high;
        }
        if (inside < EXPERIMENTS * 94 / 100)
            fail_msg("%d samples: only %d of %d intervals hold the median", sizes[s], inside,
                     EXPERIMENTS);
    }
}

TEST(the_interval_narrows)
{
    double x[400], low, high, width[2];
    for (int k = 0; k < 400; k++)
        x[k] = k;
    for (int s = 0; s < 2; s++) {
        int count = s ? 400 : 100;
        stats_median_interval(x, count, &low, &high);
        width[s] = (high - low) / count;
    }
    assert_true(width[1] < 0.6 * width[0]);
}

/* The run's table halved the interval, the report took its larger side. */
TEST(half_width_is_the_larger_side)
{
    assert_true(stats_half_width(10, 9, 14) == 4);
    assert_true(stats_half_width(10, 7, 11) == 3);
    assert_true(isnan(stats_half_width(10, NAN, 14)) && isnan(stats_half_width(10, 9, NAN)));
}
