/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/train/shards.h"

#include <stdlib.h>
#include <string.h>

enum status shards_add(struct shards *shards, const struct shard *shard, struct error *err)
{
    struct shard *of = arena_grow(&shards->arena, shards->of, &shards->capacity,
                                  (size_t)shards->count + 1, sizeof(*of));
    if (!of)
        return FAIL_NO_MEMORY(err);
    shards->of = of;
    of[shards->count++] = *shard;
    return STATUS_OK;
}

void shards_release(struct shards *shards)
{
    arena_release(&shards->arena);
    *shards = (struct shards){.count = 0};
}

bool shards_in(const struct shards *shards, const char *state)
{
    for (int k = 0; k < shards->count; k++)
        if (strcmp(shards->of[k].state, state) == 0)
            return true;
    return false;
}

static size_t size_of(const struct shard *s)
{
    return dtype_size(s->whole.dtype);
}

static char *part_of(const struct shard *s, struct exe *exe)
{
    int input = graph_input_named(exe_graph(exe), s->state);
    return input == NONE ? NULL : (char *)exe_input(exe, input) + (size_t)s->first * size_of(s);
}

/* Columns [low, high) are the rank's. */
static void columns_of(const struct shard *s, int rank, int64_t *low, int64_t *high)
{
    *low = rank * s->columns < s->width ? rank * s->columns : s->width;
    *high = *low + s->columns < s->width ? *low + s->columns : s->width;
}

/* Elements [start, start + count) of the whole are at `elements`: those of the rank go to its part.
 */
static void take(const struct shard *s, int rank, int64_t start, int64_t count,
                 const char *elements, char *part)
{
    size_t size = size_of(s);
    int64_t low, high, end = start + count;
    columns_of(s, rank, &low, &high);
    for (int64_t row = count ? start / s->width : s->rows; row < s->rows; row++) {
        int64_t first = row * s->width, from = first + low, to = first + high;
        if (first >= end)
            break;
        from = from > start ? from : start;
        to = to < end ? to : end;
        if (to > from)
            memcpy(part + (size_t)(row * s->columns + from - first - low) * size,
                   elements + (size_t)(from - start) * size, (size_t)(to - from) * size);
    }
}

/* The part of a rank goes to where it belongs. */
static void give(const struct shard *s, int rank, const char *part, char *whole)
{
    size_t size = size_of(s);
    int64_t low, high;
    columns_of(s, rank, &low, &high);
    for (int64_t row = 0; row < s->rows && high > low; row++)
        memcpy(whole + (size_t)(row * s->width + low) * size,
               part + (size_t)(row * s->columns) * size, (size_t)(high - low) * size);
}

static int rank_of(struct exe *exe)
{
    const struct comm *comm = exe_options(exe)->comm;
    return comm ? comm->rank : 0;
}

enum status shards_fill(const struct shards *shards, struct exe *exe, struct error *err)
{
    void *tile = malloc(MATERIALISE_TILE * sizeof(double));
    if (!tile)
        return FAIL_NO_MEMORY(err);
    for (int k = 0; k < shards->count; k++) {
        const struct shard *s = &shards->of[k];
        int64_t all = shape_count(&s->whole.shape), tiles = value_tiles(&s->whole);
        char *part = part_of(s, exe);
        for (int64_t t = 0; part && t < tiles; t++) {
            int64_t start = t * MATERIALISE_TILE, left = all - start;
            value_materialise_tile(&s->whole, t, tile);
            take(s, rank_of(exe), start, left < MATERIALISE_TILE ? left : MATERIALISE_TILE, tile,
                 part);
        }
    }
    free(tile);
    return STATUS_OK;
}

void shard_take(const struct shard *s, struct exe *exe, const void *whole)
{
    char *part = part_of(s, exe);
    if (part)
        take(s, rank_of(exe), 0, shape_count(&s->whole.shape), whole, part);
}

enum status shard_gather(const struct shard *s, struct exe *exe, void *whole, struct error *err)
{
    struct comm *comm = exe_options(exe)->comm;
    char *part = part_of(s, exe);
    int64_t each = s->rows * s->columns, taken = comm->rank == 0 ? comm->ranks : 1;
    size_t bytes = (size_t)each * size_of(s);
    int64_t *counts = calloc((size_t)comm->ranks * (size_t)comm->ranks, sizeof(*counts));
    char *parts = malloc(bytes * (size_t)taken + 1);
    struct comm_call call = {
        .operation = COMM_ALL_TO_ALL, .dtype = s->whole.dtype, .counts = counts};
    enum status status =
        part ? STATUS_OK : FAIL(err, STATUS_FAILED, "the graph has no state \"%s\"", s->state);
    if (!counts || !parts)
        status = FAIL_NO_MEMORY(err);
    for (int from = 0; counts && from < comm->ranks; from++)
        counts[from * comm->ranks] = each; /* to rank 0 alone */
    if (status == STATUS_OK)
        status = comm_once(comm, &call, part, parts, err);
    for (int rank = 0; status == STATUS_OK && whole && rank < comm->ranks; rank++)
        give(s, rank, parts + bytes * (size_t)rank, whole);
    free(parts);
    free(counts);
    return status;
}
