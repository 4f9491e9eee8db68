/* SPDX-License-Identifier: Apache-2.0
 *
 * Any number of tensors as one row of elements that is cut into tiles of one size, so that threads
 * share the work evenly whatever the sizes of the tensors: a tile may hold a part of a large one or
 * many small ones. Each tensor begins at a multiple of a vector in the row.
 */
#ifndef ENGINE_KERNELS_LIB_PIECES_H
#define ENGINE_KERNELS_LIB_PIECES_H

#include <stdlib.h>

#include "base/numbers/integers.h"
#include "engine/graph/kernel.h"

enum { PIECE_TILE = 1 << 13, PIECE_ALIGN = 16 };

/* A tensor: where it begins in the row, its elements. */
struct piece {
    int64_t first, size;
};

struct pieces {
    struct piece *tensor; /* owned */
    int count;
    int64_t tiles;
};

static inline int64_t piece_capacity(const struct desc *desc)
{
    return (shape_count(&desc->shape) + PIECE_ALIGN - 1) / PIECE_ALIGN * PIECE_ALIGN;
}

/* How many parts inputs `from`, from + each ... of the query have at most: see struct part. */
static inline int64_t pieces_parts(const struct kernel_query *q, int from, int each)
{
    int64_t end = 0, count = (q->in_count - from) / each;
    for (int k = 0; k < count; k++)
        end += piece_capacity(&q->in[from + k * each]);
    return divide_up(end, PIECE_TILE) + count;
}

/* Of the same inputs. bytes: what it takes. */
static inline enum status pieces_make(struct pieces *p, const struct kernel_query *q, int from,
                                      int each, size_t *bytes, struct error *err)
{
    int64_t end = 0;
    int count = (q->in_count - from) / each;
    p->tensor = malloc((size_t)count * sizeof(*p->tensor));
    if (!p->tensor)
        return FAIL_NO_MEMORY(err);
    *bytes = (size_t)count * sizeof(*p->tensor);
    for (int k = 0; k < count; k++) {
        const struct desc *desc = &q->in[from + k * each];
        p->tensor[k] = (struct piece){.first = end, .size = shape_count(&desc->shape)};
        end += piece_capacity(desc);
    }
    p->count = count;
    p->tiles = divide_up(end, PIECE_TILE);
    return STATUS_OK;
}

static inline void pieces_release(struct pieces *p)
{
    free(p->tensor);
}

/* The part of a tensor that lies in a tile: elements [from, to) of it. */
struct part {
    int tensor;
    int64_t from, to;
    int64_t number; /* in the order of all parts, some left out: below pieces_parts */
};

/* The number of the first part of a tensor; one after the other from there on, part_run of them. */
static inline int64_t part_first(const struct pieces *p, int tensor)
{
    return p->tensor[tensor].first / PIECE_TILE + tensor;
}

static inline int64_t part_run(const struct pieces *p, int tensor)
{
    const struct piece *t = &p->tensor[tensor];
    if (t->size == 0)
        return 0;
    return (t->first + t->size - 1) / PIECE_TILE - t->first / PIECE_TILE + 1;
}

/* The first part of a tile. */
static inline struct part part_begin(const struct pieces *p, int64_t tile)
{
    int low = 0, high = p->count; /* the last tensor that begins at or before the tile does */
    while (high - low > 1) {
        int middle = low + (high - low) / 2;
        if (p->tensor[middle].first <= tile * PIECE_TILE)
            low = middle;
        else
            high = middle;
    }
    return (struct part){.tensor = low - 1};
}

/* Moves on to the next part that is not empty; false: the tile has no more. */
static inline bool part_next(const struct pieces *p, int64_t tile, struct part *part)
{
    int64_t begin = tile * PIECE_TILE, end = begin + PIECE_TILE;
    for (int k = part->tensor + 1; k < p->count && p->tensor[k].first < end; k++) {
        const struct piece *t = &p->tensor[k];
        int64_t from = begin > t->first ? begin - t->first : 0;
        int64_t to = end - t->first < t->size ? end - t->first : t->size;
        if (from < to) {
            *part = (struct part){.tensor = k, .from = from, .to = to, .number = tile + k};
            return true;
        }
    }
    return false;
}

#endif
