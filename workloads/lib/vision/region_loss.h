/* SPDX-License-Identifier: Apache-2.0
 * What detectors with two stages learn from: which anchors and which of the proposed regions lie on
 * objects, samples of them, and the losses of those (Ren et al., NIPS 2015; He et al., ICCV 2017).
 * Boxes are [.., 4]: the low corner, then the high one, x or y first as the caller likes. */
#ifndef WORKLOADS_LIB_VISION_REGION_LOSS_H
#define WORKLOADS_LIB_VISION_REGION_LOSS_H

#include "engine/graph/graph.h"

/* Objects of the input "objects" (workloads/lib/vision/scenes.h). */
struct region_truth {
    int boxes, labels; /* [N, SCENE_OBJECTS, 4]; i64 [N, SCENE_OBJECTS], 0: there is none */
};
/* size: height and width of the image in the unit of the boxes. */
struct region_truth region_truth(struct graph *g, int objects, const double size[2], bool y_first);

/* How many are drawn, and how their losses are weighed. */
struct region_rule {
    const char *name;          /* of the draw */
    int64_t count, positives;  /* of an image, the latter at most */
    double ratio;              /* of negatives for each positive one; 0: any number */
    double object, background; /* overlaps with an object: at least, less than */
    bool best;                 /* the best place of each object is positive in any case */
    double variance[2];        /* that offsets are divided by: of centres, of sizes */
    double beta;               /* of smooth L1 */
    bool mean;                 /* of offsets of positive ones; else their sum by the number drawn */
};

/* Centres and sizes of boxes; extent: what a box is larger than high - low. */
int region_priors(struct graph *g, int boxes, float extent);
/* The loss of the first stage. priors [P, 4] are centres and sizes; those of size 0 do not count.
 * logits [N, P, 2], deltas [N, P, 4]. */
int anchor_loss(struct graph *g, const struct region_rule *rule, const struct region_truth *truth,
                int priors, int logits, int deltas);

/* Regions of one image that the second stage learns from, positive ones first. */
struct region_sample {
    int boxes;   /* [count, 4] */
    int classes; /* i64 [count]; 0: background; -1: does not count */
    int objects; /* i64 [count]: number of its object from 1 on; else as classes */
    int offsets; /* [count, 4] */
};
/* Of proposals [R, 4] of image k, zeros where there is none, and of the objects themselves.
 * extent: as in region_priors. */
struct region_sample region_sample(struct graph *g, const struct region_rule *rule,
                                   const struct region_truth *truth, int64_t k, int proposals,
                                   float extent);
/* The loss of the second stage: logits [R, C], deltas [R, 4 C]; classes [R], offsets [R, 4]. */
int region_loss(struct graph *g, const struct region_rule *rule, int logits, int deltas,
                int classes, int offsets);
/* Row r of x [R C, ..] for each of R classes, that of its class; of those below 0 the first. */
int rows_of_classes(struct graph *g, int x, int classes, int64_t count);

#endif
