/* SPDX-License-Identifier: Apache-2.0
 * The decision procedure: gates and verdicts by cases, error rates by simulated runs whose
 * processes differ from each other (tau) and whose samples are correlated and have outliers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "base/random.h"
#include "results/compare.h"

enum { RUNS_MAX = 10, SAMPLES = 40, HISTORY_MAX = 20 };

struct world {
    int runs, history;
    bool paired;
    double tau, sd, effect;
};

struct data {
    double times[2][RUNS_MAX][SAMPLES], history[HISTORY_MAX];
    struct compare_series series[2][RUNS_MAX];
    struct compare_point point;
};

static const struct compare_rules defaults;

static double normal(uint64_t *draw)
{
    return random_normal(99, (*draw)++);
}

static void fill(double *times, double level, const struct world *w, uint64_t *draw)
{
    double e = normal(draw);
    level += w->tau * normal(draw);
    for (int k = 0; k < SAMPLES; k++) {
        e = 0.3 * e + sqrt(1 - 0.09) * normal(draw);
        double outlier = random_uniform(7, (*draw)++) < 0.03 ? 0.3 : 0;
        times[k] = exp(level + w->sd * e + outlier);
    }
}

static void make(struct data *d, const struct world *w, uint64_t *draw)
{
    for (int r = 0; r < w->runs; r++) {
        double drift = w->paired ? 0.05 * normal(draw) : 0;
        for (int side = 0; side < 2; side++) {
            fill(d->times[side][r], drift + (side ? log1p(w->effect) : 0), w, draw);
            d->series[side][r] = (struct compare_series){d->times[side][r], SAMPLES};
        }
    }
    double whole = sqrt(w->tau * w->tau + w->sd * w->sd * 1.57 * 1.86 / SAMPLES);
    for (int k = 0; k < w->history; k++)
        d->history[k] = exp(whole * normal(draw));
    d->point = (struct compare_point){
        .base = {SIDE_USABLE, "", d->series[0], w->runs},
        .head = {SIDE_USABLE, "", d->series[1], w->runs},
        .paired = w->paired,
        .history = d->history,
        .history_count = w->history,
    };
}

static struct comparison judge(const struct compare_point *point)
{
    struct comparison c;
    assert_int_equal(compare_points(point, 1, &defaults, &c, NULL), STATUS_OK);
    return c;
}

/* Of 1000 comparisons, how many end in each verdict. */
static void rates(const struct world *w, int count[VERDICT_COUNT])
{
    static struct data d;
    uint64_t draw = 0;
    memset(count, 0, VERDICT_COUNT * sizeof(*count));
    for (int t = 0; t < 1000; t++) {
        make(&d, w, &draw);
        struct comparison c = judge(&d.point);
        assert_true(c.ci_low <= c.ratio && c.ratio <= c.ci_high);
        count[c.verdict]++;
    }
}

static void at_most_one_percent_false_alarms(void **state)
{
    (void)state;
    static const struct world worlds[] = {
        {1, 0, false, .002, .02, 0}, {1, 0, false, .0075, .03, 0}, {1, 6, false, .004, .03, 0},
        {1, 20, false, .02, .03, 0}, {2, 0, false, .004, .03, 0},  {3, 0, false, .004, .03, 0},
        {3, 0, false, .015, .03, 0}, {5, 0, false, .015, .03, 0},  {5, 0, true, .015, .03, 0},
        {10, 0, false, .02, .03, 0},
    };
    for (int k = 0; k < (int)(sizeof(worlds) / sizeof(*worlds)); k++) {
        int count[VERDICT_COUNT];
        rates(&worlds[k], count);
        /* 1 %, and 5 more for the chance of 1000 trials (1.6 sd). */
        if (count[VERDICT_REGRESSED] > 15)
            fail_msg("world %d: %d false alarms in 1000", k, count[VERDICT_REGRESSED]);
    }
}

/* A 5 % slowdown, in a quiet place by one run, in a noisier one by several. */
static void slowdowns_are_found(void **state)
{
    (void)state;
    static const struct world worlds[] = {
        {1, 0, false, .003, .01, .05},  {3, 0, false, .004, .03, .05},
        {1, 20, false, .003, .01, .05}, {5, 0, true, .008, .02, .05},
        {10, 0, true, .015, .03, .05},
    };
    for (int k = 0; k < (int)(sizeof(worlds) / sizeof(*worlds)); k++) {
        int count[VERDICT_COUNT];
        rates(&worlds[k], count);
        if (count[VERDICT_REGRESSED] < 950)
            fail_msg("world %d: %d of 1000 found", k, count[VERDICT_REGRESSED]);
    }
}

/* Where noise hides a slowdown of 5 % it is called inconclusive, not unchanged, and the minimum
 * detectable effect says so. */
static void what_is_not_found_is_not_denied(void **state)
{
    (void)state;
    static const struct world worlds[] = {{1, 0, false, .0075, .03, .05},
                                          {1, 20, false, .01, .03, .05},
                                          {3, 0, false, .015, .03, .05}};
    for (int k = 0; k < 3; k++) {
        int count[VERDICT_COUNT];
        rates(&worlds[k], count);
        if (count[VERDICT_UNCHANGED] > 60)
            fail_msg("world %d: %d of 1000 denied", k, count[VERDICT_UNCHANGED]);
    }
    static struct data d;
    uint64_t draw = 5;
    make(&d, &(struct world){1, 0, false, .003, .01, .02}, &draw);
    struct comparison c = judge(&d.point);
    assert_true(c.verdict == VERDICT_REGRESSED || c.mde > 0.02);
}

/* The stated minimum detectable effect is found about as often as it says. */
static void the_minimum_detectable_effect_is_true(void **state)
{
    (void)state;
    struct world w = {3, 0, false, .0075, .01, 0};
    static struct data d;
    uint64_t draw = 0;
    double mde = 0;
    for (int t = 0; t < 200; t++) {
        make(&d, &w, &draw);
        mde += judge(&d.point).mde / 200;
    }
    int count[VERDICT_COUNT];
    w.effect = mde;
    rates(&w, count);
    if (count[VERDICT_REGRESSED] < 900)
        fail_msg("%g found in %d of 1000", mde, count[VERDICT_REGRESSED]);
}

static void false_alarms_over_many_points(void **state)
{
    (void)state;
    enum { POINTS = 20, NIGHTS = 100 };
    static struct data d[POINTS];
    struct compare_point points[POINTS];
    struct comparison c[POINTS];
    uint64_t draw = 0;
    int bad_nights = 0, found = 0;
    for (int night = 0; night < NIGHTS; night++) {
        bool bad = false;
        for (int k = 0; k < POINTS; k++) {
            struct world w = {3, 0, false, .0075, .02, k == 7 ? 0.1 : 0};
            make(&d[k], &w, &draw);
            points[k] = d[k].point;
        }
        assert_int_equal(compare_points(points, POINTS, &defaults, c, NULL), STATUS_OK);
        for (int k = 0; k < POINTS; k++) {
            assert_true(c[k].p_adjusted >= c[k].p);
            bad = bad || (k != 7 && c[k].verdict == VERDICT_REGRESSED);
        }
        found += c[7].verdict == VERDICT_REGRESSED;
        bad_nights += bad;
    }
    if (bad_nights > 3 || found < 99)
        fail_msg("%d nights with a false alarm, %d true ones found", bad_nights, found);
}

static void gates(void **state)
{
    (void)state;
    static struct data d;
    uint64_t draw = 0;
    make(&d, &(struct world){1, 0, false, .001, .01, 0.5}, &draw);
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
    d.series[1][0].count = 5;
    assert_int_equal(judge(&d.point).verdict, VERDICT_INVALID);
    assert_non_null(strstr(judge(&d.point).reason, "samples"));
    d.series[1][0].count = SAMPLES;
    d.times[1][0][3] = 0;
    assert_int_equal(judge(&d.point).verdict, VERDICT_INVALID);
}

static void an_improvement_and_equal_times(void **state)
{
    (void)state;
    static struct data d;
    uint64_t draw = 0;
    make(&d, &(struct world){2, 0, false, .001, .01, -0.2}, &draw);
    struct comparison c = judge(&d.point);
    assert_int_equal(c.verdict, VERDICT_IMPROVED);
    assert_true(fabs(c.ratio - 0.8) < 0.01 && c.ci_high < 0.9);
    /* A clock too coarse to see a difference: all samples are the same number. */
    for (int k = 0; k < SAMPLES; k++)
        d.times[0][0][k] = d.times[1][0][k] = d.times[0][1][k] = d.times[1][1][k] = 0.25;
    c = judge(&d.point);
    assert_int_equal(c.verdict, VERDICT_UNCHANGED);
    assert_true(c.ratio == 1 && c.p == 1 && c.p_rank == 1);
}

static void a_machine_that_slowed_down_is_no_regression(void **state)
{
    (void)state;
    static struct data d;
    uint64_t draw = 0;
    make(&d, &(struct world){2, 0, false, .001, .01, 0.2}, &draw);
    d.point.machine = 1.01;
    assert_int_equal(judge(&d.point).verdict, VERDICT_REGRESSED);
    d.point.machine = 1.19;
    struct comparison c = judge(&d.point);
    assert_int_equal(c.verdict, VERDICT_INCONCLUSIVE);
    assert_non_null(strstr(c.reason, "ceilings"));
    d.point.machine = 0.84; /* a faster machine makes it worse */
    assert_int_equal(judge(&d.point).verdict, VERDICT_REGRESSED);
}

static void a_noisy_history_raises_the_limit(void **state)
{
    (void)state;
    static struct data d;
    uint64_t draw = 3;
    make(&d, &(struct world){1, 20, false, .03, .01, 0}, &draw);
    struct comparison c = judge(&d.point);
    assert_true(c.limit > 0.05 && c.mde > c.limit);
    assert_string_equal(c.noise_from, "history");
    d.point.history_count = 0;
    c = judge(&d.point);
    assert_true(fabs(c.limit - 0.02) < 1e-12 && isinf(c.df));
    assert_string_equal(c.noise_from, "allowance");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(at_most_one_percent_false_alarms),
        cmocka_unit_test(slowdowns_are_found),
        cmocka_unit_test(what_is_not_found_is_not_denied),
        cmocka_unit_test(the_minimum_detectable_effect_is_true),
        cmocka_unit_test(false_alarms_over_many_points),
        cmocka_unit_test(gates),
        cmocka_unit_test(an_improvement_and_equal_times),
        cmocka_unit_test(a_machine_that_slowed_down_is_no_regression),
        cmocka_unit_test(a_noisy_history_raises_the_limit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
