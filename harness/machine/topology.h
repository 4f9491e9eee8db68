/* SPDX-License-Identifier: Apache-2.0
 *
 * Which caches the threads of a program have, and with whom they share them, as hwloc knows it.
 */
#ifndef HARNESS_MACHINE_TOPOLOGY_H
#define HARNESS_MACHINE_TOPOLOGY_H

#include <stdint.h>

#include "base/error.h"

struct topology;

enum { CACHE_LEVELS = 3 };

enum status topology_open(struct topology **out, struct error *err);
void topology_close(struct topology *topology);

/* What counting gives; 0 where there is none. */
struct topology_counts {
    int packages, cores, cpus, numa_nodes;
    int caches[CACHE_LEVELS]; /* data or unified caches of level 1, 2, 3 */
};

void topology_count(const struct topology *topology, struct topology_counts *counts);
/* Number of the first CPU that this process may see. */
int topology_first_cpu(const struct topology *topology);
/* Size of the data or unified cache of a level (1 to 3) above a CPU; 0: none, or not known. */
int64_t topology_cache_bytes(const struct topology *topology, int level, int cpu);
/* The smallest share that one of these CPUs has of its cache, when all of them work. */
int64_t topology_cache_share(const struct topology *topology, int level, const int *cpus,
                             int count);
/* All last-level caches above these CPUs together. */
int64_t topology_last_level_bytes(const struct topology *topology, const int *cpus, int count);
/* The same of all CPUs that the calling thread may run on; 0: not known. */
int64_t topology_own_last_level_bytes(const struct topology *topology);

#endif
