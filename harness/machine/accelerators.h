/* SPDX-License-Identifier: Apache-2.0
 *
 * harness/machine: the machine and the program as they are found: facts of the environment, caches
 * and CPUs, devices, the files of the build. Reads and describes; measures nothing. What says whose
 * machine it is can be taken out again (redact).
 *
 * What `ridge doctor` says about devices other than the CPU: which there are, and why others are
 * not available.
 */
#ifndef HARNESS_MACHINE_ACCELERATORS_H
#define HARNESS_MACHINE_ACCELERATORS_H

#include "base/error.h"
#include "base/text/json.h"

/* How many devices of that kind can be used; 0: why has the cause and what to do; -1: there is no
 * such kind. */
int accelerator_count(const char *kind, struct error *why);
/* The name of kind `index` (from 0) that is not the CPU's; NULL after the last. */
const char *accelerator_kind(int index);
/* A line per device, or per kind of which there is none; nothing without such kinds. */
void accelerators_print(void);
void accelerators_json(struct json *json);

#endif
