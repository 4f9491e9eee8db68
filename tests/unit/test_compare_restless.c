/* SPDX-License-Identifier: Apache-2.0
 * Error rates on a restless machine (tests/lib/restless.h): which estimate of a process holds
 * still, how often one program is called slower than itself, how often a slower one is found. The
 * rates of docs/method.md come from here: RIDGE_TRIALS=200 build/.../test_compare_restless prints
 * them. */

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/numbers/stats.h"
#include "results/compare_process.h"
#include "tests/lib/restless.h"
#include "tests/lib/unit.h"

/* Of a two-CPU virtual machine, and one that rests. */
static const struct restless_world restless = {.rounds = 3,
                                               .round_s = 50,
                                               .apart_s = 120,
                                               .slow_share = 0.15,
                                               .dwell_s = 180,
                                               .strength = 1,
                                               .process = 0.004,
                                               .visit = 0.004,
                                               .sample = 0.02};

enum { VISITS = RESTLESS_RUNS * RESTLESS_ROUNDS };

struct lab {
    struct restless_run runs[RESTLESS_RUNS];
    struct compare_visit visits[2][RESTLESS_POINTS][VISITS];
    struct compare_past past[RESTLESS_POINTS][VISITS];
    struct compare_point points[RESTLESS_POINTS];
    struct comparison out[RESTLESS_POINTS];
    const struct restless_world *world;
    int count[2][VERDICT_COUNT]; /* of points that stayed the same, and of slowed ones */
};

static struct lab lab;

static int trials(int usual)
{
    const char *text = getenv("RIDGE_TRIALS");
    return text ? (int)strtol(text, NULL, 10) : usual;
}

static void begin(const struct restless_world *world, bool paired)
{
    lab.world = world;
    for (int p = 0; p < RESTLESS_POINTS; p++)
        lab.points[p] = (struct compare_point){.paired = paired};
}

static void set_side(bool is_head, const int *runs, int count)
{
    for (int p = 0; p < RESTLESS_POINTS; p++) {
        struct compare_visit *visits = lab.visits[is_head][p];
        int n = 0;
        for (int k = 0; k < count; k++)
            for (int round = 0; round < lab.world->rounds; round++, n++) {
                struct restless_run *run = &lab.runs[runs[k]];
                visits[n] = (struct compare_visit){.times = run->times[p][round],
                                                   .count = restless_samples(lab.world, p),
                                                   .run = k,
                                                   .round = round};
                memcpy(visits[n].slow, run->slow[p][round], sizeof(visits[n].slow));
            }
        struct compare_side side = {SIDE_USABLE, "", visits, n};
        if (is_head)
            lab.points[p].head = side;
        else
            lab.points[p].base = side;
    }
}

/* Runs 0 .. count - 1, but for `left_out`; program[k]: of run k. */
static void set_history(const int *program, int count, int left_out)
{
    for (int p = 0; p < RESTLESS_POINTS; p++) {
        int n = 0;
        for (int k = 0; k < count; k++)
            for (int round = 0; k != left_out && round < lab.world->rounds; round++, n++) {
                struct compare_past *past = &lab.past[p][n];
                *past = (struct compare_past){
                    .program = program[k], .run = k, .median = lab.runs[k].median[p][round]};
                memcpy(past->slow, lab.runs[k].slow[p][round], sizeof(past->slow));
            }
        lab.points[p].history = lab.past[p];
        lab.points[p].history_count = n;
    }
}

static void judge(int slowed)
{
    assert_int_equal(compare_points(lab.points, RESTLESS_POINTS, NULL, lab.out, NULL), STATUS_OK);
    for (int p = 0; p < RESTLESS_POINTS; p++)
        lab.count[slowed >= 0 && p % 3 == slowed][lab.out[p].verdict]++;
}

/* Share of a verdict among the points that were slowed or not, in percent. */
static double share(bool slowed, enum verdict verdict)
{
    int all = 0;
    for (int k = 0; k < VERDICT_COUNT; k++)
        all += lab.count[slowed][k];
    return all ? 100.0 * lab.count[slowed][verdict] / all : 0;
}

static void end(const char *what, bool slowed)
{
    if (getenv("RIDGE_TRIALS"))
        print_message("%s: regressed %.2f, improved %.2f, unchanged %.1f, inconclusive %.1f, "
                      "machine %.1f %%\n",
                      what, share(slowed, VERDICT_REGRESSED), share(slowed, VERDICT_IMPROVED),
                      share(slowed, VERDICT_UNCHANGED), share(slowed, VERDICT_INCONCLUSIVE),
                      share(slowed, VERDICT_MACHINE));
}

/* ---- which estimate of a process holds still ---- */

/* Mean, median and lowest of the visits of a run. */
static void estimate(const struct restless_run *run, int point, double value[3])
{
    double x[RESTLESS_ROUNDS];
    for (int v = 0; v < restless.rounds; v++)
        x[v] = log(run->median[point][v]);
    stats_sort(x, restless.rounds);
    value[0] = stats_mean(x, restless.rounds);
    value[1] = stats_median(x, restless.rounds);
    value[2] = x[0];
}

/* Two runs of one program: how often do they lie more than 3 % apart, by each estimate? */
TEST(the_lowest_visit_holds_still)
{
    const char *const names[] = {"mean", "median", "lowest"};
    int off[3] = {0, 0, 0}, all = 0;
    for (int t = 0; t < trials(100); t++) {
        struct restless r;
        restless_start(&r, &restless, (uint64_t)t);
        restless_run(&r, 0, 0, &lab.runs[0]);
        restless_run(&r, 0, 0, &lab.runs[1]);
        for (int p = 0; p < RESTLESS_POINTS; p++, all++) {
            double a[3], b[3];
            estimate(&lab.runs[0], p, a);
            estimate(&lab.runs[1], p, b);
            for (int k = 0; k < 3; k++)
                off[k] += fabs(a[k] - b[k]) > 0.03;
        }
    }
    for (int k = 0; k < 3 && getenv("RIDGE_TRIALS"); k++)
        print_message("%s of the visits: %.1f %% of pairs more than 3 %% apart\n", names[k],
                      100.0 * off[k] / all);
    assert_true(off[2] < 0.8 * off[1] && off[1] < off[0]);
}

TEST(weights_of_the_lowest_are_a_mean)
{
    for (int n = 1; n <= 8; n++)
        for (int k = 1; k <= n; k++) {
            double sum = 0;
            for (int i = 0; i < n; i++) {
                double weight = compare_lowest_weight(n, k, i);
                assert_true(weight >= 0 &&
                            (i == 0 || k == 1 || weight <= compare_lowest_weight(n, k, i - 1)));
                sum += weight;
            }
            assert_true(fabs(sum - 1) < 1e-12);
            assert_true(k < n || compare_lowest_weight(n, k, 0) == 1);
        }
}

/* ---- one program against itself ---- */

/* Twenty pairs of runs minutes apart, with all earlier ones as history: the trial of issue 15. */
static void twenty_pairs(const struct restless_world *world, int times, const char *what)
{
    static const int program[RESTLESS_RUNS];
    memset(lab.count, 0, sizeof(lab.count));
    for (int t = 0; t < times; t++) {
        struct restless r;
        restless_start(&r, world, (uint64_t)t + 100);
        for (int k = 0; k < 40; k++)
            restless_run(&r, 0, 0, &lab.runs[k]);
        for (int k = 0; k < 40; k += 2) {
            begin(world, false);
            for (int p = 0; p < RESTLESS_POINTS; p++)
                lab.points[p].same_program = true;
            set_side(false, (const int[]){k}, 1);
            set_side(true, (const int[]){k + 1}, 1);
            set_history(program, k, -1);
            judge(-1);
        }
    }
    end(what, false);
}

TEST(one_program_is_not_slower_than_itself)
{
    struct restless_world quiet = restless, noisy = restless, blind = restless;
    quiet.strength = 0;
    noisy.process = noisy.visit = 0.008;
    noisy.sample = 0.03;
    blind.no_levels = true;
    const struct {
        const char *what;
        const struct restless_world *world;
        double undecided;
    } worlds[] = {{"20 pairs, quiet", &quiet, 2},
                  {"20 pairs, restless", &restless, 20},
                  {"20 pairs, restless and noisy", &noisy, 35},
                  {"20 pairs, restless, no levels known", &blind, 20}};
    for (int k = 0; k < 4; k++) {
        twenty_pairs(worlds[k].world, trials(6), worlds[k].what);
        double bad = share(false, VERDICT_REGRESSED) + share(false, VERDICT_IMPROVED);
        double open = share(false, VERDICT_INCONCLUSIVE) + share(false, VERDICT_MACHINE);
        if (bad > 1.5 || open > worlds[k].undecided)
            fail_msg("%s: %.2f %% alarms, %.1f %% undecided", worlds[k].what, bad, open);
    }
}

/* ---- a slower program ---- */

enum { NIGHTS = 6, BASE_NIGHTS = 3, A_NIGHT = 3 };

/* Six nights of three runs, three of BASE's program and then another each night; then HEAD's, some
 * of whose points are slower, in one night or two. */
static void nights(const struct restless_world *world, double slower, int head_nights, int times)
{
    enum { EARLIER = NIGHTS * A_NIGHT };
    static const int base[] = {1}, head[] = {18, 19, 20, 21, 22, 23};
    int program[EARLIER];
    memset(lab.count, 0, sizeof(lab.count));
    for (int k = 0; k < EARLIER; k++)
        program[k] = k < BASE_NIGHTS * A_NIGHT ? COMPARE_BASE_PROGRAM : 1 + k / A_NIGHT;
    for (int t = 0; t < times; t++) {
        struct restless r;
        restless_start(&r, world, (uint64_t)t + 5000);
        for (int k = 0; k < EARLIER + head_nights * A_NIGHT; k++) {
            restless_run(&r, k < EARLIER ? 0 : slower, 1, &lab.runs[k]);
            r.now += k % A_NIGHT == A_NIGHT - 1 ? 80000 : 0;
        }
        begin(world, false);
        set_side(false, base, 1); /* the baseline is one run; the others are its history */
        set_side(true, head, head_nights * A_NIGHT);
        set_history(program, EARLIER, 1);
        judge(slower > 0 ? 1 : -1);
    }
}

TEST(a_slowdown_by_15_percent_is_found_over_nights)
{
    struct restless_world quiet = restless;
    quiet.strength = 0;
    nights(&quiet, 0.15, 1, trials(20));
    end("15 % over one night, quiet", true);
    assert_true(share(true, VERDICT_REGRESSED) >= 99);
    nights(&restless, 0.15, 1, trials(20));
    end("15 % over one night, restless", true);
    assert_true(share(true, VERDICT_REGRESSED) >= 80);
    nights(&restless, 0.15, 2, trials(20));
    end("15 % over two nights, restless", true);
    end("the other points", false);
    assert_true(share(true, VERDICT_REGRESSED) >= 90);
    assert_true(share(false, VERDICT_REGRESSED) + share(false, VERDICT_IMPROVED) <= 2);
}

/* Runs that follow each other share a level that outlives them; what is beside it says so. */
TEST(levels_of_ten_minutes_raise_few_alarms)
{
    struct restless_world slow = restless, blind;
    slow.dwell_s = 600;
    nights(&slow, 0, 1, trials(40));
    end("itself, three runs of a night, levels of 10 minutes", false);
    assert_true(share(false, VERDICT_REGRESSED) + share(false, VERDICT_IMPROVED) <= 4);
    blind = slow;
    blind.no_levels = true;
    nights(&blind, 0, 1, trials(40));
    end("itself, three runs of a night, levels of 10 minutes and not measured", false);
}

static void turns(const struct restless_world *world, double slower, int times)
{
    memset(lab.count, 0, sizeof(lab.count));
    for (int t = 0; t < times; t++) {
        struct restless r;
        restless_start(&r, world, (uint64_t)t + 9000);
        restless_turns(&r, slower, 1, lab.runs);
        begin(world, true);
        set_side(false, (const int[]){0}, 1);
        set_side(true, (const int[]){1}, 1);
        judge(slower > 0 ? 1 : -1);
    }
}

/* Where visits of a point do not belong together it is judged as runs apart are, and the others as
 * they would be without it. */
TEST(a_point_that_is_not_paired_spoils_no_pairs)
{
    static struct comparison before[RESTLESS_POINTS];
    struct restless_world uneven = restless;
    uneven.few = 5;
    uneven.few_sample = 0.05;
    turns(&uneven, 0, 1);
    memcpy(before, lab.out, sizeof(before));
    lab.points[0].paired = false;
    judge(-1);
    assert_true(lab.out[0].prior > 0.001 && lab.out[0].prior < 0.05);
    for (int p = 1; p < RESTLESS_POINTS; p++)
        assert_float_equal(log(lab.out[p].ratio), log(before[p].ratio), 0.002);
}

TEST(in_turns_5_percent_is_found_and_nothing_else)
{
    turns(&restless, 0.05, trials(60));
    end("5 % in turns, restless", true);
    assert_true(share(true, VERDICT_REGRESSED) >= 95);
    struct restless_world five = restless;
    five.process = five.visit = 0.008;
    five.sample = 0.03;
    five.rounds = 5;
    turns(&five, 0.05, trials(60));
    end("5 % in turns, five rounds, restless and noisy", true);
    struct restless_world uneven = restless;
    uneven.few = 5;
    uneven.few_sample = 0.05;
    turns(&uneven, 0.05, trials(60));
    end("5 % in turns, points of few samples that scatter", true);
    turns(&uneven, 0, trials(120));
    end("itself in turns, points of few samples that scatter", false);
    assert_true(share(false, VERDICT_REGRESSED) <= 0.1);
    turns(&restless, 0, trials(120));
    end("itself in turns, restless", false);
    assert_true(share(false, VERDICT_REGRESSED) <= 0.1);
    assert_true(share(false, VERDICT_INCONCLUSIVE) + share(false, VERDICT_MACHINE) <= 5);
}
