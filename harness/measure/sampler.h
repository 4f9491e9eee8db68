/* SPDX-License-Identifier: Apache-2.0
 *
 * The inside of measure_run: a session that takes single samples, and the scenarios made of them.
 */
#ifndef HARNESS_MEASURE_SAMPLER_H
#define HARNESS_MEASURE_SAMPLER_H

#include "harness/measure/measure.h"
#include "harness/measure/stopping.h"

enum { SET_APART_MAX = 100 }; /* samples of a measurement */

struct sampler {
    const struct subject *subject;
    const struct measure_options *options;
    struct measurement *out;
    double *times_s, *scratch; /* of the timed samples; room for all samples */
    struct surroundings last;  /* latest known value of each counter */
    uint64_t began_ns;         /* of the time phase */
    uint64_t end_ns;           /* of the latest sample: the clock is read once for all */
    uint64_t flush_ns;         /* spent on flushing in it */
    uint64_t progress_ns;      /* of the latest call */
    double sum_s;              /* of the times */
    struct pause_facts seen;   /* in the latest sample; without its time */
    double *cpu_s;             /* per sample, of one execution; NAN: not known */
    double paused_s;           /* of samples that were set apart */
    int64_t stolen_ns;         /* of the time phase, by other machines; RECORD_NONE: not known */
    int64_t heat_ns;           /* of it: the clock was held down by heat */
    unsigned slow;             /* of the time phase: bits of NVML_SLOW that were seen */
    int slow_looks;            /* of it: readings of a slowdown without another cause */
    struct stopping stopping;
    struct disturbance disturbance; /* of the time phase */
};

uint64_t sampler_now(const struct sampler *s);
/* One execution (or `block` of them) timed; the sample is appended. Returns its time in ns, that
 * of one execution. */
uint64_t sampler_take(struct sampler *s, enum sample_phase phase, int64_t block);
/* Whether the latest sample is not the workload's: then it is set apart. */
bool sampler_set_apart(struct sampler *s, int64_t block);
/* Reports progress to the caller; false: stop. */
bool sampler_go_on(struct sampler *s, double share);

enum status server_run(struct sampler *s, struct error *err);

/* Fills the numbers of out from its samples (summary.c). */
void measurement_summarise(struct measurement *out, double *scratch);
/* Sets valid and reason (validity.c). */
void measurement_judge(struct measurement *out, const struct sampler *s);
/* The reason, if samples are too few or the median is known too badly; half: width of its interval
 * as a share of it, NAN: too few for one. Of all visits of a point together. */
void measurement_judge_interval(struct measurement *out, double half);

#endif
