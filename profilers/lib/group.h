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
 *     passes = 2                         as CUPTI schedules the events (a test compares); 0: none
 *     steps = true                       optional: counted for each step of the executable too
 *     uses = ["tensor_instructions"]     optional: metrics of the chip's other groups that formulas
 *                                        here may name; these groups are counted before
 *     zero_when = "tensor_cores * tensor_instructions"
 *                                        optional: if this is 0, so are all events here, and
 *                                        nothing is counted
 *
 * Formulas of a group of GPUs, zero_when included, may also name what is known of the point: halves
 * is 1 where it computes in bf16 or f16, tensor_cores where it may ask tensor cores for a product,
 * which exact products in f32 do not, but for those of split factors; else they are 0. Compilers
 * use instructions of both as moves, so that counts alone do not tell.
 */
#ifndef PROFILERS_LIB_GROUP_H
#define PROFILERS_LIB_GROUP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"
#include "profilers/lib/formula.h"

enum {
    GROUP_FILES_MAX = 64,
    GROUP_EVENTS_MAX = 24,
    GROUP_METRICS_MAX = 16,
    GROUP_MODELS_MAX = 8,
    GROUP_CHIPS_MAX = 24,
    GROUP_USES_MAX = 4,
    GROUP_PASSES_MAX = 64,
    GROUP_KNOWN_MAX = 2,
    GROUP_VALUES_MAX = GROUP_EVENTS_MAX + GROUP_USES_MAX + GROUP_KNOWN_MAX /* names in formulas */
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
    const char *zero_when; /* a formula; NULL: always counted */
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
/* Adds halves and tensor_cores to the values that a formula of this group may name, if it is for
 * GPUs; returns how many there are then. */
int group_add_known(const struct group *group, bool halves, bool tensor_cores,
                    struct formula_value *values, int count);
bool group_matches(const struct group *group, const struct cpu_identity *cpu);
bool group_is_for_chip(const struct group *group, const char *chip);
/* From the text of /proc/cpuinfo; family and model are -1 where it has none (Arm). */
void cpu_identity_parse(const char *cpuinfo, struct cpu_identity *cpu);

#endif
