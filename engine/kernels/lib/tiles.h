/* SPDX-License-Identifier: Apache-2.0
 *
 * How rows (lines, bags, positions) that do not depend on each other are cut into tiles for
 * threads. */
#ifndef ENGINE_KERNELS_LIB_TILES_H
#define ENGINE_KERNELS_LIB_TILES_H

#include "base/numbers/integers.h"

/* Rows of `elements` each, about `most` elements to a tile. A few tiles are made even, so that each
 * thread gets as many (three tiles keep one of two threads idle for a third of the time), but none
 * smaller than a quarter of `most`. One tile stays one: waking a thread costs more. */
static inline int64_t rows_of_tile(int64_t rows, int64_t elements, int64_t most, int threads)
{
    int64_t full = elements > 0 && elements < most ? most / elements : 1;
    int64_t tiles = divide_up(rows, full);
    if (tiles <= 1 || threads <= 1)
        return full;
    return larger(divide_up(rows, round_up(tiles, threads)), larger(full / 4, 1));
}

#endif
