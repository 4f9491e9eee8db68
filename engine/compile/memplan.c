/* SPDX-License-Identifier: Apache-2.0
 *
 * One arena for all intermediate tensors and scratch. A tensor needs its block from the step that
 * writes it to the last step that reads it, scratch needs one during its step. Blocks are placed
 * one by one, the largest first, each at the lowest offset where it overlaps no placed block that
 * is needed at the same time (greedy by size, Pisarchyk and Lee 2020: within a few per cent of the
 * best plan for networks).
 *
 * Where a device may compute branches side by side (branches.c), what is needed on one level of
 * depth is needed at the same time, too, unless that takes much more memory. */
#include <stdlib.h>

#include "base/numbers/integers.h"
#include "engine/compile/stages.h"

struct block {
    size_t bytes;
    int first, last;             /* steps */
    int first_level, last_level; /* where branches may run side by side; else none: 1 and 0 */
    int64_t *offset;             /* result */
    int64_t at;
};

static int larger_first(const void *a, const void *b)
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

static bool are_needed_at_once(const struct block *a, const struct block *b)
{
    return (a->first <= b->last && b->first <= a->last) ||
           (a->first_level <= b->last_level && b->first_level <= a->last_level);
}

/* Lowest gap between the blocks that are needed at the same time. busy is scratch. */
static int64_t find_gap(const struct block *blocks, int placed, const struct block *b,
                        const struct block **busy)
{
    int count = 0;
    for (int k = 0; k < placed; k++)
        if (are_needed_at_once(&blocks[k], b))
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

/* On which levels the memory of a root is needed. */
struct times {
    const int *levels; /* of steps; NULL: they do not count */
    int *first, *last; /* of roots */
};

static int collect(struct exe *exe, const struct times *times, struct block *blocks)
{
    int count = 0;
    size_t align = exe_alignment(exe);
    for (int v = 0; v < exe->g->value_count; v++) {
        struct place *place = &exe->places[v];
        if (place->root != v || !place->used || exe->g->values[v].kind != VALUE_RESULT ||
            place->memory)
            continue;
        int last = exe->options.keep_values ? exe->step_count : place->last;
        blocks[count++] = (struct block){.bytes = round_up(place->bytes, align),
                                         .first = place->first,
                                         .last = last,
                                         .first_level = times->levels ? times->first[v] : 1,
                                         .last_level = times->levels ? times->last[v] : 0,
                                         .offset = &place->offset};
    }
    for (int s = 0; s < exe->step_count; s++) {
        if (exe->steps[s].workspace_bytes)
            blocks[count++] =
                (struct block){.bytes = round_up(exe->steps[s].workspace_bytes, align),
                               .first = s,
                               .last = s,
                               .first_level = times->levels ? times->levels[s] : 1,
                               .last_level = times->levels ? times->levels[s] : 0,
                               .offset = &exe->steps[s].workspace_offset};
    }
    return count;
}

/* Places all blocks; returns the end of the last. */
static size_t place_blocks(struct block *blocks, int count, const struct block **busy)
{
    size_t total = 0;
    qsort(blocks, (size_t)count, sizeof(*blocks), larger_first);
    for (int k = 0; k < count; k++) {
        blocks[k].at = find_gap(blocks, k, &blocks[k], busy);
        size_t end = (size_t)blocks[k].at + blocks[k].bytes;
        total = end > total ? end : total;
    }
    return total;
}

static void take_plan(struct exe *exe, const struct block *blocks, int count, size_t total)
{
    exe->sizes.unshared_bytes = 0;
    exe->sizes.arena_bytes = total;
    for (int k = 0; k < count; k++) {
        *blocks[k].offset = blocks[k].at;
        exe->sizes.unshared_bytes += blocks[k].bytes;
    }
}

static void touch_level(const struct exe *exe, const struct times *times, int value, int level)
{
    if (value == NONE)
        return;
    int root = exe->places[value].root;
    if (times->first[root] == NONE || level < times->first[root])
        times->first[root] = level;
    times->last[root] = level > times->last[root] ? level : times->last[root];
}

static void find_times(const struct exe *exe, const struct times *times)
{
    for (int v = 0; v < exe->g->value_count; v++)
        times->first[v] = times->last[v] = NONE;
    for (int s = 0; s < exe->step_count; s++) {
        const struct node *node = exe->steps[s].query.node;
        for (int k = 0; k < node->output_count; k++)
            touch_level(exe, times, node->outputs[k], times->levels[s]);
        for (int k = 0; k < node->input_count; k++)
            touch_level(exe, times, node->inputs[k], times->levels[s]);
    }
    for (int k = 0; k < exe->g->output_count; k++)
        touch_level(exe, times, exe->g->outputs[k], exe->step_count);
}

/* The plan that looks at levels, too, where there is anything to gain and room for it. */
static enum status plan_levels(struct exe *exe, struct block *blocks, const struct block **busy,
                               struct error *err)
{
    size_t values = (size_t)exe->g->value_count + 1, steps = (size_t)exe->step_count + 1;
    int *levels = calloc(steps + 2 * values, sizeof(*levels));
    if (!levels)
        return FAIL_NO_MEMORY(err);
    struct times times = {levels, levels + steps, levels + steps + values};
    if (branches_levels(exe, levels, times.first)) {
        find_times(exe, &times);
        int count = collect(exe, &times, blocks);
        size_t total = place_blocks(blocks, count, busy);
        if (branches_have_room(total, exe->sizes.arena_bytes))
            take_plan(exe, blocks, count, total);
    }
    free(levels);
    return STATUS_OK;
}

enum status memory_plan(struct exe *exe, struct error *err)
{
    const struct times by_steps = {.levels = NULL};
    size_t limit = (size_t)exe->g->value_count + (size_t)exe->step_count + 1;
    struct block *blocks = calloc(limit, sizeof(*blocks));
    const struct block **busy = calloc(limit, sizeof(*busy));
    enum status status = blocks && busy ? STATUS_OK : FAIL_NO_MEMORY(err);
    if (status == STATUS_OK) {
        int count = collect(exe, &by_steps, blocks);
        size_t total = place_blocks(blocks, count, busy);
        take_plan(exe, blocks, count, total);
        if (branches_wanted(exe))
            status = plan_levels(exe, blocks, busy, err);
    }
    free(blocks);
    free(busy);
    return status;
}
