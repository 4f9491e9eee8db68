/* SPDX-License-Identifier: Apache-2.0 */
#include "collective/algorithm.h"

#include <inttypes.h>
#include <string.h>

#define X(name) extern const struct algorithm algorithm_##name;
#include "algorithm_list.inc"
#undef X

static const struct algorithm *const algorithms[] = {
#define X(name) &algorithm_##name,
#include "algorithm_list.inc"
#undef X
};

int algorithm_count(void)
{
    return ARRAY_COUNT(algorithms);
}

const struct algorithm *algorithm_at(int index)
{
    return algorithms[index];
}

const struct algorithm *algorithm_find(const char *name)
{
    for (int k = 0; k < ARRAY_COUNT(algorithms); k++)
        if (strcmp(algorithms[k]->name, name) == 0)
            return algorithms[k];
    return NULL;
}

const char *operation_name(enum comm_operation operation)
{
    static const char *const names[COMM_OPERATION_COUNT] = {
        [COMM_ALL_REDUCE] = "all_reduce", [COMM_REDUCE_SCATTER] = "reduce_scatter",
        [COMM_ALL_GATHER] = "all_gather", [COMM_BROADCAST] = "broadcast",
        [COMM_ALL_TO_ALL] = "all_to_all",
    };
    return names[operation];
}

const char *reduction_name(enum comm_reduction reduction)
{
    static const char *const names[COMM_REDUCTION_COUNT] = {"sum", "max", "min"};
    return names[reduction];
}

/* Few messages win where latency counts, few bytes where bandwidth does. Two ranks that exchange
 * all they have send no more than a ring does, but add twice as much, and in place what is received
 * would replace what the other one still has to read. */
const struct algorithm *algorithm_choose(const struct comm_call *call, int ranks, int64_t bytes)
{
    enum { SMALL_BYTES = 16 << 10, PAIR_BYTES = 4 << 20 };
    bool pair = ranks == 2 && !call->in_place;
    if (call->operation == COMM_ALL_TO_ALL)
        return &algorithm_pairwise;
    if (call->operation == COMM_ALL_REDUCE && bytes <= (pair ? PAIR_BYTES : SMALL_BYTES))
        return &algorithm_recursive_doubling;
    if (call->operation == COMM_BROADCAST && ranks > 3)
        return &algorithm_tree;
    return &algorithm_ring;
}

/* One lane: where ranks move the bytes themselves, a second one only makes them hand over more
 * often. 128 KiB of each rank lie in a cache until they are sent on. */
struct schedule_options schedule_options_for(int ranks)
{
    enum { SEGMENT_BYTES = 128 << 10 };
    return (struct schedule_options){1, (int64_t)SEGMENT_BYTES * ranks, NODE_RANKS};
}

static int64_t counts_sum(const int64_t *counts, int first, int stride, int count)
{
    int64_t sum = 0;
    for (int k = 0; k < count; k++)
        sum += counts[first + k * stride];
    return sum;
}

int64_t call_input_count(const struct comm_call *call, int rank, int ranks)
{
    switch (call->operation) {
    case COMM_REDUCE_SCATTER:
        return counts_sum(call->counts, 0, 1, ranks);
    case COMM_ALL_GATHER:
        return call->counts[rank];
    case COMM_ALL_TO_ALL:
        return counts_sum(call->counts, rank * ranks, 1, ranks);
    default:
        return call->count;
    }
}

int64_t call_output_count(const struct comm_call *call, int rank, int ranks)
{
    switch (call->operation) {
    case COMM_REDUCE_SCATTER:
        return call->counts[rank];
    case COMM_ALL_GATHER:
        return counts_sum(call->counts, 0, 1, ranks);
    case COMM_ALL_TO_ALL:
        return counts_sum(call->counts, rank, ranks, ranks);
    default:
        return call->count;
    }
}

size_t call_crossing_size(const struct comm_call *call)
{
    return dtype_size(call->wire == DTYPE_NONE ? call->dtype : call->wire);
}

int64_t call_whole_count(const struct comm_call *call, int ranks)
{
    int64_t largest = 0;
    for (int rank = 0; rank < ranks; rank++) {
        int64_t in = call_input_count(call, rank, ranks);
        int64_t out = call_output_count(call, rank, ranks);
        int64_t count = in > out ? in : out;
        largest = count > largest ? count : largest;
    }
    return largest;
}

static enum status check_call(const struct comm_call *call, int ranks, struct error *err)
{
    const char *name = operation_name(call->operation);
    if (call->wire != DTYPE_NONE &&
        (call->dtype != DTYPE_F32 || (call->wire != DTYPE_F16 && call->wire != DTYPE_BF16)))
        return UNSUPPORTED(err, "%s of %s as %s between ranks: only f32 crosses as f16 or bf16",
                           name, dtype_name(call->dtype), dtype_name(call->wire));
    bool has_count = call->operation == COMM_ALL_REDUCE || call->operation == COMM_BROADCAST;
    if (has_count && call->count < 0)
        return FAIL(err, STATUS_INVALID, "%s of %" PRId64 " elements", name, call->count);
    if (call->operation == COMM_BROADCAST && (call->root < 0 || call->root >= ranks))
        return FAIL(err, STATUS_INVALID, "%s from rank %d, but there are ranks 0 to %d", name,
                    call->root, ranks - 1);
    int counts = has_count ? 0 : call->operation == COMM_ALL_TO_ALL ? ranks * ranks : ranks;
    for (int k = 0; k < counts; k++)
        if (call->counts[k] < 0)
            return FAIL(err, STATUS_INVALID, "%s: count number %d is %" PRId64, name, k,
                        call->counts[k]);
    return STATUS_OK;
}

enum status schedule_make(const struct algorithm *algorithm, const struct comm_call *call, int rank,
                          int ranks, const struct schedule_options *options, struct arena *arena,
                          struct comm_schedule *schedule, struct error *err)
{
    TRY(check_call(call, ranks, err));
    if (algorithm->own || !(algorithm->operations & OPERATION_BIT(call->operation)))
        return UNSUPPORTED(err, "%s has no schedule for %s", algorithm->name,
                           operation_name(call->operation));
    int64_t segment = options->segment_bytes / (int64_t)dtype_size(call->dtype);
    struct pattern pattern = {call,
                              rank,
                              ranks,
                              options->lanes,
                              segment > 0 ? segment : 1,
                              options->node_ranks > 0 ? options->node_ranks : NODE_RANKS};
    *schedule = (struct comm_schedule){.arena = arena, .rank = rank, .ranks = ranks};
    schedule->length[PLACE_INPUT] = call_input_count(call, rank, ranks);
    schedule->length[PLACE_OUTPUT] = call_output_count(call, rank, ranks);
    algorithm->plan(&pattern, schedule);
    if (schedule_check(schedule, err) != STATUS_OK)
        return error_context(err, "%s by %s", operation_name(call->operation), algorithm->name);
    return STATUS_OK;
}
