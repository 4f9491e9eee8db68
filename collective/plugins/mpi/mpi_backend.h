/* SPDX-License-Identifier: Apache-2.0
 *
 * A backend over MPI, compiled once for each library, since their interfaces differ in binary form:
 * messages point to point, cut into pieces so that one is combined while the next is on its way,
 * and the library's own operations. Nothing here blocks but what is meant to: MPI is asked whether
 * something has completed, never made to wait, so that a deadline can be kept.
 *
 * Three communicators, so that nothing is taken for something else: for messages, for what ranks
 * tell each other about failures, and for the library's own operations. */
#ifndef COLLECTIVE_PLUGINS_MPI_MPI_BACKEND_H
#define COLLECTIVE_PLUGINS_MPI_MPI_BACKEND_H

#include <mpi.h>

#include "collective/backend.h"

enum {
    PIECES_MAX = 4, /* of a message under way at a time */
    CALLS = 4096,   /* numbers of operations that tags tell apart */
    TEXT_BYTES = 400
};

enum control { CONTROL_ALIVE = 1, CONTROL_FAILURE };

struct group {
    int rank, ranks;
    struct group_options options;
    MPI_Comm messages, control, own;
    bool one_host;            /* where all ranks are */
    char failure[TEXT_BYTES]; /* "" while all is well */
    MPI_Request *announced;   /* owned: one for each rank */
    uint64_t *heard_ns;       /* owned: when each rank last said that it is alive */
};

struct piece {
    MPI_Request request;
    bool arrived;
    MPI_Status status;
};

/* The message that a lane sends, or receives, now. Piece k is in slot k % PIECES_MAX. */
struct transfer {
    struct piece pieces[PIECES_MAX];
    size_t posted;        /* bytes that MPI has been asked to move */
    size_t completed;     /* of those, that it has moved */
    unsigned char *stage; /* owned: PIECES_MAX pieces, for what is to be combined */
    size_t stage_bytes;
};

struct link_state {
    struct transfer sending[LANES_MAX], receiving[LANES_MAX];
    struct own_plan *own;   /* borrowed: the library's own operation that was started last */
    struct waiting waiting; /* nothing has moved */
    bool sleeps;            /* between attempts: it has waited for long */
    uint64_t reported_ns;   /* when this rank last said that it is alive */
};

struct own_plan {
    struct link *link;
    struct comm_call call;
    bool blocks;
    MPI_Datatype type;
    MPI_Op op; /* MPI_OP_NULL: nothing is reduced */
    bool op_is_own;
    /* Owned, of all-gather, reduce-scatter, all-to-all: elements, and where they begin. */
    int *counts, *send_counts, *send_starts, *receive_starts;
    void *scratch; /* owned: a reduce-scatter's part, until it may be put where its input was */
    size_t scratch_bytes;
    void *later; /* where to; NULL: it is there */
    MPI_Request request;
};

/* What bytes a piece has at most, and whether to wait inside MPI: the simulator's time passes
 * there alone (wait_inside.c); elsewhere deadlines must be kept (wait_outside.c). */
extern const size_t mpi_piece_bytes;
extern const bool mpi_waits_inside;

/* FAILED with MPI's own words. */
enum status mpi_check(int code, const char *what, struct error *err);

enum status mpi_send(struct link *link, struct message *message, struct error *err);
enum status mpi_receive(struct link *link, struct message *message, size_t limit,
                        struct error *err);
enum status mpi_wait(struct link *link, unsigned idle, const struct awaited *awaited,
                     struct error *err);
/* Ends all requests of the link's messages; after a failure they may be left as they are. */
void mpi_transfers_release(struct link_state *state);

void mpi_announce(struct group *group, int rank, const char *text);
/* Takes what others have said. */
enum status mpi_listen(struct group *group, struct error *err);
/* Moves what was announced for so long, in which all others may hear of it. */
void mpi_announce_finish(struct group *group, uint64_t limit_ns);

extern const struct own_operations mpi_own;
extern const struct backend mpi_backend;

#endif
