/* SPDX-License-Identifier: Apache-2.0
 * Letters and digits of a font of 5 x 7 dots, for made-up pictures of text. */
#ifndef WORKLOADS_LIB_VISION_LETTERS_H
#define WORKLOADS_LIB_VISION_LETTERS_H

#include <stdint.h>

enum { LETTERS_SYMBOLS = 36 }; /* 0 to 9, then A to Z */

/* How a line of letters lies, in pixels. */
struct letters {
    const int64_t *symbol;
    int64_t count;
    double left, top, wide, high; /* of the first one with the gap after it; height */
    double slant;                 /* pixels to the right per pixel up */
};

/* How much of a letter is at a point, in [0, 1]: dots run into each other linearly. */
double letters_ink(const struct letters *letters, double x, double y);

/* Of `wide`, the gap between two letters. */
double letters_gap(const struct letters *letters);

#endif
