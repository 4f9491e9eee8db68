/* SPDX-License-Identifier: Apache-2.0
 *
 * Messages that are offered in the place of being copied: taken, given back, or refused and sent
 * after all, one after another in the same channel. */
#include <stdlib.h>
#include <string.h>

#include "collective/channel.h"
#include "tests/lib/unit.h"

enum { CAPACITY = 128, BYTES = 96 };

static void keep(void *context, const void *piece, size_t offset, size_t bytes)
{
    memcpy((unsigned char *)context + offset, piece, bytes);
}

struct pair {
    struct channel *channel;
    struct link link;
    unsigned char sent[BYTES], got[BYTES], back[BYTES];
    struct message send, receive;
};

static struct message sent_by(struct pair *p, uint32_t call, unsigned char first)
{
    for (int k = 0; k < BYTES; k++)
        p->sent[k] = (unsigned char)(first + k);
    memset(p->got, 0, BYTES);
    memset(p->back, 0, BYTES);
    return (struct message){.call = call, .bytes = BYTES, .data = p->sent, .stays = true};
}

static struct message received_by(struct pair *p, uint32_t call)
{
    return (struct message){
        .call = call, .bytes = BYTES, .take = keep, .take_context = p->got, .made = p->got};
}

static void look(struct pair *p)
{
    struct error err = {0};
    bool moved;
    assert_int_equal(channel_receive(p->channel, CAPACITY, &p->link, &p->receive, p->receive.bytes,
                                     &moved, &err),
                     STATUS_OK);
}

static void open_pair(struct pair *p)
{
    *p = (struct pair){.channel = aligned_alloc(CHANNEL_LINE, channel_size(CAPACITY))};
    assert_non_null(p->channel);
    memset(p->channel, 0, channel_size(CAPACITY));
}

/* Call number `call`, offered; refused or not. */
static void exchange(struct pair *p, uint32_t call, bool wanted_back, bool refuse)
{
    p->send = sent_by(p, call, (unsigned char)call);
    p->send.back = wanted_back ? p->back : NULL;
    p->receive = received_by(p, call);
    assert_true(channel_offer(p->channel, CAPACITY, &p->send));
    assert_false(channel_answered(p->channel, &p->send));
    look(p);
    assert_ptr_equal(p->receive.offered, p->sent);
    assert_ptr_equal(p->receive.back, p->send.back);
    if (!refuse) {
        keep(p->got, p->receive.offered, 0, BYTES);
        if (p->receive.back)
            memcpy(p->receive.back, p->got, BYTES);
        p->receive.done = BYTES;
    }
    channel_answer(p->channel, &p->receive);
    assert_true(channel_answered(p->channel, &p->send));
    assert_int_equal(p->send.done, refuse ? 0 : BYTES);
    assert_int_equal(p->send.returned, wanted_back && !refuse);
    assert_int_equal(p->receive.returned, wanted_back && !refuse);
    for (int tries = 0; refuse && tries < 10 && p->receive.done < BYTES; tries++) {
        channel_send(p->channel, CAPACITY, &p->send, BYTES);
        look(p);
    }
    assert_int_equal(p->receive.done, BYTES);
    assert_int_equal(p->send.done, BYTES);
    assert_memory_equal(p->got, p->sent, BYTES);
    assert_int_equal(p->back[1], wanted_back && !refuse ? p->sent[1] : 0);
}

TEST(offers_are_answered_one_by_one)
{
    struct pair p;
    open_pair(&p);
    exchange(&p, 1, false, false);
    exchange(&p, 2, true, false);
    assert_false(channel_refuses(p.channel));
    exchange(&p, 3, false, true);
    assert_true(channel_refuses(p.channel));
    exchange(&p, 4, true, false); /* memory of another kind may be offered still */
    exchange(&p, 5, true, true);
    exchange(&p, 6, false, false);
    free(p.channel);
}

/* Only who keeps what it makes of a message can give it back. */
TEST(nothing_comes_back_unasked)
{
    struct pair p;
    struct error err = {0};
    bool moved;
    open_pair(&p);
    p.send = sent_by(&p, 1, 1);
    p.send.back = p.back;
    p.receive = received_by(&p, 1);
    p.receive.made = NULL;
    assert_true(channel_offer(p.channel, CAPACITY, &p.send));
    assert_int_equal(channel_receive(p.channel, CAPACITY, &p.link, &p.receive, BYTES, &moved, &err),
                     STATUS_FAILED);
    free(p.channel);
}
