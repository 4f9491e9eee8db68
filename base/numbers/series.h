/* SPDX-License-Identifier: Apache-2.0
 *
 * Samples in the order in which they were taken: how much one says about the next, and where the
 * level of a history changed.
 */
#ifndef BASE_NUMBERS_SERIES_H
#define BASE_NUMBERS_SERIES_H

#include <stdint.h>

/* How many independent samples the median of these is worth (1..count). The median depends on the
 * samples only by their being above or below it, so it is that series of signs whose
 * autocorrelations are summed, in pairs while these stay positive (Geyer, Stat. Sci. 7, 1992). */
double series_effective(const double *samples, int count, double median);

struct change_point {
    int index;            /* first value of the new level */
    double before, after; /* medians of the two levels */
    double p;             /* of the permutation test */
};

struct change_rules {
    int side_min;  /* values on each side, >= 2; default of a zeroed struct: 3 */
    double p;      /* a split must be below; default 0.01 */
    uint64_t seed; /* of the permutations; the same seed gives the same answer */
};

/* From so many values on a change far above the noise is found, if four or more stand on each side.
 * Of fewer it may not be: chance alone keeps four of nine apart from the others in 1 of 63 orders,
 * whatever their distance. */
enum { SERIES_TO_JUDGE = 12 };

/* E-divisive means (Matteson and James, JASA 109, 2014): the split with the largest energy
 * distance, tested with 199 permutations, then both parts again. Changes come in order of index.
 * scratch: count. Time is O(permutations count^2): meant for histories, not for raw samples. */
int series_changes(const double *values, int count, const struct change_rules *rules,
                   double *scratch, struct change_point *changes, int change_max);

#endif
