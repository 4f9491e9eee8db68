/* SPDX-License-Identifier: Apache-2.0
 *
 * harness/watch: this process while it runs: who disturbed it, how long its threads waited for a
 * CPU, how much memory it has and can still get, whether somebody asked it to stop.
 *
 * What was done to this process by others during a phase of its work: begin, end, judge. The
 * evidence is the time that its own threads were ready and did not run (harness/watch/run_delay.h);
 * who had the CPU instead is looked up beside it (harness/watch/other_programs.h).
 */
#ifndef HARNESS_WATCH_DISTURBANCE_H
#define HARNESS_WATCH_DISTURBANCE_H

#include <math.h>
#include <stdbool.h>
#include <stddef.h>

#include "harness/watch/other_programs.h"
#include "harness/watch/run_delay.h"

/* Plain numbers: unit tests make their own. */
struct disturbance {
    double wall_s;
    double wait_s;       /* all threads: ready, but without a CPU; NAN: not known, because of ... */
    const char *unknown; /* "" when it is */
    double run_s;        /* all threads: on a CPU */
    struct others others;
};

static inline struct disturbance disturbance_unknown(const char *why)
{
    return (struct disturbance){
        .wall_s = NAN, .wait_s = NAN, .unknown = why, .run_s = NAN, .others = {.all_s = NAN}};
}

struct disturbance_watch {
    const char *root;
    struct run_delay delay;
    struct other_programs programs;
    double began_s;
    bool open;
};

void disturbance_begin(struct disturbance_watch *w, const char *root);
/* Between: threads that end are known up to here. */
void disturbance_look(struct disturbance_watch *w);
void disturbance_end(struct disturbance_watch *w, struct disturbance *out);
/* Ends a watch whose result nobody wants. */
void disturbance_drop(struct disturbance_watch *w);

/* Waiting as a share of the CPU time that `threads` had; NAN when it is not known. */
double disturbance_share(const struct disturbance *d, int threads);
/* Who is to blame for that share. A sentence in *text; true: it came from outside and was too much
 * to believe the times, the sentence begins with "disturbed". False: "" or what else there is to
 * say. */
bool disturbance_judge(const struct disturbance *d, int threads, char *text, size_t size);

#endif
