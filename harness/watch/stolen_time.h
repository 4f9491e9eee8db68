/* SPDX-License-Identifier: Apache-2.0
 *
 * Time that other virtual machines took from the CPUs that this process may run on. */
#ifndef HARNESS_WATCH_STOLEN_TIME_H
#define HARNESS_WATCH_STOLEN_TIME_H

#include <stdint.h>

/* root: "", or in tests a folder with a /proc/stat. NULL: the kernel does not say. */
struct stolen_time *stolen_time_open(const char *root);
/* Since the start of the machine; RECORD_NONE where it is not known. */
int64_t stolen_time_ns(struct stolen_time *stolen);
/* How many CPUs; 0 where they are not known. */
int stolen_time_cpus(const struct stolen_time *stolen);
void stolen_time_close(struct stolen_time *stolen);

#endif
