/* SPDX-License-Identifier: Apache-2.0
 *
 * Made-up images of words: letters and digits of a font of 5 x 7 dots, drawn in some size, place,
 * slant and colours, under noise. */
#ifndef WORKLOADS_LIB_VISION_WORDS_H
#define WORKLOADS_LIB_VISION_WORDS_H

#include "workloads/lib/lessons.h"
#include "workloads/lib/vision/letters.h"

enum { WORDS_SYMBOLS = LETTERS_SYMBOLS };

#define WORDS_LESSON "which word of letters and digits an image shows"

/* Inputs "image" [N, channels, height, width], "label" [N, S], -1 after the word, which has fewer
 * than S letters, and "label_length" [N]. */
void words_fill(const struct batch *batch);

#endif
