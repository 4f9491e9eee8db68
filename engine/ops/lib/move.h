/* SPDX-License-Identifier: Apache-2.0
 *
 * Data movement as loops: a rectangular set of elements of one input goes to a rectangular set of
 * places of one output. Transpose, Slice, Expand, Tile, Concat, Split, Pad and their like say only
 * this (op.move); one reference and a few copy kernels then serve all of them in any layout.
 *
 * Element (i_0 .. i_n) over the loops goes from in[in_start + sum of i_k in_step_k e(in_axis_k)] to
 * out[out_start + sum of i_k out_step_k e(out_axis_k)], e(a) being a step along logical axis a.
 */
#ifndef ENGINE_OPS_LIB_MOVE_H
#define ENGINE_OPS_LIB_MOVE_H

#include "engine/ops/lib/op_args.h"

enum {
    MOVE_LOOPS = 2 * RANK_MAX,
    MOVE_FLAT = -1, /* an axis that counts all elements in row-major order: plain memory only */
};

struct move_loop {
    int64_t extent;
    int in_axis, out_axis;
    int64_t in_step, out_step; /* in_step 0: repeated; negative: backwards */
};

struct move {
    int input, output;
    int loop_count;
    struct move_loop loops[MOVE_LOOPS];
    int64_t in_start[RANK_MAX], out_start[RANK_MAX];
};

/* A move in terms of memory: strides in elements. */
struct flat_loop {
    int64_t extent, in_stride, out_stride;
};

struct flat_move {
    int loop_count;
    struct flat_loop loops[MOVE_LOOPS];
    int64_t in_start, out_start;
};

/* How many moves a node is made of. */
int move_parts(const struct op_args *args);
/* Every element to the place of the same row-major number. */
enum status move_flat(const struct op_args *args, int part, struct move *move, struct error *err);
/* Every element to the same indices. */
enum status move_same(const struct op_args *args, int part, struct move *move, struct error *err);
/* One loop per axis of shape, to and from the same axes; the caller then changes what differs. */
void move_over(struct move *move, const struct shape *shape);

/* UNSUPPORTED when a flat axis meets memory that is not plain. */
enum status move_flatten(const struct move *move, const struct desc *in, const struct desc *out,
                         struct flat_move *flat, struct error *err);

/* A part of a node that only moves elements: of an operator with .move, or whose only output is
 * input 0 under another shape (Dropout, Identity). UNSUPPORTED for others. */
enum status move_of_args(const struct op_args *args, int part, struct move *move,
                         struct error *why);
/* The same for a kernel, in terms of its memory; UNSUPPORTED also with posts, or where the types
 * differ. flat->loop_count -1: the part's output is not wanted. */
int move_count_of_query(const struct kernel_query *q);
enum status move_of_query(const struct kernel_query *q, int part, struct move *move,
                          struct flat_move *flat, struct error *why);

/* The reference of an operator that has .move. Outputs that no move reaches stay as they are. */
enum status reference_move(const struct ref_call *call, struct error *err);
/* Element `from` of one tensor to `to` of another of the same type. */
void ref_copy(const struct ref_tensor *out, int64_t to, const struct ref_tensor *in, int64_t from);

#endif
