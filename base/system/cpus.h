/* SPDX-License-Identifier: Apache-2.0
 *
 * How many CPUs the calling thread may run on, on machines of any size. */
#ifndef BASE_SYSTEM_CPUS_H
#define BASE_SYSTEM_CPUS_H

/* As `taskset` and `numactl` leave them; where the kernel does not say, those that are online. At
 * least 1. */
int cpus_allowed(void);

#endif
