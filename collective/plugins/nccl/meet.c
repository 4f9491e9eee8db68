/* SPDX-License-Identifier: Apache-2.0
 *
 * How ranks find each other: each tells rank 0 on which machine it is, and gets NCCL's id, by
 * messages of the control. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "collective/plugins/nccl/nccl_backend.h"

/* The calls that these messages belong to. */
enum { CALL_ARRIVAL = 1, CALL_MEETING };

static void take(void *context, const void *piece, size_t offset, size_t bytes)
{
    memcpy((char *)context + offset, piece, bytes);
}

static enum status carry(struct link *control, struct message *message, bool to_send,
                         struct error *err)
{
    const struct backend *backend = control->backend;
    for (unsigned idle = 0; message->done < message->bytes;) {
        size_t before = message->done;
        TRY(to_send ? backend->send(control, message, err)
                    : backend->receive(control, message, message->bytes, err));
        if (message->done > before) {
            idle = 0;
            continue;
        }
        struct awaited awaited = {message->peer, !to_send, message->done, message->bytes,
                                  message->call};
        TRY(backend->wait(control, idle++, &awaited, err));
    }
    return STATUS_OK;
}

static enum status send_to(struct link *control, int peer, uint32_t call, const void *data,
                           size_t bytes, struct error *err)
{
    struct message message = {.peer = peer, .call = call, .bytes = bytes, .data = data};
    return carry(control, &message, true, err);
}

static enum status receive_from(struct link *control, int peer, uint32_t call, void *to,
                                size_t bytes, struct error *err)
{
    struct message message = {
        .peer = peer, .call = call, .bytes = bytes, .take = take, .take_context = to};
    return carry(control, &message, false, err);
}

/* FNV-1a of the machine's name. */
static uint64_t host_number(void)
{
    char name[256] = "";
    uint64_t number = 14695981039346656037U;
    gethostname(name, sizeof(name) - 1);
    for (const char *at = name; *at; at++)
        number = (number ^ (unsigned char)*at) * 1099511628211U;
    return number;
}

static enum status lead(struct link *link, uint64_t *hosts, struct meeting *out, struct error *err)
{
    struct link *control = &link->state->control;
    hosts[0] = host_number();
    for (int rank = 1; rank < link->ranks; rank++)
        TRY(receive_from(control, rank, CALL_ARRIVAL, &hosts[rank], sizeof(hosts[rank]), err));
    TRY(nccl_check(link, link->state->nccl.unique_id(&out->id), "ncclGetUniqueId", err));
    out->device = 0;
    for (int rank = 1; rank < link->ranks; rank++) {
        struct meeting meeting = {.id = out->id};
        for (int before = 0; before < rank; before++)
            meeting.device += hosts[before] == hosts[rank];
        TRY(send_to(control, rank, CALL_MEETING, &meeting, sizeof(meeting), err));
    }
    return STATUS_OK;
}

enum status nccl_meet(struct link *link, struct meeting *out, struct error *err)
{
    struct link *control = &link->state->control;
    uint64_t own = host_number();
    if (link->rank > 0) {
        TRY(send_to(control, 0, CALL_ARRIVAL, &own, sizeof(own), err));
        return receive_from(control, 0, CALL_MEETING, out, sizeof(*out), err);
    }
    uint64_t *hosts = calloc((size_t)link->ranks, sizeof(*hosts));
    enum status status = hosts ? lead(link, hosts, out, err) : FAIL_NO_MEMORY(err);
    free(hosts);
    return status;
}
