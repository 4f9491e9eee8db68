/* SPDX-License-Identifier: Apache-2.0
 * Pure functions over samples; none of them prints or allocates. */
#ifndef BASE_STATS_H
#define BASE_STATS_H

/* Sorts ascending, in place. */
void stats_sort(double *samples, int count);
/* Quantile q in [0,1] of sorted samples, linear between neighbours; 0 samples give NAN. */
double stats_quantile(const double *sorted, int count, double q);
double stats_median(const double *sorted, int count);
/* 95 % confidence interval of the median by order statistics; returns false under 6 samples. */
int stats_median_interval(const double *sorted, int count, double *low, double *high);

#endif
