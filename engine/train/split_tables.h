/* SPDX-License-Identifier: Apache-2.0
 *
 * Embedding tables whose columns are divided among the ranks, so that a table may be larger than
 * the memory of one (column-wise model parallelism). All other weights stay on every rank.
 *
 * Each rank looks up the indices of all ranks in its columns (AllGather), and AllToAll brings each
 * the vectors of its own samples. Gradients come back the same way; what a rank adds to its columns
 * is what one rank of the whole batch would add, in the same order. Columns, not rows or whole
 * tables: every rank has the same share of each table and of each lookup, whatever the indices are,
 * so that shapes are fixed and the same on all ranks. */
#ifndef ENGINE_TRAIN_SPLIT_TABLES_H
#define ENGINE_TRAIN_SPLIT_TABLES_H

#include "engine/train/shards.h"

/* Before gradients are added. split[k] becomes true where weights[k] was a table of at least
 * `ranks` columns that only Gather along axis 0 and EmbeddingBag read; each rank then has its
 * columns under the same name, which is noted in `shards`. UNSUPPORTED where there is none. */
enum status split_tables(struct graph *g, int ranks, int count, const int *weights, bool *split,
                         struct shards *shards, struct error *err);

#endif
