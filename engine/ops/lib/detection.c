/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/ops/lib/detection.h"

struct detection detection_of(const struct node *node, const struct shape *scores)
{
    struct detection d = {.images = scores->dim[0],
                          .priors = scores->dim[1],
                          .classes = scores->dim[2],
                          .top_k = node_int(node, "top_k", 400),
                          .keep = node_int(node, "keep", 200),
                          .score = node_float(node, "score_threshold", 0.01),
                          .iou = node_float(node, "iou_threshold", 0.45),
                          .variance_xy = node_float(node, "variance_xy", 0.1),
                          .variance_size = node_float(node, "variance_size", 0.2)};
    d.top_k = d.top_k < d.priors ? d.top_k : d.priors;
    return d;
}
