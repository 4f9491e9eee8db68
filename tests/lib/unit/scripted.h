/* SPDX-License-Identifier: Apache-2.0
 *
 * Measuring under a scripted clock: every sample's time is known, so is every verdict.
 */
#ifndef TESTS_LIB_UNIT_SCRIPTED_H
#define TESTS_LIB_UNIT_SCRIPTED_H

#include <stdbool.h>
#include <stdint.h>

#include "harness/measure/measure.h"

/* Execution k takes script(k) ns of a clock that nothing else moves. */
struct script {
    uint64_t now, flushed, slept;
    int64_t runs;
    double (*ns)(int64_t run);
    int64_t steal_per_look_ns;
    double steals; /* of one CPU */
    int64_t steal_ns;
    int64_t heat_from_run; /* from it on heat takes 100 us per look; 0: never */
    int64_t heat_ns;
    unsigned slow;              /* bits that looks see */
    int64_t slow_from, slow_to; /* in these runs, both included */
    double clock_hz;
    int64_t stop_after; /* progress says no at this run; 0: never */
    int64_t progress_calls;
    struct disturbance disturbance; /* of the time phase */
    int64_t watched_from;           /* runs before it began */
    /* A pause in run pause_run: */
    int64_t pause_run;
    double pause_ns, pause_cpu_ns; /* longer by; CPU time in it */
    int64_t pause_stops, pause_reads, pause_asleep_ns;
    int64_t sleeps_every; /* so many runs; 0: never */
    double busy;          /* CPU time of the others, of their time on two CPUs; 0: not known */
    double cpu_ns;
    int64_t stops, reads, asleep_ns;
    bool jitters; /* the two clocks that tell of sleep are read one after the other */
    bool joins;
    double joined_s; /* of one execution, as it was told */
    int64_t many;    /* executions that were joined */
};

/* A millisecond, whatever the execution. */
double script_constant(int64_t run);
/* Three executions to warm up, 15 to 20,000 samples until the interval is 1 %. */
struct protocol script_protocol(void);
/* Released after the test. */
struct measurement script_measure(struct script *script, const struct protocol *protocol);

#endif
