/* SPDX-License-Identifier: Apache-2.0
 *
 * What the attributes of Embeddings (engine/ops/embeddings.c) say about its pairs of inputs. */
#ifndef ENGINE_OPS_LIB_EMBEDDING_PAIRS_H
#define ENGINE_OPS_LIB_EMBEDDING_PAIRS_H

#include <string.h>

#include "engine/graph/graph.h"

static inline bool embedding_sums(const struct node *node)
{
    return strcmp(node_string(node, "mode", "concat"), "sum") == 0;
}

/* Elements of a one-hot row of the pair; 0: not said. */
static inline int64_t embedding_depth(const struct node *node, int pair)
{
    const struct attr *depths = node_attr(node, "depths");
    return depths && pair < depths->count ? depths->ints[pair] : 0;
}

/* Elements of a row of the pair; table NULL: it has none. */
static inline int64_t embedding_width(const struct node *node, int pair, const struct shape *table)
{
    return table ? table->dim[table->rank - 1] : embedding_depth(node, pair);
}

#endif
