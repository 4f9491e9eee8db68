/* SPDX-License-Identifier: Apache-2.0
 * What must not change the answer of a comparison, what the machine's own levels excuse, and visits
 * in turns. */

#include <math.h>
#include <string.h>

#include "tests/lib/made_series.h"
#include "tests/lib/unit.h"

static struct comparison judge(const struct compare_point *point)
{
    struct comparison c;
    assert_int_equal(compare_points(point, 1, NULL, &c, NULL), STATUS_OK);
    return c;
}

/* ---- what must not change the answer ---- */

static void is_mirrored(const struct comparison *a, const struct comparison *b)
{
    static const enum verdict mirror[VERDICT_COUNT] = {
        VERDICT_IMPROVED,     VERDICT_REGRESSED, VERDICT_UNCHANGED,
        VERDICT_INCONCLUSIVE, VERDICT_MACHINE,   VERDICT_INVALID,
        VERDICT_FAILED,       VERDICT_MISSING,   VERDICT_NEW};
    assert_int_equal(a->verdict, mirror[b->verdict]);
    assert_true(fabs(a->ratio * b->ratio - 1) < 1e-9);
    assert_true(fabs(a->ci_low * b->ci_high - 1) < 1e-9);
    assert_true(fabs(a->p - b->p) < 1e-9 && fabs(a->noise - b->noise) < 1e-12);
}

static const struct made_world many_worlds[] = {
    {1, 1, 0, false, .01, .02, .05}, {1, 3, 0, false, .01, .02, .03},
    {3, 2, 0, false, .01, .02, .1},  {2, 4, 0, false, .01, .02, 0},
    {1, 3, 0, true, .01, .02, .04},  {4, 2, 0, true, .01, .02, .02},
    {3, 3, 0, false, .001, .01, .3},
};
enum { WORLDS = (int)(sizeof(many_worlds) / sizeof(*many_worlds)) };

TEST(swapped_sides_give_the_mirrored_verdict)
{
    static struct made_data d;
    uint64_t draw = 0;
    for (int t = 0; t < 10 * WORLDS; t++) {
        made_series(&d, &many_worlds[t % WORLDS], &draw);
        struct comparison there = judge(&d.point);
        struct compare_side base = d.point.base;
        d.point.base = d.point.head;
        d.point.head = base;
        struct comparison back = judge(&d.point);
        is_mirrored(&there, &back);
    }
}

static void is_same(const struct comparison *a, const struct comparison *b)
{
    assert_int_equal(a->verdict, b->verdict);
    assert_true(fabs(a->ratio - b->ratio) < 1e-9 && fabs(a->p - b->p) < 1e-9);
    assert_true(fabs(a->noise - b->noise) < 1e-9 && fabs(a->mde - b->mde) < 1e-9);
    assert_true(fabs(a->p_rank - b->p_rank) < 1e-9);
}

TEST(units_and_the_order_of_visits_do_not_matter)
{
    static struct made_data d;
    uint64_t draw = 0;
    for (int t = 0; t < 10 * WORLDS; t++) {
        struct made_world w = many_worlds[t % WORLDS];
        w.history = t % 3 * 10;
        made_series(&d, &w, &draw);
        struct comparison before = judge(&d.point);
        /* The first two visits of the first run change places on both sides. */
        for (int side = 0; w.visits > 1 && side < 2; side++) {
            struct compare_visit first = d.visits[side][0];
            d.visits[side][0] = d.visits[side][1];
            d.visits[side][1] = first;
        }
        struct comparison after = judge(&d.point);
        is_same(&before, &after);
        for (int side = 0; side < 2; side++)
            for (int k = 0; k < w.runs * w.visits * SAMPLES; k++)
                d.times[side][k / SAMPLES][k % SAMPLES] *= 1e-6;
        for (int k = 0; k < w.history; k++)
            d.history[k].median *= 1e-6;
        after = judge(&d.point);
        is_same(&before, &after);
    }
}

/* Every number of a point that is judged is a number. */
TEST(no_nan_where_there_are_samples)
{
    static struct made_data d;
    uint64_t draw = 0;
    for (int t = 0; t < 20 * WORLDS; t++) {
        struct made_world w = many_worlds[t % WORLDS];
        w.history = t % 7;
        made_series(&d, &w, &draw);
        if (t % 5 == 0)
            for (int k = 0; k < SAMPLES; k++)
                d.times[t % 2][0][k] = 1;
        if (t % 11 == 0)
            d.visits[1][0].slow[t % LEVEL_COUNT] = NAN;
        struct comparison c = judge(&d.point);
        const double numbers[] = {c.base_median, c.head_median, c.ratio,          c.ci_low,
                                  c.ci_high,     c.p,           c.p_adjusted,     c.p_rank,
                                  c.mde,         c.limit,       c.swing,          c.noise,
                                  c.df,          c.prior,       c.base_effective, c.head_effective};
        for (int k = 0; k < (int)(sizeof(numbers) / sizeof(*numbers)); k++)
            if (!isfinite(numbers[k]))
                fail_msg("trial %d: number %d is %g", t, k, numbers[k]);
        assert_true(c.reason[0] && c.noise_from[0] && !strstr(c.reason, "nan"));
    }
}

/* A process of six visits is no faster than one of two. */
TEST(more_visits_do_not_make_a_process_faster)
{
    static struct made_data d;
    uint64_t draw = 0;
    double sum = 0;
    for (int t = 0; t < 400; t++) {
        made_series(&d, &(struct made_world){1, 6, 0, false, 0, .05, 0}, &draw);
        d.point.base.visit_count = 2;
        sum += log(judge(&d.point).ratio) / 400;
    }
    assert_true(fabs(sum) < 0.001); /* the lowest of six lies 0.8 % below the lowest of two */
}

/* ---- the machine ---- */

/* Three visits a side, the level beside those of HEAD so many times slower. */
static struct comparison beside_level(double effect, enum level level, double slower)
{
    static struct made_data d;
    uint64_t draw = 0;
    made_series(&d, &(struct made_world){1, 3, 0, false, .001, .01, effect}, &draw);
    for (int side = 0; side < 2; side++)
        for (int v = 0; v < 3; v++)
            d.visits[side][v].slow[level] = 8e-6 * (1 + 0.01 * v) * (side ? slower : 1);
    return judge(&d.point);
}

TEST(a_point_that_moved_with_a_level_is_the_machine)
{
    struct comparison c = beside_level(1.01, LEVEL_HAND_OVER, 2.1);
    assert_int_equal(c.verdict, VERDICT_MACHINE);
    assert_int_equal(c.explained_by, LEVEL_HAND_OVER);
    assert_true(strncmp(c.reason, "+10", 3) == 0);
    assert_non_null(strstr(c.reason, " %, but handing work to threads took 2.1 times as long"));
    assert_true(fabs(c.level[LEVEL_HAND_OVER] - 2.1) < 0.05);
    assert_true(isnan(c.level[LEVEL_DRAM]));
    c = beside_level(-0.5, LEVEL_CACHE, 0.5);
    assert_int_equal(c.verdict, VERDICT_MACHINE);
}

TEST(a_level_that_moved_otherwise_explains_nothing)
{
    const struct {
        double effect, slower;
    } cases[] = {{1.01, 0.5}, {1.01, 1.04}, {1.01, 1.2}, {0.15, 2.1}, {-0.3, 1.4}};
    for (int k = 0; k < (int)(sizeof(cases) / sizeof(*cases)); k++) {
        struct comparison c = beside_level(cases[k].effect, LEVEL_DRAM, cases[k].slower);
        assert_int_equal(c.verdict, cases[k].effect > 0 ? VERDICT_REGRESSED : VERDICT_IMPROVED);
        assert_int_equal(c.explained_by, -1);
    }
}

static void displace(struct made_data *d, int side, int visit, bool far)
{
    d->visits[side][visit].slow[far ? LEVEL_HAND_OVER : LEVEL_ARITHMETIC] *= far ? 3 : 2;
    for (int k = 0; k < SAMPLES; k++)
        d->times[side][visit][k] *= 2;
}

/* Visits were twice as slow while the CPUs lay far apart or shared their cores. The visits of the
 * placement that both sides met decide. */
TEST(visits_in_other_placements_do_not_count)
{
    for (int far = 0; far < 2; far++) {
        static struct made_data d;
        uint64_t draw = 0;
        made_series(&d, &(struct made_world){1, 4, 0, false, .001, .005, 0}, &draw);
        for (int k = 0; k < 8; k++) {
            d.visits[k / 4][k % 4].slow[LEVEL_HAND_OVER] = 2.2e-7;
            d.visits[k / 4][k % 4].slow[LEVEL_ARITHMETIC] = 1e-11;
        }
        displace(&d, 0, 3, far);
        displace(&d, 1, 0, far);
        displace(&d, 1, 1, far);
        displace(&d, 1, 3, far);
        struct comparison c = judge(&d.point);
        assert_int_equal(c.verdict, VERDICT_UNCHANGED);
        assert_int_equal(c.base_visits, 3);
        assert_int_equal(c.head_visits, 1);
        assert_true(fabs(c.ratio - 1) < 0.02);
    }
}

/* din on two distant CPUs: at twice its time in all visits of one run, whose other points met the
 * usual placement. Handing work over, at three times its time, does not explain the amount. */
TEST(a_point_whose_visits_were_all_displaced_is_the_machine)
{
    static struct made_data d[3];
    struct compare_point points[3];
    struct comparison c[3];
    uint64_t draw = 0;
    for (int p = 0; p < 3; p++) {
        made_series(&d[p], &(struct made_world){1, 4, 0, false, .001, .005, 0}, &draw);
        for (int k = 0; k < 8; k++)
            d[p].visits[k / 4][k % 4].slow[LEVEL_HAND_OVER] = 2.2e-7;
    }
    for (int v = 0; v < 4; v++)
        displace(&d[0], 1, v, true);
    for (int p = 0; p < 3; p++)
        points[p] = d[p].point;
    MUST(compare_points, points, 3, NULL, c);
    assert_int_equal(c[0].verdict, VERDICT_MACHINE);
    assert_non_null(strstr(c[0].reason, "handing work to threads took 3.0 times as long"));
    assert_int_equal(c[1].verdict, VERDICT_UNCHANGED);
    /* The same in all points: it may be the program that hands work over more slowly. */
    for (int p = 1; p < 3; p++)
        for (int v = 0; v < 4; v++)
            displace(&d[p], 1, v, true);
    MUST(compare_points, points, 3, NULL, c);
    for (int p = 0; p < 3; p++)
        assert_int_equal(c[p].verdict, VERDICT_REGRESSED);
    points[0].same_program = true;
    assert_int_equal(judge(&points[0]).verdict, VERDICT_MACHINE);
}

/* A run of the history that never met that placement says nothing of its program's noise. */
TEST(earlier_runs_in_another_placement_are_no_noise)
{
    static struct made_data d;
    uint64_t draw = 0;
    made_series(&d, &(struct made_world){1, 3, 12, false, .003, .005, 0}, &draw);
    for (int side = 0; side < 2; side++)
        for (int v = 0; v < 3; v++)
            d.visits[side][v].slow[LEVEL_HAND_OVER] = 2.2e-7;
    for (int k = 0; k < 12; k++) {
        d.history[k].slow[LEVEL_HAND_OVER] = k % 3 ? 2.2e-7 : 6.5e-7;
        d.history[k].median *= k % 3 ? 1 : 2;
    }
    struct comparison c = judge(&d.point);
    assert_int_equal(c.history_runs, 8);
    assert_true(c.noise < 0.02);
    assert_int_equal(c.verdict, VERDICT_UNCHANGED);
}

/* What a point depends on is learnt from visits of earlier runs: here time follows hand-over by a
 * fifth, or not at all. */
TEST(what_a_point_depends_on_is_learnt)
{
    for (int follows = 0; follows < 2; follows++) {
        static struct made_data d;
        uint64_t draw = 0;
        made_series(&d, &(struct made_world){1, 3, 20, false, .002, .005, .15}, &draw);
        for (int k = 0; k < 20; k++) {
            double slow = k % 4 == 0 ? 0.7 : 0;
            d.history[k].slow[LEVEL_HAND_OVER] = 8e-6 * exp(slow);
            d.history[k].median *= exp(follows * 0.2 * slow);
        }
        for (int side = 0; side < 2; side++)
            for (int v = 0; v < 3; v++)
                d.visits[side][v].slow[LEVEL_HAND_OVER] = side ? 16e-6 : 8e-6;
        struct comparison c = judge(&d.point);
        assert_int_equal(c.verdict, follows ? VERDICT_MACHINE : VERDICT_REGRESSED);
    }
}

/* Four levels that wander by 10 % from visit to visit, as noise: they excuse no 20 % slowdown by
 * chance. */
TEST(levels_explain_little_by_chance)
{
    static struct made_data d;
    uint64_t draw = 0;
    int excused = 0;
    for (int t = 0; t < 500; t++) {
        made_series(&d, &(struct made_world){2, 3, 0, false, .002, .01, .2}, &draw);
        for (int k = 0; k < 2 * 6 * LEVEL_COUNT; k++)
            d.visits[k % 2][k / 2 % 6].slow[k / 12] = 8e-6 * exp(0.1 * made_normal(&draw));
        excused += judge(&d.point).verdict == VERDICT_MACHINE;
    }
    if (excused > 25)
        fail_msg("%d of 500 excused", excused);
}

TEST(a_machine_whose_ceilings_moved_is_no_regression)
{
    static struct made_data d;
    uint64_t draw = 0;
    made_series(&d, &(struct made_world){2, 2, 0, false, .001, .01, 0.2}, &draw);
    d.point.machine = 1.01;
    assert_int_equal(judge(&d.point).verdict, VERDICT_REGRESSED);
    d.point.machine = 1.19;
    struct comparison c = judge(&d.point);
    assert_int_equal(c.verdict, VERDICT_MACHINE);
    assert_non_null(strstr(c.reason, "ceilings"));
    d.point.machine = 0.84; /* a faster machine makes it worse */
    assert_int_equal(judge(&d.point).verdict, VERDICT_REGRESSED);
}

/* ---- in turns ---- */

/* Pairs are visits of the same round: shuffled or missing ones still find their other half. */
TEST(visits_in_turns_find_their_other_half)
{
    static struct made_data d;
    uint64_t draw = 0;
    made_series(&d, &(struct made_world){1, 6, 0, true, .001, .005, .05}, &draw);
    /* Each round has its own level, which both sides met. */
    for (int k = 0; k < 2 * 6 * SAMPLES; k++)
        d.times[k % 2][k / 2 / SAMPLES][k / 2 % SAMPLES] *= exp(0.1 * (k / 2 / SAMPLES));
    struct comparison c = judge(&d.point);
    assert_int_equal(c.verdict, VERDICT_REGRESSED);
    assert_true(c.noise < 0.01 && fabs(c.ratio - 1.05) < 0.01);
    d.point.head.visit_count = 5;
    d.visits[1][2].count = 20;
    c = judge(&d.point);
    assert_int_equal(c.verdict, VERDICT_REGRESSED);
    assert_true(c.noise < 0.01 && fabs(c.ratio - 1.05) < 0.01);
    d.visits[1][0].round = 77; /* HEAD has no visit beside the first of BASE */
    c = judge(&d.point);
    assert_true(c.noise < 0.01 && fabs(c.ratio - 1.05) < 0.01);
}
