/* SPDX-License-Identifier: Apache-2.0
 *
 * The CPUs that this process may run on, and what /proc/stat tells of them. Other CPUs of the
 * machine are none of its business. */
#ifndef HARNESS_WATCH_OWN_CPUS_H
#define HARNESS_WATCH_OWN_CPUS_H

#include <sched.h>
#include <stdbool.h>

/* Of all its threads together. False: the kernel does not say, or there are too many. */
bool own_cpus(cpu_set_t *all);

/* Seconds since the start of the machine, over all of the CPUs. */
struct cpu_seconds {
    double busy, stolen; /* stolen: by other virtual machines */
};

/* Out of the text of /proc/stat; NAN where it has no line of any of the CPUs. */
struct cpu_seconds cpu_seconds_of(const char *text, const cpu_set_t *cpus);

#endif
