/* SPDX-License-Identifier: Apache-2.0
 *
 * Tensors that are cut into one part for each rank, as CutForRanks has them: parts of equal size,
 * of which the last ones may not be full. */
#ifndef ENGINE_OPS_LIB_RANK_PARTS_H
#define ENGINE_OPS_LIB_RANK_PARTS_H

#include <stdint.h>

#include "base/numbers/integers.h"

/* Elements of a part of a tensor of `count`. */
static inline int64_t rank_part(int64_t count, int64_t ranks)
{
    return divide_up(count, ranks);
}

/* How many of them the tensor has, for rank `rank`. */
static inline int64_t rank_part_there(int64_t count, int64_t ranks, int64_t rank)
{
    int64_t part = rank_part(count, ranks), left = count - rank * part;
    return left < 0 ? 0 : left < part ? left : part;
}

#endif
