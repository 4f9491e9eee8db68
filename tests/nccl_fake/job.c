/* SPDX-License-Identifier: Apache-2.0
 *
 * What a group of calls does on the stream: a rank shows what it gives, and when all have, it takes
 * what is for it. Nothing here waits: the stream tries again. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collective/combine.h"
#include "tests/nccl_fake/fake.h"

static enum dtype dtype_of(ncclDataType_t type)
{
    switch (type) {
    case ncclFloat32:
        return DTYPE_F32;
    case ncclFloat64:
        return DTYPE_F64;
    case ncclFloat16:
        return DTYPE_F16;
    case ncclBfloat16:
        return DTYPE_BF16;
    case ncclInt32:
        return DTYPE_I32;
    default:
        return DTYPE_I64;
    }
}

static size_t type_size(ncclDataType_t type)
{
    return dtype_size(dtype_of(type));
}

static size_t bytes_of(const struct said *said)
{
    return (size_t)said->count * type_size(said->type);
}

/* What a rank gives to this call. */
static size_t given(const struct ncclComm *comm, const struct said *said)
{
    switch (said->kind) {
    case REDUCE_SCATTER:
        return bytes_of(said) * (size_t)comm->ranks;
    case BROADCAST:
        return said->peer == comm->rank ? bytes_of(said) : 0;
    case RECEIVE:
        return 0;
    default:
        return bytes_of(said);
    }
}

/* As a real one: nothing more happens, and who asks is told. */
static int fail(struct ncclComm *comm, ncclResult_t code, const char *what)
{
    comm->state = code;
    snprintf(comm->last_error, sizeof(comm->last_error), "%s", what);
    return 0;
}

/* Whether anybody may still be reading what this rank gave before. */
static bool is_read(const struct ncclComm *comm)
{
    const struct seat *own = &comm->board->seats[comm->rank];
    for (int rank = 0; rank < comm->ranks; rank++) {
        const struct seat *seat = &comm->board->seats[rank];
        if (atomic_load(&seat->left) < comm->turn ||
            atomic_load(&seat->taken[comm->rank]) < atomic_load(&own->sent[rank]))
            return true;
    }
    return false;
}

static void post(struct seat *seat, const struct said *said)
{
    uint64_t number = atomic_load(&seat->sent[said->peer]);
    if (said->kind != SEND)
        return;
    seat->letters[said->peer][number % LETTERS_MAX] = *said;
    atomic_store(&seat->sent[said->peer], number + 1);
}

static int show(struct job *job)
{
    struct ncclComm *comm = job->comm;
    struct seat *seat = &comm->board->seats[comm->rank];
    unsigned char *area = board_area(comm->board, comm->rank);
    size_t at = 0;
    if (is_read(comm))
        return 0;
    for (int k = 0; k < job->count; k++) {
        size_t bytes = given(comm, &job->said[k]);
        if (at + bytes > board_area_size())
            return fail(comm, ncclInternalError, "the made NCCL has too little room");
        if (bytes && !device_load(area + at, job->from[k], bytes))
            return fail(comm, ncclInvalidArgument, "what is sent is no memory of the device");
        struct said said = job->said[k];
        said.at = at;
        at += bytes;
        if (job->pairs)
            post(seat, &said);
        else
            seat->said[k] = said;
    }
    seat->count = job->count;
    if (!job->pairs)
        atomic_store(&seat->arrived, comm->turn + 1);
    job->doing = 0;
    job->shown = true;
    return 1;
}

static bool is_same(const struct said *a, const struct said *b)
{
    bool rooted = a->kind == REDUCE || a->kind == BROADCAST;
    bool reduces = a->kind != ALL_GATHER && a->kind != BROADCAST;
    return a->kind == b->kind && a->count == b->count && a->type == b->type &&
           (!rooted || a->peer == b->peer) && (!reduces || a->reduction == b->reduction);
}

/* What rank `rank` gave to call k, from byte `skip` on. */
static const unsigned char *from_rank(const struct job *job, int k, int rank, size_t skip)
{
    struct board *board = job->comm->board;
    return board_area(board, rank) + board->seats[rank].said[k].at + skip;
}

static int reduce(struct job *job, int k, size_t skip)
{
    static const enum comm_reduction reductions[] = {
        [ncclSum] = COMM_SUM, [ncclMax] = COMM_MAX, [ncclMin] = COMM_MIN};
    const struct said *said = &job->said[k];
    size_t bytes = bytes_of(said);
    unsigned char *sum = malloc(bytes + 1);
    combine_elements *combine = combine_of(dtype_of(said->type), reductions[said->reduction]);
    memcpy(sum, from_rank(job, k, 0, skip), bytes);
    for (int rank = 1; rank < job->comm->ranks; rank++)
        combine(sum, sum, from_rank(job, k, rank, skip), (int64_t)said->count);
    int well = device_store(job->to[k], sum, bytes);
    free(sum);
    return well;
}

static int take(struct job *job, int k)
{
    const struct ncclComm *comm = job->comm;
    const struct said *said = &job->said[k];
    size_t bytes = bytes_of(said);
    int well = 1;
    if (bytes == 0)
        return 1;
    switch (said->kind) {
    case ALL_REDUCE:
        return reduce(job, k, 0);
    case REDUCE:
        return said->peer != comm->rank || reduce(job, k, 0);
    case REDUCE_SCATTER:
        return reduce(job, k, bytes * (size_t)comm->rank);
    case ALL_GATHER:
        for (int rank = 0; rank < comm->ranks && well; rank++)
            well = device_store((char *)job->to[k] + bytes * (size_t)rank,
                                from_rank(job, k, rank, 0), bytes);
        return well;
    case BROADCAST:
        return device_store(job->to[k], from_rank(job, k, said->peer, 0), bytes);
    default:
        return 1;
    }
}

/* All ranks must have said the same. */
static bool agree(const struct job *job)
{
    const struct ncclComm *comm = job->comm;
    for (int k = 0; k < job->count; k++) {
        const struct said *said = &job->said[k];
        for (int rank = 0; rank < comm->ranks; rank++)
            if (k >= comm->board->seats[rank].count ||
                !is_same(said, &comm->board->seats[rank].said[k]))
                return false;
    }
    return true;
}

static void end(struct job *job)
{
    struct ncclComm *comm = job->comm;
    comm->queued--;
    job->shown = false;
    if (job->kept)
        comm->queued++; /* it stays in its graph */
    else
        free(job);
}

/* The next letter of each call that receives. */
static int run_pairs(struct job *job)
{
    struct ncclComm *comm = job->comm;
    struct seat *own = &comm->board->seats[comm->rank];
    for (; job->doing < job->count; job->doing++) {
        const struct said *said = &job->said[job->doing];
        const struct seat *peer = &comm->board->seats[said->peer];
        uint64_t number = atomic_load(&own->taken[said->peer]);
        if (said->kind == SEND)
            continue;
        if (atomic_load(&peer->sent[comm->rank]) <= number)
            return atomic_load(&peer->gone) ? fail(comm, ncclRemoteError, "a rank is gone") : 0;
        const struct said *letter = &peer->letters[comm->rank][number % LETTERS_MAX];
        if (letter->count != said->count || letter->type != said->type)
            return fail(comm, ncclInvalidUsage, "what is sent is not what is received");
        if (!device_store(job->to[job->doing], board_area(comm->board, said->peer) + letter->at,
                          bytes_of(said)))
            return fail(comm, ncclInvalidArgument,
                        "what is received goes to no memory of the device");
        atomic_store(&own->taken[said->peer], number + 1);
    }
    end(job);
    return 1;
}

int job_run(void *context)
{
    struct job *job = context;
    struct ncclComm *comm = job->comm;
    if (comm->aborted) {
        end(job);
        return 1;
    }
    if (comm->state != ncclSuccess || (!job->shown && !show(job)))
        return 0;
    if (job->pairs)
        return run_pairs(job);
    for (int rank = 0; rank < comm->ranks; rank++) {
        const struct seat *seat = &comm->board->seats[rank];
        bool arrived = atomic_load(&seat->arrived) > comm->turn;
        if (!arrived && atomic_load(&seat->gone))
            return fail(comm, ncclRemoteError, "a rank is gone");
        if (!arrived)
            return 0;
    }
    if (!agree(job))
        return fail(comm, ncclInvalidUsage, "ranks do not do the same");
    for (int k = 0; k < job->count; k++)
        if (!take(job, k))
            return fail(comm, ncclInvalidArgument,
                        "what is received goes to no memory of the device");
    comm->turn++;
    atomic_store(&comm->board->seats[comm->rank].left, comm->turn);
    end(job);
    return 1;
}
