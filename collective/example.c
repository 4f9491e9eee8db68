/* SPDX-License-Identifier: Apache-2.0 */
#include "collective/example.h"

#include <string.h>

#include "collective/algorithm.h"

/* -4 .. 4, another one for each rank and element. */
static int value_of(int rank, int64_t index)
{
    uint64_t word = ((uint64_t)index * 64 + (uint64_t)rank + 1) * 0x9E3779B97F4A7C15u;
    word ^= word >> 29;
    word *= 0xBF58476D1CE4E5B9u;
    return (int)((word >> 33) % 9) - 4;
}

static int reduced(const struct comm_call *call, int ranks, int64_t index)
{
    int result = value_of(0, index);
    for (int rank = 1; rank < ranks; rank++) {
        int value = value_of(rank, index);
        if (call->reduction == COMM_SUM)
            result += value;
        else if (call->reduction == COMM_MAX ? value > result : value < result)
            result = value;
    }
    return result;
}

static void store(enum dtype dtype, void *to, int64_t index, int value)
{
    float number = (float)value;
    switch (dtype) {
    case DTYPE_F64:
        ((double *)to)[index] = value;
        return;
    case DTYPE_I32:
        ((int32_t *)to)[index] = value;
        return;
    case DTYPE_I64:
        ((int64_t *)to)[index] = value;
        return;
    default:
        floats_store(dtype, &number, (char *)to + (size_t)index * dtype_size(dtype), 1);
    }
}

/* A run of the output that comes from one place: of one rank (or of all, reduced), from `index` of
 * its input on. */
struct source {
    int rank; /* -1: of all */
    int64_t index, count;
};

static struct source source_of(const struct comm_call *call, int rank, int ranks, int part)
{
    const int64_t *counts = call->counts;
    switch (call->operation) {
    case COMM_ALL_REDUCE:
        return (struct source){-1, 0, call->count};
    case COMM_REDUCE_SCATTER:
        return (struct source){-1, counts_before(counts, rank), counts[rank]};
    case COMM_BROADCAST:
        return (struct source){call->root, 0, call->count};
    case COMM_ALL_GATHER:
        return (struct source){part, 0, counts[part]};
    default:
        counts += (int64_t)part * ranks;
        return (struct source){part, counts_before(counts, rank), counts[rank]};
    }
}

void example_fill(const struct comm_call *call, int rank, int ranks, void *input)
{
    int64_t count = call_input_count(call, rank, ranks);
    for (int64_t k = 0; k < count; k++)
        store(call->dtype, input, k, value_of(rank, k));
}

int64_t example_wrong(const struct comm_call *call, int rank, int ranks, const void *output)
{
    bool joins = call->operation == COMM_ALL_GATHER || call->operation == COMM_ALL_TO_ALL;
    size_t size = dtype_size(call->dtype);
    const char *element = output;
    int64_t wrong = 0;
    for (int part = 0; part < (joins ? ranks : 1); part++) {
        struct source source = source_of(call, rank, ranks, part);
        for (int64_t k = 0; k < source.count; k++, element += size) {
            int64_t index = source.index + k;
            uint64_t expected;
            store(call->dtype, &expected, 0,
                  source.rank < 0 ? reduced(call, ranks, index) : value_of(source.rank, index));
            wrong += memcmp(&expected, element, size) != 0;
        }
    }
    return wrong;
}
