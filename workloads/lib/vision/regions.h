/* SPDX-License-Identifier: Apache-2.0
 * What detectors with two stages do with boxes, in standard ONNX operators: decoding, choosing the
 * best that do not overlap, cutting regions out of feature maps. Boxes are [.., 4]: first the low
 * corner, then the high one, x or y first as the caller likes. */
#ifndef WORKLOADS_LIB_VISION_REGIONS_H
#define WORKLOADS_LIB_VISION_REGIONS_H

#include "workloads/lib/layers.h"
#include "workloads/workload.h"

/* Every image has nodes of its own after the first stage. */
enum { REGIONS_MAX = 2048, IMAGES_MAX = 64 };

/* Whether batch, "proposals" and "detections" (NULL: no such parameter) are within these limits;
 * false: an error is in the graph. */
bool regions_fit(struct graph *g, const struct workload_config *config, const char *detections);

/* Whether the candidates of an image are enough for `keep` proposals; false as above. */
bool proposals_fit(struct graph *g, int64_t keep, int64_t candidates);

int const_f32(struct graph *g, struct shape shape, const float *data);

/* The same `count` boxes at every place of a map whose elements are `stride` pixels apart: rows,
 * columns, then boxes; [rows columns count, 4]. y_first: the order of their coordinates. */
struct anchors {
    int64_t rows, columns, stride, count;
    const float *boxes; /* [count, 4], round the first place */
    bool y_first;
};
int anchor_boxes(struct graph *g, const struct anchors *a);

/* Entry k along the first axis, without that axis. */
int entry(struct graph *g, int x, int64_t k);
/* [N, ANCHORS width, H, W] -> [N, H W ANCHORS, width], or [N, H W ANCHORS] where width is 1: places
 * first, then anchors, as the boxes are numbered. */
int by_place(struct graph *g, int x, int64_t width);
/* Concatenation that leaves a single part as it is. */
int join(struct graph *g, int64_t axis, int count, const int *parts);

/* Boxes moved by deltas * size and scaled by exp(deltas); [.., 4] each. extent: what a box is
 * larger than high - low, 1 where corners are pixels that belong to it. */
int decode_boxes(struct graph *g, int boxes, int deltas, float extent);
int clip_boxes(struct graph *g, int boxes, const float low[4], const float high[4]);

struct suppression {
    int64_t limit; /* boxes kept per image and class */
    float iou;
    bool pixels; /* corners are pixels that belong to the box */
};

/* boxes [I, K, 4], scores [I, C, K] -> [I C K]: the score of a box that is kept, 0 of one that is
 * not. Boxes with score 0 are never kept. The first box of the first class must have score 0 or be
 * the best of its class: the padding of NonMaxSuppression points to it. */
int kept_scores(struct graph *g, int boxes, int scores, const struct suppression *s);

/* Proposals: boxes [K, 4] by falling scores [K] -> [keep, 4], zeros after the last. */
int propose(struct graph *g, int boxes, int scores, int64_t keep, const struct suppression *s);

/* Rows [keep, 6]: class, score and box of the best of kept [C K], where class k has its own boxes
 * at rows k K + .. of boxes [C K, 4], or all share boxes [K, 4]. Zeros after the last. */
int detections(struct graph *g, int kept, int boxes, int64_t classes, int64_t keep);

/* TensorFlow's crop_and_resize with one sample per element: element i of n is read at
 * low + i (high - low) / (n - 1), corners of the map being 0 and 1; boxes [R, 4] are y1, x1, y2,
 * x2, images i64 [R] says which of map [N, C, H, W]. -> [R, C, size, size] */
int crop_and_resize(struct graph *g, int map, int boxes, int images, int64_t size);

/* The same from a pyramid: each of the `levels` maps serves the boxes that level [R, 1] assigns to
 * it, counted from 0.
 * -> [R, C, size, size] */
struct pyramid {
    const int *maps;
    int levels;
    int image; /* which of the batch */
};
int crop_pyramid(struct graph *g, const struct pyramid *p, int boxes, int level, int64_t size);

#endif
