/* SPDX-License-Identifier: Apache-2.0 */
#include "collective/channel.h"

#include <string.h>

/* So many bytes are written before the reader learns of them: enough to make that cheap, few
 * enough that it starts early and finds them in a cache. */
enum { PUBLISH_BYTES = 32 << 10, ALIGNMENT = 8 };

struct header {
    uint64_t bytes;
    uint32_t call;
    uint32_t offered; /* instead of the bytes there are two addresses */
};

enum { OFFER_SIZE = sizeof(struct header) + 2 * ALIGNMENT };

size_t channel_size(size_t capacity)
{
    return sizeof(struct channel) + capacity;
}

static unsigned char *bytes_of(struct channel *channel)
{
    return (unsigned char *)(channel + 1);
}

static size_t padded(size_t bytes)
{
    return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

static size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* How many bytes lie together from a position on. */
static size_t together(size_t capacity, uint64_t position)
{
    return capacity - (size_t)(position & (capacity - 1));
}

/* Headers lie together, since all positions and the capacity are multiples of ALIGNMENT; a header
 * is two of them, so it may be cut in half at the end of the ring. */
static void put_header(struct channel *channel, size_t capacity, uint64_t at, struct header header)
{
    unsigned char *bytes = bytes_of(channel);
    memcpy(bytes + (at & (capacity - 1)), &header, ALIGNMENT);
    memcpy(bytes + ((at + ALIGNMENT) & (capacity - 1)), (const char *)&header + ALIGNMENT,
           ALIGNMENT);
}

static struct header get_header(struct channel *channel, size_t capacity, uint64_t at)
{
    const unsigned char *bytes = bytes_of(channel);
    struct header header;
    memcpy(&header, bytes + (at & (capacity - 1)), ALIGNMENT);
    memcpy((char *)&header + ALIGNMENT, bytes + ((at + ALIGNMENT) & (capacity - 1)), ALIGNMENT);
    return header;
}

static void put_address(struct channel *channel, size_t capacity, uint64_t at, const void *address)
{
    memcpy(bytes_of(channel) + (at & (capacity - 1)), &address, sizeof(address));
}

static void *get_address(struct channel *channel, size_t capacity, uint64_t at)
{
    void *address;
    memcpy(&address, bytes_of(channel) + (at & (capacity - 1)), sizeof(address));
    return address;
}

bool channel_send(struct channel *channel, size_t capacity, struct message *message, size_t limit)
{
    uint64_t start = atomic_load_explicit(&channel->written, memory_order_relaxed), at = start;
    uint64_t taken = atomic_load_explicit(&channel->taken, memory_order_acquire);
    size_t room = capacity - (size_t)(at - taken);
    if (!message->begun && room < sizeof(struct header) + ALIGNMENT)
        return false;
    if (!message->begun) {
        put_header(channel, capacity, at, (struct header){message->bytes, message->call, false});
        message->begun = true;
        at += sizeof(struct header);
        room -= sizeof(struct header);
    }
    const unsigned char *data = message->data;
    limit = smaller(limit, message->bytes);
    for (size_t moved = 0; message->done < limit && room > 0 && moved < PUBLISH_BYTES;) {
        size_t bytes = smaller(smaller(limit - message->done, room), together(capacity, at));
        bytes = smaller(bytes, PUBLISH_BYTES - moved);
        memcpy(bytes_of(channel) + (at & (capacity - 1)), data + message->done, bytes);
        message->done += bytes;
        moved += bytes;
        at += padded(bytes);
        room -= padded(bytes);
    }
    if (at == start)
        return false;
    atomic_store_explicit(&channel->written, at, memory_order_release);
    return true;
}

bool channel_offer(struct channel *channel, size_t capacity, struct message *message)
{
    uint64_t at = atomic_load_explicit(&channel->written, memory_order_relaxed);
    uint64_t taken = atomic_load_explicit(&channel->taken, memory_order_acquire);
    if (capacity - (size_t)(at - taken) < OFFER_SIZE)
        return false;
    put_header(channel, capacity, at, (struct header){message->bytes, message->call, true});
    put_address(channel, capacity, at + sizeof(struct header), message->data);
    put_address(channel, capacity, at + sizeof(struct header) + ALIGNMENT, message->back);
    message->begun = true;
    memcpy(&message->offered, &message->data, sizeof(message->data));
    atomic_store_explicit(&channel->written, at + OFFER_SIZE, memory_order_release);
    return true;
}

bool channel_refuses(const struct channel *channel)
{
    return atomic_load_explicit(&channel->refused, memory_order_relaxed) != 0;
}

/* Nothing was written behind the offer. */
bool channel_answered(struct channel *channel, struct message *message)
{
    uint64_t written = atomic_load_explicit(&channel->written, memory_order_relaxed);
    if (atomic_load_explicit(&channel->taken, memory_order_acquire) != written)
        return false;
    uint64_t refused = atomic_load_explicit(&channel->refused, memory_order_relaxed);
    if (refused != 1 + written - OFFER_SIZE) {
        message->done = message->bytes;
        message->returned = message->back;
    }
    message->offered = NULL;
    return true;
}

void channel_answer(struct channel *channel, struct message *message)
{
    uint64_t at = atomic_load_explicit(&channel->taken, memory_order_relaxed);
    if (message->done < message->bytes)
        atomic_store_explicit(&channel->refused, 1 + at, memory_order_relaxed);
    else
        message->returned = message->back;
    message->offered = NULL;
    atomic_store_explicit(&channel->taken, at + OFFER_SIZE, memory_order_release);
}

enum status channel_receive(struct channel *channel, size_t capacity, const struct link *link,
                            struct message *message, size_t limit, bool *moved, struct error *err)
{
    uint64_t start = atomic_load_explicit(&channel->taken, memory_order_relaxed), at = start;
    uint64_t written = atomic_load_explicit(&channel->written, memory_order_acquire);
    *moved = false;
    if (written == at)
        return STATUS_OK;
    if (!message->begun) {
        struct header header = get_header(channel, capacity, at);
        if (header.bytes != message->bytes || header.call != message->call)
            return message_mismatch(link, message, header.call, (size_t)header.bytes, err);
        message->begun = true;
        at += sizeof(header);
        if (header.offered) {
            message->offered = get_address(channel, capacity, at);
            message->back = get_address(channel, capacity, at + ALIGNMENT);
            if (message->back && !message->made)
                return message_mismatch(link, message, header.call, (size_t)header.bytes, err);
            return STATUS_OK;
        }
    }
    limit = smaller(limit, message->bytes);
    while (message->done < limit && at < written) {
        size_t bytes = smaller(limit - message->done, (size_t)(written - at));
        bytes = smaller(bytes, together(capacity, at));
        message->take(message->take_context, bytes_of(channel) + (at & (capacity - 1)),
                      message->done, bytes);
        message->done += bytes;
        at += padded(bytes);
    }
    *moved = at != start;
    if (*moved)
        atomic_store_explicit(&channel->taken, at, memory_order_release);
    return STATUS_OK;
}
