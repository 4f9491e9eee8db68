/* SPDX-License-Identifier: Apache-2.0
 *
 * The operations. Those with a part of each rank are NCCL's own where all parts are equal, and else
 * a group of what they are made of: reductions to each rank, broadcasts of each rank. */
#include <stdlib.h>

#include "collective/plugins/nccl/nccl_backend.h"

/* Of an operation on memory of the host. */
enum stage {
    STAGE_IDLE,
    STAGE_WAITING,   /* for the one before it */
    STAGE_LAUNCHING, /* NCCL has been asked */
    STAGE_RUNNING,   /* on the GPU's stream */
    STAGE_FETCHING   /* the result, to the host */
};

struct own_plan {
    struct link *link;
    struct comm_call call; /* without counts */
    ncclDataType_t type;
    ncclRedOp_t reduction;
    size_t element;
    bool even;         /* all parts are equal */
    int64_t *received; /* owned: elements of each rank's part; of AllToAll, that each sends here */
    int64_t *received_at, *sent, *sent_at; /* in the same memory; where parts begin; AllToAll */
    size_t in_bytes, out_bytes;
    char *memory; /* owned: of the device; NULL: the caller's is */
    char *in, *out;
    enum stage stage;
    const void *from;
    void *to;
};

/* ---- preparing ---- */

static enum status choose_type(struct own_plan *plan, struct error *err)
{
    static const struct {
        enum dtype dtype;
        ncclDataType_t type;
    } types[] = {{DTYPE_F32, ncclFloat32}, {DTYPE_F64, ncclFloat64},   {DTYPE_F16, ncclFloat16},
                 {DTYPE_I32, ncclInt32},   {DTYPE_BF16, ncclBfloat16}, {DTYPE_I64, ncclInt64}};
    static const ncclRedOp_t reductions[] = {
        [COMM_SUM] = ncclSum, [COMM_MAX] = ncclMax, [COMM_MIN] = ncclMin};
    plan->reduction = reductions[plan->call.reduction];
    plan->element = dtype_size(plan->call.dtype);
    for (size_t k = 0; k < sizeof(types) / sizeof(types[0]); k++)
        if (types[k].dtype == plan->call.dtype) {
            plan->type = types[k].type;
            return STATUS_OK;
        }
    return UNSUPPORTED(err, "no %s here; take f32, f64, f16, bf16, i32 or i64",
                       dtype_name(plan->call.dtype));
}

/* counts[first + k * stride], and where they begin; their sum. */
static int64_t copy_parts(const int64_t *counts, int first, int stride, int ranks, int64_t *parts,
                          int64_t *at)
{
    int64_t sum = 0;
    for (int k = 0; k < ranks; k++) {
        parts[k] = counts[first + k * stride];
        at[k] = sum;
        sum += parts[k];
    }
    return sum;
}

static bool is_even(const int64_t *parts, int ranks)
{
    for (int k = 1; k < ranks; k++)
        if (parts[k] != parts[0])
            return false;
    return true;
}

/* What goes in and out, and how it is cut. */
static enum status cut(struct own_plan *plan, struct error *err)
{
    const struct comm_call *call = &plan->call;
    int rank = plan->link->rank, ranks = plan->link->ranks;
    plan->in_bytes = plan->out_bytes = (size_t)call->count * plan->element;
    if (call->operation == COMM_ALL_REDUCE || call->operation == COMM_BROADCAST)
        return STATUS_OK;
    plan->received = calloc((size_t)ranks * 4, sizeof(*plan->received));
    if (!plan->received)
        return FAIL_NO_MEMORY(err);
    plan->received_at = plan->received + ranks;
    plan->sent = plan->received + 2 * ranks;
    plan->sent_at = plan->received + 3 * ranks;
    bool pairs = call->operation == COMM_ALL_TO_ALL;
    int64_t whole = copy_parts(call->counts, pairs ? rank : 0, pairs ? ranks : 1, ranks,
                               plan->received, plan->received_at);
    int64_t given =
        pairs ? copy_parts(call->counts, rank * ranks, 1, ranks, plan->sent, plan->sent_at)
              : plan->received[rank];
    bool scatters = call->operation == COMM_REDUCE_SCATTER;
    plan->even = is_even(plan->received, ranks);
    plan->in_bytes = (size_t)(scatters ? whole : given) * plan->element;
    plan->out_bytes = (size_t)(scatters ? given : whole) * plan->element;
    return STATUS_OK;
}

/* On the device, the one lies in the other wherever NCCL allows it. */
static enum status take_memory(struct own_plan *plan, struct error *err)
{
    const struct device *device = &plan->link->state->device;
    enum comm_operation operation = plan->call.operation;
    size_t more = plan->in_bytes > plan->out_bytes ? plan->in_bytes : plan->out_bytes;
    size_t bytes = operation == COMM_ALL_TO_ALL ? plan->in_bytes + plan->out_bytes : more;
    size_t own =
        plan->received_at ? (size_t)plan->received_at[plan->link->rank] * plan->element : 0;
    void *memory;
    TRY(device->kind->bind(device, err));
    TRY(device->kind->alloc(device, bytes, &memory, err));
    plan->memory = plan->in = plan->out = memory;
    if (operation == COMM_REDUCE_SCATTER)
        plan->out += own;
    else if (operation == COMM_ALL_GATHER)
        plan->in += own;
    else if (operation == COMM_ALL_TO_ALL)
        plan->out += plan->in_bytes;
    return STATUS_OK;
}

static void own_release(struct own_plan *plan)
{
    if (!plan)
        return;
    struct link_state *state = plan->link->state;
    if (plan->stage != STAGE_IDLE) /* giving memory back would wait for what may never end */
        nccl_give_up(plan->link);
    if (state->active == plan)
        state->active = NULL;
    if (plan->memory && state->device.kind->bind(&state->device, NULL) == STATUS_OK)
        state->device.kind->free(&state->device, plan->memory);
    free(plan->received);
    free(plan);
}

static enum status fill(struct own_plan *plan, bool blocks, struct error *err)
{
    if (blocks)
        return UNSUPPORTED(err, "NCCL has no operations that block");
    if (plan->call.wire != DTYPE_NONE)
        return UNSUPPORTED(err, "NCCL sends elements as they are");
    TRY(choose_type(plan, err));
    TRY(cut(plan, err));
    return plan->call.on_device ? STATUS_OK : take_memory(plan, err);
}

static enum status own_prepare(struct link *link, const struct comm_call *call, bool blocks,
                               struct own_plan **out, struct error *err)
{
    struct own_plan *plan = calloc(1, sizeof(*plan));
    if (!plan)
        return FAIL_NO_MEMORY(err);
    *plan = (struct own_plan){.link = link, .call = *call};
    enum status status = fill(plan, blocks, err);
    plan->call.counts = NULL; /* the caller's */
    if (status != STATUS_OK)
        own_release(plan);
    else
        *out = plan;
    return status;
}

/* ---- launching ---- */

/* A group of calls for the parts of all ranks; the group ends whatever they say. */
static enum status launch_parts(struct own_plan *p, const char *in, char *out, void *stream,
                                struct error *err)
{
    const struct nccl_api *nccl = &p->link->state->nccl;
    ncclComm_t comm = p->link->state->comm;
    const char *call = "ncclReduce";
    ncclResult_t result = nccl->group_start();
    TRY(nccl_check(p->link, result, "ncclGroupStart", err));
    for (int rank = 0; rank < p->link->ranks && result == ncclSuccess; rank++) {
        size_t count = (size_t)p->received[rank];
        size_t at = (size_t)p->received_at[rank] * p->element;
        bool scatters = p->call.operation == COMM_REDUCE_SCATTER;
        call = scatters ? "ncclReduce" : "ncclBroadcast";
        if (count && scatters)
            result = nccl->reduce(in + at, out, count, p->type, p->reduction, rank, comm, stream);
        else if (count)
            result = nccl->broadcast(in, out + at, count, p->type, rank, comm, stream);
        result = result == ncclInProgress ? ncclSuccess : result;
    }
    ncclResult_t ended = nccl->group_end();
    TRY(nccl_check(p->link, result, call, err));
    return nccl_check(p->link, ended, "ncclGroupEnd", err);
}

static enum status launch_pairs(struct own_plan *p, const char *in, char *out, void *stream,
                                struct error *err)
{
    const struct nccl_api *nccl = &p->link->state->nccl;
    ncclComm_t comm = p->link->state->comm;
    const char *call = "ncclSend";
    ncclResult_t result = nccl->group_start();
    TRY(nccl_check(p->link, result, "ncclGroupStart", err));
    for (int k = 0; k < 2 * p->link->ranks && result == ncclSuccess; k++) {
        int peer = k / 2;
        bool sends = k % 2 == 0;
        size_t count = (size_t)(sends ? p->sent : p->received)[peer];
        size_t at = (size_t)(sends ? p->sent_at : p->received_at)[peer] * p->element;
        call = sends ? "ncclSend" : "ncclRecv";
        if (count)
            result = sends ? nccl->send(in + at, count, p->type, peer, comm, stream)
                           : nccl->receive(out + at, count, p->type, peer, comm, stream);
        result = result == ncclInProgress ? ncclSuccess : result;
    }
    ncclResult_t ended = nccl->group_end();
    TRY(nccl_check(p->link, result, call, err));
    return nccl_check(p->link, ended, "ncclGroupEnd", err);
}

static enum status launch(struct own_plan *p, const void *in, void *out, void *stream,
                          struct error *err)
{
    const struct nccl_api *nccl = &p->link->state->nccl;
    ncclComm_t comm = p->link->state->comm;
    size_t count = (size_t)p->call.count, part = p->even ? (size_t)p->received[0] : 0;
    if (!comm)
        return FAIL(err, STATUS_FAILED, "rank %d has left the communicator", p->link->rank);
    switch (p->call.operation) {
    case COMM_ALL_REDUCE:
        return nccl_check(p->link,
                          nccl->all_reduce(in, out, count, p->type, p->reduction, comm, stream),
                          "ncclAllReduce", err);
    case COMM_BROADCAST:
        return nccl_check(p->link,
                          nccl->broadcast(in, out, count, p->type, p->call.root, comm, stream),
                          "ncclBroadcast", err);
    case COMM_REDUCE_SCATTER:
        return p->even ? nccl_check(p->link,
                                    nccl->reduce_scatter(in, out, part, p->type, p->reduction, comm,
                                                         stream),
                                    "ncclReduceScatter", err)
                       : launch_parts(p, in, out, stream, err);
    case COMM_ALL_GATHER:
        return p->even ? nccl_check(p->link, nccl->all_gather(in, out, part, p->type, comm, stream),
                                    "ncclAllGather", err)
                       : launch_parts(p, in, out, stream, err);
    default:
        return launch_pairs(p, in, out, stream, err);
    }
}

static enum status own_enqueue(struct own_plan *plan, const void *from, void *to, void *stream,
                               struct error *err)
{
    TRY(launch(plan, from, to, stream, err));
    return nccl_settle(plan->link, 0, err);
}

/* ---- at work, for memory of the host ---- */

static enum status copy(struct own_plan *plan, void *to, const void *from, size_t bytes,
                        enum device_copy direction, struct error *err)
{
    struct link_state *state = plan->link->state;
    return bytes ? state->device.kind->copy(&state->device, to, from, bytes, direction,
                                            state->stream, err)
                 : STATUS_OK;
}

static enum status begin(struct own_plan *plan, struct error *err)
{
    struct link_state *state = plan->link->state;
    bool gives = plan->call.operation != COMM_BROADCAST || plan->call.root == plan->link->rank;
    state->active = plan;
    TRY(state->device.kind->bind(&state->device, err));
    TRY(copy(plan, plan->in, plan->from, gives ? plan->in_bytes : 0, COPY_TO_DEVICE, err));
    TRY(launch(plan, plan->in, plan->out, state->stream, err));
    plan->stage = STAGE_LAUNCHING;
    return STATUS_OK;
}

static enum status own_start(struct own_plan *plan, const void *from, void *to, struct error *err)
{
    plan->from = from;
    plan->to = to;
    plan->stage = STAGE_WAITING;
    if (plan->link->state->active)
        return STATUS_OK;
    enum status status = begin(plan, err);
    if (status != STATUS_OK)
        nccl_give_up(plan->link);
    return status;
}

/* Each step of it, as far as it can go now. The result is fetched when it is there: a copy to
 * memory that is not pinned waits for the stream, and nobody could end that. */
static enum status go_on(struct own_plan *plan, bool *done, struct error *err)
{
    struct link_state *state = plan->link->state;
    bool ready;
    if (plan->stage == STAGE_WAITING)
        TRY(begin(plan, err));
    TRY(nccl_look(plan->link, &ready, err));
    if (!ready)
        return STATUS_OK;
    if (plan->stage == STAGE_LAUNCHING)
        plan->stage = STAGE_RUNNING;
    TRY(state->device.kind->bind(&state->device, err));
    TRY(state->device.kind->poll(&state->device, state->stream, &ready, err));
    if (ready && plan->stage == STAGE_RUNNING) {
        TRY(copy(plan, plan->to, plan->out, plan->out_bytes, COPY_TO_HOST, err));
        plan->stage = STAGE_FETCHING;
        TRY(state->device.kind->poll(&state->device, state->stream, &ready, err));
    }
    *done = ready && plan->stage == STAGE_FETCHING;
    return STATUS_OK;
}

static enum status own_test(struct own_plan *plan, bool *done, struct error *err)
{
    *done = false;
    enum status status = go_on(plan, done, err);
    if (status != STATUS_OK)
        nccl_give_up(plan->link);
    if (*done) {
        plan->stage = STAGE_IDLE;
        plan->link->state->active = NULL;
    }
    return status;
}

const struct own_operations nccl_own = {
    .prepare = own_prepare,
    .release = own_release,
    .start = own_start,
    .test = own_test,
    .enqueue = own_enqueue,
};
