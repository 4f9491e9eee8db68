/* SPDX-License-Identifier: Apache-2.0
 * The head of single-shot detectors (Liu et al., ECCV 2016), the same after every backbone: two
 * convolutions per feature map, priors, decoding, non-maximum suppression. */
#ifndef WORKLOADS_LIB_VISION_SSD_H
#define WORKLOADS_LIB_VISION_SSD_H

#include "workloads/lib/layers.h"
#include "workloads/lib/vision/scenes.h"

enum { SSD_MAPS = 7, SSD_RATIOS = 3 };

/* One feature map. Priors per cell: a square of side `least`, one of side sqrt(least most), and two
 * rectangles for each ratio. Lengths are pixels of the image. */
struct ssd_map {
    const char *name; /* of its heads: "conv7_2" gives conv7_2_mbox_loc, conv7_2_mbox_conf */
    double least, largest;
    double step;   /* distance of two cells */
    double offset; /* centre of cell i is (i + offset) step */
    int ratios;    /* how many of struct ssd's it uses */
    int64_t kernel;
};

struct ssd {
    int64_t image;   /* height and width */
    int64_t classes; /* with the background */
    double ratio[SSD_RATIOS];
    bool whole_sides; /* sides are cut to whole pixels, as Caffe's prior layer stores them */
    double score_threshold;
    int64_t top_k; /* candidates per class; rows per image are 200, IoU threshold 0.45 */
    int maps;
    struct ssd_map map[SSD_MAPS];
};

/* Parameters of the nets on ResNets: thin, and that of those whose scripts write the priors'
 * offsets in pixels, where Caffe multiplies them by the step; offsets=centre makes them 0.5. */
extern const struct param ssd_offsets[];
void ssd_set_offsets(struct ssd *net, const struct workload_config *config);

/* Momentum as in Caffe's scripts: the rate falls to a tenth at each of the steps. */
#define SSD_RECIPE(rate_, steps_, ...)                                                             \
    {                                                                                              \
        .optimiser = "momentum", .attrs = {{.name = "momentum", .kind = ATTR_FLOAT, .f = 0.9}},    \
        .decay = 5e-4,                                                                             \
        .schedule = {.kind = SCHEDULE_MULTISTEP,                                                   \
                     .rate = (rate_),                                                              \
                     .factor = 0.1,                                                                \
                     .at = {__VA_ARGS__},                                                          \
                     .steps = (steps_)},                                                           \
        .source = "Liu et al., ECCV 2016; AI Matrix SSD_VGG16_Caffe",                              \
    }

/* From the maps' feature values to the outputs "detections" [N, 200, 7] and "detection_count".
 * Where config->loss the loss comes first, with the input "objects"
 * (workloads/lib/vision/scenes.h): the softmax's cross-entropy of positive priors and of three
 * times as many negative ones, and smooth L1 of offsets, by the number of positive priors; while it
 * learns it is the only output. */
void ssd_end(struct graph *g, const struct workload_config *config, const struct ssd *net,
             const int *features);

#endif
