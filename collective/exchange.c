/* SPDX-License-Identifier: Apache-2.0 */
#include "collective/exchange.h"

#include <string.h>

#include "base/numbers/integers.h"
#include "collective/algorithm.h"

enum { ALIGNMENT = 64 };

void exchange_init(struct exchange *exchange, const struct comm_call *call)
{
    exchange->reduction = call->reduction;
    exchange->combine = combine_of(call->dtype, call->reduction);
    exchange->wire = wire_of(call);
    exchange->element = dtype_size(call->dtype);
    exchange->crossing = call_crossing_size(call);
}

static size_t aligned(size_t bytes)
{
    return round_up(bytes, ALIGNMENT);
}

static size_t scratch_bytes(const struct exchange *x)
{
    return aligned((size_t)x->schedule->length[PLACE_SCRATCH] * x->element);
}

/* Of the longest message that a lane sends. */
static size_t narrowed_bytes(const struct exchange *x, int lane)
{
    int64_t largest = 0;
    for (size_t k = 0; x->wire && k < x->schedule->lanes[lane].count; k++) {
        const struct step *step = &x->schedule->lanes[lane].steps[k];
        if (step->to != NOBODY && step->send.count > largest)
            largest = step->send.count;
        if (step->returns && step->from != NOBODY && step->receive.count > largest)
            largest = step->receive.count;
    }
    return aligned((size_t)largest * x->crossing);
}

size_t exchange_memory(const struct exchange *exchange)
{
    size_t bytes = scratch_bytes(exchange);
    for (int lane = 0; lane < LANES_MAX; lane++)
        bytes += narrowed_bytes(exchange, lane);
    return bytes;
}

void exchange_begin(struct exchange *exchange, uint32_t call, const void *input, void *output,
                    void *memory)
{
    unsigned char *free_memory = memory;
    exchange->call = call;
    exchange->input = input;
    exchange->output = output;
    exchange->scratch = memory;
    exchange->rounded = !exchange->wire || exchange->schedule->ranks == 1;
    for (int lane = 0; lane < LANES_MAX; lane++)
        exchange->lanes[lane] = (struct lane_work){.exchange = exchange};
    if (!exchange->wire)
        return;
    free_memory += scratch_bytes(exchange);
    for (int lane = 0; lane < LANES_MAX; lane++) {
        exchange->narrowed[lane] = free_memory;
        free_memory += narrowed_bytes(exchange, lane);
    }
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

static void take_narrow(const struct lane_work *work, const void *piece, size_t offset,
                        size_t bytes)
{
    const struct exchange *x = work->exchange;
    size_t first = offset / x->crossing;
    float *to = (float *)(void *)work->to + first;
    int64_t count = (int64_t)(bytes / x->crossing);
    if (work->operand)
        x->wire->combine[x->reduction](to, (const float *)(const void *)work->operand + first,
                                       piece, count);
    else
        x->wire->widen(to, piece, count);
}

static void take(void *context, const void *piece, size_t offset, size_t bytes)
{
    const struct lane_work *work = context;
    const struct exchange *x = work->exchange;
    if (x->wire)
        take_narrow(work, piece, offset, bytes);
    else if (work->operand)
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

/* What crosses for a span. */
static const void *sent(struct exchange *x, int lane, struct span span)
{
    const unsigned char *from = address(x, span);
    if (!x->wire)
        return from;
    x->wire->narrow((uint16_t *)(void *)x->narrowed[lane], (const float *)(const void *)from,
                    span.count);
    return x->narrowed[lane];
}

static void begin_step(struct exchange *x, int lane, const struct step *step)
{
    struct lane_work *work = &x->lanes[lane];
    struct message blank = {.lane = lane, .call = x->call};
    work->active = true;
    work->behind = false;
    work->returns = step->returns;
    work->operand = NULL;
    work->send = work->receive = blank;
    if (step->to != NOBODY) {
        work->send.peer = step->to;
        work->send.data = sent(x, lane, step->send);
        work->send.bytes = (size_t)step->send.count * x->crossing;
        work->send.stays = true;
        work->send.back = step->returns && !x->wire ? writable(x, step->back) : NULL;
    }
    if (step->from == NOBODY)
        return;
    work->to = writable(x, step->receive);
    work->operand = step->combines ? address(x, step->operand) : NULL;
    work->receive.peer = step->from;
    work->receive.take = take;
    work->receive.take_context = work;
    work->receive.bytes = (size_t)step->receive.count * x->crossing;
    work->behind = step->to != NOBODY && work->send.data == work->to;
    work->send.stays = !work->behind;
    if (!work->operand && !work->behind && !x->wire)
        work->receive.into = work->to;
    if (step->returns && !x->wire)
        work->receive.made = work->to;
}

/* The second half of a step that returns, as far as the backend has not done it in the first. */
static void begin_return(struct exchange *x, int lane, const struct step *step)
{
    struct lane_work *work = &x->lanes[lane];
    struct step back = {step->from, step->to, .send = step->receive, .receive = step->back};
    if (work->receive.returned)
        back.to = NOBODY;
    if (work->send.returned)
        back.from = NOBODY;
    work->returns = false;
    if (back.to != NOBODY || back.from != NOBODY)
        begin_step(x, lane, &back);
}

static enum status move_step(struct exchange *x, struct lane_work *work, bool *moved,
                             struct error *err)
{
    struct message *send = &work->send, *receive = &work->receive;
    size_t before = send->done + receive->done;
    if (send->done < send->bytes)
        TRY(x->link->backend->send(x->link, send, err));
    size_t limit = work->behind && send->done < receive->bytes ? send->done : receive->bytes;
    if (receive->done < receive->bytes)
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
        if (!work->active && work->returns)
            begin_return(x, lane, &steps->steps[work->next - 1]);
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
    if (*done && !exchange->rounded) {
        exchange->wire->round((float *)(void *)exchange->output,
                              exchange->schedule->length[PLACE_OUTPUT]);
        exchange->rounded = true;
    }
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
