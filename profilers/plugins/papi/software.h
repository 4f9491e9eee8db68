/* SPDX-License-Identifier: Apache-2.0
 *
 * The kernel's own counters (task clock, context switches, migrations, page faults), asked for
 * directly: PAPI attaches to a thread only where there are hardware counters too, which virtual
 * machines lack.
 */
#ifndef PROFILERS_PLUGINS_PAPI_SOFTWARE_H
#define PROFILERS_PLUGINS_PAPI_SOFTWARE_H

#include <stdbool.h>
#include <stddef.h>

/* Number of the kernel's event for a name like "perf::TASK-CLOCK"; -1: it is another one's. */
int software_event(const char *name);
/* Opens it for a thread, stopped; negative errno when refused. */
int software_open(int event, int tid);
void software_start(int file);
/* Stops it and returns what was counted. */
double software_stop(int file);
void software_close(int file);
/* What to do about a refusal; reason has room for `size`. */
void software_explain(const char *name, int code, char *reason, size_t size);

#endif
