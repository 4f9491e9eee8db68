/* SPDX-License-Identifier: Apache-2.0
 *
 * collective/: operations of several ranks together (engine/run/comm.h). An algorithm
 * (algorithm.h) turns an operation into a schedule; an exchange (exchange.h) carries the schedule
 * of one rank out, step by step, over a backend (backend.h) that moves bytes between two ranks; a
 * communicator (communicator.h) puts them behind the interface of the engine.
 *
 * A schedule is data: what one rank sends, receives and combines, in which order. Whoever carries
 * it out, simulates it or counts its cost reads the same list.
 *
 * It consists of lanes. Steps of one lane happen one after another, lanes independently of each
 * other, so that one can compute while another one's message is on its way. The messages from one
 * rank to another in one lane arrive in the order in which they were sent. A step sends one
 * message, or receives one, or does both at the same time. A step whose peers are the rank itself
 * copies. Spans of 0 elements are no message; step_add leaves them out on both sides.
 */
#ifndef COLLECTIVE_SCHEDULE_H
#define COLLECTIVE_SCHEDULE_H

#include "base/arena.h"
#include "base/error.h"
#include "engine/run/comm.h"

enum { LANES_MAX = 4, NOBODY = -1 };

enum place { PLACE_INPUT, PLACE_OUTPUT, PLACE_SCRATCH, PLACE_COUNT };

/* A run of elements of the caller's input or output, or of memory for the time of the call. */
struct span {
    enum place place;
    int64_t first, count;
};

struct step {
    int to;   /* rank that gets `send`, or NOBODY */
    int from; /* rank that fills `receive`, or NOBODY */
    struct span send, receive;
    /* With it, each element received is combined: receive = operand + message. */
    bool combines;
    struct span operand; /* as long as `receive` */
    /* With it, what the peer makes of `send` comes back into `back`, which is as long, and what is
     * made here of what was received goes back: the same step. */
    bool returns;
    struct span back;
};

struct lane {
    struct step *steps;
    size_t count, capacity;
};

struct comm_schedule {
    struct arena *arena; /* where steps live */
    int rank, ranks;
    struct lane lanes[LANES_MAX];
    int64_t length[PLACE_COUNT]; /* elements of each place */
    bool no_memory;              /* a step could not be added */
};

/* Starts a lane's next step. Spans of no elements are dropped, and steps of no spans. */
void step_add(struct comm_schedule *schedule, int lane, struct step step);

/* Whether every span lies inside its place and every peer exists. BUG otherwise: the algorithm. */
enum status schedule_check(const struct comm_schedule *schedule, struct error *err);

/* What a rank has to do: the two numbers that time is modelled from, and the work of reducing. */
struct schedule_work {
    int64_t messages;       /* sent or received, whichever is more, in the lane that has most */
    int64_t elements_sent;  /* or received, whichever is more */
    int64_t elements_added; /* combined with what was received */
};
struct schedule_work schedule_work(const struct comm_schedule *schedule);

/* The part `index` of `parts` nearly equal ones of a span: longer ones first. */
struct span span_part(struct span whole, int64_t index, int64_t parts);
/* The first element of part `rank` when counts[] lie one after another. */
int64_t counts_before(const int64_t *counts, int rank);

#endif
