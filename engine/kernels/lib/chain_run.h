/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs an elementwise expression over broadcast tensors. The space is cut into tiles that fit the
 * first cache; each step of the expression is one vector loop over the tile (lib/tile_fn.h), with
 * intermediate results in scratch tiles of the thread. Inputs that lie like the output are read
 * where they are, single values stay single, all others are spread into a scratch tile first.
 * Tensors of bf16 are widened as they are spread, and the result is rounded from a scratch tile.
 */
#ifndef ENGINE_KERNELS_LIB_CHAIN_RUN_H
#define ENGINE_KERNELS_LIB_CHAIN_RUN_H

#include "engine/graph/kernel.h"
#include "engine/kernels/lib/simd.h"
#include "engine/ops/lib/chain.h"
#include "engine/ops/lib/strided.h"

enum chain_form {
    CHAIN_UNUSED = 0,
    CHAIN_FULL,    /* lies like the output */
    CHAIN_SCALAR,  /* one value for all */
    CHAIN_VECTOR,  /* the same row for every row of the output */
    CHAIN_STRIDED, /* anything else */
};

struct chain_plan {
    struct chain chain;
    struct strided space; /* operand 0: output; operand k + 1: input k */
    enum chain_form form[CHAIN_INPUTS];
    int64_t tile;          /* most elements of a tile */
    int64_t tile_rows;     /* whole rows per tile; 0: rows are cut */
    int64_t tiles_per_row; /* when rows are cut */
    int64_t tiles, tiles_per_item, items;
    int slot[CHAIN_STEPS];    /* scratch tile of a step's result */
    int spread[CHAIN_INPUTS]; /* scratch tile of an input; -1: none */
    int slots;
    bool stream; /* results go past the caches */
    bool gaps;   /* rows of the output lie apart */
    bool bf16;   /* all tensors; scratch tiles are floats even so */
};

/* The node of q as an expression, all tensors f32 or all bf16, and rows of the output dense; else
 * refuses. */
enum status SIMD_FN(chain_plan_make)(const struct kernel_query *q, struct chain_plan *plan,
                                     struct error *why);
size_t SIMD_FN(chain_workspace)(const struct chain_plan *plan, int threads);
void SIMD_FN(chain_run)(const struct chain_plan *plan, const struct kernel_args *args);

#endif
