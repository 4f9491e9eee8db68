/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs between ranks: what a step hands to the other ranks is on its way while the next steps
 * compute, until one of them reads the result. */
#include <stdlib.h>

#include "base/system/clock.h"
#include "engine/graph/op_list.h"
#include "engine/run/exe_internal.h"

static enum comm_operation operation_of(const struct op *op)
{
    return op == &op_reduce_scatter ? COMM_REDUCE_SCATTER
           : op == &op_all_gather   ? COMM_ALL_GATHER
           : op == &op_broadcast    ? COMM_BROADCAST
           : op == &op_all_to_all   ? COMM_ALL_TO_ALL
                                    : COMM_ALL_REDUCE;
}

static enum status open_one(struct exe *exe, struct exchange *x, struct error *err)
{
    struct comm *comm = exe->options.comm;
    const struct node *node = exe->steps[x->step].query.node;
    int parts = comm->ranks * comm->ranks; /* of AllToAll; the others have fewer */
    int64_t *counts = calloc((size_t)parts, sizeof(*counts));
    struct comm_call call = {.operation = operation_of(node->op),
                             .reduction = COMM_SUM,
                             .dtype = x->dtype,
                             .count = x->count,
                             .counts = counts,
                             .root = (int)node_int(node, "root", 0),
                             .in_place = value_memory(exe->places, x->from) ==
                                         value_memory(exe->places, x->root)};
    if (!counts)
        return FAIL_NO_MEMORY(err);
    for (int k = 0; k < parts; k++)
        counts[k] = x->count / comm->ranks;
    enum status status = comm->prepare(comm, &call, &x->plan, err);
    free(counts);
    return status == STATUS_OK ? status : error_context(err, "%s", node->name);
}

enum status exchanges_open(struct exe *exe, struct error *err)
{
    const struct comm *comm = exe->options.comm;
    int ranks = comm ? comm->ranks : 1;
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

void exchanges_close(struct exe *exe)
{
    struct comm *comm = exe->options.comm;
    for (int k = 0; k < exe->exchange_count; k++)
        if (exe->exchanges[k].plan)
            comm->release(comm, exe->exchanges[k].plan);
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
    return out;
}
