/* SPDX-License-Identifier: Apache-2.0
 *
 * How classifiers of images learn. The images are made up: a class is a grating of its own
 * direction, fineness and colour, and where its lines lie is different in each image, under noise.
 * So no single pixel says anything of the class, and a linear model learns next to nothing. */
#ifndef WORKLOADS_LIB_VISION_CLASSES_H
#define WORKLOADS_LIB_VISION_CLASSES_H

#include "workloads/lib/layers.h"
#include "workloads/lib/lessons.h"

#define CLASSES_PARAMS                                                                             \
    {"image", "224", NULL, "height and width of the image"},                                       \
    {                                                                                              \
        "classes", "1000", NULL, "that it tells apart"                                             \
    }

/* Of struct training: what they learn from, and what they are judged by. */
#define CLASSES_LESSON                                                                             \
    .fill = classes_fill, .quality = &quality_accuracy, .answers = "logits", .targets = "label",   \
    .lesson = "which grating of lines an image shows, wherever the lines lie"

/* As AI Matrix trains all of its classifiers (nvcnn.py): only the first rate is a network's own. */
#define CLASSES_RECIPE(rate_)                                                                      \
    {                                                                                              \
        .optimiser = "nesterov", .attrs = {{.name = "momentum", .kind = ATTR_FLOAT, .f = 0.9}},    \
        .decay = 1e-4, .decay_all = true,                                                          \
        .schedule = {.kind = SCHEDULE_POLYNOMIAL, .rate = (rate_), .power = 2, .steps = 500},      \
        .source = "AI Matrix nvcnn.py",                                                            \
    }

/* The end of a classifier: logits [N, C] are the output; before them, where config->loss, the loss
 * by the input "label". */
void classes_end(struct graph *g, const struct workload_config *config, int logits);
void classes_fill(const struct batch *batch);

#endif
