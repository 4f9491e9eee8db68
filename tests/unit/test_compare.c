/* SPDX-License-Identifier: Apache-2.0
 * The decision procedure: gates and verdicts by cases, what must not change its answer, and error
 * rates by simulated runs whose processes differ from each other (tau) and whose samples are
 * correlated and have outliers. A machine with levels is in test_compare_restless.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "results/compare.h"

enum { RUNS_MAX = 10, VISITS_MAX = 6, SAMPLES = 40, HISTORY_MAX = 20 };

struct world {
    int runs, visits, history;
    bool paired;
    double tau, sd, effect;
};

struct data {
    double times[2][RUNS_MAX * VISITS_MAX][SAMPLES];
    struct compare_past history[HISTORY_MAX];
    struct compare_visit visits[2][RUNS_MAX * VISITS_MAX];
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
            double level = drift + w->tau * normal(draw) + (side ? log1p(w->effect) : 0);
            for (int v = 0; v < w->visits; v++) {
                int at = r * w->visits + v;
                fill(d->times[side][at], level, w, draw);
                d->visits[side][at] = (struct compare_visit){
                    .times = d->times[side][at], .count = SAMPLES, .run = r, .round = v};
            }
        }
    }
    double whole = sqrt(w->tau * w->tau + w->sd * w->sd * 1.57 * 1.86 / SAMPLES);
    for (int k = 0; k < w->history; k++)
        d->history[k] = (struct compare_past){.run = k, .median = exp(whole * normal(draw))};
    d->point = (struct compare_point){
        .base = {SIDE_USABLE, "", d->visits[0], w->runs * w->visits},
        .head = {SIDE_USABLE, "", d->visits[1], w->runs * w->visits},
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
    if (getenv("RIDGE_TRIALS")) /* for the table in docs/method.md */
        print_message("%d runs of %d visits%s, history %d, tau %.2f %%, sigma %.0f %%, %+.1f %%: "
                      "regressed %.1f, unchanged %.1f %%\n",
                      w->runs, w->visits, w->paired ? " in turns" : "", w->history, 100 * w->tau,
                      100 * w->sd, 100 * w->effect, 0.1 * count[VERDICT_REGRESSED],
                      0.1 * count[VERDICT_UNCHANGED]);
}

static void at_most_one_percent_false_alarms(void **state)
{
    (void)state;
    static const struct world worlds[] = {
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
static void slowdowns_are_found(void **state)
{
    (void)state;
    static const struct world worlds[] = {
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

/* Where noise hides a slowdown of 5 % it is called inconclusive, not unchanged, and the minimum
 * detectable effect says so. */
static void what_is_not_found_is_not_denied(void **state)
{
    (void)state;
    static const struct world worlds[] = {{1, 1, 0, false, .0075, .03, .05},
                                          {1, 1, 20, false, .01, .03, .05},
                                          {3, 3, 0, false, .015, .03, .05}};
    for (int k = 0; k < 3; k++) {
        int count[VERDICT_COUNT];
        rates(&worlds[k], count);
        if (count[VERDICT_UNCHANGED] > 60)
            fail_msg("world %d: %d of 1000 denied", k, count[VERDICT_UNCHANGED]);
    }
    static struct data d;
    uint64_t draw = 5;
    make(&d, &(struct world){1, 3, 0, false, .003, .01, .02}, &draw);
    struct comparison c = judge(&d.point);
    assert_true(c.verdict == VERDICT_REGRESSED || c.mde > 0.02);
}

/* The stated minimum detectable effect is found about as often as it says. */
static void the_minimum_detectable_effect_is_true(void **state)
{
    (void)state;
    struct world w = {3, 3, 0, false, .0075, .01, 0};
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

enum { POINTS = 20 };

static void judge_many(struct data d[POINTS], const struct world *w, int slowed, uint64_t *draw,
                       struct comparison c[POINTS])
{
    struct compare_point points[POINTS];
    for (int k = 0; k < POINTS; k++) {
        struct world own = *w;
        own.effect = k == slowed ? w->effect : 0;
        make(&d[k], &own, draw);
        points[k] = d[k].point;
    }
    assert_int_equal(compare_points(points, POINTS, &defaults, c, NULL), STATUS_OK);
}

static void false_alarms_over_many_points(void **state)
{
    (void)state;
    enum { NIGHTS = 100 };
    static struct data d[POINTS];
    static const struct world w = {3, 2, 0, false, .0075, .02, 0.1};
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
static void points_lend_each_other_their_noise(void **state)
{
    (void)state;
    static struct data d[POINTS];
    static const struct world w = {3, 1, 0, false, .01, .005, 0};
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
static void effects_that_scatter_are_noise_between_runs(void **state)
{
    (void)state;
    static struct data d[POINTS];
    static const struct world w = {1, 3, 0, false, .04, .005, 0};
    struct comparison c[POINTS];
    uint64_t draw = 2;
    judge_many(d, &w, -1, &draw, c);
    for (int k = 0; k < POINTS; k++) {
        assert_true(c[k].noise > 0.02);
        assert_int_not_equal(c[k].verdict, VERDICT_REGRESSED);
        assert_int_not_equal(c[k].verdict, VERDICT_IMPROVED);
    }
}

static void gates(void **state)
{
    (void)state;
    static struct data d;
    uint64_t draw = 0;
    make(&d, &(struct world){1, 2, 0, false, .001, .01, 0.5}, &draw);
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
    d.visits[1][0].count = 3; /* and 2 in the other visit */
    d.visits[1][1].count = 2;
    assert_int_equal(judge(&d.point).verdict, VERDICT_INVALID);
    assert_non_null(strstr(judge(&d.point).reason, "samples"));
    d.visits[1][0].count = d.visits[1][1].count = SAMPLES;
    d.times[1][1][3] = 0;
    assert_int_equal(judge(&d.point).verdict, VERDICT_INVALID);
}

static void an_improvement_and_equal_times(void **state)
{
    (void)state;
    static struct data d;
    uint64_t draw = 0;
    make(&d, &(struct world){2, 2, 0, false, .001, .01, -0.2}, &draw);
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
static void one_visit_a_side_raises_no_alarm(void **state)
{
    (void)state;
    static struct data d;
    uint64_t draw = 0;
    make(&d, &(struct world){1, 1, 0, false, .001, .01, 2.41}, &draw);
    struct comparison c = judge(&d.point);
    assert_int_equal(c.verdict, VERDICT_INCONCLUSIVE);
    assert_non_null(strstr(c.reason, "in turns"));
    make(&d, &(struct world){1, 1, 0, false, .001, .01, 6}, &draw);
    assert_int_equal(judge(&d.point).verdict, VERDICT_REGRESSED);
}

/* What this program did before on this machine is no regression, however certain it is. */
static void what_the_program_did_before_is_no_regression(void **state)
{
    (void)state;
    static struct data d;
    uint64_t draw = 0;
    make(&d, &(struct world){1, 3, 20, false, .003, .005, .5}, &draw);
    assert_int_equal(judge(&d.point).verdict, VERDICT_REGRESSED);
    d.history[4].median *= 1.6;
    d.history[11].median *= 1.6;
    struct comparison c = judge(&d.point);
    assert_int_equal(c.verdict, VERDICT_INCONCLUSIVE);
    assert_true(c.swing > 0.5 && !c.ranked);
    assert_true(c.noise < 0.01); /* two runs that lie off are no noise of the others */
    static struct data three;
    make(&three, &(struct world){3, 3, 20, false, .003, .005, .5}, &draw);
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

static void a_noisy_history_raises_the_limit(void **state)
{
    (void)state;
    static struct data d;
    uint64_t draw = 3;
    make(&d, &(struct world){1, 1, 20, false, .03, .01, 0}, &draw);
    struct comparison c = judge(&d.point);
    assert_true(c.limit > 0.04 && c.mde > c.limit && c.history_runs == 20);
    assert_string_equal(c.noise_from, "history, allowance");
    d.point.history_count = 0;
    c = judge(&d.point);
    assert_true(fabs(c.limit - 0.02) < 1e-12);
    assert_string_equal(c.noise_from, "allowance");
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

static const struct world many_worlds[] = {
    {1, 1, 0, false, .01, .02, .05}, {1, 3, 0, false, .01, .02, .03},
    {3, 2, 0, false, .01, .02, .1},  {2, 4, 0, false, .01, .02, 0},
    {1, 3, 0, true, .01, .02, .04},  {4, 2, 0, true, .01, .02, .02},
    {3, 3, 0, false, .001, .01, .3},
};
enum { WORLDS = (int)(sizeof(many_worlds) / sizeof(*many_worlds)) };

static void swapped_sides_give_the_mirrored_verdict(void **state)
{
    (void)state;
    static struct data d;
    uint64_t draw = 0;
    for (int t = 0; t < 10 * WORLDS; t++) {
        make(&d, &many_worlds[t % WORLDS], &draw);
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

static void units_and_the_order_of_visits_do_not_matter(void **state)
{
    (void)state;
    static struct data d;
    uint64_t draw = 0;
    for (int t = 0; t < 10 * WORLDS; t++) {
        struct world w = many_worlds[t % WORLDS];
        w.history = t % 3 * 10;
        make(&d, &w, &draw);
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
static void no_nan_where_there_are_samples(void **state)
{
    (void)state;
    static struct data d;
    uint64_t draw = 0;
    for (int t = 0; t < 20 * WORLDS; t++) {
        struct world w = many_worlds[t % WORLDS];
        w.history = t % 7;
        make(&d, &w, &draw);
        if (t % 5 == 0)
            for (int k = 0; k < SAMPLES; k++)
                d.times[t % 2][0][k] = 1;
        if (t % 11 == 0)
            d.visits[1][0].slow[t % COMPARE_LEVELS] = NAN;
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
static void more_visits_do_not_make_a_process_faster(void **state)
{
    (void)state;
    static struct data d;
    uint64_t draw = 0;
    double sum = 0;
    for (int t = 0; t < 400; t++) {
        make(&d, &(struct world){1, 6, 0, false, 0, .05, 0}, &draw);
        d.point.base.visit_count = 2;
        sum += log(judge(&d.point).ratio) / 400;
    }
    assert_true(fabs(sum) < 0.001); /* the lowest of six lies 0.8 % below the lowest of two */
}

/* ---- the machine ---- */

/* Three visits a side, the level beside those of HEAD so many times slower. */
static struct comparison beside_level(double effect, enum compare_level level, double slower)
{
    static struct data d;
    uint64_t draw = 0;
    make(&d, &(struct world){1, 3, 0, false, .001, .01, effect}, &draw);
    for (int side = 0; side < 2; side++)
        for (int v = 0; v < 3; v++)
            d.visits[side][v].slow[level] = 8e-6 * (1 + 0.01 * v) * (side ? slower : 1);
    return judge(&d.point);
}

static void a_point_that_moved_with_a_level_is_the_machine(void **state)
{
    (void)state;
    struct comparison c = beside_level(1.01, COMPARE_HAND_OVER, 2.1);
    assert_int_equal(c.verdict, VERDICT_MACHINE);
    assert_int_equal(c.explained_by, COMPARE_HAND_OVER);
    assert_true(strncmp(c.reason, "+10", 3) == 0);
    assert_non_null(strstr(c.reason, " %, but handing work to threads took 2.1 times as long"));
    assert_true(fabs(c.level[COMPARE_HAND_OVER] - 2.1) < 0.05);
    assert_true(isnan(c.level[COMPARE_DRAM_READ]));
    c = beside_level(-0.5, COMPARE_CACHE_READ, 0.5);
    assert_int_equal(c.verdict, VERDICT_MACHINE);
}

static void a_level_that_moved_otherwise_explains_nothing(void **state)
{
    (void)state;
    const struct {
        double effect, slower;
    } cases[] = {{1.01, 0.5}, {1.01, 1.04}, {1.01, 1.2}, {0.15, 2.1}, {-0.3, 1.4}};
    for (int k = 0; k < (int)(sizeof(cases) / sizeof(*cases)); k++) {
        struct comparison c = beside_level(cases[k].effect, COMPARE_DRAM_READ, cases[k].slower);
        assert_int_equal(c.verdict, cases[k].effect > 0 ? VERDICT_REGRESSED : VERDICT_IMPROVED);
        assert_int_equal(c.explained_by, -1);
    }
}

/* What a point depends on is learnt from visits of earlier runs: here time follows hand-over by a
 * fifth, or not at all. */
static void what_a_point_depends_on_is_learnt(void **state)
{
    (void)state;
    for (int follows = 0; follows < 2; follows++) {
        static struct data d;
        uint64_t draw = 0;
        make(&d, &(struct world){1, 3, 20, false, .002, .005, .15}, &draw);
        for (int k = 0; k < 20; k++) {
            double slow = k % 4 == 0 ? 0.7 : 0;
            d.history[k].slow[COMPARE_HAND_OVER] = 8e-6 * exp(slow);
            d.history[k].median *= exp(follows * 0.2 * slow);
        }
        for (int side = 0; side < 2; side++)
            for (int v = 0; v < 3; v++)
                d.visits[side][v].slow[COMPARE_HAND_OVER] = side ? 16e-6 : 8e-6;
        struct comparison c = judge(&d.point);
        assert_int_equal(c.verdict, follows ? VERDICT_MACHINE : VERDICT_REGRESSED);
    }
}

/* Four levels that wander by 10 % from visit to visit, as noise: they excuse no 20 % slowdown by
 * chance. */
static void levels_explain_little_by_chance(void **state)
{
    (void)state;
    static struct data d;
    uint64_t draw = 0;
    int excused = 0;
    for (int t = 0; t < 500; t++) {
        make(&d, &(struct world){2, 3, 0, false, .002, .01, .2}, &draw);
        for (int k = 0; k < 2 * 6 * COMPARE_LEVELS; k++)
            d.visits[k % 2][k / 2 % 6].slow[k / 12] = 8e-6 * exp(0.1 * normal(&draw));
        excused += judge(&d.point).verdict == VERDICT_MACHINE;
    }
    if (excused > 25)
        fail_msg("%d of 500 excused", excused);
}

static void a_machine_whose_ceilings_moved_is_no_regression(void **state)
{
    (void)state;
    static struct data d;
    uint64_t draw = 0;
    make(&d, &(struct world){2, 2, 0, false, .001, .01, 0.2}, &draw);
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
static void visits_in_turns_find_their_other_half(void **state)
{
    (void)state;
    static struct data d;
    uint64_t draw = 0;
    make(&d, &(struct world){1, 6, 0, true, .001, .005, .05}, &draw);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(at_most_one_percent_false_alarms),
        cmocka_unit_test(slowdowns_are_found),
        cmocka_unit_test(what_is_not_found_is_not_denied),
        cmocka_unit_test(the_minimum_detectable_effect_is_true),
        cmocka_unit_test(false_alarms_over_many_points),
        cmocka_unit_test(points_lend_each_other_their_noise),
        cmocka_unit_test(effects_that_scatter_are_noise_between_runs),
        cmocka_unit_test(gates),
        cmocka_unit_test(an_improvement_and_equal_times),
        cmocka_unit_test(one_visit_a_side_raises_no_alarm),
        cmocka_unit_test(what_the_program_did_before_is_no_regression),
        cmocka_unit_test(a_noisy_history_raises_the_limit),
        cmocka_unit_test(swapped_sides_give_the_mirrored_verdict),
        cmocka_unit_test(units_and_the_order_of_visits_do_not_matter),
        cmocka_unit_test(no_nan_where_there_are_samples),
        cmocka_unit_test(more_visits_do_not_make_a_process_faster),
        cmocka_unit_test(a_point_that_moved_with_a_level_is_the_machine),
        cmocka_unit_test(a_level_that_moved_otherwise_explains_nothing),
        cmocka_unit_test(what_a_point_depends_on_is_learnt),
        cmocka_unit_test(levels_explain_little_by_chance),
        cmocka_unit_test(a_machine_whose_ceilings_moved_is_no_regression),
        cmocka_unit_test(visits_in_turns_find_their_other_half),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
