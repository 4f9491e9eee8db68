/* SPDX-License-Identifier: Apache-2.0
 *
 * What profilers/papi.c asks of the library that reads hardware counters. The library is behind a
 * plug-in, plugins/profilers/papi.so, so that ridge needs none to start; the plug-in sees nothing
 * of ridge but this header.
 */
#ifndef PROFILERS_LIB_COUNTERS_H
#define PROFILERS_LIB_COUNTERS_H

#include <stdbool.h>
#include <stddef.h>

enum { COUNTERS_ABI = 1, COUNTERS_REASON = 200 };

struct counters_set;

struct counters_backend {
    int abi; /* COUNTERS_ABI */
    /* Counters for the threads that this process has now, or, system_wide, for the machine. An
     * event that cannot be counted gets a text in reasons[k], the others "": each was added,
     * started and read once alone, and then all together. NULL when out of memory. */
    struct counters_set *(*open)(const char *const *events, int count, bool system_wide,
                                 char (*reasons)[COUNTERS_REASON]);
    bool (*start)(struct counters_set *set, char *reason); /* reason: COUNTERS_REASON bytes */
    /* values[k] is the sum over threads; NAN where reasons[k] was not "". */
    bool (*stop)(struct counters_set *set, double *values, char *reason);
    void (*close)(struct counters_set *set);
};

/* The one export. NULL and a reason when the library says no. */
typedef const struct counters_backend *ridge_counters_entry(char *reason, size_t size);
extern __attribute__((visibility("default"))) ridge_counters_entry ridge_counters;

#endif
