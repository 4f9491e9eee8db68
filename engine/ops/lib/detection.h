/* SPDX-License-Identifier: Apache-2.0
 * The settings of a DetectionOutput node: read once for operator, kernel and export. */
#ifndef ENGINE_OPS_LIB_DETECTION_H
#define ENGINE_OPS_LIB_DETECTION_H

#include "engine/graph/graph.h"

enum { DETECTION_LOCATIONS, DETECTION_SCORES, DETECTION_PRIORS };
enum { DETECTION_COLUMNS = 7 }; /* image, class, score, x1, y1, x2, y2 */

struct detection {
    int64_t images, priors, classes;   /* N, P, C; class 0 is the background */
    int64_t top_k;                     /* candidates per class, at most P */
    int64_t keep;                      /* rows per image */
    double score, iou;                 /* thresholds */
    double variance_xy, variance_size; /* of the encoding */
};

struct detection detection_of(const struct node *node, const struct shape *scores);

#endif
