/* SPDX-License-Identifier: Apache-2.0
 *
 * What else used the CPUs of this process between two moments: the CPU time of every other process
 * that /proc shows (by the name of its command alone), what all of them took together, and for how
 * long a quota of the control group held this process back.
 */
#ifndef HARNESS_WATCH_OTHER_PROGRAMS_H
#define HARNESS_WATCH_OTHER_PROGRAMS_H

#include <stdbool.h>
#include <stdint.h>

struct program_time; /* a process and the CPU time that it has had */

/* The first of the two moments. */
struct other_programs {
    const char *root; /* before /proc and /sys; "" on a real machine */
    struct program_time *list;
    int count;
    double busy_s;  /* all of the CPUs that this process may use; NAN: not known */
    double own_s;   /* CPU time of this process */
    double quota_s; /* held back so far; NAN: no quota is known */
};

struct others {
    double all_s;     /* CPU time of everything else on the CPUs of this process; NAN */
    double busiest_s; /* of the one process that took most; 0: none was seen */
    char busiest[32]; /* its command, without control characters; "" */
    double quota_s;   /* this process was held back by a quota, summed over CPUs; 0 */
    int cpus;         /* that the threads of this process may use; 0: not known */
};

/* At most a few thousand processes are looked at, which takes 10 ms. */
void other_programs_begin(struct other_programs *p, const char *root);
void other_programs_end(struct other_programs *p, struct others *out);
/* Instead of the end. */
void other_programs_drop(struct other_programs *p);

#endif
