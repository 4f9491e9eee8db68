/* SPDX-License-Identifier: Apache-2.0
 *
 * A library that stands in for NCCL in tests, over the CUDA runtime that is the host
 * (tests/gpu/host/). Its ranks are processes that really exchange what they have, through memory
 * that rank 0 makes and that has no name; so sums can be checked. It keeps the rules of the real
 * one: a communicator that does not block is not called again before it has settled, what is
 * exchanged is memory of the device, all ranks do the same, two ranks of one host do not share a
 * GPU. It is slow to settle, and its work on a stream ends when all ranks have come to it.
 *
 * RIDGE_FAKE_NCCL="CALL:N:CODE" makes the N-th use of a call give that code, once, in every rank;
 * with ":RANK" behind it in that rank alone. "any" is every call that may fail; "state" is what
 * ncclCommGetAsyncError tells, from then on. RIDGE_FAKE_NCCL_VERSION=21200 is an older library. */
#ifndef TESTS_NCCL_FAKE_FAKE_H
#define TESTS_NCCL_FAKE_FAKE_H

#include <nccl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PUBLIC __attribute__((visibility("default")))

enum { RANKS_MAX = 16, CALLS_MAX = 64, LETTERS_MAX = 4 };

enum kind { ALL_REDUCE, REDUCE, REDUCE_SCATTER, ALL_GATHER, BROADCAST, SEND, RECEIVE };

/* One call of a group, or one alone. */
struct said {
    enum kind kind;
    ncclDataType_t type;
    ncclRedOp_t reduction;
    int peer; /* or root */
    uint64_t count;
    uint64_t at; /* where its input is in the rank's area */
};

/* What a rank shows to the others. */
struct seat {
    _Atomic int claimed, gone;
    _Atomic uint64_t arrived, left; /* jobs of all that it has come to, and that it is done with */
    _Atomic uint64_t sent[RANKS_MAX], taken[RANKS_MAX]; /* letters to, and from, each rank */
    struct said letters[RANKS_MAX][LETTERS_MAX];        /* to each; not taken yet */
    uint64_t host;
    int device;
    int count;
    struct said said[CALLS_MAX]; /* of the job that it has come to */
};

/* Shared by all ranks; their areas follow. */
struct board {
    _Atomic int joined;
    struct seat seats[RANKS_MAX];
};

struct job {
    struct ncclComm *comm;
    int count;
    struct said said[CALLS_MAX];
    const void *from[CALLS_MAX];
    void *to[CALLS_MAX];
    bool kept;  /* a captured graph has it */
    bool pairs; /* of sends and receives alone, which need nobody but the other of a pair */
    bool shown; /* the others may read what this rank gives */
    int doing;  /* of pairs: the call that is not done yet */
    struct job *next;
};

struct ncclComm {
    struct board *board;
    int rank, ranks;
    ncclResult_t state;
    bool connected, stalls, ends, aborted;
    int looks; /* before it settles */
    struct job *launching;
    void *stream;
    uint64_t turn; /* jobs of all that this rank is done with */
    int queued;
    struct job *kept; /* owned: those that graphs have */
    char last_error[200];
};

/* ---- board.c ---- */

/* Anonymous memory for an id; false: there is none. */
bool board_make(ncclUniqueId *id);
struct board *board_open(const ncclUniqueId *id);
unsigned char *board_area(struct board *board, int rank);
size_t board_area_size(void);
void board_close(struct board *board);

/* ---- job.c ---- */

/* An api_work. */
int job_run(void *job);

/* ---- device.c ---- */

/* As tests/gpu/host/api.h has them. */
int device_enqueue(void *stream, int (*work)(void *), void *context);
int device_load(void *to, const void *from, size_t bytes);
int device_store(void *to, const void *from, size_t bytes);
int device_current(void);

#endif
