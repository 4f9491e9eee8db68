/* SPDX-License-Identifier: Apache-2.0
 *
 * harness/bench: `ridge bench collectives`. What is to be measured becomes a list of cases, the
 * same for each backend; backends take turns, so that a change of the machine meets all of them.
 * Ranks that a library's launcher has to start are this program under that launcher. */
#ifndef HARNESS_BENCH_BENCH_H
#define HARNESS_BENCH_BENCH_H

#include "collective/timing.h"

enum { BENCH_TURNS_MAX = 16, BENCH_BACKENDS_MAX = 16 };

struct bench {
    struct timing_options timing; /* of one turn; its backend is that of a part */
    int64_t from, to, factor;     /* bytes */
    enum dtype dtype, wire;
    enum comm_reduction reduction;
    unsigned operations;               /* OPERATION_BIT */
    const struct algorithm *algorithm; /* NULL: each */
    const struct backend *backends[BENCH_BACKENDS_MAX];
    int backend_count, turns;
    bool log_gp;          /* trips of messages besides */
    bool launched;        /* this process is one of the ranks, which a launcher started */
    int rank;             /* then: which */
    const char *platform; /* not NULL: simulated, on the network that this file describes */
};

/* The cases of one backend and their results. */
struct bench_part {
    const struct backend *backend;
    struct timing_case *cases; /* owned */
    struct timing *results;    /* owned */
    int count, capacity;
};

void bench_part_release(struct bench_part *part);
/* Fills the parts, one for each backend. */
enum status bench_measure(const struct bench *bench, struct bench_part *parts, struct error *err);
/* Of one turn, by ranks that the backend's launcher starts. */
enum status bench_launch(const struct bench *bench, const struct bench_part *part,
                         struct timing *results, struct error *err);
/* The same by simulated ranks; UNSUPPORTED where there is no simulator. */
enum status bench_simulate(const struct bench *bench, const struct bench_part *part,
                           struct timing *results, struct error *err);
/* The lines of timing_write in a text, which is cut into lines; results that are in none of them
 * are UNSUPPORTED. */
enum status bench_read_lines(char *text, const struct bench_part *part, struct timing *results,
                             struct error *err);
/* Elements that were wrong, of all results. */
int64_t bench_wrong(const struct bench_part *parts, int count);

#endif
