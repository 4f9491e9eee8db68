/* SPDX-License-Identifier: Apache-2.0
 * The decision procedure: gates and verdicts by cases, what must not change its answer, and error
 * rates by simulated runs whose processes differ from each other (tau) and whose samples are
 * correlated and have outliers. A machine with levels is in test_compare_restless.c. */

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/made_series.h"
#include "tests/lib/unit.h"

static struct comparison judge(const struct compare_point *point)
{
    struct comparison c;
    assert_int_equal(compare_points(point, 1, NULL, &c, NULL), STATUS_OK);
    return c;
}

/* Of 1000 comparisons, how many end in each verdict. */
static void rates(const struct made_world *w, int count[VERDICT_COUNT])
{
    static struct made_data d;
    uint64_t draw = 0;
    memset(count, 0, VERDICT_COUNT * sizeof(*count));
    for (int t = 0; t < 1000; t++) {
        made_series(&d, w, &draw);
        struct comparison c = judge(&d.point);
        assert_true(c.ci_low <= c.ratio && c.ratio <= c.ci_high);
        count[c.verdict]++;
    }
    if (getenv("RIDGE_TRIALS")) /* for the table in docs/method.md */
        print_message("%d runs of %d visits%s, history %d, tau %.2f %%, sigma %.0f %%, %+.1f %%: "
                      "regressed %.1f, unchanged %.1f %%\n",
                      w->runs, w->visits, w->paired ? " in turns" : "", w->history, 100 * w->tau,
                      100 * w->sd, 100 * w->effect, 0.1 * count[VERDICT_REGRESSED],
                      0.1 * count[VERDICT_UNCHANGED]);
}

TEST(at_most_one_percent_false_alarms)
{
    static const struct made_world worlds[] = {
        {1, 1, 0, false, .002, .02, 0}, {1, 3, 0, false, .0075, .03, 0},
        {1, 1, 6, false, .004, .03, 0}, {1, 1, 20, false, .02, .03, 0},
        {2, 3, 0, false, .004, .03, 0}, {3, 1, 0, false, .004, .03, 0},
        {3, 3, 0, false, .015, .03, 0}, {5, 1, 0, false, .015, .03, 0},
        {5, 1, 0, true, .015, .03, 0},  {1, 3, 0, true, .005, .03, 0},
        {10, 1, 0, false, .02, .03, 0},
    };
    for (int k = 0; k < (int)(sizeof(worlds) / sizeof(*worlds)); k++) {
        int count[VERDICT_COUNT];
        rates(&worlds[k], count);
        /* 1 %, and 5 more for the chance of 1000 trials (1.6 sd). */
        if (count[VERDICT_REGRESSED] > 15)
            fail_msg("world %d: %d false alarms in 1000", k, count[VERDICT_REGRESSED]);
    }
}

/* A 5 % slowdown, in a quiet place by one run of three visits, in a noisier one by several. */
TEST(slowdowns_are_found)
{
    static const struct made_world worlds[] = {
        {1, 3, 0, false, .003, .01, .05},  {3, 3, 0, false, .004, .03, .05},
        {1, 1, 20, false, .003, .01, .05}, {5, 1, 0, true, .008, .02, .05},
        {10, 1, 0, true, .015, .03, .05},
    };
    for (int k = 0; k < (int)(sizeof(worlds) / sizeof(*worlds)); k++) {
        int count[VERDICT_COUNT];
        rates(&worlds[k], count);
        if (count[VERDICT_REGRESSED] < 950)
            fail_msg("world %d: %d of 1000 found", k, count[VERDICT_REGRESSED]);
    }
}

/* Where noise hides the slowdown that must not go unnoticed (15 % of runs apart) it is called
 * inconclusive, not unchanged, and the minimum detectable effect says so. */
TEST(what_is_not_found_is_not_denied)
{
    static const struct made_world worlds[] = {{1, 1, 0, false, .0075, .06, .15},
                                               {1, 1, 20, false, .02, .06, .15},
                                               {3, 3, 0, false, .03, .06, .15}};
    for (int k = 0; k < 3; k++) {
        int count[VERDICT_COUNT];
        rates(&worlds[k], count);
        if (count[VERDICT_UNCHANGED] > 60)
            fail_msg("world %d: %d of 1000 denied", k, count[VERDICT_UNCHANGED]);
    }
    static struct made_data d;
    uint64_t draw = 5;
    made_series(&d, &(struct made_world){1, 3, 0, false, .003, .01, .02}, &draw);
    struct comparison c = judge(&d.point);
    assert_true(c.verdict == VERDICT_REGRESSED || c.mde > 0.02);
}

/* The stated minimum detectable effect is found about as often as it says. */
TEST(the_minimum_detectable_effect_is_true)
{
    struct made_world w = {3, 3, 0, false, .0075, .01, 0};
    static struct made_data d;
    uint64_t draw = 0;
    double mde = 0;
    for (int t = 0; t < 200; t++) {
        made_series(&d, &w, &draw);
        mde += judge(&d.point).mde / 200;
    }
    int count[VERDICT_COUNT];
    w.effect = mde;
    rates(&w, count);
    if (count[VERDICT_REGRESSED] < 900)
        fail_msg("%g found in %d of 1000", mde, count[VERDICT_REGRESSED]);
}

enum { POINTS = 20 };

static void judge_many(struct made_data d[POINTS], const struct made_world *w, int slowed,
                       uint64_t *draw, struct comparison c[POINTS])
{
    struct compare_point points[POINTS];
    for (int k = 0; k < POINTS; k++) {
        struct made_world own = *w;
        own.effect = k == slowed ? w->effect : 0;
        made_series(&d[k], &own, draw);
        points[k] = d[k].point;
    }
    assert_int_equal(compare_points(points, POINTS, NULL, c, NULL), STATUS_OK);
}

TEST(false_alarms_over_many_points)
{
    enum { NIGHTS = 100 };
    static struct made_data d[POINTS];
    static const struct made_world w = {3, 2, 0, false, .0075, .02, 0.1};
    struct comparison c[POINTS];
    uint64_t draw = 0;
    int bad_nights = 0, found = 0;
    for (int night = 0; night < NIGHTS; night++) {
        bool bad = false;
        judge_many(d, &w, 7, &draw, c);
        for (int k = 0; k < POINTS; k++) {
            assert_true(c[k].p_adjusted >= c[k].p);
            bad = bad || (k != 7 && c[k].verdict == VERDICT_REGRESSED);
        }
        found += c[7].verdict == VERDICT_REGRESSED;
        bad_nights += bad;
    }
    if (bad_nights > 3 || found < 98)
        fail_msg("%d nights with a false alarm, %d true ones found", bad_nights, found);
}

/* Twenty points with three runs a side show the noise of their machine, tau = 1 %: none of them is
 * believed to be much quieter because its few runs happen to agree. */
TEST(points_lend_each_other_their_noise)
{
    static struct made_data d[POINTS];
    static const struct made_world w = {3, 1, 0, false, .01, .005, 0};
    struct comparison c[POINTS];
    uint64_t draw = 1;
    judge_many(d, &w, -1, &draw, c);
    for (int k = 0; k < POINTS; k++) {
        assert_true(c[k].noise > 0.006 && c[k].noise < 0.017);
        assert_true(c[k].df > 8 && c[k].prior_df >= 4);
        assert_non_null(strstr(c[k].noise_from, "runs compared"));
        assert_non_null(strstr(c[k].noise_from, "all points"));
    }
}

/* Half of all points that moved by some percent from run to run are noise between runs, which
 * agreeing samples inside of them do not see. */
TEST(effects_that_scatter_are_noise_between_runs)
{
    static struct made_data d[POINTS];
    static const struct made_world w = {1, 3, 0, false, .04, .005, 0};
    struct comparison c[POINTS];
    uint64_t draw = 2;
    judge_many(d, &w, -1, &draw, c);
    for (int k = 0; k < POINTS; k++) {
        assert_true(c[k].noise > 0.02);
        assert_int_not_equal(c[k].verdict, VERDICT_REGRESSED);
        assert_int_not_equal(c[k].verdict, VERDICT_IMPROVED);
    }
}

TEST(gates)
{
    static struct made_data d;
    uint64_t draw = 0;
    made_series(&d, &(struct made_world){1, 2, 0, false, .001, .01, 0.5}, &draw);
    assert_int_equal(judge(&d.point).verdict, VERDICT_REGRESSED);

    static const struct {
        enum side_state base, head;
        enum verdict verdict;
    } cases[] = {
        {SIDE_ABSENT, SIDE_USABLE, VERDICT_NEW},      {SIDE_USABLE, SIDE_ABSENT, VERDICT_MISSING},
        {SIDE_USABLE, SIDE_FAILED, VERDICT_FAILED},   {SIDE_ABSENT, SIDE_FAILED, VERDICT_FAILED},
        {SIDE_FAILED, SIDE_FAILED, VERDICT_INVALID},  {SIDE_FAILED, SIDE_USABLE, VERDICT_INVALID},
        {SIDE_INVALID, SIDE_USABLE, VERDICT_INVALID}, {SIDE_USABLE, SIDE_INVALID, VERDICT_INVALID},
    };
    for (int k = 0; k < (int)(sizeof(cases) / sizeof(*cases)); k++) {
        struct compare_point p = d.point;
        p.base.state = cases[k].base;
        p.head.state = cases[k].head;
        p.base.reason = p.head.reason = "because";
        struct comparison c = judge(&p);
        assert_int_equal(c.verdict, cases[k].verdict);
        assert_true(isnan(c.ratio) && isnan(c.p) && c.reason[0]);
        assert_int_equal(isnan(c.base_median), cases[k].base != SIDE_USABLE);
    }
    /* Measured by neither: HEAD is skipped in turns where BASE failed. */
    struct compare_point neither = d.point;
    neither.base.state = SIDE_FAILED;
    neither.head.state = SIDE_ABSENT;
    neither.base.reason = neither.head.reason = "because";
    assert_int_equal(judge(&neither).verdict, VERDICT_MISSING);
    assert_null(strstr(judge(&neither).reason, "only in BASE"));
    d.visits[1][0].count = 3; /* and 2 in the other visit */
    d.visits[1][1].count = 2;
    assert_int_equal(judge(&d.point).verdict, VERDICT_INVALID);
    assert_non_null(strstr(judge(&d.point).reason, "samples"));
    d.visits[1][0].count = d.visits[1][1].count = SAMPLES;
    d.times[1][1][3] = 0;
    assert_int_equal(judge(&d.point).verdict, VERDICT_INVALID);
}

TEST(an_improvement_and_equal_times)
{
    static struct made_data d;
    uint64_t draw = 0;
    made_series(&d, &(struct made_world){2, 2, 0, false, .001, .01, -0.2}, &draw);
    struct comparison c = judge(&d.point);
    assert_int_equal(c.verdict, VERDICT_IMPROVED);
    assert_true(fabs(c.ratio - 0.8) < 0.01 && c.ci_high < 0.9);
    /* A clock too coarse to see a difference: all samples are the same number. */
    for (int k = 0; k < 4 * SAMPLES; k++)
        d.times[0][k / SAMPLES][k % SAMPLES] = d.times[1][k / SAMPLES][k % SAMPLES] = 0.25;
    c = judge(&d.point);
    assert_int_equal(c.verdict, VERDICT_UNCHANGED);
    assert_true(c.ratio == 1 && c.p == 1);
}

/* Old databases know one visit, in which all neighbours agree: issue 15, 14 of 34 points
 * "regressed" by up to 241 % between two runs of one program. */
TEST(one_visit_a_side_raises_no_alarm)
{
    static struct made_data d;
    uint64_t draw = 0;
    made_series(&d, &(struct made_world){1, 1, 0, false, .001, .01, 2.41}, &draw);
    struct comparison c = judge(&d.point);
    assert_int_equal(c.verdict, VERDICT_INCONCLUSIVE);
    assert_non_null(strstr(c.reason, "in turns"));
    made_series(&d, &(struct made_world){1, 1, 0, false, .001, .01, 6}, &draw);
    assert_int_equal(judge(&d.point).verdict, VERDICT_REGRESSED);
}

/* What this program did before on this machine is no regression, however certain it is. */
TEST(what_the_program_did_before_is_no_regression)
{
    static struct made_data d;
    uint64_t draw = 0;
    made_series(&d, &(struct made_world){1, 3, 20, false, .003, .005, .5}, &draw);
    assert_int_equal(judge(&d.point).verdict, VERDICT_REGRESSED);
    d.history[4].median *= 1.6;
    d.history[11].median *= 1.6;
    struct comparison c = judge(&d.point);
    assert_int_equal(c.verdict, VERDICT_INCONCLUSIVE);
    assert_true(c.swing > 0.5 && !c.ranked);
    assert_true(c.noise < 0.01); /* two runs that lie off are no noise of the others */
    static struct made_data three;
    made_series(&three, &(struct made_world){3, 3, 20, false, .003, .005, .5}, &draw);
    for (int k = 0; k < 6; k++) /* two stays in the slow level */
        three.history[k + (k < 3 ? 2 : 8)].median *= 1.6;
    c = judge(&three.point);
    assert_int_equal(c.verdict, VERDICT_INCONCLUSIVE);
    assert_non_null(strstr(c.reason, "took as long before"));
    for (int k = 0; k < 20; k++) /* another program's runs are not BASE's */
        d.history[k].program = 2;
    c = judge(&d.point);
    assert_int_equal(c.verdict, VERDICT_REGRESSED);
    assert_int_equal(c.history_runs, 0);
    assert_non_null(strstr(c.noise_from, "history"));
}

TEST(a_noisy_history_raises_the_limit)
{
    static struct made_data d;
    uint64_t draw = 3;
    made_series(&d, &(struct made_world){1, 1, 20, false, .03, .01, 0}, &draw);
    struct comparison c = judge(&d.point);
    assert_true(c.limit > 0.04 && c.mde > c.limit && c.history_runs == 20);
    assert_string_equal(c.noise_from, "history, allowance");
    d.point.history_count = 0;
    c = judge(&d.point);
    assert_true(fabs(c.limit - 0.02) < 1e-12);
    assert_string_equal(c.noise_from, "allowance");
}
