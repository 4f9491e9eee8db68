/* SPDX-License-Identifier: Apache-2.0
 *
 * The schedule of one rank at work: a state machine without threads and clocks. Each call of
 * exchange_move does what can be done at once in every lane and never waits; so one thread may
 * drive many of them, a test may drive all ranks in any order, and so may a simulator.
 */
#ifndef COLLECTIVE_EXCHANGE_H
#define COLLECTIVE_EXCHANGE_H

#include "collective/backend.h"
#include "collective/combine.h"
#include "collective/wire.h"

struct exchange;

/* A lane's present step. */
struct lane_work {
    struct exchange *exchange;
    size_t next; /* step */
    bool active;
    bool behind;  /* what is received replaces what is sent: it may not pass it */
    bool returns; /* a second half of the step follows */
    struct message send, receive;
    unsigned char *to;
    const unsigned char *operand; /* NULL: nothing to combine with */
};

struct exchange {
    struct link *link;
    const struct comm_schedule *schedule;
    enum comm_reduction reduction;
    combine_elements *combine;
    const struct wire *wire;  /* NULL: elements cross as they are */
    size_t element, crossing; /* bytes of one here, and on its way */
    uint32_t call;            /* number of the operation */
    const unsigned char *input;
    unsigned char *output, *scratch;
    unsigned char *narrowed[LANES_MAX]; /* with `wire`: what a lane is sending */
    bool rounded;                       /* with `wire`: the result */
    struct lane_work lanes[LANES_MAX];
};

/* For this operation; link and schedule are set. */
void exchange_init(struct exchange *exchange, const struct comm_call *call);
/* Bytes of memory that it needs beside input and output. */
size_t exchange_memory(const struct exchange *exchange);
void exchange_begin(struct exchange *exchange, uint32_t call, const void *input, void *output,
                    void *memory);
/* *moved: whether anything was done. *done: nothing is left. */
enum status exchange_move(struct exchange *exchange, bool *moved, bool *done, struct error *err);
/* What the first unfinished lane waits for. */
struct awaited exchange_awaited(const struct exchange *exchange);

#endif
