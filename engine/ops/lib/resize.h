/* SPDX-License-Identifier: Apache-2.0
 *
 * Resize and Upsample: which elements of the input an element of the output is made of, one axis at
 * a time, and where a gradient by the result goes. Coordinates are computed in float, as ONNX
 * Runtime and PyTorch do, so that elements at a tie (nearest) are the same ones everywhere.
 */
#ifndef ENGINE_OPS_LIB_RESIZE_H
#define ENGINE_OPS_LIB_RESIZE_H

#include "engine/ops/lib/op_args.h"

enum { RESIZE_TAPS = 4 };

enum resize_mode { RESIZE_NEAREST, RESIZE_LINEAR, RESIZE_CUBIC };

enum resize_coordinate {
    RESIZE_HALF_PIXEL,
    RESIZE_PYTORCH_HALF_PIXEL,
    RESIZE_ALIGN_CORNERS,
    RESIZE_ASYMMETRIC,
    RESIZE_TF_HALF_PIXEL_FOR_NN,
    RESIZE_TF_CROP_AND_RESIZE,
    RESIZE_HALF_PIXEL_SYMMETRIC,
};

enum resize_nearest {
    RESIZE_ROUND_PREFER_FLOOR,
    RESIZE_ROUND_PREFER_CEIL,
    RESIZE_FLOOR,
    RESIZE_CEIL,
};

struct resize_axis {
    int64_t in, out;
    float scale;
    float roi_start, roi_end; /* RESIZE_TF_CROP_AND_RESIZE */
};

struct resize {
    enum resize_mode mode;
    enum resize_coordinate coordinate;
    enum resize_nearest nearest;
    double cubic_a;
    bool exclude_outside;
    double extrapolation;
    bool simple; /* Upsample and Resize of opset 10: nearest is floor, or ceil downwards */
    int rank;
    struct resize_axis axes[RANK_MAX];
};

/* The elements of one axis that one index of the output takes, at most RESIZE_TAPS. */
struct resize_taps {
    int count;
    int64_t index[RESIZE_TAPS];
    double weight[RESIZE_TAPS];
    bool outside; /* extrapolated */
};

/* Everything about the node, the sizes of the result included. */
enum status resize_of_node(const struct op_args *args, struct resize *resize, struct error *err);
enum status resize_of_query(const struct kernel_query *q, struct resize *resize, struct error *err);
/* UNSUPPORTED but for what kernels do that go row by row: one or two last axes of images, by
 * nearest or linear interpolation. */
enum status resize_of_rows(const struct resize *r, struct error *why);
void resize_taps_at(const struct resize *r, int axis, int64_t out, struct resize_taps *taps);

enum status resize_infer(const struct infer *c, struct error *err);
enum status resize_reference(const struct ref_call *call, struct error *err);
/* Of a gradient: input 0 is that of the result, attribute output_shape the shape of the image. */
enum status resize_gradient_infer(const struct infer *c, struct error *err);
enum status resize_gradient_reference(const struct ref_call *call, struct error *err);
/* Linear: 7 per output element (3 interpolations); cubic: 5 sums of four products. */
void resize_cost(const struct infer *c, struct cost *cost);

#endif
