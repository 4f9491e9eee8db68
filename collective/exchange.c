/* SPDX-License-Identifier: Apache-2.0 */
#include "collective/exchange.h"

#include <string.h>

void exchange_begin(struct exchange *exchange, uint32_t call, const void *input, void *output,
                    void *scratch)
{
    exchange->call = call;
    exchange->input = input;
    exchange->output = output;
    exchange->scratch = scratch;
    for (int lane = 0; lane < LANES_MAX; lane++)
        exchange->lanes[lane] = (struct lane_work){.exchange = exchange};
}

static const unsigned char *address(const struct exchange *x, struct span span)
{
    const unsigned char *base = span.place == PLACE_INPUT    ? x->input
                                : span.place == PLACE_OUTPUT ? x->output
                                                             : x->scratch;
    return base + (size_t)span.first * x->element;
}

static unsigned char *writable(const struct exchange *x, struct span span)
{
    unsigned char *base = span.place == PLACE_OUTPUT ? x->output : x->scratch;
    return base + (size_t)span.first * x->element;
}

static void take(void *context, const void *piece, size_t offset, size_t bytes)
{
    const struct lane_work *work = context;
    const struct exchange *x = work->exchange;
    if (work->operand)
        x->combine(work->to + offset, work->operand + offset, piece, (int64_t)(bytes / x->element));
    else
        memcpy(work->to + offset, piece, bytes);
}

static void copy_step(const struct exchange *x, const struct step *step)
{
    const unsigned char *from = address(x, step->send);
    unsigned char *to = writable(x, step->receive);
    if (from != to)
        memcpy(to, from, (size_t)step->send.count * x->element);
}

static void begin_step(struct exchange *x, int lane, const struct step *step)
{
    struct lane_work *work = &x->lanes[lane];
    struct message blank = {.lane = lane, .call = x->call};
    work->active = true;
    work->behind = false;
    work->operand = NULL;
    work->send = work->receive = blank;
    if (step->to != NOBODY) {
        work->send.peer = step->to;
        work->send.data = address(x, step->send);
        work->send.bytes = (size_t)step->send.count * x->element;
    }
    if (step->from == NOBODY)
        return;
    work->to = writable(x, step->receive);
    work->operand = step->combines ? address(x, step->operand) : NULL;
    work->receive.peer = step->from;
    work->receive.take = take;
    work->receive.take_context = work;
    work->receive.bytes = (size_t)step->receive.count * x->element;
    work->behind = step->to != NOBODY && work->send.data == work->to;
}

static enum status move_step(struct exchange *x, struct lane_work *work, bool *moved,
                             struct error *err)
{
    struct message *send = &work->send, *receive = &work->receive;
    size_t before = send->done + receive->done;
    if (send->done < send->bytes)
        TRY(x->link->backend->send(x->link, send, err));
    size_t limit = work->behind && send->done < receive->bytes ? send->done : receive->bytes;
    if (receive->done < limit)
        TRY(x->link->backend->receive(x->link, receive, limit, err));
    *moved = send->done + receive->done > before;
    work->active = send->done < send->bytes || receive->done < receive->bytes;
    return STATUS_OK;
}

/* Goes on in a lane as long as something moves. */
static enum status move_lane(struct exchange *x, int lane, bool *moved, bool *done,
                             struct error *err)
{
    struct lane_work *work = &x->lanes[lane];
    const struct lane *steps = &x->schedule->lanes[lane];
    for (bool here = true; here;) {
        if (!work->active) {
            if (work->next == steps->count)
                return STATUS_OK;
            const struct step *step = &steps->steps[work->next++];
            *moved = true;
            if (step->to == x->schedule->rank) {
                copy_step(x, step);
                continue;
            }
            begin_step(x, lane, step);
        }
        TRY(move_step(x, work, &here, err));
        *moved = *moved || here;
    }
    *done = *done && !work->active && work->next == steps->count;
    return STATUS_OK;
}

enum status exchange_move(struct exchange *exchange, bool *moved, bool *done, struct error *err)
{
    *moved = false;
    *done = true;
    for (int lane = 0; lane < LANES_MAX; lane++)
        TRY(move_lane(exchange, lane, moved, done, err));
    return STATUS_OK;
}

struct awaited exchange_awaited(const struct exchange *exchange)
{
    for (int lane = 0; lane < LANES_MAX; lane++) {
        const struct lane_work *work = &exchange->lanes[lane];
        if (!work->active)
            continue;
        bool to_send = work->receive.done < work->receive.bytes;
        const struct message *message = to_send ? &work->receive : &work->send;
        return (struct awaited){message->peer, to_send, message->done, message->bytes,
                                message->call};
    }
    return (struct awaited){.call = exchange->call};
}
