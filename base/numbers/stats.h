/* SPDX-License-Identifier: Apache-2.0
 * Pure functions over samples; none of them prints or allocates. Related:
 * base/numbers/distribution.h (probabilities), base/numbers/rank.h (comparing two sets of samples),
 * base/numbers/series.h (samples in time). */
#ifndef BASE_NUMBERS_STATS_H
#define BASE_NUMBERS_STATS_H

#include <stdbool.h>

/* Sorts ascending, in place. */
void stats_sort(double *samples, int count);
/* Quantile q in [0,1] of sorted samples, linear between neighbours; 0 samples give NAN. */
double stats_quantile(const double *sorted, int count, double q);
double stats_median(const double *sorted, int count);
/* 95 % confidence interval of the median by order statistics; returns false under 6 samples. */
bool stats_median_interval(const double *sorted, int count, double *low, double *high);
/* What is printed as +- of a value with an interval: the larger side. NAN where an end is. */
double stats_half_width(double value, double low, double high);

/* Arithmetic mean, NAN without samples; standard deviation with n - 1, NAN under 2 samples. */
double stats_mean(const double *samples, int count);
double stats_sd(const double *samples, int count);
/* Standard error of the median when `effective` of the sorted samples are independent: the width
 * of the order-statistic interval with as many ranks as that leaves, over 2 x 1.96. */
double stats_median_error(const double *sorted, int count, double effective);

#endif
