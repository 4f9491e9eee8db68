/* SPDX-License-Identifier: Apache-2.0
 *
 * Made-up pages: up to three lines of letters of some size and direction on a ground of waves under
 * noise. */
#ifndef WORKLOADS_LIB_VISION_PAGES_H
#define WORKLOADS_LIB_VISION_PAGES_H

#include "workloads/lib/lessons.h"

/* Of a line its oriented box: centre x and y, width, height in pixels; sine and cosine of its
 * direction, y pointing down. Width 0: there is none. */
enum { PAGE_WORDS = 4, PAGE_NUMBERS = 6 };

#define PAGES_LESSON "where lines of letters lie, and in which direction they run"

/* Inputs "image" [N, 3, H, W] and "words" [N, PAGE_WORDS, PAGE_NUMBERS]. */
void pages_fill(const struct batch *batch);

/* F-measure of boxes [N, S, 5] as MergeSegments gives them (angles in radians; width 0: none): one
 * finds a line that it overlaps by half (intersection over union) and no better box found. The
 * harmonic mean of the share of lines that are found and of boxes that find one (ICDAR 2015's
 * measure). */
extern const struct quality quality_words;

#endif
