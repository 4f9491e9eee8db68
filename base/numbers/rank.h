/* SPDX-License-Identifier: Apache-2.0
 *
 * Comparing two sets of samples by their ranks: nothing is assumed of their distribution, and no
 * outlier counts more than any other sample. Inputs are sorted; nothing is allocated.
 */
#ifndef BASE_NUMBERS_RANK_H
#define BASE_NUMBERS_RANK_H

#include <stdint.h>

/* Mann and Whitney's U: pairs (x, y) with x > y, ties counting half. */
double mann_whitney_u(const double *x, int nx, const double *y, int ny);

/* Two-sided p of U. Without ties and with at most 20 on each side it is exact; otherwise the normal
 * approximation with the variance that ties leave under permutation and a continuity correction.
 * inflation (>= 1) multiplies the variance, for samples that are not independent; above 1 the
 * normal approximation is always taken. 1 when a side is empty. */
double mann_whitney_p(const double *x, int nx, const double *y, int ny, double inflation);

/* The k-th smallest (from 0) of all nx * ny differences y - x, in O((nx + ny) log) time. */
double difference_at(const double *x, int nx, const double *y, int ny, int64_t k);
/* Hodges and Lehmann's estimate of how far y is shifted from x: the median of all differences. */
double shift_estimate(const double *x, int nx, const double *y, int ny);

/* Benjamini and Hochberg: adjusted[i] is the smallest false discovery rate at which p[i] would be
 * rejected. NAN entries are no tests and stay NAN. order: scratch of count. */
void adjust_false_discovery(const double *p, int count, int *order, double *adjusted);

#endif
