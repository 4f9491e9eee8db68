/* SPDX-License-Identifier: Apache-2.0
 *
 * What every kernel of RandomDropout computes alike: element k, whose number is n = dropout_number,
 * stays where word n % 4 of counter n / 4 of stream dropout_seed is at least dropout_least. */
#ifndef ENGINE_OPS_LIB_DROPOUT_H
#define ENGINE_OPS_LIB_DROPOUT_H

#include "engine/graph/graph.h"

/* Of all 2^32 words, as many are below as elements are dropped. */
static inline uint32_t dropout_least(const struct node *node)
{
    return (uint32_t)(node_float(node, "ratio", 0.5) * 0x1p32);
}

/* How elements are numbered: those of a rank as in what all ranks have together, of which it has
 * runs of `run` elements, the first one from `first` on, each `every` after the one before. */
struct dropout_runs {
    int64_t first, run, every; /* run 0: one run */
};

static inline struct dropout_runs dropout_runs(const struct node *node)
{
    return (struct dropout_runs){node_int(node, "first", 0), node_int(node, "run", 0),
                                 node_int(node, "every", 0)};
}

static inline uint64_t dropout_number(const struct dropout_runs *runs, int64_t k)
{
    return (uint64_t)(runs->run ? runs->first + k / runs->run * runs->every + k % runs->run
                                : runs->first + k);
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
