/* SPDX-License-Identifier: Apache-2.0
 *
 * MPI begins with the group and ends with it, so there is one group in the life of a process. After
 * a failure it does not end: MPI_Finalize waits for ranks that may be gone. The process then leaves
 * with an exit code other than 0, and the launcher ends what is left. */
#include <stdio.h>
#include <stdlib.h>

#include "base/system/clock.h"
#include "collective/plugin.h"
#include "collective/plugins/mpi/mpi_backend.h"

enum {
    LINGER_NS = 500 * 1000 * 1000,
    /* Between hosts, what the libraries send at once; of more they ask first, and the line rests.
     */
    NETWORK_SEGMENT = 64 * 1024,
};

enum status mpi_check(int code, const char *what, struct error *err)
{
    char text[MPI_MAX_ERROR_STRING] = "";
    int length = 0;
    if (code == MPI_SUCCESS)
        return STATUS_OK;
    MPI_Error_string(code, text, &length);
    for (char *at = text; *at; at++) /* of several lines, the last one without an end */
        *at = *at == '\n' ? ' ' : *at;
    return FAIL(err, STATUS_FAILED, "MPI: %s: %.300s", what, text);
}

static enum status begin_mpi(struct error *err)
{
    int begun = 0, ended = 0, provided = 0;
    MPI_Finalized(&ended);
    if (ended)
        return FAIL(err, STATUS_FAILED, "MPI has ended in this process and cannot begin again");
    MPI_Initialized(&begun);
    if (begun)
        return STATUS_OK;
    TRY(mpi_check(MPI_Init_thread(NULL, NULL, MPI_THREAD_SERIALIZED, &provided), "MPI_Init_thread",
                  err));
    return mpi_check(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN),
                     "MPI_Comm_set_errhandler", err);
}

/* A simulated network has no hosts that MPI could know of. */
static enum status find_hosts(struct group *group, struct error *err)
{
    MPI_Comm here;
    int ranks = 0;
    group->one_host = true;
    if (mpi_waits_inside)
        return STATUS_OK;
    TRY(mpi_check(
        MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &here),
        "MPI_Comm_split_type", err));
    TRY(mpi_check(MPI_Comm_size(here, &ranks), "MPI_Comm_size", err));
    group->one_host = ranks == group->ranks;
    return mpi_check(MPI_Comm_free(&here), "MPI_Comm_free", err);
}

static enum status fill_group(int ranks, struct group *group, struct error *err)
{
    TRY(begin_mpi(err));
    TRY(mpi_check(MPI_Comm_size(MPI_COMM_WORLD, &group->ranks), "MPI_Comm_size", err));
    TRY(mpi_check(MPI_Comm_rank(MPI_COMM_WORLD, &group->rank), "MPI_Comm_rank", err));
    if (group->ranks != ranks)
        return FAIL(err, STATUS_FAILED,
                    "MPI sees %d ranks, and not %d: was the program started by the mpirun of "
                    "another library?",
                    group->ranks, ranks);
    TRY(mpi_check(MPI_Comm_dup(MPI_COMM_WORLD, &group->messages), "MPI_Comm_dup", err));
    TRY(mpi_check(MPI_Comm_dup(MPI_COMM_WORLD, &group->control), "MPI_Comm_dup", err));
    TRY(mpi_check(MPI_Comm_dup(MPI_COMM_WORLD, &group->own), "MPI_Comm_dup", err));
    TRY(find_hosts(group, err));
    group->announced = calloc((size_t)ranks, sizeof(*group->announced));
    group->heard_ns = calloc((size_t)ranks, sizeof(*group->heard_ns));
    if (!group->announced || !group->heard_ns)
        return FAIL_NO_MEMORY(err);
    for (int rank = 0; rank < ranks; rank++) {
        group->announced[rank] = MPI_REQUEST_NULL;
        group->heard_ns[rank] = clock_now_ns();
    }
    return STATUS_OK;
}

static void group_release(struct group *group)
{
    free(group->announced);
    free(group->heard_ns);
    free(group);
}

static enum status mpi_group_new(int ranks, const struct group_options *options, struct group **out,
                                 struct error *err)
{
    struct group *group = calloc(1, sizeof(*group));
    if (!group)
        return FAIL_NO_MEMORY(err);
    group->options = *options;
    enum status status = fill_group(ranks, group, err);
    if (status != STATUS_OK) {
        group_release(group);
        return status;
    }
    *out = group;
    return STATUS_OK;
}

/* Nobody leaves before all are here, within the deadline; then nothing is under way any more. */
static enum status meet(struct group *group, struct error *err)
{
    MPI_Request request;
    uint64_t end = clock_now_ns() + group->options.deadline_ns;
    int here = 0;
    TRY(mpi_check(MPI_Ibarrier(group->control, &request), "MPI_Ibarrier", err));
    if (mpi_waits_inside)
        return mpi_check(MPI_Wait(&request, MPI_STATUS_IGNORE), "MPI_Wait", err);
    while (!here) {
        TRY(mpi_check(MPI_Test(&request, &here, MPI_STATUS_IGNORE), "MPI_Test", err));
        TRY(mpi_listen(group, err));
        if (clock_now_ns() > end)
            return FAIL(err, STATUS_FAILED, "not all ranks came to the end");
    }
    return mpi_listen(group, err);
}

/* Who had nothing to complain of until then would leave with an exit code of 0, and the launcher
 * might give that as its own: so it aborts instead, when the others have had time to say why, on a
 * machine that is busy, too. */
static void mpi_group_free(struct group *group)
{
    struct error ignored;
    if (!group)
        return;
    bool failed = group->failure[0];
    if (!failed && meet(group, &ignored) == STATUS_OK) {
        MPI_Comm_free(&group->messages);
        MPI_Comm_free(&group->control);
        MPI_Comm_free(&group->own);
        MPI_Finalize();
    } else {
        mpi_announce_finish(group, failed ? LINGER_NS : 8u * LINGER_NS);
        if (!failed)
            MPI_Abort(MPI_COMM_WORLD, 1);
    }
    group_release(group);
}

static enum status mpi_open(struct link *link, struct error *err)
{
    struct link_state *state = calloc(1, sizeof(*state));
    if (!state)
        return FAIL_NO_MEMORY(err);
    for (int k = 0; k < 2 * LANES_MAX * PIECES_MAX; k++) {
        struct transfer *t = (k % 2 ? state->sending : state->receiving) + k / 2 % LANES_MAX;
        t->pieces[k / 2 / LANES_MAX].request = MPI_REQUEST_NULL;
    }
    link->rank = link->group->rank;
    link->ranks = link->group->ranks;
    link->state = state;
    if (!link->group->one_host)
        link->segment_bytes = NETWORK_SEGMENT;
    return STATUS_OK;
}

static void mpi_close(struct link *link)
{
    if (link->state)
        mpi_transfers_release(link->state);
    free(link->state);
    link->state = NULL;
}

const struct backend mpi_backend = {
    .name = MPI_NAME,
    .summary = "messages of MPI, and its own operations",
    .for_measures = true,
    .segment_bytes = 1 << 20, /* a message is in pieces anyway, and latencies are long */
    .own = &mpi_own,
    .group_new = mpi_group_new,
    .group_free = mpi_group_free,
    .announce = mpi_announce,
    .open = mpi_open,
    .close = mpi_close,
    .send = mpi_send,
    .receive = mpi_receive,
    .wait = mpi_wait,
};
