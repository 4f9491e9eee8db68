/* SPDX-License-Identifier: Apache-2.0
 *
 * An algorithm: how ranks share the work of an operation. It writes the schedule of one rank from
 * the operation alone, so that all ranks write lists that fit together without a message.
 *
 * Rules for all of them:
 *   - the result has the same bits on every rank, also where additions round;
 *   - the input is never written; output and input may be the same memory, so a span of the output
 *     is written only when the same elements of the input have been used up. What a step sends
 *     and what it receives are either the same elements (the exchange keeps the one behind the
 *     other) or have none in common;
 *   - no step may rely on a backend taking a message before its receiver asks for it.
 *
 * Adding one is adding a file in collective/algorithms/; the smallest is pairwise.c. The tests run
 * it with every number of ranks, ragged counts and thousands of orders of events.
 */
#ifndef COLLECTIVE_ALGORITHM_H
#define COLLECTIVE_ALGORITHM_H

#include "base/registry.h"
#include "collective/schedule.h"

#define OPERATION_BIT(operation) (1u << (operation))

/* What nobody says: two ranks share a node. */
enum { NODE_RANKS = 2 };

/* What may be tuned. */
struct schedule_options {
    int lanes;             /* 1 to LANES_MAX */
    int64_t segment_bytes; /* at most that much of the whole buffer is under way per lane */
    int node_ranks;        /* ranks of each node, the last one may have fewer; 0: NODE_RANKS */
};

struct pattern {
    const struct comm_call *call;
    int rank, ranks;
    int lanes;
    int64_t segment; /* elements, at least 1 */
    int node_ranks;
};

/* Operations of the backend's library (struct own_operations) have no schedule. */
enum own_use { OWN_NONE, OWN_STARTED, OWN_BLOCKING };

struct algorithm {
    const char *name;
    const char *summary;
    enum own_use own;    /* with it there is no `plan` */
    unsigned operations; /* OPERATION_BIT of each that it has a schedule for */
    void (*plan)(const struct pattern *pattern, struct comm_schedule *to);
};

int algorithm_count(void);
const struct algorithm *algorithm_at(int index);
/* NULL when there is none of that name. */
const struct algorithm *algorithm_find(const char *name);
/* For a call over `bytes` in the busiest rank, between `ranks`. */
const struct algorithm *algorithm_choose(const struct comm_call *call, int ranks, int64_t bytes);
struct schedule_options schedule_options_for(int ranks);

const char *operation_name(enum comm_operation operation);
const char *reduction_name(enum comm_reduction reduction);
/* Elements of the input and of the output of one rank. */
int64_t call_input_count(const struct comm_call *call, int rank, int ranks);
int64_t call_output_count(const struct comm_call *call, int rank, int ranks);
/* Bytes of an element on its way between ranks. */
size_t call_crossing_size(const struct comm_call *call);
/* Elements of the whole operation, as its size is counted in measurements (docs/method.md). */
int64_t call_whole_count(const struct comm_call *call, int ranks);

/* Fills schedule, whose steps live in the arena. UNSUPPORTED: the algorithm has no schedule for
 * this operation. INVALID: the call itself makes no sense. */
enum status schedule_make(const struct algorithm *algorithm, const struct comm_call *call, int rank,
                          int ranks, const struct schedule_options *options, struct arena *arena,
                          struct comm_schedule *schedule, struct error *err);

#endif
