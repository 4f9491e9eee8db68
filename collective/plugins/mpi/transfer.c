/* SPDX-License-Identifier: Apache-2.0
 *
 * Messages as pieces. Both ends cut a message alike, since both know its size. */
#include <stdlib.h>

#include "base/memory.h"
#include "collective/plugins/mpi/mpi_backend.h"

static int tag_of(const struct message *message)
{
    return message->lane + LANES_MAX * (int)(message->call % CALLS);
}

static size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

static struct piece *piece_at(struct transfer *t, size_t offset)
{
    return &t->pieces[offset / mpi_piece_bytes % PIECES_MAX];
}

static size_t piece_size(const struct message *message, size_t offset)
{
    return smaller(mpi_piece_bytes, message->bytes - offset);
}

static enum status piece_test(const struct link *link, const struct message *message,
                              struct piece *piece, struct error *err)
{
    int flag = 0, kind = MPI_SUCCESS;
    if (piece->arrived || mpi_waits_inside) /* then mpi_wait finds out */
        return STATUS_OK;
    int code = MPI_Test(&piece->request, &flag, &piece->status);
    if (code != MPI_SUCCESS)
        MPI_Error_class(code, &kind);
    if (kind == MPI_ERR_TRUNCATE) /* at least one byte more than there is room for */
        return message_mismatch(link, message, message->call, message->bytes + 1, err);
    TRY(mpi_check(code, "MPI_Test", err));
    piece->arrived = flag;
    return STATUS_OK;
}

static void begin(struct transfer *t, struct message *message)
{
    t->posted = t->completed = 0;
    message->begun = true;
}

/* Slots are free again when their pieces are done with. */
static bool has_room(const struct transfer *t, const struct message *message, size_t done)
{
    return t->posted < message->bytes &&
           t->posted / mpi_piece_bytes - done / mpi_piece_bytes < PIECES_MAX;
}

static enum status post_sends(struct link *link, struct transfer *t, const struct message *message,
                              struct error *err)
{
    while (has_room(t, message, t->completed)) {
        struct piece *piece = piece_at(t, t->posted);
        size_t bytes = piece_size(message, t->posted);
        const char *from = (const char *)message->data + t->posted;
        piece->arrived = false;
        TRY(mpi_check(MPI_Isend(from, (int)bytes, MPI_BYTE, message->peer, tag_of(message),
                                link->group->messages, &piece->request),
                      "MPI_Isend", err));
        t->posted += bytes;
    }
    return STATUS_OK;
}

enum status mpi_send(struct link *link, struct message *message, struct error *err)
{
    struct transfer *t = &link->state->sending[message->lane];
    if (!message->begun)
        begin(t, message);
    TRY(post_sends(link, t, message, err));
    while (t->completed < t->posted) {
        struct piece *piece = piece_at(t, t->completed);
        TRY(piece_test(link, message, piece, err));
        if (!piece->arrived)
            break;
        t->completed += piece_size(message, t->completed);
        TRY(post_sends(link, t, message, err));
    }
    message->done = t->completed;
    return STATUS_OK;
}

static enum status stage_room(struct transfer *t, const struct message *message, struct error *err)
{
    size_t bytes = smaller(mpi_piece_bytes, message->bytes) * PIECES_MAX;
    if (message->into || t->stage_bytes >= bytes)
        return STATUS_OK;
    memory_free(t->stage);
    t->stage = memory_alloc(bytes);
    t->stage_bytes = t->stage ? bytes : 0;
    return t->stage ? STATUS_OK : FAIL_NO_MEMORY(err);
}

static unsigned char *stage_at(struct transfer *t, size_t offset)
{
    return t->stage + offset / mpi_piece_bytes % PIECES_MAX * (t->stage_bytes / PIECES_MAX);
}

static enum status post_receives(struct link *link, struct transfer *t,
                                 const struct message *message, struct error *err)
{
    while (has_room(t, message, message->done)) {
        struct piece *piece = piece_at(t, t->posted);
        size_t bytes = piece_size(message, t->posted);
        void *to =
            message->into ? (unsigned char *)message->into + t->posted : stage_at(t, t->posted);
        piece->arrived = false;
        TRY(mpi_check(MPI_Irecv(to, (int)bytes, MPI_BYTE, message->peer, tag_of(message),
                                link->group->messages, &piece->request),
                      "MPI_Irecv", err));
        t->posted += bytes;
    }
    return STATUS_OK;
}

/* Looks at the pieces that were asked for, in their order. */
static enum status look(struct link *link, struct transfer *t, struct message *message,
                        struct error *err)
{
    while (t->completed < t->posted) {
        struct piece *piece = piece_at(t, t->completed);
        size_t expected = piece_size(message, t->completed);
        int bytes = 0;
        TRY(piece_test(link, message, piece, err));
        if (!piece->arrived)
            return STATUS_OK;
        TRY(mpi_check(MPI_Get_count(&piece->status, MPI_BYTE, &bytes), "MPI_Get_count", err));
        if ((size_t)bytes != expected)
            return message_mismatch(link, message, message->call, t->completed + (size_t)bytes,
                                    err);
        t->completed += expected;
    }
    return STATUS_OK;
}

static void take_staged(struct transfer *t, struct message *message, size_t limit)
{
    limit = smaller(limit, t->completed);
    while (message->done < limit) {
        size_t inside = message->done % mpi_piece_bytes;
        size_t bytes = smaller(mpi_piece_bytes - inside, limit - message->done);
        message->take(message->take_context, stage_at(t, message->done) + inside, message->done,
                      bytes);
        message->done += bytes;
    }
}

enum status mpi_receive(struct link *link, struct message *message, size_t limit, struct error *err)
{
    struct transfer *t = &link->state->receiving[message->lane];
    if (!message->begun) {
        begin(t, message);
        TRY(stage_room(t, message, err));
    }
    TRY(post_receives(link, t, message, err));
    TRY(look(link, t, message, err));
    if (message->into)
        message->done = t->completed;
    else
        take_staged(t, message, limit);
    return post_receives(link, t, message, err);
}

void mpi_transfers_release(struct link_state *state)
{
    for (int lane = 0; lane < LANES_MAX; lane++)
        memory_free(state->receiving[lane].stage);
}
