/* SPDX-License-Identifier: Apache-2.0
 *
 * How kernels that compute the gradient of a convolution's weights cut it into tasks: a block of
 * rows (channels of dy) by a block of channels of x with all taps, whose sums stay in the second
 * cache while pixels pass by, `depth` at a time. Where the gradient is small, pixels are cut into
 * slices, whose sums are added at the end (slices.h). All this depends on the shape and the tuning
 * alone, so the result is the same on any number of threads.
 */
#ifndef ENGINE_KERNELS_LIB_WEIGHT_BLOCKS_H
#define ENGINE_KERNELS_LIB_WEIGHT_BLOCKS_H

#include "base/numbers/integers.h"
#include "engine/kernels/lib/simd.h"

enum {
    WEIGHT_SUMS_FLOATS = 80 << 10, /* of a task: a third of a second cache */
    WEIGHT_SLICE_PIXELS = 1024,    /* at least */
};

struct weight_tuning {
    int64_t depth, rows, tasks;
};

struct weight_blocks {
    int64_t groups, group_in, group_out, taps, pixels; /* set by the caller */
    int64_t depth;                                     /* pixels of a pass */
    int64_t width, channel_blocks;                     /* channels of a block; blocks of a group */
    int64_t rows, row_blocks;                          /* rows of a block; blocks of a group */
    int64_t columns;                                   /* of a block's sums, whole vectors */
    int64_t slices;
};

/* Tiles have rows_max rows and `panel` columns at most. */
static inline void weight_blocks_cut(struct weight_blocks *b, const struct weight_tuning *t,
                                     int64_t panel, int64_t rows_max)
{
    int64_t widest = b->taps == 1 ? 4 * panel : panel;
    b->channel_blocks = divide_up(b->group_in, widest);
    b->width = smaller(round_up(divide_up(b->group_in, b->channel_blocks), VL), b->group_in);
    b->channel_blocks = divide_up(b->group_in, b->width);
    b->columns = round_up(b->taps * b->width, VL);
    int64_t limit = larger(WEIGHT_SUMS_FLOATS / b->columns, rows_max);
    b->row_blocks = divide_up(b->group_out, smaller(t->rows, limit));
    b->rows = divide_up(b->group_out, b->row_blocks);
    int64_t tasks = b->groups * b->row_blocks * b->channel_blocks;
    b->slices = smaller(divide_up(t->tasks, tasks), divide_up(b->pixels, WEIGHT_SLICE_PIXELS));
    b->depth = smaller(t->depth, divide_up(b->pixels, b->slices));
}

static inline int64_t weight_blocks_tasks(const struct weight_blocks *b)
{
    return b->slices * b->groups * b->row_blocks * b->channel_blocks;
}

struct weight_block {
    int64_t slice, group, row, rows; /* rows of the group */
    int64_t channel, width;          /* of the group */
    int64_t first, last;             /* pixels */
};

static inline struct weight_block weight_block_at(const struct weight_blocks *b, int64_t task)
{
    struct weight_block t = {.channel = task % b->channel_blocks * b->width};
    t.row = task / b->channel_blocks % b->row_blocks * b->rows;
    t.group = task / (b->channel_blocks * b->row_blocks) % b->groups;
    t.slice = task / (b->channel_blocks * b->row_blocks * b->groups);
    t.width = smaller(b->width, b->group_in - t.channel);
    t.rows = smaller(b->rows, b->group_out - t.row);
    t.first = b->pixels * t.slice / b->slices;
    t.last = b->pixels * (t.slice + 1) / b->slices;
    return t;
}

#endif
