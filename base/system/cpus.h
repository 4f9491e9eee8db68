/* SPDX-License-Identifier: Apache-2.0
 *
 * Sets of CPUs, on machines of any size: a cpu_set_t has room for 1024, and where there may be
 * more the kernel refuses to fill it. */
#ifndef BASE_SYSTEM_CPUS_H
#define BASE_SYSTEM_CPUS_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

enum { CPUS_MAX = 8192 }; /* what Linux can be built for */

struct cpus {
    uint64_t bits[CPUS_MAX / 64];
};

bool cpus_has(const struct cpus *cpus, int cpu);
void cpus_add(struct cpus *cpus, int cpu);
int cpus_count(const struct cpus *cpus);

/* The CPU that comes after `index` others of the set; beyond the last from the first again. 0 of an
 * empty set. */
int cpus_at(const struct cpus *cpus, int index);

/* Where the calling thread may run; where all threads of the process may together, each of which
 * may be bound to one CPU. False: the kernel does not say; the set is empty then. */
bool cpus_of_thread(struct cpus *cpus);
bool cpus_of_process(struct cpus *cpus);

/* How many the calling thread may run on, as `taskset` and `numactl` leave them; where the kernel
 * does not say, those that are online. At least 1. */
int cpus_allowed(void);

/* Refused in some containers, which is harmless. */
void cpus_bind(pthread_t thread, const struct cpus *cpus);
void cpus_bind_to(pthread_t thread, int cpu);

#endif
