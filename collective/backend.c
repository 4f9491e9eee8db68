/* SPDX-License-Identifier: Apache-2.0 */
#include "collective/backend.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define X(name) extern const struct backend backend_##name;
#include "backend_list.inc"
#undef X

static const struct backend *const backends[] = {
#define X(name) &backend_##name,
#include "backend_list.inc"
#undef X
};

int backend_count(void)
{
    return ARRAY_COUNT(backends);
}

const struct backend *backend_at(int index)
{
    return backends[index];
}

const struct backend *backend_find(const char *name)
{
    for (int k = 0; k < ARRAY_COUNT(backends); k++)
        if (strcmp(backends[k]->name, name) == 0)
            return backends[k];
    return NULL;
}

enum status link_open(const struct backend *backend, struct group *group, int rank,
                      struct link *out, struct error *err)
{
    *out = (struct link){.backend = backend, .group = group, .rank = rank};
    return backend->open(out, err);
}

enum status message_mismatch(const struct link *link, const struct message *message, uint32_t call,
                             size_t bytes, struct error *err)
{
    return FAIL(err, STATUS_FAILED,
                "rank %d sent %zu bytes of operation %" PRIu32 ", where rank %d expects %zu of "
                "operation %" PRIu32 ": all ranks must start the same operations in the same order",
                message->peer, bytes, call, link->rank, message->bytes, message->call);
}

void awaited_text(const struct link *link, const struct awaited *awaited, uint64_t waited_ns,
                  char *text, size_t size)
{
    snprintf(text, size,
             "rank %d waited %.1f s for rank %d to %s (operation %" PRIu32 ", %zu of %zu bytes)",
             link->rank, (double)waited_ns * 1e-9, awaited->peer,
             awaited->to_send ? "send" : "receive", awaited->call, awaited->done, awaited->bytes);
}
