/* SPDX-License-Identifier: Apache-2.0
 *
 * Copies of elements between two strided memories, planned once: loops are merged as far as the
 * strides allow, then the innermost part becomes one of
 *   run        bytes that lie together on both sides, at least one element
 *   transpose  elements together along one loop in the destination, along another in the source:
 *              square blocks in registers
 *   fill       one element repeated along the destination
 * A node is a set of such copies (one per input of Concat, one per output of Split). Copies that
 * write the same rows are cut into the same tiles, so that a row's parts meet in the cache and no
 * two threads write to one line at a time.
 */
#ifndef ENGINE_KERNELS_LIB_COPY_PLAN_H
#define ENGINE_KERNELS_LIB_COPY_PLAN_H

#include "engine/graph/kernel.h"
#include "engine/kernels/lib/simd.h"
#include "engine/ops/lib/move.h"

enum copy_how { COPY_RUN, COPY_TRANSPOSE, COPY_FILL };

enum { COPY_LOOPS = MOVE_LOOPS + 2 };

struct copy_loop {
    int64_t extent, src, dst; /* strides in bytes */
};

/* The inner part, cut into chunks by one of the outer loops (chunk_loop; -1: not cut). The last
 * chunk takes what is left. */
struct copy_inner {
    int64_t extent, src, dst, chunk;
    int chunk_loop;
};

struct copy_plan {
    enum copy_how how;
    int input, output, elem; /* elem: bytes */
    bool stream;
    int loop_count; /* outermost first */
    struct copy_loop loops[COPY_LOOPS];
    struct copy_inner inner[2]; /* run: [0] in bytes; transpose: [0] dst, [1] src contiguous */
    int64_t src, dst;           /* first element, bytes */
    int64_t units;              /* product of the loops */
    int64_t unit_bytes;
};

/* Also the state of the kernels that copy. */
struct kernel_state {
    int count;
    bool together; /* the same unit of all copies is done in one go */
    int64_t units, units_per_tile, tiles;
    struct copy_plan *plans; /* made by prepare: a node may have any number of parts */
};

#define copy_plan_hook SIMD_FN(copy_plan_hook)
#define copy_prepare   SIMD_FN(copy_prepare)
#define copy_launch    SIMD_FN(copy_launch)
#define copy_release   SIMD_FN(copy_release)
#define copy_plan_for  SIMD_FN(copy_plan_for)
#define copy_units     SIMD_FN(copy_units)

/* The hooks of a kernel for operators with .move, or whose output 0 is input 0 under another
 * shape. */
enum status copy_plan_hook(const struct kernel_query *q, int variant, struct kernel_state *state,
                           struct error *why);
enum status copy_prepare(const struct kernel_query *q, struct kernel_state *state,
                         size_t *packed_bytes, struct error *err);
void copy_launch(const struct kernel_state *state, const struct kernel_args *args);
void copy_release(struct kernel_state *state);
#define COPY_HOOKS                                                                                 \
    .state_size = sizeof(struct kernel_state), .plan = copy_plan_hook, .prepare = copy_prepare,    \
    .launch = copy_launch, .release = copy_release

/* A plan from strides; stream: the result is too large for the caches. */
void copy_plan_for(const struct flat_move *move, int elem, bool stream, struct copy_plan *plan);
/* Units [first, last) of a plan. */
void copy_units(const struct copy_plan *plan, const char *src, char *dst, int64_t first,
                int64_t last);

#endif
