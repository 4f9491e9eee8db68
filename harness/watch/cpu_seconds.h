/* SPDX-License-Identifier: Apache-2.0
 *
 * What /proc/stat tells of the CPUs that this process may run on. Others of the machine are none
 * of its business. */
#ifndef HARNESS_WATCH_CPU_SECONDS_H
#define HARNESS_WATCH_CPU_SECONDS_H

#include "base/system/cpus.h"

/* Seconds since the start of the machine, over all of the CPUs. */
struct cpu_seconds {
    double busy, stolen; /* stolen: by other virtual machines */
};

/* Out of the text of /proc/stat; NAN where it has no line of any of the CPUs. */
struct cpu_seconds cpu_seconds_of(const char *text, const struct cpus *cpus);

#endif
