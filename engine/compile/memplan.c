/* SPDX-License-Identifier: Apache-2.0
 *
 * One arena for all intermediate tensors and scratch. A tensor needs its block from the step that
 * writes it to the last step that reads it, scratch needs one during its step. Blocks are placed
 * one by one, the largest first, each at the lowest offset where it overlaps no placed block that
 * is needed at the same time (greedy by size, Pisarchyk and Lee 2020: within a few per cent of the
 * best plan for networks). */
#include <stdlib.h>

#include "engine/compile/stages.h"

struct block {
    size_t bytes;
    int first, last;
    int64_t *offset; /* result */
    int64_t at;
};

static int larger(const void *a, const void *b)
{
    const struct block *x = a, *y = b;
    if (x->bytes != y->bytes)
        return x->bytes < y->bytes ? 1 : -1;
    return (x->first > y->first) - (x->first < y->first);
}

static int lower(const void *a, const void *b)
{
    const struct block *x = *(const struct block *const *)a, *y = *(const struct block *const *)b;
    return (x->at > y->at) - (x->at < y->at);
}

static size_t round_up(size_t bytes, size_t align)
{
    return (bytes + align - 1) & ~(align - 1);
}

/* Lowest gap between the blocks that are needed at the same time. busy is scratch. */
static int64_t find_gap(const struct block *blocks, int placed, const struct block *b,
                        const struct block **busy)
{
    int count = 0;
    for (int k = 0; k < placed; k++)
        if (blocks[k].first <= b->last && b->first <= blocks[k].last)
            busy[count++] = &blocks[k];
    qsort(busy, (size_t)count, sizeof(*busy), lower);
    int64_t at = 0;
    for (int k = 0; k < count; k++) {
        if (busy[k]->at - at >= (int64_t)b->bytes)
            return at;
        int64_t end = busy[k]->at + (int64_t)busy[k]->bytes;
        at = end > at ? end : at;
    }
    return at;
}

static int collect(struct exe *exe, struct block *blocks)
{
    int count = 0;
    size_t align = exe_is_on_device(exe) ? ALIGN_DEVICE : ALIGN_TENSOR;
    for (int v = 0; v < exe->g->value_count; v++) {
        struct place *place = &exe->places[v];
        if (place->root != v || !place->used || exe->g->values[v].kind != VALUE_RESULT ||
            place->memory)
            continue;
        int last = exe->options.keep_values ? exe->step_count : place->last;
        blocks[count++] = (struct block){.bytes = round_up(place->bytes, align),
                                         .first = place->first,
                                         .last = last,
                                         .offset = &place->offset};
    }
    for (int s = 0; s < exe->step_count; s++)
        if (exe->steps[s].workspace_bytes)
            blocks[count++] =
                (struct block){.bytes = round_up(exe->steps[s].workspace_bytes, align),
                               .first = s,
                               .last = s,
                               .offset = &exe->steps[s].workspace_offset};
    return count;
}

enum status memory_plan(struct exe *exe, struct error *err)
{
    size_t limit = (size_t)exe->g->value_count + (size_t)exe->step_count + 1;
    struct block *blocks = calloc(limit, sizeof(*blocks));
    const struct block **busy = calloc(limit, sizeof(*busy));
    if (!blocks || !busy) {
        free(blocks);
        free(busy);
        return FAIL_NO_MEMORY(err);
    }
    int count = collect(exe, blocks);
    qsort(blocks, (size_t)count, sizeof(*blocks), larger);
    size_t total = 0;
    for (int k = 0; k < count; k++) {
        blocks[k].at = find_gap(blocks, k, &blocks[k], busy);
        *blocks[k].offset = blocks[k].at;
        size_t end = (size_t)blocks[k].at + blocks[k].bytes;
        total = end > total ? end : total;
        exe->sizes.unshared_bytes += blocks[k].bytes;
    }
    exe->sizes.arena_bytes = total;
    free(blocks);
    free(busy);
    return STATUS_OK;
}
