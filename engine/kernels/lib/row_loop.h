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

/* Refuses unless the node has at most 3 inputs, one dense output and no posts. */
#define row_loop_supports SIMD_FN(row_loop_supports)
enum status row_loop_supports(const struct kernel_query *q, struct error *why);
#define row_loop_run SIMD_FN(row_loop_run)
void row_loop_run(const struct kernel_query *q, const struct kernel_args *args, row_fn *run);

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
