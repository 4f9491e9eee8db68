/* SPDX-License-Identifier: Apache-2.0
 *
 * One colour and one marker per kind of thing, the same in every plot of every report: the eight
 * colours of Okabe and Ito, which colour-blind readers tell apart, and shapes for print in grey.
 */
#ifndef PLOTS_PALETTE_H
#define PLOTS_PALETTE_H

enum { PALETTE_COUNT = 9 };

struct swatch {
    const char *name;
    unsigned rgb;
    int marker;    /* gnuplot's point type, filled; one less is the hollow one */
    unsigned text; /* colour of text on it */
};

const struct swatch *palette_at(int index);
/* Operators fall into groups: convolution, matrix product ... the last one is "other". */
int palette_of_kind(const char *kind);
const char *palette_group(int index);
/* Fields of work: vision, recommendation, language ... */
int palette_of_domain(const char *domain);
const char *palette_domain(int index);

#endif
