/* SPDX-License-Identifier: Apache-2.0
 *
 * Measures two programs in turns, so that whatever happens to the machine happens to both. Each is
 * a command that follows the protocol of `ridge run MODEL --on-request`: it prints "ready", then
 * for every line that it reads one sample in milliseconds; it ends when its input ends.
 *
 * Per pair both are started afresh (memory layout and addresses differ from process to process,
 * and that difference is noise, too), warmed up and asked in the order A B B A A B B A ...; the one
 * that is started first alternates from pair to pair. interleave_judge hands the pairs to
 * results/compare.h.
 */
#ifndef HARNESS_TURNS_INTERLEAVE_H
#define HARNESS_TURNS_INTERLEAVE_H

#include "base/error.h"
#include "results/compare.h"

struct interleave_side {
    const char *const *command;     /* NULL at the end; a name without '/' is looked up in PATH */
    const char *const *environment; /* "KEY=VALUE" over the caller's own; NULL: nothing */
};

/* Called after every pair; false ends the measurement with what there is. */
typedef bool interleave_progress(void *context, int pairs_done, int pairs);

/* Zero means the default. */
struct interleave_options {
    struct interleave_side a, b;
    int pairs;                            /* 5; at most 64 */
    int samples;                          /* of each process, at least; 20 */
    double seconds;                       /* per pair, at least; 3 */
    int warmup;                           /* samples thrown away; 3 */
    double start_limit_s, sample_limit_s; /* for "ready" and for a sample; 300 */
    interleave_progress *progress;        /* may be NULL */
    void *progress_context;
};

enum { INTERLEAVE_PAIRS_MAX = 64 };

struct interleave_result {
    struct compare_visit side[2][INTERLEAVE_PAIRS_MAX]; /* of A and of B; ms */
    double *times[2][INTERLEAVE_PAIRS_MAX];             /* the same memory, owned */
    int pairs;                                          /* that are complete */
};

enum status interleave_run(const struct interleave_options *options,
                           struct interleave_result *result, struct error *err);
/* A is the base, B the head. */
enum status interleave_judge(const struct interleave_result *result,
                             const struct compare_rules *rules, struct comparison *out,
                             struct error *err);
void interleave_release(struct interleave_result *result);

#endif
