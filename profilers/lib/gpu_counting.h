/* SPDX-License-Identifier: Apache-2.0
 *
 * Counter groups of a GPU at work: which groups fit its chip, in which order they are counted, the
 * whole execution first and then each step, and metrics from what was counted. Knows no library:
 * that is behind struct cupti_backend, which tests replace.
 *
 * Use: open; while gpu_counting_passes says there is another: begin, the executions (or, where
 * gpu_counting_by_step says so, one execution with step_begin and step_end around each step), end;
 * then read. All passes of a group must have the same number of executions of the same work.
 */
#ifndef PROFILERS_LIB_GPU_COUNTING_H
#define PROFILERS_LIB_GPU_COUNTING_H

#include "profilers/lib/cupti_backend.h"
#include "profilers/lib/group.h"
#include "profilers/lib/profiler.h"

struct gpu_counting;

struct gpu_counting_setup {
    const struct cupti_backend *backend;
    struct cupti *cupti; /* attached to the device */
    enum cupti_use use;  /* ranges or samples: which groups count */
    const struct group *groups;
    int group_count;
    const char *chip;
    bool halves, tensor_cores; /* what the point computes with: profilers/lib/group.h */
    int steps;                 /* of the executable; 0: only the whole is counted */
    const bool *on_host;       /* borrowed, per step: it is not for the GPU; NULL: none is */
    double pass_s;             /* that a pass should take; 0: not known */
};

/* Opens the counters once: what is not allowed is refused here, before anything is executed. */
enum status gpu_counting_open(const struct gpu_counting_setup *setup, struct gpu_counting **out,
                              struct error *err);
/* Those that were made and those that are to come, as far as is known now. */
int gpu_counting_passes(const struct gpu_counting *counting);
bool gpu_counting_by_step(const struct gpu_counting *counting);
/* In a pass of whole executions, so that none of their kernels was counted. */
bool gpu_counting_saw_no_kernel(const struct gpu_counting *counting);
enum status gpu_counting_begin(struct gpu_counting *counting, struct error *err);
void gpu_counting_step_begin(struct gpu_counting *counting, int step);
void gpu_counting_step_end(struct gpu_counting *counting);
enum status gpu_counting_end(struct gpu_counting *counting, int64_t executions, struct error *err);
/* Metrics of all groups of the chip; then the usual ones that none has, with the reason. Text lives
 * until gpu_counting_close. */
int gpu_counting_read(struct gpu_counting *counting, struct profiler_metric *metrics);
int gpu_counting_read_step(struct gpu_counting *counting, int step,
                           struct profiler_metric *metrics);
void gpu_counting_close(struct gpu_counting *counting);

#endif
