/* SPDX-License-Identifier: Apache-2.0
 *
 * Shares of the visits, and what becomes of several: every number here can be computed by hand. */

#include <math.h>
#include <string.h>

#include "harness/measure/visits.h"
#include "tests/lib/unit.h"

enum { EACH = 9, VISITS = 3 };

#define assert_close(a, b, by) assert_true(fabs((a) - (b)) <= (by))

static struct protocol whole(int rounds)
{
    return (struct protocol){.scenario = SCENARIO_SINGLE_STREAM,
                             .warmup_s = 0.2,
                             .warmup_runs = 3,
                             .samples_min = 20,
                             .samples_max = 100,
                             .seconds_min = 0.3,
                             .seconds_max = 6,
                             .interval = 0.01,
                             .rounds = rounds};
}

/* ---- shares ---- */

TEST(shares_sum_up)
{
    for (int rounds = 2; rounds <= 7; rounds++) {
        struct protocol p = whole(rounds);
        int64_t least = 0, limit = 0;
        double seconds = 0, cap = 0;
        for (int r = 0; r < rounds; r++) {
            struct protocol v = visit_protocol(&p, r, r > 0);
            least += v.samples_min;
            limit += v.samples_max;
            seconds += v.seconds_min;
            cap += v.seconds_max;
            assert_true(v.samples_min >= 6 && v.samples_min <= v.samples_max);
            assert_close(v.interval, 0.01 * sqrt(rounds), 1e-12);
            assert_true(v.warmup_s < p.warmup_s || r == 0);
            assert_true(v.samples_floor >= 2 && v.samples_floor * rounds >= 6);
        }
        assert_int_equal(least, rounds * 6 > 20 ? rounds * 6 : 20);
        assert_int_equal(limit, 100);
        assert_close(seconds, 0.3, 1e-12);
        assert_close(cap, 6, 1e-12);
    }
}

TEST(one_visit_owes_all)
{
    struct protocol p = whole(1), v = visit_protocol(&p, 0, false);
    assert_int_equal(v.samples_min, 20);
    assert_int_equal(v.samples_floor, 0); /* the usual six */
    assert_close(v.interval, 0.01, 0);
    assert_close(v.warmup_s, 0.2, 0);
}

TEST(an_order_is_a_permutation_that_its_seed_repeats)
{
    enum { POINTS = 40 };
    int order[POINTS], again[POINTS], other[POINTS], seen[POINTS] = {0};
    visits_order(7, 1, order, POINTS);
    visits_order(7, 1, again, POINTS);
    visits_order(7, 2, other, POINTS);
    assert_memory_equal(order, again, sizeof(order));
    assert_memory_not_equal(order, other, sizeof(order));
    visits_order(8, 1, other, POINTS);
    assert_memory_not_equal(order, other, sizeof(order));
    for (int k = 0; k < POINTS; k++)
        seen[order[k]]++;
    for (int k = 0; k < POINTS; k++)
        assert_int_equal(seen[k], 1);
    visits_order(7, 0, order, 1);
    assert_int_equal(order[0], 0);
}

/* ---- several become one ---- */

struct made {
    struct arena arena;
    struct protocol protocol;
    struct visit_record visits[VISITS];
    struct sample_record samples[VISITS * EACH];
    struct measurement out;
    double spread;
};

/* Samples of a visit lie symmetrically around its median, up to `width` of it. */
static void make(struct made *m, const double *medians_s, double width)
{
    *m = (struct made){.protocol = whole(VISITS)};
    for (int v = 0; v < VISITS; v++) {
        m->visits[v] = (struct visit_record){.round = v,
                                             .samples = EACH,
                                             .median_s = medians_s[v],
                                             .steal_share = 0.01 * v,
                                             .wait_share = NAN,
                                             .clock_hz = 3e9,
                                             .reason = ""};
        for (int k = 0; k < EACH; k++)
            m->samples[v * EACH + k] = (struct sample_record){
                .visit = v,
                .phase = SAMPLE_TIME,
                .time_ns = (int64_t)(medians_s[v] * 1e9 * (1 + width * (k - EACH / 2) / EACH)),
                .queue_ns = RECORD_NONE,
                .steal_ns = RECORD_NONE,
                .clock_hz = NAN};
    }
}

static void join_some(struct made *m, int count)
{
    struct visits visits = {.protocol = &m->protocol,
                            .visits = m->visits,
                            .count = count,
                            .samples = m->samples,
                            .sample_count = count * EACH,
                            .stop_reason = "enough"};
    MUST(visits_join, &visits, &m->arena, &m->out, &m->spread);
}

static void join(struct made *m)
{
    join_some(m, VISITS);
}

/* Medians 1, 2 and 4 ms: mean 2 ms in logarithms, deviation ln 2 with two degrees of freedom, drawn
 * towards 1 % with two more; t of four degrees is 2.7764. */
TEST(the_interval_is_that_between_the_visits)
{
    struct made m;
    make(&m, (double[]){0.001, 0.002, 0.004}, 0.01);
    join(&m);
    assert_close(m.out.median_s, 0.002, 1e-12);
    assert_close(m.spread, log(2), 1e-9);
    double drawn = sqrt((2 * log(2) * log(2) + 2 * 0.01 * 0.01) / 4);
    double half = 2.776445 * drawn / sqrt(3);
    assert_close(log(m.out.ci_high_s / 0.002), half, 1e-5);
    assert_close(log(0.002 / m.out.ci_low_s), half, 1e-5);
    assert_int_equal(m.out.timed, VISITS * EACH);
    assert_close(m.out.steal_share, 0.01, 1e-12);
    assert_true(m.out.valid); /* levels that differ are no fault of the samples */
    assert_non_null(strstr(m.out.stop_reason, "3 of 3 visits; the latest: enough"));
    arena_release(&m.arena);
}

/* Visits that agree by chance know no more than their samples do. */
TEST(the_interval_is_never_narrower_than_within)
{
    struct made m;
    make(&m, (double[]){0.001, 0.001, 0.001}, 0.06);
    join(&m);
    assert_close(m.spread, 0, 1e-12);
    assert_true(m.out.ci_low_s < 0.000995 && m.out.ci_high_s > 0.001005);
    assert_true(m.out.valid);
    arena_release(&m.arena);
}

TEST(unsteady_samples_are_invalid_in_several_visits_too)
{
    struct made m;
    make(&m, (double[]){0.001, 0.001, 0.001}, 2);
    join(&m);
    assert_false(m.out.valid);
    assert_non_null(strstr(m.out.reason, "unstable"));
    arena_release(&m.arena);
}

TEST(a_disturbed_visit_is_set_apart)
{
    struct made m;
    make(&m, (double[]){0.001, 0.010, 0.001}, 0.01);
    m.visits[1].reason = "disturbed: 9 % of the CPU time was taken by other machines";
    join(&m);
    assert_true(m.out.valid);
    assert_close(m.out.median_s, 0.001, 1e-9);
    assert_int_equal(m.out.timed, 2 * EACH);
    assert_true(m.out.max_s < 0.002);
    assert_int_equal(visits_apart(m.visits, VISITS), 1);
    assert_string_equal(m.visits[1].reason,
                        "set apart: disturbed: 9 % of the CPU time was taken by other machines");
    for (int k = 0; k < VISITS * EACH; k++)
        assert_int_equal(m.samples[k].phase, k / EACH == 1 ? SAMPLE_DISCARDED : SAMPLE_TIME);
    assert_non_null(strstr(m.out.stop_reason, "1 set apart"));
    join(&m); /* after the next visit nothing is said twice */
    assert_int_equal(strncmp(m.visits[1].reason, "set apart: disturbed", 20), 0);
    arena_release(&m.arena);
}

TEST(without_two_good_ones_the_point_is_invalid)
{
    struct made m;
    make(&m, (double[]){0.001, 0.010, 0.001}, 0.01);
    m.visits[1].reason = "disturbed: much";
    join_some(&m, 2);
    assert_false(m.out.valid);
    assert_string_equal(m.out.reason, "visit 2 of 3: disturbed: much");
    assert_int_equal(visits_apart(m.visits, 2), 0);
    join(&m); /* the third is good: now there are two */
    assert_true(m.out.valid);
    arena_release(&m.arena);
    make(&m, (double[]){0.001, 0.010, 0.001}, 0.01);
    m.visits[0].reason = m.visits[2].reason = "throttled: much";
    join(&m);
    assert_false(m.out.valid);
    assert_string_equal(m.out.reason, "visit 1 of 3: throttled: much");
    arena_release(&m.arena);
}

/* One that failed has no median, and no samples. */
TEST(a_failed_visit_does_not_count)
{
    struct made m;
    make(&m, (double[]){0.001, 0.001, NAN}, 0.01);
    m.visits[2].reason = "no memory";
    struct visits visits = {.protocol = &m.protocol,
                            .visits = m.visits,
                            .count = 3,
                            .samples = m.samples,
                            .sample_count = 2 * EACH,
                            .stop_reason = "enough"};
    MUST(visits_join, &visits, &m.arena, &m.out, &m.spread);
    assert_true(m.out.valid);
    assert_close(m.out.median_s, 0.001, 1e-9);
    assert_int_equal(visits_apart(m.visits, 3), 1);
    arena_release(&m.arena);
}

TEST(a_first_visit_alone_is_what_its_samples_say)
{
    struct made m;
    make(&m, (double[]){0.001, 0.002, 0.002}, 0.01);
    join_some(&m, 1);
    assert_close(m.out.median_s, 0.001, 1e-9);
    assert_true(isnan(m.spread));
    assert_true(m.out.ci_low_s < 0.001 && m.out.ci_high_s > 0.001);
    assert_non_null(strstr(m.out.stop_reason, "1 of 3 visits"));
    arena_release(&m.arena);
}

/* ---- the machine's CPUs lay otherwise ---- */

static const struct placement near_by = {0.2e-6, 230e9};

static void set_placement(struct visit_record *visit, double hand_over_s, double multiply_add)
{
    visit->level_count = 2;
    visit->levels[0] = (struct level_record){.name = "hand_over", .value = hand_over_s};
    visit->levels[1] = (struct level_record){.name = "multiply_add", .value = multiply_add};
}

static void join_placed(struct made *m, const struct placement *usual)
{
    struct visits visits = {.protocol = &m->protocol,
                            .visits = m->visits,
                            .count = VISITS,
                            .samples = m->samples,
                            .sample_count = VISITS * EACH,
                            .stop_reason = "enough",
                            .usual = usual};
    MUST(visits_join, &visits, &m->arena, &m->out, &m->spread);
}

/* On a virtual machine whose CPUs move, din took 2.5 times as long for seconds, and one run in two
 * was called another program. */
TEST(a_visit_in_another_placement_is_set_apart)
{
    struct made m;
    make(&m, (double[]){0.001, 0.0025, 0.001}, 0.01);
    set_placement(&m.visits[0], 0.21e-6, 228e9);
    set_placement(&m.visits[1], 0.64e-6, 232e9);
    set_placement(&m.visits[2], 0.19e-6, 231e9);
    join_placed(&m, &near_by);
    assert_true(m.out.valid);
    assert_close(m.out.median_s, 0.001, 1e-9);
    assert_non_null(strstr(m.visits[1].reason, "set apart: the machine's CPUs lay farther apart"));
    assert_non_null(strstr(m.visits[1].reason, "3.2 times"));
    assert_int_equal(visits_good(m.visits, VISITS, &near_by), 2);
    arena_release(&m.arena);
    make(&m, (double[]){0.001, 0.0025, 0.001}, 0.01);
    set_placement(&m.visits[0], 0.09e-6, 117e9); /* two are displaced, and one alone is usual */
    set_placement(&m.visits[1], 0.64e-6, 232e9);
    set_placement(&m.visits[2], 0.19e-6, 231e9);
    join_placed(&m, &near_by);
    assert_int_equal(visits_apart(m.visits, VISITS), 0);
    assert_null(strstr(m.out.reason, "CPUs")); /* it is no fault of theirs */
    assert_int_equal(visits_good(m.visits, VISITS, &near_by), 1);
    m.visits[0].reason = "disturbed: much"; /* a displaced visit is better than a disturbed one */
    join_placed(&m, &near_by);
    assert_int_equal(visits_apart(m.visits, VISITS), 1);
    assert_null(strstr(m.out.reason, "disturbed"));
    arena_release(&m.arena);
}

TEST(the_usual_placement_is_the_faster_of_those_often_seen)
{
    static const struct placement kinds[] = {{0.2e-6, 230e9}, {0.64e-6, 232e9}, {0.09e-6, 117e9}};
    struct placement readings[20], usual;
    char how[160];
    for (int k = 0; k < 20; k++) /* 8 near, 8 far, 4 on one core */
        readings[k] = kinds[k % 5 == 4 ? 2 : k % 2];
    MUST(placement_usual, readings, 20, &usual);
    assert_close(usual.hand_over_s, 0.2e-6, 1e-9);
    assert_close(usual.multiply_add, 231e9, 2e9);
    assert_false(placement_differs(&kinds[0], &usual, how, sizeof(how)));
    assert_true(placement_differs(&kinds[1], &usual, how, sizeof(how)));
    assert_true(placement_differs(&kinds[2], &usual, how, sizeof(how)));
    assert_non_null(strstr(how, "shared their cores"));
    for (int k = 0; k < 20; k++) /* far nearly always: then that is how this machine is */
        readings[k] = kinds[k == 7 ? 0 : 1];
    MUST(placement_usual, readings, 20, &usual);
    assert_false(placement_differs(&kinds[1], &usual, how, sizeof(how)));
    MUST(placement_usual, readings, 3, &usual); /* too few */
    assert_false(placement_differs(&kinds[2], &usual, how, sizeof(how)));
    struct placement one_thread = {NAN, 110e9}, none = {NAN, NAN};
    for (int k = 0; k < 20; k++)
        readings[k] = one_thread;
    MUST(placement_usual, readings, 20, &usual);
    assert_false(placement_differs(&one_thread, &usual, how, sizeof(how)));
    one_thread.multiply_add = 60e9; /* the other half of the core is somebody else's */
    assert_true(placement_differs(&one_thread, &usual, how, sizeof(how)));
    assert_false(placement_differs(&none, &usual, how, sizeof(how)));
}
