/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs a function over the rows of broadcast tensors of any element types
 * (engine/ops/lib/strided.h), for elementwise work that is not an expression of floats:
 * comparisons, selections, logic.
 */
#ifndef ENGINE_KERNELS_LIB_ROW_LOOP_H
#define ENGINE_KERNELS_LIB_ROW_LOOP_H

#include "engine/graph/kernel.h"
#include "engine/kernels/lib/simd.h"
#include "engine/ops/lib/strided.h"

enum { ROW_OPERANDS = 4 };

/* at[0] is the output, at[k + 1] input k; steps are elements, that of the output is 1. */
struct row {
    char *at[ROW_OPERANDS];
    int64_t step[ROW_OPERANDS];
    int64_t count;
};

typedef void row_fn(const struct row *row);

/* The state of the kernels: a launch completes a copy of it with its addresses. */
struct kernel_state {
    struct strided space;
    struct row row; /* the whole tensors */
    size_t size[ROW_OPERANDS];
    int operands;
    int64_t rows_per_tile, parts, tiles; /* parts: tiles per row when rows are long */
    row_fn *run;
};

/* Plans to run over the query's tensors. Refuses unless the node has at most 3 inputs, one dense
 * output and no posts. */
#define row_loop_plan SIMD_FN(row_loop_plan)
enum status row_loop_plan(const struct kernel_query *q, row_fn *run, struct kernel_state *state,
                          struct error *why);
#define row_loop_launch SIMD_FN(row_loop_launch)
void row_loop_launch(const struct kernel_state *state, const struct kernel_args *args);

/* Calls `loop(row, ...)`, a function that is inlined, with constant steps where they are 0 and 1:
 * that is what lets the compiler make vectors of it. */
#define ROW_STEPS_BINARY(loop, row)                                                                \
    do {                                                                                           \
        if ((row)->step[1] == 1 && (row)->step[2] == 1)                                            \
            loop(row, 1, 1);                                                                       \
        else if ((row)->step[1] == 1 && (row)->step[2] == 0)                                       \
            loop(row, 1, 0);                                                                       \
        else if ((row)->step[1] == 0 && (row)->step[2] == 1)                                       \
            loop(row, 0, 1);                                                                       \
        else                                                                                       \
            loop(row, (row)->step[1], (row)->step[2]);                                             \
    } while (0)

#endif
