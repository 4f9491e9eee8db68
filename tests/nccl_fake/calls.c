/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/gpu/host/api.h"
#include "tests/nccl_fake/fake.h"

enum { LOOKS = 3 /* after which a communicator settles */ };

/* One thread calls NCCL; each rank is a process. */
static struct {
    int uses;  /* of the call that the script names */
    int rank;  /* of this process; -1: not known yet */
    int depth; /* groups that are open */
    struct job *job;
    struct ncclComm *comm;
    void *stream;
} f = {.rank = -1};

/* ---- the script ---- */

/* The code that the script wants of this use, or success. */
static ncclResult_t scripted(const char *call, bool counts)
{
    const char *text = getenv("RIDGE_FAKE_NCCL");
    char name[64] = "";
    int nth = 0, code = 0, rank = -1;
    if (!text || sscanf(text, "%63[^:]:%d:%d:%d", name, &nth, &code, &rank) < 3)
        return ncclSuccess;
    bool named = strcmp(name, call) == 0 || (counts && strcmp(name, "any") == 0);
    if (!named || (rank >= 0 && rank != f.rank) || ++f.uses != nth)
        return ncclSuccess;
    return (ncclResult_t)code;
}

#define ENTER(call)                                                                                \
    do {                                                                                           \
        ncclResult_t wanted_ = scripted(#call, true);                                              \
        if (wanted_ != ncclSuccess)                                                                \
            return wanted_;                                                                        \
    } while (0)

static ncclResult_t refuse(struct ncclComm *comm, const char *why)
{
    if (comm)
        snprintf(comm->last_error, sizeof(comm->last_error), "%s", why);
    return ncclInvalidUsage;
}

/* ---- the library ---- */

PUBLIC ncclResult_t ncclGetVersion(int *version)
{
    const char *text = getenv("RIDGE_FAKE_NCCL_VERSION");
    ENTER(ncclGetVersion);
    *version = text ? (int)strtol(text, NULL, 10) : NCCL_VERSION_CODE;
    return ncclSuccess;
}

PUBLIC const char *ncclGetErrorString(ncclResult_t result)
{
    static const char *const texts[] = {"no error",
                                        "unhandled cuda error",
                                        "unhandled system error",
                                        "internal error",
                                        "invalid argument",
                                        "invalid usage",
                                        "remote process exited or there was a network error",
                                        "NCCL operation in progress"};
    return texts[result];
}

PUBLIC const char *ncclGetLastError(ncclComm_t comm)
{
    return comm ? comm->last_error : "";
}

PUBLIC ncclResult_t ncclGetUniqueId(ncclUniqueId *id)
{
    ENTER(ncclGetUniqueId);
    return board_make(id) ? ncclSuccess : ncclSystemError;
}

/* ---- communicators ---- */

static uint64_t host_number(void)
{
    const char *name = getenv("NCCL_HOSTID");
    uint64_t number = 5381;
    for (const char *at = name ? name : "this one"; *at; at++)
        number = number * 33 + (unsigned char)*at;
    return number;
}

PUBLIC ncclResult_t ncclCommInitRankConfig(ncclComm_t *out, int ranks, ncclUniqueId id, int rank,
                                           ncclConfig_t *config)
{
    *out = NULL;
    f.rank = rank;
    ncclResult_t wanted = scripted("ncclCommInitRankConfig", true);
    if (wanted != ncclSuccess && wanted != ncclInProgress)
        return wanted;
    if (config->blocking != 0 || ranks > RANKS_MAX || rank < 0 || rank >= ranks)
        return ncclInvalidArgument;
    struct ncclComm *comm = calloc(1, sizeof(*comm));
    struct board *board = board_open(&id);
    if (!comm || !board) {
        free(comm);
        return ncclSystemError;
    }
    struct seat *seat = &board->seats[rank];
    if (atomic_exchange(&seat->claimed, 1)) {
        board_close(board);
        free(comm);
        return ncclInvalidUsage;
    }
    seat->host = host_number();
    seat->device = device_current();
    *comm = (struct ncclComm){.board = board,
                              .rank = rank,
                              .ranks = ranks,
                              .state = ncclInProgress,
                              .stalls = wanted == ncclInProgress,
                              .looks = LOOKS};
    if (!comm->stalls)
        atomic_fetch_add(&board->joined, 1);
    *out = comm;
    return ncclInProgress;
}

static ncclResult_t connect_all(struct ncclComm *comm)
{
    const struct seat *seats = comm->board->seats;
    for (int rank = 0; rank < comm->ranks; rank++)
        if (atomic_load(&seats[rank].gone))
            return ncclRemoteError;
    if (atomic_load(&comm->board->joined) < comm->ranks)
        return ncclInProgress;
    for (int a = 0; a < comm->ranks; a++)
        for (int b = 0; b < a; b++)
            if (seats[a].host == seats[b].host && seats[a].device == seats[b].device) {
                snprintf(comm->last_error, sizeof(comm->last_error),
                         "Duplicate GPU detected : rank %d and rank %d both on CUDA device %d", b,
                         a, seats[a].device);
                return ncclInvalidUsage;
            }
    comm->connected = true;
    return ncclSuccess;
}

static ncclResult_t launch_now(struct ncclComm *comm)
{
    struct job *job = comm->launching;
    comm->launching = NULL;
    comm->queued++;
    comm->state = ncclSuccess; /* the stream may begin with it at once */
    int how = device_enqueue(comm->stream, job_run, job);
    if (how == API_REFUSED)
        return ncclUnhandledCudaError;
    if (how == API_CAPTURED) {
        job->kept = true;
        job->next = comm->kept;
        comm->kept = job;
    }
    return comm->state;
}

static int kept_count(const struct ncclComm *comm)
{
    int count = 0;
    for (const struct job *job = comm->kept; job; job = job->next)
        count++;
    return count;
}

static void go_on(struct ncclComm *comm)
{
    if (comm->state != ncclInProgress || comm->stalls || comm->looks-- > 0)
        return;
    if (!comm->connected)
        comm->state = connect_all(comm);
    else if (comm->launching)
        comm->state = launch_now(comm);
    else if (comm->ends && comm->queued == kept_count(comm))
        comm->state = ncclSuccess;
}

PUBLIC ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t *state)
{
    ncclResult_t wanted = scripted("ncclCommGetAsyncError", false);
    if (wanted != ncclSuccess)
        return wanted;
    wanted = scripted("state", false);
    if (wanted != ncclSuccess)
        comm->state = wanted;
    go_on(comm);
    *state = comm->state;
    return ncclSuccess;
}

PUBLIC ncclResult_t ncclCommFinalize(ncclComm_t comm)
{
    ENTER(ncclCommFinalize);
    if (comm->state != ncclSuccess)
        return refuse(comm, "finalized before it has settled");
    comm->ends = true;
    comm->state = ncclInProgress;
    comm->looks = LOOKS;
    return ncclInProgress;
}

static void free_comm(struct ncclComm *comm)
{
    while (comm->kept) {
        struct job *next = comm->kept->next;
        free(comm->kept);
        comm->kept = next;
    }
    board_close(comm->board);
    free(comm);
}

PUBLIC ncclResult_t ncclCommDestroy(ncclComm_t comm)
{
    ENTER(ncclCommDestroy);
    if (!comm->ends || comm->state != ncclSuccess)
        return refuse(comm, "destroyed before it was finalized");
    free_comm(comm);
    return ncclSuccess;
}

/* What is in streams still asks for it, and ends. */
PUBLIC ncclResult_t ncclCommAbort(ncclComm_t comm)
{
    ENTER(ncclCommAbort);
    comm->aborted = true;
    atomic_store(&comm->board->seats[comm->rank].gone, 1);
    free(comm->launching);
    comm->launching = NULL;
    if (comm->queued == 0)
        free_comm(comm);
    return ncclSuccess;
}

/* The header has none that says that they take nothing. */
ncclResult_t ncclGroupStart(void);
ncclResult_t ncclGroupEnd(void);

/* ---- operations ---- */

static ncclResult_t launch(void)
{
    struct ncclComm *comm = f.comm;
    struct job *job = f.job;
    f.job = NULL;
    f.comm = NULL;
    if (!job)
        return ncclSuccess;
    comm->launching = job;
    comm->stream = f.stream;
    comm->state = ncclInProgress;
    comm->looks = LOOKS;
    return ncclInProgress;
}

PUBLIC ncclResult_t ncclGroupStart(void)
{
    ENTER(ncclGroupStart);
    f.depth++;
    return ncclSuccess;
}

PUBLIC ncclResult_t ncclGroupEnd(void)
{
    f.depth--;
    ENTER(ncclGroupEnd);
    if (f.depth < 0)
        return ncclInvalidUsage;
    return f.depth ? ncclSuccess : launch();
}

static ncclResult_t add(struct said said, const void *from, void *to, struct ncclComm *comm,
                        void *stream)
{
    if (comm->state != ncclSuccess)
        return refuse(comm, "called before it has settled");
    if (f.comm && (f.comm != comm || f.stream != stream))
        return refuse(comm, "the made NCCL has one communicator and one stream in a group");
    if (said.peer < 0 || said.peer >= comm->ranks)
        return ncclInvalidArgument;
    bool pairs = said.kind == SEND || said.kind == RECEIVE;
    if (!f.job) {
        f.job = calloc(1, sizeof(*f.job));
        f.job->comm = comm;
        f.job->pairs = pairs;
    }
    if (f.job->pairs != pairs)
        return refuse(comm, "the made NCCL has no groups of pairs and of all");
    f.comm = comm;
    f.stream = stream;
    if (f.job->count == CALLS_MAX)
        return ncclInvalidUsage;
    f.job->from[f.job->count] = from;
    f.job->to[f.job->count] = to;
    f.job->said[f.job->count++] = said;
    return f.depth ? ncclSuccess : launch();
}

PUBLIC ncclResult_t ncclAllReduce(const void *from, void *to, size_t count, ncclDataType_t type,
                                  ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream)
{
    ENTER(ncclAllReduce);
    return add((struct said){ALL_REDUCE, type, op, 0, count, 0}, from, to, comm, stream);
}

PUBLIC ncclResult_t ncclReduce(const void *from, void *to, size_t count, ncclDataType_t type,
                               ncclRedOp_t op, int root, ncclComm_t comm, cudaStream_t stream)
{
    ENTER(ncclReduce);
    return add((struct said){REDUCE, type, op, root, count, 0}, from, to, comm, stream);
}

PUBLIC ncclResult_t ncclReduceScatter(const void *from, void *to, size_t count, ncclDataType_t type,
                                      ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream)
{
    ENTER(ncclReduceScatter);
    return add((struct said){REDUCE_SCATTER, type, op, 0, count, 0}, from, to, comm, stream);
}

PUBLIC ncclResult_t ncclAllGather(const void *from, void *to, size_t count, ncclDataType_t type,
                                  ncclComm_t comm, cudaStream_t stream)
{
    ENTER(ncclAllGather);
    return add((struct said){ALL_GATHER, type, ncclSum, 0, count, 0}, from, to, comm, stream);
}

PUBLIC ncclResult_t ncclBroadcast(const void *from, void *to, size_t count, ncclDataType_t type,
                                  int root, ncclComm_t comm, cudaStream_t stream)
{
    ENTER(ncclBroadcast);
    return add((struct said){BROADCAST, type, ncclSum, root, count, 0}, from, to, comm, stream);
}

PUBLIC ncclResult_t ncclSend(const void *from, size_t count, ncclDataType_t type, int peer,
                             ncclComm_t comm, cudaStream_t stream)
{
    ENTER(ncclSend);
    return add((struct said){SEND, type, ncclSum, peer, count, 0}, from, NULL, comm, stream);
}

PUBLIC ncclResult_t ncclRecv(void *to, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                             cudaStream_t stream)
{
    ENTER(ncclRecv);
    return add((struct said){RECEIVE, type, ncclSum, peer, count, 0}, NULL, to, comm, stream);
}
