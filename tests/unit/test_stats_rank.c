/* SPDX-License-Identifier: Apache-2.0
 * Probabilities and rank tests against published values; their error rates by simulation. */

#include <math.h>

#include "base/numbers/distribution.h"
#include "base/numbers/random.h"
#include "base/numbers/rank.h"
#include "base/numbers/stats.h"
#include "tests/lib/unit.h"

static void near(double value, double want, double bound)
{
    if (!(fabs(value - want) <= bound))
        fail_msg("%.12g is not within %g of %.12g", value, bound, want);
}

/* Closed forms (NIST DLMF 5.4, 5.15), the recurrence, and the inverse. */
TEST(derivatives_of_log_gamma)
{
    near(digamma(1), -0.5772156649015329, 1e-9);
    near(digamma(0.5), -1.9635100260214235, 1e-9);
    near(trigamma(1), 1.6449340668482264, 1e-9);
    near(trigamma(0.5), 4.934802200544679, 1e-9);
    for (double x = 0.1; x < 50; x *= 1.7) {
        near(digamma(x + 1), digamma(x) + 1 / x, 1e-9);
        near(trigamma(x + 1), trigamma(x) - 1 / (x * x), 1e-9);
        near(trigamma_inverse(trigamma(x)), x, 1e-8 * x);
    }
}

/* Tables of Abramowitz and Stegun (26.1, 26.10). */
TEST(published_probabilities)
{
    near(normal_quantile(0.975), 1.959963985, 1e-8);
    near(normal_quantile(0.5), 0, 1e-12);
    near(normal_cdf(1), 0.8413447461, 1e-10);
    near(student_quantile(0.975, 10), 2.228138852, 1e-8);
    near(student_quantile(0.995, 4), 4.604094871, 1e-8);
    near(student_quantile(0.995, 1), 63.65674116, 1e-6);
    near(student_quantile(0.995, 1e7), 2.575829304, 1e-8);
    near(student_cdf(1, 1), 0.75, 1e-12);             /* Cauchy */
    near(student_cdf(-1, 2), 0.2113248654, 1e-10);    /* (1 - 1/sqrt 3) / 2 */
    near(beta_regularised(2, 3, 0.5), 0.6875, 1e-12); /* 11/16 */
    assert_true(isinf(student_quantile(1, 3)) && isnan(student_quantile(2, 3)));
}

/* Hollander and Wolfe (1973), page 69: W = 35, one-sided p 0.1272, as R's wilcox.test gives. */
TEST(published_rank_test)
{
    double x[] = {0.80, 0.83, 1.89, 1.04, 1.45, 1.38, 1.91, 1.64, 0.73, 1.46};
    double y[] = {1.15, 0.88, 0.90, 0.74, 1.21}, all[50];
    stats_sort(x, 10);
    stats_sort(y, 5);
    near(mann_whitney_u(x, 10, y, 5), 35, 0);
    near(mann_whitney_p(x, 10, y, 5, 1), 2 * 0.1272, 1e-4);
    for (int k = 0; k < 50; k++)
        all[k] = y[k % 5] - x[k / 5];
    stats_sort(all, 50);
    near(shift_estimate(x, 10, y, 5), 0.5 * (all[24] + all[25]), 1e-12);
    for (int k = 0; k < 50; k++)
        near(difference_at(x, 10, y, 5, k), all[k], 1e-12);
}

/* Complete separation: 2 / C(n+m, n). Table of critical values: 10 against 10, 5 % two-sided, 23.
 */
TEST(exact_rank_probabilities)
{
    double x[] = {1, 2, 3, 4, 5}, y[] = {6, 7, 8, 9, 10};
    near(mann_whitney_p(x, 5, y, 5, 1), 2.0 / 252, 1e-12);
    near(mann_whitney_p(y, 5, x, 5, 1), 2.0 / 252, 1e-12);
    near(mann_whitney_p(x, 3, y, 3, 1), 0.1, 1e-12);
    assert_true(mann_whitney_p(x, 5, y, 5, 4) > 0.1);
    assert_true(mann_whitney_p(x, 0, y, 5, 1) == 1);
    /* Fills 10 against 10 so that U is 23 and then 24. */
    for (int u = 23; u <= 24; u++) {
        double a[10], b[10];
        for (int k = 0; k < 10; k++) {
            b[k] = k + 0.5;
            a[k] = -10 + k;
        }
        a[9] = 9.75;            /* above all 10 */
        a[8] = 9.7;             /* above all 10 */
        a[7] = u == 23 ? 3 : 4; /* above 3, or 4 */
        near(mann_whitney_u(a, 10, b, 10), u, 0);
        assert_true((mann_whitney_p(a, 10, b, 10, 1) <= 0.05) == (u == 23));
    }
}

/* By hand: x = 1 2 2 3, y = 2 3 3 4: U = 3, ties 3^3-3 + 3^3-3 = 48,
 * variance 16/12 (9 - 48/56) = 10.857, z = (5 - 0.5) / 3.295 = 1.3657, p = 0.1720. */
TEST(ties_by_hand)
{
    double x[] = {1, 2, 2, 3}, y[] = {2, 3, 3, 4}, same[] = {7, 7, 7};
    near(mann_whitney_u(x, 4, y, 4), 2.0 * 0.5 + 1 + 0.5 * 2, 1e-12);
    near(mann_whitney_p(x, 4, y, 4, 1), 2 * (1 - normal_cdf(4.5 / sqrt(10.857142857))), 1e-9);
    near(mann_whitney_p(same, 3, same, 3, 1), 1, 0);
}

/* The example of Benjamini and Hochberg (JRSS B 57, 1995): 15 p-values, 4 rejected at 5 %. */
TEST(published_false_discovery)
{
    double p[] = {.0344, .0001, .0004, .0019, .0095, .0201, .0278, .0298,
                  NAN,   .0459, .3240, .4262, .5719, .6528, .7590, 1.0};
    double adjusted[16];
    int order[16], rejected = 0;
    adjust_false_discovery(p, 16, order, adjusted);
    for (int k = 0; k < 16; k++)
        rejected += adjusted[k] <= 0.05;
    assert_int_equal(rejected, 4);
    near(adjusted[4], .0095 * 15 / 4, 1e-12);
    near(adjusted[5], .0201 * 15 / 5, 1e-12);
    near(adjusted[6], .0298 * 15 / 7, 1e-12); /* less than its own .0278 * 15 / 6 */
    assert_true(isnan(adjusted[8]) && adjusted[15] == 1);
}

/* Under no difference the exact test rejects at most as often as it says. */
TEST(false_alarms_of_the_rank_test)
{
    enum { TRIALS = 4000 };
    static const int sizes[][2] = {{5, 5}, {8, 12}, {25, 30}};
    for (int s = 0; s < 3; s++) {
        int rejected = 0;
        for (int t = 0; t < TRIALS; t++) {
            double x[30], y[30];
            uint64_t at = (uint64_t)t * 64;
            for (int k = 0; k < sizes[s][0]; k++)
                x[k] = exp(random_normal(77, at + (uint64_t)k));
            for (int k = 0; k < sizes[s][1]; k++)
                y[k] = exp(random_normal(78, at + (uint64_t)k));
            stats_sort(x, sizes[s][0]);
            stats_sort(y, sizes[s][1]);
            rejected += mann_whitney_p(x, sizes[s][0], y, sizes[s][1], 1) <= 0.05;
        }
        if (rejected > TRIALS * 0.058 || rejected < TRIALS * 0.02)
            fail_msg("%d against %d: %d rejected of %d", sizes[s][0], sizes[s][1], rejected,
                     TRIALS);
    }
}
