/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs between ranks: what a step hands to the other ranks is on its way while the next steps
 * compute, until one of them reads the result. */
#include <stdlib.h>

#include "base/system/clock.h"
#include "engine/graph/op_list.h"
#include "engine/ops/family/between_ranks.h"
#include "engine/run/exe_internal.h"

static enum status find_operation(const struct op *op, enum comm_operation *operation,
                                  struct error *err)
{
    static const struct op *const ops[COMM_OPERATION_COUNT] = {
        [COMM_ALL_REDUCE] = &op_all_reduce, [COMM_REDUCE_SCATTER] = &op_reduce_scatter,
        [COMM_ALL_GATHER] = &op_all_gather, [COMM_BROADCAST] = &op_broadcast,
        [COMM_ALL_TO_ALL] = &op_all_to_all,
    };
    for (int k = 0; k < COMM_OPERATION_COUNT; k++) {
        *operation = (enum comm_operation)k;
        if (ops[k] == op)
            return STATUS_OK;
    }
    return UNSUPPORTED(err, "%s: no communicator has such an operation", op->name);
}

static void *memory_of(const struct exe *exe, int v)
{
    return exe_is_on_device(exe) ? value_on_device(exe->places, v) : value_memory(exe->places, v);
}

static enum status open_one(struct exe *exe, struct exchange *x, struct error *err)
{
    struct comm *comm = exe->options.comm;
    const struct node *node = exe->steps[x->step].query.node;
    enum comm_operation operation;
    TRY(find_operation(node->op, &operation, err));
    int parts = comm->ranks * comm->ranks; /* of AllToAll; the others have fewer */
    int64_t *counts = calloc((size_t)parts, sizeof(*counts));
    struct comm_call call = {.operation = operation,
                             .reduction = COMM_SUM,
                             .dtype = x->dtype,
                             .count = x->count,
                             .counts = counts,
                             .root = (int)node_int(node, "root", 0),
                             .wire = between_ranks_wire(node),
                             .in_place = memory_of(exe, x->from) == memory_of(exe, x->root),
                             .on_device = exe_is_on_device(exe)};
    if (!counts)
        return FAIL_NO_MEMORY(err);
    for (int k = 0; k < parts; k++)
        counts[k] = x->count / comm->ranks;
    enum status status = comm->prepare(comm, &call, &x->plan, err);
    free(counts);
    return status == STATUS_OK ? status : error_context(err, "%s", node->name);
}

/* Whether ranks can exchange what the device has, and with what it takes to say when they did. */
static enum status open_on_device(struct exe *exe, struct error *err)
{
    struct exe_device *t = exe->on_device;
    const struct device_kind *kind = t->device.kind;
    if (!exe->options.comm->enqueue || !kind->poll)
        return UNSUPPORTED(err,
                           "ranks exchange memory of the device %s by NCCL alone: take the "
                           "backend nccl, or --device cpu",
                           kind->name);
    if (t->host_steps) /* a value would go there and back with all that lie beside it */
        return UNSUPPORTED(err,
                           "%d of %d steps have no kernel on the device %s, and what ranks "
                           "exchange must stay there",
                           t->host_steps, exe->step_count, kind->name);
    TRY(kind->event_new(&t->device, &t->began, err));
    for (int k = 0; k < exe->exchange_count; k++) {
        struct exchange *x = &exe->exchanges[k];
        TRY(kind->event_new(&t->device, &x->ready, err));
        TRY(kind->event_new(&t->device, &x->ended, err));
    }
    return STATUS_OK;
}

enum status exchanges_open(struct exe *exe, struct error *err)
{
    const struct comm *comm = exe->options.comm;
    int ranks = comm ? comm->ranks : 1;
    if (ranks > 1 && exe->exchange_count && exe_is_on_device(exe))
        TRY(open_on_device(exe, err));
    for (int k = 0; k < exe->exchange_count; k++) {
        const struct node *node = exe->steps[exe->exchanges[k].step].query.node;
        int64_t wanted = node_int(node, "ranks", 1);
        if (wanted != ranks)
            return FAIL(err, STATUS_FAILED, "node \"%s\" is between %lld ranks, and there %s %d",
                        node->name, (long long)wanted, ranks == 1 ? "is" : "are", ranks);
        if (ranks > 1)
            TRY(open_one(exe, &exe->exchanges[k], err));
    }
    return STATUS_OK;
}

static void free_event(const struct exe *exe, void *event)
{
    const struct exe_device *t = exe->on_device;
    if (event)
        t->device.kind->event_free(&t->device, event);
}

void exchanges_close(struct exe *exe)
{
    struct comm *comm = exe->options.comm;
    for (int k = 0; k < exe->exchange_count; k++) {
        if (exe->exchanges[k].plan)
            comm->release(comm, exe->exchanges[k].plan);
        free_event(exe, exe->exchanges[k].ready);
        free_event(exe, exe->exchanges[k].ended);
    }
    free_event(exe, exe->on_device ? exe->on_device->began : NULL);
}

/* ---- running ---- */

/* The first failure of a communicator is the last thing that it does, so no step waits long. */
static struct error *sink(struct exe *exe, struct error *later)
{
    return exe->failed.code == STATUS_OK ? &exe->failed : later;
}

static void start(struct exe *exe, struct exchange *x)
{
    struct comm *comm = exe->options.comm;
    struct error later = {0};
    x->ready_ns = clock_now_ns();
    x->waited_ns = 0;
    x->started = comm->start(comm, x->plan, value_memory(exe->places, x->from),
                             value_memory(exe->places, x->root), sink(exe, &later)) == STATUS_OK;
}

static void wait(struct exe *exe, struct exchange *x)
{
    struct comm *comm = exe->options.comm;
    struct error later = {0};
    uint64_t begin = clock_now_ns();
    comm->wait(comm, x->plan, sink(exe, &later));
    x->waited_ns = clock_now_ns() - begin;
    x->started = false;
}

void exe_run_rank_step(struct exe *exe, int s)
{
    const struct step *step = &exe->steps[s];
    struct exchange *own = NULL;
    for (int k = 0; k < exe->exchange_count; k++) {
        struct exchange *x = &exe->exchanges[k];
        if (x->plan && x->started && x->first == s)
            wait(exe, x);
        own = x->plan && x->step == s ? x : own;
    }
    if (step->kernel->own_threads)
        pool_park(exe->pool);
    step_launch(step);
    if (own)
        start(exe, own);
}

void exchanges_wait(struct exe *exe)
{
    for (int k = 0; k < exe->exchange_count; k++)
        if (exe->exchanges[k].started)
            wait(exe, &exe->exchanges[k]);
}

/* ---- on a device: in the queue, behind what computes them ---- */

static struct error *device_sink(struct exe *exe)
{
    struct error *failed = &exe->on_device->failed;
    return failed->code == STATUS_OK ? failed : NULL;
}

void exchange_enqueue(struct exe *exe, const struct step *step)
{
    struct comm *comm = exe->options.comm;
    struct exe_device *t = exe->on_device;
    const struct device_kind *kind = t->device.kind;
    for (int k = 0; k < exe->exchange_count; k++) {
        struct exchange *x = &exe->exchanges[k];
        struct error later = {0}, *err = device_sink(exe) ? device_sink(exe) : &later;
        void *stream = step->args.stream;
        if (!x->plan || exe->steps[x->step].node != step->node)
            continue;
        kind->event_record(&t->device, x->ready, stream, err);
        comm->enqueue(comm, x->plan, memory_of(exe, x->from), memory_of(exe, x->root), stream, err);
        kind->event_record(&t->device, x->ended, stream, device_sink(exe));
    }
}

void exchanges_attend(struct exe *exe)
{
    struct comm *comm = exe->options.comm;
    struct exe_device *t = exe->on_device;
    bool done = exe->exchange_count == 0 || !exe->exchanges[0].plan;
    for (unsigned idle = 0; !done && t->failed.code == STATUS_OK; idle++) {
        t->device.kind->poll(&t->device, t->stream, &done, &t->failed);
        if (!done && t->failed.code == STATUS_OK)
            comm->attend(comm, idle, &t->failed);
    }
}

/* By the clock, as the device counts from the beginning of the run. */
static uint64_t when(const struct exe *exe, void *event)
{
    const struct exe_device *t = exe->on_device;
    double ns = 0;
    t->device.kind->event_elapsed(&t->device, t->began, event, &ns, NULL);
    return t->began_ns + (uint64_t)(ns > 0 ? ns : 0);
}

/* ---- what became of them ---- */

int exe_exchange_count(const struct exe *exe)
{
    return exe->exchange_count;
}

struct exe_exchange exe_exchange_at(const struct exe *exe, int index)
{
    const struct exchange *x = &exe->exchanges[index];
    const struct comm *comm = exe->options.comm;
    struct exe_exchange out = {.step = x->step,
                               .bytes = (size_t)x->count * dtype_size(x->dtype),
                               .ready_ns = x->ready_ns,
                               .waited_ns = x->waited_ns};
    if (x->plan && comm->record)
        comm->record(comm, x->plan, &out.of);
    if (x->ended) { /* the queue stands still until it has ended */
        out.ready_ns = out.of.started_ns = when(exe, x->ready);
        out.of.ended_ns = when(exe, x->ended);
        out.waited_ns = out.of.ended_ns - out.of.started_ns;
    }
    return out;
}
