/* SPDX-License-Identifier: Apache-2.0
 *
 * Whether the times of single steps can be trusted: their sum is compared with the whole, and each
 * with what the same kernel took on its trial by the tuner. Whoever looks for slow layers must
 * know when the machine was in another state while the layers were timed. */
#ifndef HARNESS_CAMPAIGN_STEPS_CHECK_H
#define HARNESS_CAMPAIGN_STEPS_CHECK_H

#include "base/arena.h"
#include "engine/run/exe.h"
#include "harness/campaign/record.h"

struct step_time {
    const char *name, *kind;
    double took_s;
    double trial_s; /* of the same kernel on trial; NAN: not known */
};

/* "the steps together took 64.9 ms, 2.7 times the whole (24 ms)" in *text when one is more than a
 * quarter longer than the other; "" otherwise. */
void steps_apart_text(double sum_s, double whole_s, char *text, size_t size);
/* How many took more than three times their trial; the worst are named in *text. NAN: no trial is
 * known. */
double steps_slow_text(const struct step_time *steps, int count, char *text, size_t size);

struct steps_facts {
    const struct exe *exe;
    const double *step_ns;
    double whole_s;        /* warm, one execution after the other; NAN: there is no such time */
    const char *disturbed; /* what other programs did while steps were timed, "" when nothing */
};

/* The rows of both, and of each step's trial. */
enum status steps_check(const struct steps_facts *facts, struct arena *arena, struct counts *out,
                        struct error *err);

#endif
