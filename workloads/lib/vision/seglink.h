/* SPDX-License-Identifier: Apache-2.0
 * SegLink's decoder: which cells of which layers are neighbours, and from maps to lines of text.
 * And its loss: what cells and links are to say of given lines. */
#ifndef WORKLOADS_LIB_VISION_SEGLINK_H
#define WORKLOADS_LIB_VISION_SEGLINK_H

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

/* What is known of cells and links whatever the image shows. */
struct seglink_tables {
    int64_t cells, links;
    int edges;           /* [E, 2]: cells from which and to which a link leads; -1: off the map */
    int centres, sizes;  /* [1, S, 2]: of the cell in pixels; its anchor, twice */
    const int64_t *edge; /* contents of edges */
};
struct seglink_tables seglink_tables(struct graph *g, const struct seglink *net);

/* What cells and links are to say of words [N, PAGE_WORDS, PAGE_NUMBERS]
 * (workloads/lib/vision/pages.h). A cell is on text whose box its centre lies in and whose height
 * is 1/1.7 to 1.7 times its anchor, and is not from twice on; what lies between does not count. A
 * link is on between cells of one word. */
struct seglink_targets {
    int cells, links; /* [N, S], [N, E] i64: 1, 0; -1: does not count */
    int offsets;      /* [N, S, 6], of cells on text */
};
struct seglink_targets seglink_targets(struct graph *g, const struct seglink *net, int words);

/* The loss, with the input "words": cross-entropies of what is on and of three times as much that
 * is off, and smooth L1 of the offsets, each by how many are on. */
int seglink_loss(struct graph *g, const struct seglink *net);

/* boxes [N, S, 5], padded, and how many there are [N]. */
void seglink_decode(struct graph *g, const struct seglink *net, int outputs[2]);

#endif
