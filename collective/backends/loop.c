/* SPDX-License-Identifier: Apache-2.0
 *
 * All ranks in one thread of one process. Whether bytes move when a rank asks, and how many, is
 * drawn from a seed, so that a test meets thousands of orders of events and can repeat each. Rings
 * are as short as they can be: a schedule that relies on messages being taken early stands still,
 * and that is reported as a failure. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/numbers/random.h"
#include "collective/channel.h"

/* STILL: attempts, of which about half are allowed to move, until it is certain that none can. */
enum { CAPACITY = 64, STILL = 100000 };

struct group {
    int ranks;
    struct group_options options;
    uint64_t drawn; /* random numbers */
    int64_t still;  /* attempts since anything moved */
    char failure[400];
    unsigned char *channels;
};

static enum status loop_group_new(int ranks, const struct group_options *options,
                                  struct group **out, struct error *err)
{
    struct group *group = calloc(1, sizeof(*group));
    size_t bytes = (size_t)ranks * ranks * LANES_MAX * channel_size(CAPACITY);
    unsigned char *channels = aligned_alloc(CHANNEL_LINE, bytes);
    if (!group || !channels) {
        free(group);
        free(channels);
        return FAIL_NO_MEMORY(err);
    }
    for (size_t k = 0; k < bytes; k++)
        channels[k] = 0;
    *group = (struct group){.ranks = ranks, .options = *options, .channels = channels};
    *out = group;
    return STATUS_OK;
}

static void loop_group_free(struct group *group)
{
    if (group)
        free(group->channels);
    free(group);
}

static void loop_announce(struct group *group, int rank, const char *text)
{
    (void)rank;
    if (!group->failure[0])
        snprintf(group->failure, sizeof(group->failure), "%s", text);
}

static enum status loop_open(struct link *link, struct error *err)
{
    (void)err;
    link->ranks = link->group->ranks;
    return STATUS_OK;
}

static void loop_close(struct link *link)
{
    (void)link;
}

static struct channel *channel_of(struct group *group, int from, int to, int lane)
{
    size_t index = ((size_t)from * group->ranks + to) * LANES_MAX + lane;
    return (struct channel *)(void *)(group->channels + index * channel_size(CAPACITY));
}

static uint32_t drawn(struct group *group)
{
    uint32_t word[4];
    random_words(group->options.seed, group->drawn++, word);
    return word[0];
}

/* How far a message may get now: nothing in one of two cases, a few elements in another. */
static size_t drawn_limit(struct group *group, const struct message *message, size_t limit)
{
    uint32_t word[4];
    random_words(group->options.seed, group->drawn++, word);
    size_t step = 8 * (1 + word[1] % 8);
    if (word[0] & 1)
        return 0;
    return (word[0] & 2) || limit - message->done < step ? limit : message->done + step;
}

static enum status after_attempt(struct link *link, const struct message *message, bool to_send,
                                 bool moved, struct error *err)
{
    struct group *group = link->group;
    group->still = moved ? 0 : group->still + 1;
    if (group->still < STILL)
        return STATUS_OK;
    struct awaited awaited = {message->peer, to_send, message->done, message->bytes, message->call};
    char text[200];
    awaited_text(link, &awaited, 0, text, sizeof(text));
    return FAIL(err, STATUS_FAILED, "nothing can move: %s", text);
}

static enum status loop_send(struct link *link, struct message *message, struct error *err)
{
    struct channel *channel = channel_of(link->group, link->rank, message->peer, message->lane);
    size_t limit = drawn_limit(link->group, message, message->bytes);
    bool moved = false;
    if (limit > 0 && message->offered)
        moved = channel_answered(channel, message);
    else if (limit > 0 && !message->begun && message->stays && drawn(link->group) % 2 &&
             !channel_refuses(channel))
        moved = channel_offer(channel, CAPACITY, message);
    else if (limit > 0)
        moved = channel_send(channel, CAPACITY, message, limit);
    return after_attempt(link, message, false, moved, err);
}

/* An offer that has come: refused one time in sixteen, else taken as far as the limit allows. */
static bool take_offer(struct group *group, struct channel *channel, struct message *message,
                       size_t limit)
{
    if (message->done == 0 && drawn(group) % 16 == 0) {
        channel_answer(channel, message);
        return true;
    }
    size_t bytes = limit - message->done;
    if (bytes == 0)
        return false;
    message->take(message->take_context, (const unsigned char *)message->offered + message->done,
                  message->done, bytes);
    if (message->back)
        memcpy((char *)message->back + message->done, (const char *)message->made + message->done,
               bytes);
    message->done = limit;
    if (message->done == message->bytes)
        channel_answer(channel, message);
    return true;
}

static enum status loop_receive(struct link *link, struct message *message, size_t limit,
                                struct error *err)
{
    struct channel *channel = channel_of(link->group, message->peer, link->rank, message->lane);
    bool moved = false;
    limit = drawn_limit(link->group, message, limit);
    if (limit > 0 && !message->offered)
        TRY(channel_receive(channel, CAPACITY, link, message, limit, &moved, err));
    if (limit > 0 && message->offered)
        moved = take_offer(link->group, channel, message, limit);
    return after_attempt(link, message, true, moved, err);
}

/* Nobody else runs while this rank waits: whoever drives the ranks takes turns (comm.progress). */
static enum status loop_wait(struct link *link, unsigned idle, const struct awaited *awaited,
                             struct error *err)
{
    (void)idle;
    (void)awaited;
    if (link->group->failure[0])
        return FAIL(err, STATUS_FAILED, "%s", link->group->failure);
    return STATUS_OK;
}

REGISTER(backend, loop) = {
    .name = "loop",
    .summary = "all ranks in one thread, events in a seeded order: for tests",
    .group_new = loop_group_new,
    .group_free = loop_group_free,
    .announce = loop_announce,
    .open = loop_open,
    .close = loop_close,
    .send = loop_send,
    .receive = loop_receive,
    .wait = loop_wait,
};
