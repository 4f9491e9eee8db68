/* SPDX-License-Identifier: Apache-2.0
 *
 * Measuring under a scripted clock: every sample's time is known, so is every verdict. */
#define _GNU_SOURCE

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "base/build_info.h"
#include "base/numbers/random.h"
#include "base/system/clock.h"
#include "harness/measure/measure.h"
#include "harness/measure/surroundings.h"
#include "tests/lib/unit.h"
#include "tests/lib/unit/scripted.h"

/* cmocka compares floats only. */
#define assert_close(a, b, by) assert_true(fabs((a) - (b)) <= (by))

TEST(constant_times_stop_at_the_floor)
{
    struct script s = {.now = 1000, .ns = script_constant, .clock_hz = 3e9};
    struct protocol p = script_protocol();
    struct measurement m = script_measure(&s, &p);
    assert_int_equal(m.timed, 15);
    assert_int_equal(m.count, 18);
    assert_int_equal(m.samples[2].phase, SAMPLE_WARMUP);
    assert_int_equal(m.samples[3].phase, SAMPLE_TIME);
    assert_close(m.median_s, 1e-3, 1e-12);
    assert_close(m.rate_hz, 1000, 1e-6);
    assert_close(m.overhead_s, 0, 1e-15);
    assert_true(isnan(m.p99_s));
    assert_true(m.valid);
    assert_int_equal(m.samples[5].context_switches, 1);
    assert_int_equal(m.samples[5].page_faults, 0);
    assert_true(m.samples[5].migrations == RECORD_NONE);
    assert_string_equal(m.stop_reason, "interval 0 % of the median after 15 samples");
}

static double noisy(int64_t k)
{
    return 1e6 * (1 + 0.05 * random_normal(42, (uint64_t)k));
}

TEST(noise_is_sampled_until_the_interval_is_narrow)
{
    struct script s = {.ns = noisy, .clock_hz = NAN};
    struct protocol p = script_protocol();
    struct measurement m = script_measure(&s, &p);
    /* Half-width of the median's interval: 1.96 x 1.2533 x 5 % / sqrt(n) = 1 % at n = 151. */
    assert_true(m.timed > 90 && m.timed < 230);
    assert_true((m.ci_high_s - m.ci_low_s) / 2 / m.median_s <= 0.01);
    assert_close(m.median_s, 1e-3, 2e-5);
    assert_false(isnan(m.p99_s));
    assert_true(m.valid);
}

static double wild(int64_t k)
{
    return 1e8 * (1 + 3 * random_uniform(1, (uint64_t)k));
}

TEST(what_never_settles_ends_at_the_cap_and_is_invalid)
{
    struct script s = {.ns = wild, .clock_hz = NAN};
    struct protocol p = script_protocol();
    p.seconds_max = 4;
    struct measurement m = script_measure(&s, &p);
    assert_non_null(strstr(m.stop_reason, "cap of 4 s"));
    assert_false(m.valid);
    assert_non_null(strstr(m.reason, "unstable"));
}

TEST(the_cap_of_samples_holds)
{
    struct script s = {.ns = noisy, .clock_hz = NAN};
    struct protocol p = script_protocol();
    p.samples_max = 40;
    struct measurement m = script_measure(&s, &p);
    assert_int_equal(m.timed, 40);
    assert_string_equal(m.stop_reason, "cap of 40 samples");
}

static double slowing(int64_t k)
{
    return 1e6 * (1 + 0.002 * (double)k);
}

TEST(drift_is_found)
{
    struct script s = {.ns = slowing, .clock_hz = NAN};
    struct protocol p = script_protocol();
    p.samples_min = p.samples_max = 120;
    struct measurement m = script_measure(&s, &p);
    assert_false(m.valid);
    assert_non_null(strstr(m.reason, "drifting"));
}

TEST(stolen_time_is_found)
{
    struct script s = {.ns = script_constant, .clock_hz = NAN, .steal_per_look_ns = 100000};
    struct protocol p = script_protocol();
    struct measurement m = script_measure(&s, &p);
    assert_close(m.steal_share, 0.05, 1e-6); /* a tenth of one CPU of two */
    assert_false(m.valid);
    assert_non_null(strstr(m.reason, "taken by other machines"));
}

static double cpu_s(void)
{
    struct timespec t;
    assert_int_equal(clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t), 0);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Clocks that are some ns apart are no sleep: nothing is looked up, let alone sorted, for each. */
TEST(clocks_that_differ_by_their_reading_cost_nothing)
{
    double took_s[2];
    for (int jitters = 0; jitters < 2; jitters++) {
        struct script s = {
            .ns = script_constant, .clock_hz = NAN, .busy = 0.9, .jitters = jitters == 1};
        struct protocol p = script_protocol();
        p.samples_min = p.samples_max = 6000;
        double began_s = cpu_s();
        struct measurement m = script_measure(&s, &p);
        took_s[jitters] = cpu_s() - began_s;
        assert_int_equal(m.timed, 6000);
        assert_int_equal(m.set_apart.count, 0);
    }
    if (took_s[1] > 5 * took_s[0] + 0.05)
        fail_msg("%.3f s of CPU time, %.3f s without jitter", took_s[1], took_s[0]);
}

/* Issue 15.3. Run 10 is the seventh of the time phase. What its own work took stays in. */
TEST(a_pause_is_set_apart_and_slowness_is_not)
{
    static const struct {
        const char *what;
        struct script script;
        const char *apart; /* NULL: the sample stays */
    } cases[] = {
        {"SIGSTOP for 3 s",
         {.busy = 0.9, .pause_ns = 3e9, .pause_stops = 1},
         "1 sample of 3.0 s is set apart: the process was stopped"},
        {"a stop of a process that has much idle time",
         {.busy = 0.1, .pause_ns = 3e9, .pause_stops = 1},
         "1 sample of 3.0 s is set apart: the process was stopped"},
        {"a frozen container, without a sign",
         {.busy = 0.9, .pause_ns = 3e9},
         "1 sample of 3.0 s is set apart: the process was stopped or the machine slept"},
        {"the machine slept",
         {.busy = 0.9, .pause_ns = 1e3, .pause_asleep_ns = 5000000000},
         "1 sample of 0.001 s is set apart: the machine slept"},
        {"its own work: CPU time was used",
         {.busy = 0.9, .pause_ns = 3e9, .pause_cpu_ns = 3e9},
         NULL},
        {"one thread of two worked",
         {.busy = 0.9, .pause_ns = 3e9, .pause_cpu_ns = 1.5e9, .pause_stops = 1},
         NULL},
        {"it waited for a disk", {.busy = 0.9, .pause_ns = 3e9, .pause_reads = 40}, NULL},
        {"it waits as a way of life", {.busy = 0.1, .pause_ns = 3e9}, NULL},
        {"no CPU time is known", {.pause_ns = 3e9}, NULL},
        {"slow, but not beyond reason", {.busy = 0.9, .pause_ns = 5e7}, NULL},
        {"continued without a stop", {.busy = 0.9, .pause_ns = 1, .pause_stops = 1}, NULL},
    };
    for (int k = 0; k < ARRAY_COUNT(cases); k++) {
        char text[160];
        struct script s = cases[k].script;
        struct protocol p = script_protocol();
        s.ns = script_constant;
        s.clock_hz = NAN;
        s.pause_run = 10;
        struct measurement m = script_measure(&s, &p);
        pauses_text(&m.set_apart, text, sizeof(text));
        if (strcmp(text, cases[k].apart ? cases[k].apart : "") != 0)
            fail_msg("%s: \"%s\"", cases[k].what, text);
        assert_true(m.valid);
        assert_int_equal(m.samples[9].phase, text[0] ? SAMPLE_DISCARDED : SAMPLE_TIME);
        assert_int_equal(m.timed, 15);
        assert_int_equal(m.count, text[0] ? 19 : 18); /* another is taken in its place */
        assert_close(m.max_s, text[0] ? 1e-3 : 1e-3 + s.pause_ns * 1e-9, 1e-9);
        assert_close(m.overhead_s, 0, 1e-9);
    }
}

/* What is left must be enough: here the machine sleeps again and again. */
TEST(too_many_pauses_make_a_result_invalid)
{
    struct script s = {.ns = script_constant, .clock_hz = NAN, .sleeps_every = 3};
    struct protocol p = script_protocol();
    struct measurement m = script_measure(&s, &p);
    assert_false(m.valid);
    assert_int_equal(m.timed, 15);
    assert_string_equal(m.reason, "7 samples of up to 0.001 s are set apart: the machine slept; "
                                  "15 others are too few to rely on");
}

/* Only the time phase is watched; what is known of it is a reason, what is not has one. */
TEST(busy_neighbours_make_a_result_invalid)
{
    struct protocol p = script_protocol();
    struct script s = {.ns = script_constant, .clock_hz = NAN};
    s.disturbance = (struct disturbance){.wall_s = 1,
                                         .wait_s = 0.6,
                                         .unknown = "",
                                         .run_s = 1,
                                         .others = {.all_s = 0.9, .busiest_s = 0.5, .cpus = 2}};
    memcpy(s.disturbance.others.busiest, "yes", 4);
    struct measurement m = script_measure(&s, &p);
    assert_int_equal(s.watched_from, 3);
    assert_close(m.wait_share, 0.3, 1e-9);
    assert_false(m.valid);
    assert_string_equal(m.reason, "disturbed: 30.0 % of the CPU time went to other programs on "
                                  "this machine (busiest: yes, 0.5 CPUs)");
    s = (struct script){.ns = script_constant,
                        .clock_hz = NAN,
                        .disturbance = disturbance_unknown("the kernel does not tell")};
    m = script_measure(&s, &p);
    assert_true(m.valid && isnan(m.wait_share));
    assert_string_equal(m.wait_note, "the kernel does not tell");
}

/* What it did before, or in the warm-up, is over. */
TEST(heat_that_holds_the_clock_is_found)
{
    struct script s = {
        .ns = script_constant, .clock_hz = 1.98e9, .heat_from_run = 10, .heat_ns = 5000000000};
    struct protocol p = script_protocol();
    struct measurement m = script_measure(&s, &p);
    assert_false(m.valid); /* 9 of 15 samples, 100 us each */
    assert_string_equal(m.reason, "throttled: heat held the clock down for 0.0009 s of 0.015 s");
    s = (struct script){.ns = script_constant, .clock_hz = 1.98e9, .heat_ns = 5000000000};
    m = script_measure(&s, &p);
    assert_true(m.valid);
}

/* Without a counter of its time: the board's and the hardware's reasons count as they are seen. One
 * look that sees a slowdown alone may have met a change of clocks; a power limit is no reason. */
TEST(reasons_that_hold_the_clock_are_found)
{
    static const struct {
        unsigned slow;
        int64_t from, to;
        const char *by; /* NULL: valid */
    } cases[] = {{0x20, 10, 10, "heat (software)"},
                 {0x48, 10, 10, "slowdown, heat (hardware)"},
                 {0x88, 10, 12, "slowdown, power brake"},
                 {0x8, 10, 10, NULL},
                 {0x8, 10, 11, "slowdown"},
                 {0x20, 1, 3, NULL}, /* the warm-up */
                 {0, 1, 100, NULL}};
    for (int k = 0; k < ARRAY_COUNT(cases); k++) {
        struct script s = {.ns = script_constant,
                           .clock_hz = 1.98e9,
                           .slow = cases[k].slow,
                           .slow_from = cases[k].from,
                           .slow_to = cases[k].to};
        struct protocol p = script_protocol();
        char reason[128] = "";
        struct measurement m = script_measure(&s, &p);
        if (cases[k].by)
            snprintf(reason, sizeof(reason), "throttled: the GPU's clock was held down: %s",
                     cases[k].by);
        assert_string_equal(m.reason, reason);
        assert_true(m.valid == !cases[k].by);
    }
}

TEST(cold_runs_flush_before_each_sample_and_do_not_count_it)
{
    struct script s = {.ns = script_constant, .clock_hz = NAN};
    struct protocol p = script_protocol();
    p.cold = true;
    struct measurement m = script_measure(&s, &p);
    assert_int_equal(s.flushed, m.count);
    assert_close(m.median_s, 1e-3, 1e-12);
    assert_close(m.overhead_s, 0, 1e-12);
}

TEST(interruption_keeps_what_was_taken)
{
    struct script s = {.ns = wild, .clock_hz = NAN, .stop_after = 10};
    struct protocol p = script_protocol();
    struct measurement m = script_measure(&s, &p);
    assert_true(m.interrupted);
    assert_int_equal(m.timed, 7);
    assert_false(m.valid);
    assert_string_equal(m.reason, "interrupted after 7 samples");
}

/* What can be launched together is; a sample is the time of one execution all the same. */
TEST(offline_joins_executions)
{
    struct script s = {.ns = script_constant, .clock_hz = NAN, .joins = true};
    struct protocol p = script_protocol();
    script_measure(&s, &p);
    assert_true(s.joined_s == 0 && s.many == 0); /* single_stream */
    p.scenario = SCENARIO_OFFLINE;
    s = (struct script){.ns = script_constant, .clock_hz = NAN, .joins = true};
    struct measurement m = script_measure(&s, &p);
    assert_close(s.joined_s, 1e-3, 1e-12);
    assert_int_equal(s.many, 15 * 100);
    assert_int_equal(s.runs, 3 + 15 * 100);
    assert_close(m.median_s, 1e-3, 1e-12);
}

TEST(offline_takes_blocks)
{
    struct script s = {.ns = script_constant, .clock_hz = NAN};
    struct protocol p = script_protocol();
    p.scenario = SCENARIO_OFFLINE;
    struct measurement m = script_measure(&s, &p);
    assert_int_equal(s.runs, 3 + 15 * 100); /* blocks of 0.1 s */
    assert_close(m.median_s, 1e-3, 1e-12);
    assert_close(m.rate_hz, 1000, 1e-6);
}

TEST(offline_without_warm_up_takes_blocks_too)
{
    struct script s = {.ns = script_constant, .clock_hz = NAN};
    struct protocol p = script_protocol();
    p.scenario = SCENARIO_OFFLINE;
    p.warmup_runs = 0;
    struct measurement m = script_measure(&s, &p);
    assert_int_equal(s.runs, 1 + 15 * 100);
    assert_int_equal(m.timed, 15);
    assert_int_equal(m.samples[0].phase, SAMPLE_WARMUP);
    assert_close(m.overhead_s, 0, 1e-12);
}

static double held_up_in_warm_up(int64_t run)
{
    return run == 2 ? 1e9 : 1e6;
}

/* The last warm-up was held up for a second; blocks were of one execution then. */
TEST(offline_blocks_are_not_of_one_slow_execution)
{
    struct script s = {.ns = held_up_in_warm_up, .clock_hz = NAN};
    struct protocol p = script_protocol();
    p.scenario = SCENARIO_OFFLINE;
    struct measurement m = script_measure(&s, &p);
    assert_int_equal(s.runs, 3 + 15 * 100);
    assert_close(m.median_s, 1e-3, 1e-12);
}

TEST(quantiles_are_exact)
{
    struct script s = {.ns = slowing, .clock_hz = NAN}; /* 1 ms + k x 2 us, k from 3 */
    struct protocol p = script_protocol();
    p.samples_min = p.samples_max = 1001;
    struct measurement m = script_measure(&s, &p);
    assert_close(m.median_s, 1e-3 * (1 + 0.002 * 503), 1e-9);
    assert_close(m.p90_s, 1e-3 * (1 + 0.002 * 903), 1e-9);
    assert_close(m.p99_s, 1e-3 * (1 + 0.002 * 993), 1e-9);
    assert_close(m.p999_s, 1e-3 * (1 + 0.002 * 1002), 1e-9);
    assert_close(m.min_s, 1e-3 * 1.006, 1e-9);
    assert_close(m.mad_s, 1e-3 * 0.002 * 250, 1e-9);
}

static void run_nothing(void *context)
{
    (void)context;
}

/* A read of the clock, the fastest of many rounds. */
static double clock_read_s(void)
{
    enum { ROUNDS = 100, READS = 1000 };
    double best = 1;
    for (int k = 0; k < ROUNDS; k++) {
        uint64_t start = clock_now_ns();
        for (int i = 0; i < READS; i++)
            clock_now_ns();
        best = fmin(best, (double)(clock_now_ns() - start) * 1e-9 / READS);
    }
    return best;
}

/* What the harness itself costs per sample, with the real clock, beside reading it: under 1 us.
 * The quietest of some measurements, since test machines are busy; a build with checks in it is
 * only asked to be sane. */
TEST(the_harness_itself_costs_little)
{
    enum { ROUNDS = 15 };
    struct real_time real;
    struct time_source time;
    struct subject subject = {.run = run_nothing};
    struct protocol p = script_protocol();
    p.samples_min = p.samples_max = 5000;
    double overhead = 1, median = 1, clock = clock_read_s();
    for (int k = 0; k < ROUNDS; k++) {
        struct measurement m;
        real_time_open(&real, &time);
        struct measure_options options = {.protocol = &p, .time = &time, .cpus = 2};
        MUST(measure_run, &subject, &options, &m);
        overhead = fmin(overhead, m.overhead_s);
        median = fmin(median, m.median_s);
        measurement_release(&m);
        real_time_close(&real);
    }
    printf("overhead per sample: %.0f ns, less a clock read of %.0f ns: %.0f ns\n", overhead * 1e9,
           clock * 1e9, (overhead - clock) * 1e9);
    bool checked = strcmp(build_info.config, "release") != 0;
    assert_true(overhead - clock < (checked ? 2e-5 : 1e-6));
    assert_true(median < 1e-5);
}

/* Executions that touch a page of memory for the first time. */
struct toucher {
    char *next;
    size_t page;
};

static void touch(void *context)
{
    struct toucher *t = context;
    *t->next = 1;
    t->next += t->page;
}

/* Short executions share a look at the process, and nothing that happened is lost by that. */
TEST(short_samples_share_a_look)
{
    enum { SAMPLES = 4000 };
    struct measurement m;
    struct real_time real;
    struct time_source time;
    struct toucher toucher = {.page = (size_t)sysconf(_SC_PAGESIZE)};
    size_t size = (SAMPLES + 10) * toucher.page;
    char *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(memory != MAP_FAILED);
    madvise(memory, size, MADV_NOHUGEPAGE);
    toucher.next = memory;
    struct subject subject = {.run = touch, .context = &toucher};
    struct protocol p = script_protocol();
    int64_t looks = 0, faults = 0;
    p.samples_min = p.samples_max = SAMPLES;
    real_time_open(&real, &time);
    struct measure_options options = {.protocol = &p, .time = &time, .cpus = 2};
    MUST(measure_run, &subject, &options, &m);
    for (int64_t k = 0; k < m.count; k++)
        if (m.samples[k].page_faults != RECORD_NONE) {
            looks++;
            faults += m.samples[k].page_faults;
        }
    assert_true(looks > 0 && looks < m.count / 2);
    assert_true(faults > SAMPLES * 8 / 10); /* up to the last look */
    measurement_release(&m);
    real_time_close(&real);
    munmap(memory, size);
}

#if defined(__x86_64__) || defined(__aarch64__)
enum { CLOCK_IS_KNOWN = true };
#else
enum { CLOCK_IS_KNOWN = false };
#endif

/* The clock of the CPU is a plausible one where it can be had at all. */
TEST(cpu_clock_is_plausible)
{
    double hz = cpu_clock_hz();
    assert_true(CLOCK_IS_KNOWN ? hz > 2e8 && hz < 1e10 : isnan(hz));
}
