/* SPDX-License-Identifier: Apache-2.0
 *
 * A counter group is a file profilers/groups/NAME.toml: which CPUs or GPUs it is for, which events
 * are counted together, and which metrics come of them.
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
 *
 * A group of GPUs has other keys than the four before its events:
 *
 *     chips = ["GH100"]                  CUPTI's names; counted by the profilers cupti and cupti_pm
 *     method = "ranges"                  or "samples": while the whole workload runs
 *     passes = 2                         as CUPTI schedules the events (a test compares); 0: no
 * event steps = true                       optional: counted for each step of the executable too
 *     uses = ["tensor_instructions"]     optional: metrics of the chip's other groups that formulas
 *                                        here may name; these groups are counted before
 *     zero_when = "tensor_instructions"  optional, one of these: if it was 0, so are all events
 * here, and nothing is counted
 */
#ifndef PROFILERS_LIB_GROUP_H
#define PROFILERS_LIB_GROUP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"

enum {
    GROUP_FILES_MAX = 64,
    GROUP_EVENTS_MAX = 24,
    GROUP_METRICS_MAX = 16,
    GROUP_MODELS_MAX = 8,
    GROUP_CHIPS_MAX = 24,
    GROUP_USES_MAX = 4,
    GROUP_PASSES_MAX = 64,
    GROUP_VALUES_MAX = GROUP_EVENTS_MAX + GROUP_USES_MAX /* names that a formula may use */
};

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
    const char *chips[GROUP_CHIPS_MAX];
    int chip_count; /* 0: a group of CPUs */
    bool samples, steps;
    int passes;
    const char *uses[GROUP_USES_MAX];
    int use_count;
    const char *zero_when; /* NULL: always counted */
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
/* All files of profilers/groups, in the order of their names. */
enum status group_read_all(struct arena *arena, const struct group **out, int *count,
                           struct error *err);
bool group_matches(const struct group *group, const struct cpu_identity *cpu);
bool group_is_for_chip(const struct group *group, const char *chip);
/* From the text of /proc/cpuinfo; family and model are -1 where it has none (Arm). */
void cpu_identity_parse(const char *cpuinfo, struct cpu_identity *cpu);

#endif
