/* SPDX-License-Identifier: Apache-2.0
 *
 * The real clock, and what the kernel reports about disturbances. One system call per look
 * (0.3 us); files are read at most every ten milliseconds, their growth belongs to the sample that
 * was running then.
 *
 *   context switches, page faults  getrusage of the whole process
 *   steal                          /proc/stat: time that other virtual machines took from the
 *                                  CPUs that this process may run on
 *   migrations                     /proc/self/sched of the first thread
 *   waiting for a CPU              schedstat of every thread, at most ten times a second
 *   clock                          a chain of dependent multiplications, three cycles each; that of
 *                                  a GPU, and what holds it down: NVML
 */
#ifndef HARNESS_MEASURE_SURROUNDINGS_H
#define HARNESS_MEASURE_SURROUNDINGS_H

#include "harness/measure/measure.h"
#include "harness/watch/stolen_time.h"
#include "profilers/lib/nvml.h"

struct real_time {
    struct stolen_time *stolen;
    int sched_fd; /* -1: not there */
    uint64_t next_fast_ns, next_slow_ns, next_wait_ns;
    struct disturbance_watch watch;
    bool clock_elsewhere;    /* another device computes: this CPU's clock is not read */
    struct nvml_gauge gauge; /* of the GPU that computes, if it is open */
};

/* *out borrows *state. */
void real_time_open(struct real_time *state, struct time_source *out);
void real_time_close(struct real_time *state);

/* Clock of this CPU now, Hz; NAN where it cannot be measured. */
double cpu_clock_hz(void);

#endif
