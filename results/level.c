/* SPDX-License-Identifier: Apache-2.0 */
#include "results/level.h"

_Static_assert((int)LEVEL_COUNT <= (int)LEVELS_MAX, "a visit has room for all levels");

const struct level_kind level_kinds[LEVEL_COUNT] = {
    [LEVEL_HAND_OVER] = {"hand_over", "s", BETTER_LOWER, "handing work to threads"},
    [LEVEL_CACHE] = {"cache_read", "B/s", BETTER_HIGHER, "reading the caches"},
    [LEVEL_DRAM] = {"dram_read", "B/s", BETTER_HIGHER, "reading memory"},
    [LEVEL_ARITHMETIC] = {"multiply_add", "FLOP/s", BETTER_HIGHER, "multiplying and adding"},
};
