/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/ops/lib/match.h"

struct match match_of(const struct node *node, const struct shape *boxes,
                      const struct shape *priors)
{
    double threshold = node_float(node, "threshold", 0.5);
    return (struct match){.images = boxes->dim[0],
                          .boxes = boxes->dim[1],
                          .priors = priors->dim[0],
                          .threshold = threshold,
                          .background = node_float(node, "background", threshold),
                          .variance_xy = node_float(node, "variance_xy", 0.1),
                          .variance_size = node_float(node, "variance_size", 0.2),
                          .best = node_int(node, "best", 1) != 0};
}
