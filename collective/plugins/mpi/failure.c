/* SPDX-License-Identifier: Apache-2.0
 *
 * Deadlines. A rank that waits for long says now and then that it is alive, so that when a deadline
 * passes the ones that were silent are known; who finds that out reports it to all others. */
#define _GNU_SOURCE
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/system/clock.h"
#include "collective/plugins/mpi/mpi_backend.h"

enum {
    LOOK_EVERY = 32,       /* attempts between two looks at the clock */
    SPINS = 1000,          /* attempts before others may run */
    AWAKE_NS = 500 * 1000, /* before this rank sleeps between attempts */
    SLEEP_NS = 50 * 1000
};

static const char alive = 1;

static void remember(struct group *group, const char *text)
{
    if (!group->failure[0])
        snprintf(group->failure, sizeof(group->failure), "%s", text);
}

void mpi_announce(struct group *group, int rank, const char *text)
{
    (void)rank;
    if (group->failure[0])
        return;
    remember(group, text);
    for (int peer = 0; peer < group->ranks; peer++)
        if (peer != group->rank)
            MPI_Isend(group->failure, TEXT_BYTES, MPI_BYTE, peer, CONTROL_FAILURE, group->control,
                      &group->announced[peer]);
}

void mpi_announce_finish(struct group *group, uint64_t limit_ns)
{
    for (uint64_t end = clock_now_ns() + limit_ns; clock_now_ns() < end;) {
        for (int peer = 0; peer < group->ranks; peer++) {
            int left;
            MPI_Test(&group->announced[peer], &left, MPI_STATUS_IGNORE);
        }
        nanosleep(&(struct timespec){.tv_nsec = SLEEP_NS}, NULL);
    }
}

enum status mpi_listen(struct group *group, struct error *err)
{
    for (int flag = 1; flag;) {
        MPI_Status status;
        char text[TEXT_BYTES] = "";
        TRY(mpi_check(MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, group->control, &flag, &status),
                      "MPI_Iprobe", err));
        if (!flag)
            break;
        TRY(mpi_check(MPI_Recv(text, sizeof(text), MPI_BYTE, status.MPI_SOURCE, status.MPI_TAG,
                               group->control, MPI_STATUS_IGNORE),
                      "MPI_Recv", err));
        group->heard_ns[status.MPI_SOURCE] = clock_now_ns();
        if (status.MPI_TAG == CONTROL_FAILURE)
            remember(group, text);
    }
    return group->failure[0] ? FAIL(err, STATUS_FAILED, "%s", group->failure) : STATUS_OK;
}

static enum status say_alive(struct link *link, uint64_t now, struct error *err)
{
    struct group *group = link->group;
    link->state->reported_ns = now;
    for (int peer = 0; peer < group->ranks; peer++) {
        MPI_Request request;
        if (peer == group->rank)
            continue;
        TRY(mpi_check(MPI_Isend(&alive, 1, MPI_BYTE, peer, CONTROL_ALIVE, group->control, &request),
                      "MPI_Isend", err));
        MPI_Request_free(&request);
    }
    return STATUS_OK;
}

/* A message of another operation where one of this is awaited: they will never meet. */
static enum status find_mismatch(const struct link *link, const struct awaited *awaited,
                                 struct error *err)
{
    int flag = 0, bytes = 0;
    MPI_Status status;
    if (awaited->peer == NOBODY || !awaited->to_send)
        return STATUS_OK;
    TRY(mpi_check(MPI_Iprobe(awaited->peer, MPI_ANY_TAG, link->group->messages, &flag, &status),
                  "MPI_Iprobe", err));
    uint32_t call = flag ? (uint32_t)(status.MPI_TAG / LANES_MAX) : 0;
    if (!flag || call == awaited->call % CALLS)
        return STATUS_OK;
    struct message message = {
        .peer = awaited->peer, .call = awaited->call, .bytes = awaited->bytes};
    TRY(mpi_check(MPI_Get_count(&status, MPI_BYTE, &bytes), "MPI_Get_count", err));
    return message_mismatch(link, &message, call, (size_t)bytes, err);
}

/* The rank that has said nothing for longest, if for more than half of the deadline. */
static int silent_rank(const struct group *group, uint64_t now, uint64_t *silent_ns)
{
    int worst = NOBODY;
    *silent_ns = group->options.deadline_ns / 2;
    for (int rank = 0; rank < group->ranks; rank++) {
        uint64_t heard = group->heard_ns[rank];
        if (rank == group->rank || heard + *silent_ns > now)
            continue;
        worst = rank;
        *silent_ns = now - heard;
    }
    return worst;
}

static enum status blame(struct link *link, const struct awaited *awaited, uint64_t now,
                         struct error *err)
{
    struct group *group = link->group;
    char text[TEXT_BYTES], waited[200];
    uint64_t silent_ns;
    int rank = silent_rank(group, now, &silent_ns);
    awaited_text(link, awaited, now - link->state->waiting.since_ns, waited, sizeof(waited));
    if (rank != NOBODY)
        snprintf(text, sizeof(text),
                 "rank %d has shown no life within the deadline of %.1f s: it has ended, is "
                 "stopped, or computes for longer; %s",
                 rank, (double)group->options.deadline_ns * 1e-9, waited);
    else
        snprintf(text, sizeof(text), "all ranks are alive, but one did not do its part; %s",
                 waited);
    mpi_announce(group, group->rank, text);
    return FAIL(err, STATUS_FAILED, "%s", group->failure);
}

static enum status look_round(struct link *link, const struct awaited *awaited, uint64_t now,
                              uint64_t waited, struct error *err)
{
    uint64_t deadline = link->group->options.deadline_ns;
    TRY(mpi_listen(link->group, err));
    if (waited > deadline / 4 && now - link->state->reported_ns > deadline / 8) {
        TRY(say_alive(link, now, err));
        TRY(find_mismatch(link, awaited, err));
    }
    return waited > deadline ? blame(link, awaited, now, err) : STATUS_OK;
}

/* One of the requests that there are completes; which, its transfer finds out. */
static enum status wait_inside(struct link_state *state, struct error *err)
{
    MPI_Request requests[2 * LANES_MAX * PIECES_MAX + 1];
    struct piece *pieces[2 * LANES_MAX * PIECES_MAX + 1];
    int count = 0, index = MPI_UNDEFINED;
    MPI_Status status;
    for (int k = 0; k < 2 * LANES_MAX * PIECES_MAX; k++) {
        struct transfer *t = (k % 2 ? state->sending : state->receiving) + k / 2 % LANES_MAX;
        struct piece *piece = &t->pieces[k / 2 / LANES_MAX];
        if (piece->arrived || piece->request == MPI_REQUEST_NULL)
            continue;
        pieces[count] = piece;
        requests[count++] = piece->request;
    }
    if (count == 0)
        return state->own
                   ? mpi_check(MPI_Wait(&state->own->request, MPI_STATUS_IGNORE), "MPI_Wait", err)
                   : STATUS_OK;
    TRY(mpi_check(MPI_Waitany(count, requests, &index, &status), "MPI_Waitany", err));
    if (index != MPI_UNDEFINED) {
        pieces[index]->arrived = true;
        pieces[index]->request = MPI_REQUEST_NULL;
        pieces[index]->status = status;
    }
    return STATUS_OK;
}

enum status mpi_wait(struct link *link, unsigned idle, const struct awaited *awaited,
                     struct error *err)
{
    struct link_state *state = link->state;
    if (mpi_waits_inside)
        return wait_inside(state, err);
    if (idle % LOOK_EVERY == 0) {
        uint64_t now = clock_now_ns();
        uint64_t waited = waiting_ns(&state->waiting, idle, now, link->group->options.deadline_ns);
        state->sleeps = waited > AWAKE_NS;
        TRY(look_round(link, awaited, now, waited, err));
    }
    if (state->sleeps)
        nanosleep(&(struct timespec){.tv_nsec = SLEEP_NS}, NULL);
    else if (idle > SPINS)
        sched_yield();
    return STATUS_OK;
}
