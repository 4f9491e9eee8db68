/* SPDX-License-Identifier: Apache-2.0
 *
 * Made-up scenes for detectors: up to four objects of some size and place on a ground of waves
 * under noise. A class is a shape in a colour; objects lie beside each other, or hide little of
 * each other. */
#ifndef WORKLOADS_LIB_VISION_SCENES_H
#define WORKLOADS_LIB_VISION_SCENES_H

#include "workloads/lib/lessons.h"

/* Of an object: corners x1, y1, x2, y2 in parts of the image, and the class from 1 on; class 0:
 * there is none. */
enum { SCENE_OBJECTS = 8, SCENE_NUMBERS = 5 };

/* Of struct training: what detectors learn from, and what they are judged by. */
#define SCENES_LESSON                                                                              \
    .fill = scenes_fill, .quality = &quality_map, .answers = "detections", .targets = "objects",   \
    .lesson = "where objects lie in a scene, and which shape and colour they have"

/* The input "objects" [N, SCENE_OBJECTS, SCENE_NUMBERS]; classes: with the background. */
int scenes_objects(struct graph *g, int64_t batch, int64_t classes);
/* The input "masks" [N, SCENE_OBJECTS, SCENE_MASK, SCENE_MASK]: 1 where the object is in its box,
 * of which the middles of the corner elements are the corners, else 0. */
enum { SCENE_MASK = 56 };
int scenes_masks(struct graph *g, int64_t batch);
/* Inputs "image" [N, 3, H, W], "objects" and, where a network has it, "masks". */
void scenes_fill(const struct batch *batch);

/* Rows [N, R, 6] of class, score and box, which is in a unit of its own, as quality_map wants them.
 * size: height and width of the image in this unit; extent: what a box is larger than high - low.
 */
int scene_rows(struct graph *g, int rows, const double size[2], bool y_first);

/* Mean average precision of rows [N, rows, 7] as DetectionOutput gives them: an object is found by
 * the best row of its class that overlaps it by half and found no other (Everingham et al., "The
 * PASCAL Visual Object Classes Challenge", IJCV 2010; area under the curve). */
extern const struct quality quality_map;

#endif
