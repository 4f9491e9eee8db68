/* SPDX-License-Identifier: Apache-2.0
 *
 * What every kernel of RandomDropout computes alike: element k, counted from dropout_first on,
 * stays where word k % 4 of counter k / 4 of stream dropout_seed is at least dropout_least. */
#ifndef ENGINE_OPS_LIB_DROPOUT_H
#define ENGINE_OPS_LIB_DROPOUT_H

#include "engine/graph/graph.h"

/* Of all 2^32 words, as many are below as elements are dropped. */
static inline uint32_t dropout_least(const struct node *node)
{
    return (uint32_t)(node_float(node, "ratio", 0.5) * 0x1p32);
}

/* Number of the first element: of a rank, in what all ranks have together. */
static inline int64_t dropout_first(const struct node *node)
{
    return node_int(node, "first", 0);
}

static inline double dropout_factor(const struct node *node)
{
    return 1 / (1 - node_float(node, "ratio", 0.5));
}

/* Of a step. Steps and nodes differ by odd multiples, so that no two streams meet by counting. */
static inline uint64_t dropout_seed(const struct node *node, int64_t step)
{
    uint64_t mixed = (uint64_t)node_int(node, "seed", 0) * 0x9e3779b97f4a7c15u;
    mixed ^= mixed >> 32;
    return mixed + (uint64_t)step * 0xbf58476d1ce4e5b9u;
}

#endif
