/* SPDX-License-Identifier: Apache-2.0
 *
 * gnuplot's SVG made part of a page: no fixed size, ids that are the picture's own, black and grey
 * turned into the page's colours (so that light, dark and print need one picture), words for
 * readers who do not see it. Everything else passes through unchanged.
 */
#ifndef PLOTS_SVG_H
#define PLOTS_SVG_H

#include <stdio.h>

#include "base/error.h"

struct svg_words {
    const char *id; /* prefix of all ids; letters and digits */
    const char *title, *description;
    const char *over; /* SVG that is drawn over the picture, in its pixels; "" or NULL: nothing */
};

enum status svg_inline(const char *path, const struct svg_words *words, FILE *page,
                       struct error *err);

#endif
