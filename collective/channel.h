/* SPDX-License-Identifier: Apache-2.0
 *
 * A ring of bytes from one rank to another, in memory of both: one writer, one reader, no lock.
 * A message is a header and its bytes, and may be longer than the ring. Whoever reads takes the
 * bytes where they lie.
 *
 * Where the reader can reach the writer's own memory, a message may be offered instead: header and
 * addresses, of the bytes and of where what they become is wanted, and no byte is copied into the
 * ring. The reader answers when it has all of them, or refuses; then they come through the ring
 * after all.
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
    _Atomic uint64_t refused; /* 1 + where the last offer that was refused lies; 0: none was */
};

/* What a channel of this capacity needs; capacity: a power of two, at least CHANNEL_LINE. */
size_t channel_size(size_t capacity);
/* Move on at most until `limit` bytes of the message are done; true when anything moved. */
bool channel_send(struct channel *channel, size_t capacity, struct message *message, size_t limit);
/* Offers a message that has not begun; true when there was room for it. message->offered is set
 * until the answer is there. */
bool channel_offer(struct channel *channel, size_t capacity, struct message *message);
/* Looks for it; true when it has come: the message is done, or has to be sent. */
bool channel_answered(struct channel *channel, struct message *message);
/* Whether an offer was refused before. */
bool channel_refuses(const struct channel *channel);

/* FAILED where the message that came is another one than the one expected. With an offer nothing
 * moves, and message->offered is set: the caller gets the bytes, and answers. */
enum status channel_receive(struct channel *channel, size_t capacity, const struct link *link,
                            struct message *message, size_t limit, bool *moved, struct error *err);
/* All bytes are there, and what they became lies at message->back, if that is set; or, of a message
 * of which none is, they are wanted through the ring. */
void channel_answer(struct channel *channel, struct message *message);

#endif
