/* SPDX-License-Identifier: Apache-2.0
 *
 * Gradients of tables of which a step reads few rows, summed over ranks as rows: every rank gets
 * the gradients of what all ranks looked up, with the indices (AllGather), and adds them up itself,
 * as one rank of the whole batch would. Where the optimiser leaves other rows alone the update
 * stays one of rows, too (pass update_rows). Horovod does so with TensorFlow's IndexedSlices. */
#ifndef ENGINE_TRAIN_GATHER_ROWS_H
#define ENGINE_TRAIN_GATHER_ROWS_H

#include "engine/graph/graph.h"

/* Those of the gradients that consist of rows, whose bytes on all ranks are fewer than the table's,
 * become their sums over `ranks`; gathered[k] says of which. Those that are sums already
 * (summed[k]) stay as they are. */
enum status gather_rows(struct graph *g, int ranks, int count, int *gradients, const bool *summed,
                        bool *gathered, struct error *err);

#endif
