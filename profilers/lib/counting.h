/* SPDX-License-Identifier: Apache-2.0
 *
 * Counter groups at work: which groups fit this CPU, a pass for each that has an event that can be
 * counted, and metrics from what was counted. Knows no library: that is behind struct
 * counters_backend, which tests replace.
 */
#ifndef PROFILERS_LIB_COUNTING_H
#define PROFILERS_LIB_COUNTING_H

#include "profilers/lib/counters.h"
#include "profilers/lib/group.h"
#include "profilers/lib/profiler.h"

struct counting;

/* groups: those that match are copied. A system-wide group is watched for idle_s seconds first;
 * what the machine does by itself is then subtracted. */
struct counting_setup {
    const struct counters_backend *backend;
    const struct group *groups;
    int group_count;
    struct cpu_identity cpu;
    double idle_s;
};

enum status counting_open(const struct counting_setup *setup, struct counting **out,
                          struct error *err);
int counting_passes(const struct counting *counting);
enum status counting_begin(struct counting *counting, int pass, struct error *err);
enum status counting_end(struct counting *counting, int pass, int64_t executions,
                         struct error *err);
/* Metrics of all matching groups; then the usual ones that no group has, with the reason. Text
 * lives until counting_close. */
int counting_read(struct counting *counting, struct profiler_metric *metrics);
void counting_close(struct counting *counting);

#endif
