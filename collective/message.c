/* SPDX-License-Identifier: Apache-2.0
 *
 * What is said of messages (backend.h); plug-ins have it, too. */
#include <inttypes.h>
#include <stdio.h>

#include "collective/backend.h"

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
    if (awaited->peer == NOBODY) {
        snprintf(text, size, "rank %d waited %.1f s for the library to complete operation %" PRIu32,
                 link->rank, (double)waited_ns * 1e-9, awaited->call);
        return;
    }
    snprintf(text, size,
             "rank %d waited %.1f s for rank %d to %s (operation %" PRIu32 ", %zu of %zu bytes)",
             link->rank, (double)waited_ns * 1e-9, awaited->peer,
             awaited->to_send ? "send" : "receive", awaited->call, awaited->done, awaited->bytes);
}

uint64_t waiting_ns(struct waiting *waiting, unsigned idle, uint64_t now, uint64_t deadline_ns)
{
    if (idle == 0 || now - waiting->looked_ns > deadline_ns / 4)
        waiting->since_ns = now;
    waiting->looked_ns = now;
    return now - waiting->since_ns;
}
