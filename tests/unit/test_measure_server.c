/* SPDX-License-Identifier: Apache-2.0
 *
 * Scenario server under a scripted clock. */
#include <math.h>
#include <string.h>

#include "base/numbers/stats.h"
#include "tests/lib/unit.h"
#include "tests/lib/unit/scripted.h"

/* cmocka compares floats only. */
#define assert_close(a, b, by) assert_true(fabs((a) - (b)) <= (by))

static struct protocol server_protocol(double latency_bound_s)
{
    struct protocol p = script_protocol();
    p.scenario = SCENARIO_SERVER;
    p.latency_bound_s = latency_bound_s;
    return p;
}

/* A server keeps the queries of one rate only, and all rates that it tried took time. */
TEST(stolen_time_of_a_server_is_of_its_whole_search)
{
    struct script s = {.ns = script_constant, .clock_hz = NAN, .steals = 0.5};
    struct protocol p = server_protocol(4e-3);
    struct measurement m = script_measure(&s, &p);
    assert_close(m.steal_share, 0.25, 0.01); /* half of one CPU of two, all the time */
    assert_false(m.valid);
    assert_non_null(strstr(m.reason, "taken by other machines"));
}

TEST(a_pause_of_a_server_makes_it_invalid)
{
    struct script s = {.ns = script_constant,
                       .clock_hz = NAN,
                       .busy = 0.9,
                       .pause_run = 300,
                       .pause_ns = 3e9,
                       .pause_stops = 1};
    struct protocol p = server_protocol(4e-3);
    struct measurement m = script_measure(&s, &p);
    assert_false(m.valid);
    assert_non_null(strstr(m.reason, "1 sample of 3.0 s is set apart: the process was stopped"));
    assert_int_equal(m.timed, 200);
}

/* A queue with constant service times and Poisson arrivals (M/D/1): with few queries the 99th
 * percentile is about the second longest wait; the rate must be below saturation and the bound must
 * hold. */
TEST(server_finds_the_highest_passing_rate)
{
    struct script s = {.ns = script_constant, .clock_hz = NAN};
    struct protocol p = server_protocol(4e-3);
    struct measurement m = script_measure(&s, &p);
    assert_true(m.valid);
    assert_int_equal(m.timed, 200);
    assert_true(m.rate_hz > 400 && m.rate_hz < 950);
    assert_true(m.p99_s <= 4e-3);
    double longest = 0;
    for (int64_t k = m.count - 200; k < m.count; k++)
        longest = fmax(longest, (double)m.samples[k].queue_ns);
    assert_true(longest > 1e6); /* some had to wait */
}

/* Rates of arithmetic are derived from the time: waiting is no part of it, but of latencies. */
TEST(the_time_of_a_server_is_that_of_an_execution)
{
    struct script s = {.ns = script_constant, .clock_hz = NAN};
    struct protocol p = server_protocol(1e-2);
    struct measurement m = script_measure(&s, &p);
    assert_true(m.valid);
    assert_close(m.median_s, 1e-3, 1e-12);
    assert_close(m.max_s, 1e-3, 1e-12);
    assert_close(m.ci_high_s, 1e-3, 1e-12);
    double latencies[200];
    for (int k = 0; k < 200; k++) {
        const struct sample_record *q = &m.samples[m.count - 200 + k];
        latencies[k] = (double)(q->time_ns + q->queue_ns) * 1e-9;
    }
    stats_sort(latencies, 200);
    assert_close(m.p50_s, stats_median(latencies, 200), 1e-12);
    assert_close(m.p99_s, stats_quantile(latencies, 200, 0.99), 1e-12);
    assert_true(m.p50_s > 1.5e-3);
}

TEST(server_says_when_no_rate_passes)
{
    struct script s = {.ns = script_constant, .clock_hz = NAN};
    struct protocol p = server_protocol(5e-4);
    struct measurement m = script_measure(&s, &p);
    assert_false(m.valid);
    assert_non_null(strstr(m.reason, "no rate keeps p99 within 0.5 ms"));
    assert_true(isnan(m.rate_hz));
}
