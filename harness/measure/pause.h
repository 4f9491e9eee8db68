/* SPDX-License-Identifier: Apache-2.0
 *
 * Samples whose time is not the workload's: the process was stopped (SIGSTOP, Ctrl-Z, a frozen
 * container), or the machine slept. Such a sample is set apart: kept as "discarded", named, and
 * left out of every number. Slowness of the workload's own is never set apart: what used CPU time,
 * read from a disk, or was no more than slow stays. The rules are in docs/method.md.
 */
#ifndef HARNESS_MEASURE_PAUSE_H
#define HARNESS_MEASURE_PAUSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* By how certain it is. */
enum pause_kind { PAUSE_NONE, PAUSE_IDLE, PAUSE_STOPPED, PAUSE_SLEPT };

/* What one sample took, all of its executions together. */
struct pause_facts {
    double wall_s;
    double cpu_s;    /* of the whole process; NAN: not known */
    double asleep_s; /* the machine, by the difference of two clocks; not part of wall_s */
    int64_t stops;   /* times that the process was continued */
    int64_t reads;   /* page faults and reads that waited for a disk */
};

/* What other samples of as many executions took, their medians; wall_s NAN: not known. */
struct pause_usual {
    double wall_s, cpu_s;
};

enum pause_kind pause_judge(const struct pause_facts *sample, const struct pause_usual *usual);

/* All that were set apart in a measurement. */
struct pauses {
    int64_t count;
    double longest_s;     /* of their times */
    enum pause_kind kind; /* the most certain of them */
};

void pauses_add(struct pauses *pauses, const struct pauses *more);
/* "1 sample of 3.0 s is set apart: the process was stopped"; "" when there is none. */
void pauses_text(const struct pauses *pauses, char *text, size_t size);

#endif
