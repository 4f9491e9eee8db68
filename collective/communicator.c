/* SPDX-License-Identifier: Apache-2.0 */
#include "collective/communicator.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/system/clock.h"
#include "collective/exchange.h"
#include "collective/log_gp.h"

enum plan_state { PLAN_IDLE, PLAN_STARTED, PLAN_DONE };

struct comm_plan {
    struct arena arena; /* the schedule's */
    const struct algorithm *algorithm;
    enum comm_operation operation;
    struct comm_schedule schedule;
    struct exchange exchange;
    struct own_plan *own; /* owned: of the backend's library, instead of the exchange */
    void *memory;         /* owned: the exchange's */
    enum plan_state state;
    uint64_t started_ns, ended_ns;
    struct comm_plan *next; /* started after this one */
};

struct communicator {
    struct link link;
    struct communicator_options options;
    const struct algorithm *preferred; /* NULL: none is */
    struct comm_plan *first, *last;    /* started, in their order */
    uint32_t calls;
    struct error failure; /* what has failed; all that comes later fails likewise */
};

static int64_t call_bytes(const struct comm_call *call, int ranks)
{
    return call_whole_count(call, ranks) * (int64_t)dtype_size(call->dtype);
}

static enum status fill_own(struct communicator *self, const struct comm_call *call,
                            struct comm_plan *plan, struct error *err)
{
    const struct backend *backend = self->link.backend;
    if (!backend->own)
        return UNSUPPORTED(err, "%s has no operations of its own", backend->name);
    return backend->own->prepare(&self->link, call, plan->algorithm->own == OWN_BLOCKING,
                                 &plan->own, err);
}

static void combine_nothing(void *to, const void *operand, const void *message, int64_t count)
{
    (void)to, (void)operand, (void)message, (void)count;
}

static enum status fill_plan(struct communicator *self, const struct comm_call *call,
                             struct comm_plan *plan, struct error *err)
{
    int rank = self->link.rank, ranks = self->link.ranks;
    int64_t bytes = call_bytes(call, ranks);
    struct schedule_options options = schedule_options_for(ranks);
    int64_t segment_bytes =
        self->link.segment_bytes ? self->link.segment_bytes : self->link.backend->segment_bytes;
    if (segment_bytes)
        options.segment_bytes = segment_bytes * ranks;
    if (self->options.schedule.lanes)
        options.lanes = self->options.schedule.lanes;
    if (self->options.schedule.segment_bytes)
        options.segment_bytes = self->options.schedule.segment_bytes;
    if (self->options.schedule.node_ranks)
        options.node_ranks = self->options.schedule.node_ranks;
    plan->algorithm = self->options.algorithm;
    if (self->preferred && self->preferred->operations & OPERATION_BIT(call->operation))
        plan->algorithm = self->preferred;
    if (!plan->algorithm)
        plan->algorithm = self->link.backend->send ? algorithm_choose(call, ranks, bytes)
                                                   : algorithm_find("library");
    plan->operation = call->operation;
    if (plan->algorithm->own)
        return fill_own(self, call, plan, err);
    if (!self->link.backend->send)
        return UNSUPPORTED(err, "%s has whole operations alone and no messages for %s",
                           self->link.backend->name, plan->algorithm->name);
    TRY(schedule_make(plan->algorithm, call, rank, ranks, &options, &plan->arena, &plan->schedule,
                      err));
    plan->exchange.schedule = &plan->schedule;
    exchange_init(&plan->exchange, call);
    bool reduces = call->operation == COMM_ALL_REDUCE || call->operation == COMM_REDUCE_SCATTER;
    if (reduces && !plan->exchange.combine)
        return UNSUPPORTED(err, "%s: no reduction of %s; take f32, f64, f16, bf16, i32 or i64",
                           operation_name(call->operation), dtype_name(call->dtype));
    if (self->options.bytes_alone)
        plan->exchange.combine = combine_nothing;
    size_t memory = exchange_memory(&plan->exchange);
    if (memory && !(plan->memory = memory_alloc(memory)))
        return FAIL_NO_MEMORY(err);
    return STATUS_OK;
}

static void release(struct comm *comm, struct comm_plan *plan)
{
    struct communicator *self = comm->state;
    if (!plan)
        return;
    if (plan->own)
        self->link.backend->own->release(plan->own);
    if (plan->memory)
        memory_free(plan->memory);
    arena_release(&plan->arena);
    free(plan);
}

static enum status prepare(struct comm *comm, const struct comm_call *call, struct comm_plan **out,
                           struct error *err)
{
    struct communicator *self = comm->state;
    struct comm_plan *plan = calloc(1, sizeof(*plan));
    *out = NULL;
    if (!plan)
        return FAIL_NO_MEMORY(err);
    enum status status = fill_plan(self, call, plan, err);
    if (status != STATUS_OK) {
        release(comm, plan);
        return status;
    }
    plan->exchange.link = &self->link;
    *out = plan;
    return STATUS_OK;
}

/* A failure is final, and the other ranks hear of it. */
static enum status failed(struct communicator *self, struct error *err)
{
    self->failure = *err;
    self->link.backend->announce(self->link.group, self->link.rank, err->message);
    return err->code;
}

static enum status start_own(struct communicator *self, struct comm_plan *plan, const void *from,
                             void *to, struct error *err)
{
    struct error own = {0};
    plan->exchange.call = ++self->calls;
    if (self->link.backend->own->start(plan->own, from, to, err ? err : &own) != STATUS_OK)
        return failed(self, err ? err : &own);
    return STATUS_OK;
}

static enum status start(struct comm *comm, struct comm_plan *plan, const void *from, void *to,
                         struct error *err)
{
    struct communicator *self = comm->state;
    if (self->failure.code != STATUS_OK)
        return FAIL(err, self->failure.code, "%s", self->failure.message);
    if (plan->state == PLAN_STARTED)
        return FAIL(err, STATUS_INVALID, "%s was started again before it was waited for",
                    operation_name(plan->operation));
    if (plan->operation == COMM_ALL_TO_ALL && from == to && plan->schedule.length[PLACE_INPUT] > 0)
        return UNSUPPORTED(err, "all_to_all needs an output apart from its input");
    if (plan->own)
        TRY(start_own(self, plan, from, to, err));
    else
        exchange_begin(&plan->exchange, ++self->calls, from, to, plan->memory);
    plan->state = PLAN_STARTED;
    plan->started_ns = 0;
    plan->next = NULL;
    if (self->last)
        self->last->next = plan;
    else
        self->first = plan;
    self->last = plan;
    return STATUS_OK;
}

static enum status move_plan(struct communicator *self, struct comm_plan *plan, bool *moved,
                             bool *done, struct error *err)
{
    if (!plan->own)
        return exchange_move(&plan->exchange, moved, done, err);
    TRY(self->link.backend->own->test(plan->own, done, err));
    *moved = *done;
    return STATUS_OK;
}

/* Moves what was started first; goes on with the next ones where that is done. */
static enum status move(struct communicator *self, bool *moved, struct error *err)
{
    *moved = false;
    if (self->failure.code != STATUS_OK)
        return FAIL(err, self->failure.code, "%s", self->failure.message);
    while (self->first) {
        struct comm_plan *plan = self->first;
        bool here, done;
        if (!plan->started_ns)
            plan->started_ns = clock_now_ns();
        if (move_plan(self, plan, &here, &done, err) != STATUS_OK)
            return failed(self, err);
        *moved = *moved || here;
        if (!done)
            return STATUS_OK;
        plan->state = PLAN_DONE;
        plan->ended_ns = clock_now_ns();
        self->first = plan->next;
        if (!self->first)
            self->last = NULL;
    }
    return STATUS_OK;
}

static enum status progress(struct comm *comm, struct error *err)
{
    struct error own = {0};
    bool moved;
    return move(comm->state, &moved, err ? err : &own);
}

static struct awaited awaited_of(const struct comm_plan *plan)
{
    if (plan->own)
        return (struct awaited){.peer = NOBODY, .call = plan->exchange.call};
    return exchange_awaited(&plan->exchange);
}

static enum status wait_for(struct comm *comm, struct comm_plan *plan, struct error *err)
{
    struct communicator *self = comm->state;
    struct error own = {0};
    unsigned idle = 0;
    err = err ? err : &own;
    while (plan->state == PLAN_STARTED) {
        bool moved;
        TRY(move(self, &moved, err));
        if (moved || plan->state != PLAN_STARTED) {
            idle = 0;
            continue;
        }
        struct awaited awaited = awaited_of(self->first);
        if (self->link.backend->wait(&self->link, idle++, &awaited, err) != STATUS_OK)
            return failed(self, err);
    }
    plan->state = PLAN_IDLE;
    return STATUS_OK;
}

static enum status enqueue(struct comm *comm, struct comm_plan *plan, const void *from, void *to,
                           void *stream, struct error *err)
{
    struct communicator *self = comm->state;
    if (self->failure.code != STATUS_OK)
        return FAIL(err, self->failure.code, "%s", self->failure.message);
    if (!plan->own)
        return UNSUPPORTED(err, "%s is no operation of the device", plan->algorithm->name);
    if (self->link.backend->own->enqueue(plan->own, from, to, stream, err) != STATUS_OK)
        return failed(self, err);
    return STATUS_OK;
}

static enum status attend(struct comm *comm, unsigned idle, struct error *err)
{
    struct communicator *self = comm->state;
    const struct awaited awaited = {.peer = NOBODY, .call = self->calls};
    if (self->failure.code != STATUS_OK)
        return FAIL(err, self->failure.code, "%s", self->failure.message);
    if (self->link.backend->wait(&self->link, idle, &awaited, err) != STATUS_OK)
        return failed(self, err);
    return STATUS_OK;
}

static void record(const struct comm *comm, const struct comm_plan *plan, struct comm_record *out)
{
    (void)comm;
    struct schedule_work work = schedule_work(&plan->schedule);
    *out = (struct comm_record){.started_ns = plan->started_ns,
                                .ended_ns = plan->ended_ns,
                                .messages = work.messages,
                                .bytes_sent = work.elements_sent * (int64_t)plan->exchange.crossing,
                                .algorithm = plan->algorithm->name};
}

enum status communicator_open(const struct backend *backend, struct group *group, int rank,
                              const struct communicator_options *options, struct comm *out,
                              struct error *err)
{
    struct communicator *self = calloc(1, sizeof(*self));
    *out = (struct comm){0};
    if (!self)
        return FAIL_NO_MEMORY(err);
    self->options = *options;
    enum status status = link_open(backend, group, rank, &self->link, err);
    if (status != STATUS_OK) {
        free(self);
        return status;
    }
    *out = (struct comm){
        .rank = self->link.rank,
        .ranks = self->link.ranks,
        .state = self,
        .prepare = prepare,
        .release = release,
        .start = start,
        .progress = progress,
        .wait = wait_for,
        .memory = communicator_memory,
        .record = record,
    };
    if (backend->own && backend->own->enqueue) {
        out->enqueue = enqueue;
        out->attend = attend;
    }
    return STATUS_OK;
}

void communicator_close(struct comm *comm)
{
    struct communicator *self = comm->state;
    if (self)
        self->link.backend->close(&self->link);
    free(self);
    comm->state = NULL;
}

void *communicator_memory(struct comm *comm, size_t bytes)
{
    struct communicator *self = comm->state;
    const struct backend *backend = self->link.backend;
    return backend->memory ? backend->memory(&self->link, bytes) : NULL;
}

/* ---- trips ---- */

static void keep(void *context, const void *piece, size_t offset, size_t bytes)
{
    memcpy((unsigned char *)context + offset, piece, bytes);
}

static enum status move_message(struct communicator *self, struct message *message, bool to_send,
                                struct error *err)
{
    struct link *link = &self->link;
    for (unsigned idle = 0; message->done < message->bytes;) {
        size_t before = message->done;
        if (to_send)
            TRY(link->backend->send(link, message, err));
        else
            TRY(link->backend->receive(link, message, message->bytes, err));
        struct awaited awaited = {message->peer, !to_send, message->done, message->bytes,
                                  message->call};
        if (message->done > before)
            idle = 0;
        else
            TRY(link->backend->wait(link, idle++, &awaited, err));
    }
    return STATUS_OK;
}

static enum status one_message(struct communicator *self, size_t bytes, void *memory, bool to_send,
                               struct error *err)
{
    struct message message = {.peer = 1 - self->link.rank, .call = self->calls, .bytes = bytes};
    if (to_send) {
        message.data = memory;
        message.stays = true;
    } else {
        message.take = keep;
        message.take_context = message.into = memory;
    }
    return move_message(self, &message, to_send, err);
}

static enum status make_trip(struct communicator *self, const struct trip *trip, void *memory,
                             struct error *err)
{
    bool first = self->link.rank == 0;
    for (int k = 0; k < trip->messages; k++) {
        uint64_t left_ns = clock_now_ns();
        while (first && k > 0 && clock_now_ns() - left_ns < trip->apart_ns)
            ; /* busy, as a rank that computes is */
        TRY(one_message(self, trip->bytes, memory, first, err));
    }
    return one_message(self, TRIP_ANSWER, memory, !first, err);
}

enum status communicator_trip(struct comm *comm, const struct trip *trip, void *memory,
                              struct error *err)
{
    struct communicator *self = comm->state;
    self->calls++;
    if (self->link.rank > 1)
        return STATUS_OK;
    if (make_trip(self, trip, memory, err) != STATUS_OK)
        return failed(self, err);
    return STATUS_OK;
}

void communicator_prefer(struct comm *comm, const struct algorithm *algorithm)
{
    struct communicator *self = comm->state;
    self->preferred = algorithm;
}

bool communicator_idle(const struct comm *comm)
{
    const struct communicator *self = comm->state;
    return !self->first;
}

const struct algorithm *plan_algorithm(const struct comm_plan *plan)
{
    return plan->algorithm;
}

struct schedule_work plan_work(const struct comm_plan *plan)
{
    return schedule_work(&plan->schedule);
}
