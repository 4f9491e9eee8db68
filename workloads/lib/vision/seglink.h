/* SPDX-License-Identifier: Apache-2.0
 * SegLink's decoder: which cells of which layers are neighbours, and from maps to lines of text. */
#ifndef WORKLOADS_LIB_SEGLINK_H
#define WORKLOADS_LIB_SEGLINK_H

#include "workloads/lib/layers.h"

enum { SEGLINK_LAYERS = 6 };

struct seglink_layer {
    int64_t height, width; /* cells */
    int64_t links;         /* per cell: 8, or 12 with those to the layer before */
    double anchor;         /* size in pixels */
};

struct seglink {
    int64_t batch, height, width; /* of the image */
    struct seglink_layer layers[SEGLINK_LAYERS];
    /* Predictions of all layers' cells, one layer after the other: */
    int segments; /* [N, S, 2] background, text */
    int links;    /* [N, E, 2] off, on */
    int offsets;  /* [N, S, 6] */
};

/* boxes [N, S, 5], padded, and how many there are [N]. */
void seglink_decode(struct graph *g, const struct seglink *net, int outputs[2]);

#endif
