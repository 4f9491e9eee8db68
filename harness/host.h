/* SPDX-License-Identifier: Apache-2.0
 *
 * What the machine is, as Linux tells it. What could not be read is empty text, or -1 for numbers;
 * nothing is guessed. */
#ifndef HARNESS_HOST_H
#define HARNESS_HOST_H

#include <stdbool.h>
#include <stdint.h>

struct host {
    char cpu[128];       /* "AMD EPYC 9B14" */
    char system[128];    /* "Linux 6.1.0 x86_64" */
    char huge_pages[16]; /* transparent huge pages: always, madvise or never */
    char governor[32];   /* of CPU 0: performance, powersave ... */
    char libc[32];
    int cpus_online;
    int cpus_allowed; /* in the affinity mask of this process */
    int numa_nodes;
    double cpu_quota; /* CPUs that the control group grants; -1: no limit or not known */
    int64_t l1d_bytes, l2_bytes, l3_bytes; /* caches of CPU 0 */
    int64_t memory_bytes, memory_available_bytes;
    bool hypervisor; /* a virtual machine: timings may be disturbed from outside */
};

void host_probe(struct host *host);

#endif
