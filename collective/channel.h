/* SPDX-License-Identifier: Apache-2.0
 *
 * A ring of bytes from one rank to another, in memory of both: one writer, one reader, no lock.
 * A message is a header and its bytes, and may be longer than the ring. Whoever reads takes the
 * bytes where they lie.
 */
#ifndef COLLECTIVE_CHANNEL_H
#define COLLECTIVE_CHANNEL_H

#include <stdatomic.h>

#include "collective/backend.h"

enum { CHANNEL_LINE = 64 };

/* The bytes follow. Zeroed memory is an empty channel. */
struct channel {
    _Alignas(CHANNEL_LINE) _Atomic uint64_t written; /* since the beginning */
    _Alignas(CHANNEL_LINE) _Atomic uint64_t taken;
};

/* What a channel of this capacity needs; capacity: a power of two, at least CHANNEL_LINE. */
size_t channel_size(size_t capacity);
/* Move on at most until `limit` bytes of the message are done; true when anything moved. */
bool channel_send(struct channel *channel, size_t capacity, struct message *message, size_t limit);
/* FAILED where the message that came is another one than the one expected. */
enum status channel_receive(struct channel *channel, size_t capacity, const struct link *link,
                            struct message *message, size_t limit, bool *moved, struct error *err);

#endif
