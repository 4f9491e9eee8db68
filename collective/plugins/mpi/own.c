/* SPDX-License-Identifier: Apache-2.0
 *
 * The operations that MPI has of its own. f16 and bf16 are no types of MPI 3: their reductions are
 * ours, over elements of two bytes. */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "collective/combine.h"
#include "collective/plugins/mpi/mpi_backend.h"

/* ---- reductions of halves: MPI calls them without saying of which type ---- */

static void reduce(enum dtype dtype, enum comm_reduction reduction, void *in, void *inout,
                   const int *count)
{
    combine_of(dtype, reduction)(inout, inout, in, *count);
}

#define DEFINE_REDUCTION(name, dtype, reduction)                                                   \
    static void name(void *in, void *inout, int *count, MPI_Datatype *type)                        \
    {                                                                                              \
        (void)type;                                                                                \
        reduce(dtype, reduction, in, inout, count);                                                \
    }

DEFINE_REDUCTION(f16_sum, DTYPE_F16, COMM_SUM)
DEFINE_REDUCTION(f16_max, DTYPE_F16, COMM_MAX)
DEFINE_REDUCTION(f16_min, DTYPE_F16, COMM_MIN)
DEFINE_REDUCTION(bf16_sum, DTYPE_BF16, COMM_SUM)
DEFINE_REDUCTION(bf16_max, DTYPE_BF16, COMM_MAX)
DEFINE_REDUCTION(bf16_min, DTYPE_BF16, COMM_MIN)

static enum status choose_type(struct own_plan *plan, struct error *err)
{
    switch (plan->call.dtype) {
    case DTYPE_F32:
        plan->type = MPI_FLOAT;
        return STATUS_OK;
    case DTYPE_F64:
        plan->type = MPI_DOUBLE;
        return STATUS_OK;
    case DTYPE_I32:
        plan->type = MPI_INT32_T;
        return STATUS_OK;
    case DTYPE_I64:
        plan->type = MPI_INT64_T;
        return STATUS_OK;
    case DTYPE_F16:
    case DTYPE_BF16:
        plan->type = MPI_UINT16_T;
        return STATUS_OK;
    default:
        return UNSUPPORTED(err, "the library has no %s here", dtype_name(plan->call.dtype));
    }
}

static enum status choose_op(struct own_plan *plan, struct error *err)
{
    static MPI_User_function *const halves[2][COMM_REDUCTION_COUNT] = {
        {f16_sum, f16_max, f16_min}, {bf16_sum, bf16_max, bf16_min}};
    enum comm_reduction reduction = plan->call.reduction;
    plan->op = reduction == COMM_SUM ? MPI_SUM : reduction == COMM_MAX ? MPI_MAX : MPI_MIN;
    if (plan->call.dtype != DTYPE_F16 && plan->call.dtype != DTYPE_BF16)
        return STATUS_OK;
    TRY(mpi_check(MPI_Op_create(halves[plan->call.dtype == DTYPE_BF16][reduction], 1, &plan->op),
                  "MPI_Op_create", err));
    plan->op_is_own = true;
    return STATUS_OK;
}

/* ---- counts: MPI's are ints ---- */

static enum status to_int(int64_t value, int *out, struct error *err)
{
    *out = (int)value;
    return value <= INT_MAX ? STATUS_OK
                            : UNSUPPORTED(err, "more than 2^31 - 1 elements at once are too many "
                                               "for the library's own operations");
}

/* counts[first + k * stride], and where they begin. */
static enum status fill_counts(const int64_t *from, int first, int stride, int ranks, int *counts,
                               int *starts, struct error *err)
{
    int64_t start = 0;
    for (int k = 0; k < ranks; k++) {
        TRY(to_int(from[first + k * stride], &counts[k], err));
        TRY(to_int(start, &starts[k], err));
        start += counts[k];
    }
    return STATUS_OK;
}

static enum status copy_counts(struct own_plan *plan, struct error *err)
{
    const struct comm_call *call = &plan->call;
    int rank = plan->link->rank, ranks = plan->link->ranks, whole;
    if (call->operation == COMM_ALL_REDUCE || call->operation == COMM_BROADCAST)
        return to_int(call->count, &whole, err);
    int *numbers = calloc((size_t)ranks * 4, sizeof(*numbers));
    if (!numbers)
        return FAIL_NO_MEMORY(err);
    plan->counts = numbers;
    plan->send_counts = numbers + ranks;
    plan->send_starts = numbers + 2 * ranks;
    plan->receive_starts = numbers + 3 * ranks;
    if (call->operation != COMM_ALL_TO_ALL)
        return fill_counts(call->counts, 0, 1, ranks, plan->counts, plan->receive_starts, err);
    TRY(fill_counts(call->counts, rank, ranks, ranks, plan->counts, plan->receive_starts, err));
    return fill_counts(call->counts, rank * ranks, 1, ranks, plan->send_counts, plan->send_starts,
                       err);
}

static void own_release(struct own_plan *plan)
{
    if (!plan)
        return;
    if (plan->link->state->own == plan)
        plan->link->state->own = NULL;
    if (plan->op_is_own)
        MPI_Op_free(&plan->op);
    free(plan->scratch);
    free(plan->counts);
    free(plan);
}

static enum status fill(struct own_plan *plan, struct error *err)
{
    enum comm_operation operation = plan->call.operation;
    if (plan->call.wire != DTYPE_NONE)
        return UNSUPPORTED(err, "the library's own operations send elements as they are");
    TRY(choose_type(plan, err));
    if (operation == COMM_ALL_REDUCE || operation == COMM_REDUCE_SCATTER)
        TRY(choose_op(plan, err));
    TRY(copy_counts(plan, err));
    if (operation != COMM_REDUCE_SCATTER)
        return STATUS_OK;
    plan->scratch_bytes = (size_t)plan->counts[plan->link->rank] * dtype_size(plan->call.dtype);
    plan->scratch = malloc(plan->scratch_bytes + 1); /* an address of its own, also for nothing */
    return plan->scratch ? STATUS_OK : FAIL_NO_MEMORY(err);
}

static enum status own_prepare(struct link *link, const struct comm_call *call, bool blocks,
                               struct own_plan **out, struct error *err)
{
    struct own_plan *plan = calloc(1, sizeof(*plan));
    if (!plan)
        return FAIL_NO_MEMORY(err);
    *plan = (struct own_plan){.link = link, .call = *call, .blocks = blocks};
    plan->op = MPI_OP_NULL;
    plan->request = MPI_REQUEST_NULL;
    enum status status = fill(plan, err);
    plan->call.counts = NULL; /* the caller's */
    if (status != STATUS_OK)
        own_release(plan);
    else
        *out = plan;
    return status;
}

/* ---- at work ---- */

static int start_blocking(struct own_plan *p, const void *from, void *to)
{
    MPI_Comm comm = p->link->group->own;
    int count = (int)p->call.count, own = p->counts ? p->counts[p->link->rank] : 0;
    switch (p->call.operation) {
    case COMM_ALL_REDUCE:
        return MPI_Allreduce(from, to, count, p->type, p->op, comm);
    case COMM_REDUCE_SCATTER:
        return MPI_Reduce_scatter(from, to, p->counts, p->type, p->op, comm);
    case COMM_ALL_GATHER:
        return MPI_Allgatherv(from, own, p->type, to, p->counts, p->receive_starts, p->type, comm);
    case COMM_BROADCAST:
        return MPI_Bcast(to, count, p->type, p->call.root, comm);
    default:
        return MPI_Alltoallv(from, p->send_counts, p->send_starts, p->type, to, p->counts,
                             p->receive_starts, p->type, comm);
    }
}

static int start_waiting(struct own_plan *p, const void *from, void *to)
{
    MPI_Comm comm = p->link->group->own;
    int count = (int)p->call.count, own = p->counts ? p->counts[p->link->rank] : 0;
    switch (p->call.operation) {
    case COMM_ALL_REDUCE:
        return MPI_Iallreduce(from, to, count, p->type, p->op, comm, &p->request);
    case COMM_REDUCE_SCATTER:
        return MPI_Ireduce_scatter(from, to, p->counts, p->type, p->op, comm, &p->request);
    case COMM_ALL_GATHER:
        return MPI_Iallgatherv(from, own, p->type, to, p->counts, p->receive_starts, p->type, comm,
                               &p->request);
    case COMM_BROADCAST:
        return MPI_Ibcast(to, count, p->type, p->call.root, comm, &p->request);
    default:
        return MPI_Ialltoallv(from, p->send_counts, p->send_starts, p->type, to, p->counts,
                              p->receive_starts, p->type, comm, &p->request);
    }
}

/* Whether the one lies where the other has it, which MPI wants to know. */
static bool in_place(const struct own_plan *p, const void *from, const void *to)
{
    if (p->call.operation != COMM_ALL_GATHER)
        return from == to && p->call.operation == COMM_ALL_REDUCE;
    size_t before = (size_t)p->receive_starts[p->link->rank] * dtype_size(p->call.dtype);
    return from == (const char *)to + before;
}

/* The part that a reduce-scatter leaves, in its input: MPI does not take that. */
static bool lies_in(const struct own_plan *p, const void *from, const void *to)
{
    int last = p->link->ranks - 1;
    size_t count = (size_t)(p->receive_starts[last] + p->counts[last]);
    const char *input = from, *output = to;
    return output >= input && output < input + count * dtype_size(p->call.dtype);
}

static bool sends_nothing(const struct own_plan *p)
{
    if (p->call.operation == COMM_ALL_GATHER)
        return p->counts[p->link->rank] == 0;
    for (int k = 0; p->call.operation == COMM_ALL_TO_ALL && k < p->link->ranks; k++)
        if (p->send_counts[k] > 0)
            return false;
    return p->call.operation == COMM_ALL_TO_ALL;
}

static enum status own_start(struct own_plan *plan, const void *from, void *to, struct error *err)
{
    size_t bytes = (size_t)plan->call.count * dtype_size(plan->call.dtype);
    plan->later = NULL;
    if (plan->scratch && lies_in(plan, from, to)) {
        plan->later = to;
        to = plan->scratch;
    }
    if (plan->call.operation == COMM_BROADCAST && plan->link->rank == plan->call.root && from != to)
        memcpy(to, from, bytes);
    /* Open MPI takes equal addresses for in place, also where one of them is that of nothing. */
    if (sends_nothing(plan))
        from = plan->counts;
    else if (plan->call.operation == COMM_ALL_TO_ALL && from == to)
        to = plan->counts;
    if (in_place(plan, from, to))
        from = MPI_IN_PLACE;
    plan->link->state->own = plan;
    return mpi_check((plan->blocks ? start_blocking : start_waiting)(plan, from, to),
                     "the operation", err);
}

static enum status own_test(struct own_plan *plan, bool *done, struct error *err)
{
    int flag = plan->request == MPI_REQUEST_NULL;
    if (!flag && !mpi_waits_inside) /* else mpi_wait finds out */
        TRY(mpi_check(MPI_Test(&plan->request, &flag, MPI_STATUS_IGNORE), "MPI_Test", err));
    *done = flag;
    if (flag && plan->later)
        memcpy(plan->later, plan->scratch, plan->scratch_bytes);
    return STATUS_OK;
}

const struct own_operations mpi_own = {
    .prepare = own_prepare,
    .release = own_release,
    .start = own_start,
    .test = own_test,
};
