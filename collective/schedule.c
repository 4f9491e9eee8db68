/* SPDX-License-Identifier: Apache-2.0 */
#include "collective/schedule.h"

#include <inttypes.h>

void step_add(struct comm_schedule *schedule, int lane, struct step step)
{
    struct lane *to = &schedule->lanes[lane];
    if (step.to != NOBODY && step.send.count == 0)
        step.to = NOBODY;
    if (step.from != NOBODY && step.receive.count == 0)
        step.from = NOBODY;
    if (step.to == NOBODY && step.from == NOBODY)
        return;
    struct step *steps =
        arena_grow(schedule->arena, to->steps, &to->capacity, to->count + 1, sizeof(*steps));
    if (!steps) {
        schedule->no_memory = true;
        return;
    }
    to->steps = steps;
    steps[to->count++] = step;
}

static enum status check_peer(const struct comm_schedule *schedule, int peer, struct error *err)
{
    if (peer < NOBODY || peer >= schedule->ranks)
        return FAIL(err, STATUS_INVALID, "a step has rank %d of %d as its peer", peer,
                    schedule->ranks);
    return STATUS_OK;
}

static enum status check_span(const struct comm_schedule *schedule, struct span span,
                              struct error *err)
{
    int64_t length = schedule->length[span.place];
    if (span.first < 0 || span.count < 0 || span.count > length - span.first)
        return FAIL(err, STATUS_INVALID,
                    "a step reaches from element %" PRId64 " on over %" PRId64 " of %" PRId64,
                    span.first, span.count, length);
    return STATUS_OK;
}

static enum status check_step(const struct comm_schedule *schedule, const struct step *step,
                              struct error *err)
{
    TRY(check_peer(schedule, step->to, err));
    TRY(check_peer(schedule, step->from, err));
    if ((step->to == schedule->rank) != (step->from == schedule->rank))
        return FAIL(err, STATUS_INVALID, "a step sends to its own rank and receives elsewhere");
    if (step->to != NOBODY)
        TRY(check_span(schedule, step->send, err));
    if (step->returns && step->to != NOBODY) {
        TRY(check_span(schedule, step->back, err));
        if (step->back.place == PLACE_INPUT || step->back.count != step->send.count)
            return FAIL(err, STATUS_INVALID, "a step gets something else back than it has sent");
    }
    if (step->from == NOBODY)
        return STATUS_OK;
    TRY(check_span(schedule, step->receive, err));
    if (step->receive.place == PLACE_INPUT)
        return FAIL(err, STATUS_INVALID, "a step writes into the input");
    if (step->combines)
        TRY(check_span(schedule, step->operand, err));
    if (step->combines && step->operand.count != step->receive.count)
        return FAIL(err, STATUS_INVALID, "a step combines spans of different lengths");
    return STATUS_OK;
}

enum status schedule_check(const struct comm_schedule *schedule, struct error *err)
{
    if (schedule->no_memory)
        return FAIL_NO_MEMORY(err);
    for (int lane = 0; lane < LANES_MAX; lane++)
        for (size_t k = 0; k < schedule->lanes[lane].count; k++)
            if (check_step(schedule, &schedule->lanes[lane].steps[k], err) != STATUS_OK)
                return error_context(err, "step %zu of lane %d of rank %d", k, lane,
                                     schedule->rank);
    return STATUS_OK;
}

struct schedule_work schedule_work(const struct comm_schedule *schedule)
{
    struct schedule_work work = {0};
    int64_t sent = 0, received = 0;
    for (int lane = 0; lane < LANES_MAX; lane++) {
        int64_t messages = 0;
        for (size_t k = 0; k < schedule->lanes[lane].count; k++) {
            const struct step *step = &schedule->lanes[lane].steps[k];
            if (step->to == schedule->rank)
                continue;
            int64_t there = step->to == NOBODY ? 0 : step->send.count;
            int64_t here = step->from == NOBODY ? 0 : step->receive.count;
            messages += step->returns ? 2 : 1;
            sent += step->returns ? there + here : there;
            received += step->returns ? there + here : here;
            work.elements_added += step->combines ? here : 0;
        }
        if (messages > work.messages)
            work.messages = messages;
    }
    work.elements_sent = sent > received ? sent : received;
    return work;
}

struct span span_part(struct span whole, int64_t index, int64_t parts)
{
    int64_t each = whole.count / parts, longer = whole.count % parts;
    int64_t before = index * each + (index < longer ? index : longer);
    return (struct span){whole.place, whole.first + before, each + (index < longer)};
}

int64_t counts_before(const int64_t *counts, int rank)
{
    int64_t sum = 0;
    for (int k = 0; k < rank; k++)
        sum += counts[k];
    return sum;
}
