/* SPDX-License-Identifier: Apache-2.0
 *
 * Energy counters of Linux's powercap folder (RAPL of Intel and AMD CPUs): one zone per package,
 * with parts for cores and memory below. Each counts microjoules up to its range and begins anew.
 */
#ifndef PROFILERS_LIB_POWERCAP_H
#define PROFILERS_LIB_POWERCAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

enum { POWERCAP_ZONES = 64 };

struct powercap_zone {
    char name[32];  /* "package-0", "core", "dram", "psys" */
    char path[128]; /* of its folder, without the root */
    uint64_t range_uj;
    uint64_t last_uj;
    double total_j;
};

struct powercap {
    char root[128]; /* in front of paths: "", or a folder of a test */
    struct powercap_zone zones[POWERCAP_ZONES];
    int count;
};

/* Finds the zones and reads each once: UNSUPPORTED, saying what to do, when there are none or when
 * they may not be read. */
enum status powercap_open(struct powercap *powercap, const char *root, struct error *err);
/* Takes the counters' present state as the beginning. */
enum status powercap_begin(struct powercap *powercap, struct error *err);
/* Adds what was used since begin to each total; may be called repeatedly, and must be, before a
 * counter can have gone round twice (some minutes at full power). */
enum status powercap_add(struct powercap *powercap, struct error *err);
/* Sum of the zones that `prefix` begins the name of; NAN when there is none. */
double powercap_joules(const struct powercap *powercap, const char *prefix);

#endif
