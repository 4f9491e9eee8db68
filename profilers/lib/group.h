/* SPDX-License-Identifier: Apache-2.0
 *
 * A counter group is a file profilers/groups/NAME.toml: which CPUs it is for, which events are
 * counted together (one pass), and which metrics come of them.
 *
 *     summary = "floating-point operations of Zen 4"
 *     vendor = "AuthenticAMD"            optional, with the next two: for every CPU otherwise
 *     family = 25
 *     models = [16, 31, 96, 127]         first and last, first and last ...
 *     system_wide = true                 optional: counters of the machine, not of the process
 *     [[event]]
 *     id = "ops"                         for formulas
 *     name = "amd64_fam19h_zen4::RETIRED_SSE_AVX_FLOPS:ANY"
 *     [[metric]]
 *     name = "flops"
 *     unit = "1"
 *     formula = "ops"                    or missing = "why this CPU cannot count it"
 */
#ifndef PROFILERS_LIB_GROUP_H
#define PROFILERS_LIB_GROUP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"

enum { GROUP_EVENTS_MAX = 24, GROUP_METRICS_MAX = 16, GROUP_MODELS_MAX = 8 };

struct group_event {
    const char *id, *name;
};

struct group_metric {
    const char *name, *unit;
    const char *formula; /* NULL: `missing` says why not */
    const char *missing;
};

struct group {
    const char *file, *summary;
    const char *vendor; /* NULL: any CPU */
    int64_t family, models[GROUP_MODELS_MAX];
    int model_count;
    bool system_wide;
    struct group_event events[GROUP_EVENTS_MAX];
    int event_count;
    struct group_metric metrics[GROUP_METRICS_MAX];
    int metric_count;
};

struct cpu_identity {
    char vendor[32];
    int64_t family, model;
};

/* Text of the group lives in the arena. Messages name file, line and key. Every formula is tried,
 * so one that names no event is refused here. */
enum status group_read(const char *file, const char *text, size_t size, struct arena *arena,
                       struct group *group, struct error *err);
bool group_matches(const struct group *group, const struct cpu_identity *cpu);
/* From the text of /proc/cpuinfo; family and model are -1 where it has none (Arm). */
void cpu_identity_parse(const char *cpuinfo, struct cpu_identity *cpu);

#endif
