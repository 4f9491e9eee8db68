/* SPDX-License-Identifier: Apache-2.0
 *
 * harness/measure: how samples are taken and judged: the sampling loop, the stopping rule,
 * scenarios, samples that are set apart, what surrounds a sample, the interval over several visits.
 *
 * Takes samples. It does not know what it measures: a subject is a pair of functions. Unit tests
 * measure a scripted subject under a scripted clock, so every rule here is tested exactly.
 *
 * measure_run: warm up; then sample until the protocol's stopping rule is content; then judge.
 * The loop allocates nothing, prints nothing and takes no lock; what is observed beside the time
 * (context switches, page faults, steal) is read outside of the timed interval.
 *
 *   single_stream  each sample is one execution after the other
 *   offline        each sample is a block of executions without a look between them, about
 *                  a tenth of a second long; its time is that of one execution
 *   server         queries arrive at random (Poisson) and wait for the one before; the highest
 *                  rate is sought at which the wanted quantile of latency stays in its bound.
 *                  The samples kept are those of that rate.
 */
#ifndef HARNESS_MEASURE_MEASURE_H
#define HARNESS_MEASURE_MEASURE_H

#include <math.h>

#include "base/error.h"
#include "harness/measure/pause.h"
#include "harness/suite/plan.h"
#include "harness/watch/disturbance.h"
#include "results/record.h"

/* Counters of the process and the machine that only grow; RECORD_NONE where there are none. */
struct surroundings {
    int64_t context_switches, migrations, page_faults, steal_ns;
    double clock_hz;    /* now; NAN */
    int64_t cpu_ns;     /* of this process */
    int64_t disk_reads; /* page faults and reads that waited for a disk */
    int64_t stops;      /* times that this process was continued after a stop */
    int64_t asleep_ns;  /* the machine */
    int64_t heat_ns;    /* for how long heat has held down the clock of the processor that
                           computes */
    unsigned slow;      /* why a GPU's clock is held down now: bits of NVML_SLOW */
};

static inline struct surroundings surroundings_unknown(void)
{
    return (struct surroundings){.context_switches = RECORD_NONE,
                                 .migrations = RECORD_NONE,
                                 .page_faults = RECORD_NONE,
                                 .steal_ns = RECORD_NONE,
                                 .clock_hz = NAN,
                                 .cpu_ns = RECORD_NONE,
                                 .disk_reads = RECORD_NONE,
                                 .stops = RECORD_NONE,
                                 .asleep_ns = RECORD_NONE,
                                 .heat_ns = RECORD_NONE};
}

/* Where time comes from. All functions take `context`. */
struct time_source {
    uint64_t (*now_ns)(void *context);
    void (*sleep_until)(void *context, uint64_t ns);
    /* now_ns was just read; readings that cost too much to be taken every time may be left out. May
     * be NULL. */
    void (*look)(void *context, uint64_t now_ns, struct surroundings *out);
    void *context;
    /* Around the time phase: how other programs disturbed it. May be NULL. */
    void (*watch)(void *context);
    void (*watched)(void *context, struct disturbance *out);
};

struct subject {
    void (*run)(void *context);
    void (*flush)(void *context); /* evicts the caches; needed when cold */
    void *context;
    void (*finish)(void *context); /* ends a sample, within its time: waits for runs that were only
                                      started; may be NULL */
    /* Both or none. run_many: as run, so often; join comes before, with the time of one, and makes
     * what can be launched together. */
    void (*join)(void *context, double run_s);
    void (*run_many)(void *context, int64_t runs);
};

/* Called between samples, at most ten times a second; returning false ends the measurement. */
typedef bool measure_progress(void *context, double share_done, double seconds_left);

struct measure_options {
    const struct protocol *protocol;
    const struct time_source *time;
    measure_progress *progress; /* may be NULL */
    void *progress_context;
    bool is_visit; /* one of several: whether there are enough samples is judged later */
    int cpus;      /* that the machine has: stolen time is a share of their time */
    uint64_t seed; /* of the arrival process */
};

struct measurement {
    struct sample_record *samples; /* owned; warm-up first */
    int64_t count, capacity;
    int64_t timed;                 /* samples of phase SAMPLE_TIME */
    double median_s, min_s, max_s; /* this and the next: of executions, without a queue */
    double q1_s, q3_s, mad_s, ci_low_s, ci_high_s;
    /* Of latencies. p99: NAN under 100 samples, p999 under 1000. */
    double p50_s, p90_s, p99_s, p999_s;
    double rate_hz;          /* executions per second that were sustained */
    double overhead_s;       /* per sample, outside of the timed interval */
    double steal_share;      /* of all CPU time of the time phase; NAN when not known */
    struct pauses set_apart; /* samples that were not the workload's */
    double wait_share;   /* threads were ready, but had no CPU: of the CPU time; NAN: not known */
    char wait_note[200]; /* why that is not known, or a remark on it; else "" */
    double clock_hz;     /* median over the looks; NAN */
    bool valid;
    bool interrupted;
    char reason[256];      /* why it is not valid, else "" */
    char stop_reason[160]; /* "interval 0.8 % of the median after 45 samples" */
};

enum status measure_run(const struct subject *subject, const struct measure_options *options,
                        struct measurement *out, struct error *err);
void measurement_release(struct measurement *measurement);

#endif
