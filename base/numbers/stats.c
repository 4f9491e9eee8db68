/* SPDX-License-Identifier: Apache-2.0 */
#include "base/numbers/stats.h"

#include <math.h>
#include <stdlib.h>

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

void stats_sort(double *samples, int count)
{
    if (count > 1)
        qsort(samples, (size_t)count, sizeof(*samples), compare);
}

double stats_quantile(const double *sorted, int count, double q)
{
    if (count <= 0)
        return NAN;
    double at = q * (count - 1);
    int low = (int)floor(at);
    if (low < 0)
        return sorted[0];
    if (low >= count - 1)
        return sorted[count - 1];
    return sorted[low] + (at - low) * (sorted[low + 1] - sorted[low]);
}

double stats_median(const double *sorted, int count)
{
    return stats_quantile(sorted, count, 0.5);
}

bool stats_median_interval(const double *sorted, int count, double *low, double *high)
{
    if (count < 6)
        return false;
    /* Normal approximation of Binomial(n, 1/2): ranks n/2 -+ 1.96 sqrt(n)/2. */
    double half = 0.98 * sqrt((double)count);
    int first = (int)floor(count / 2.0 - half);
    int last = (int)ceil(count / 2.0 + half);
    *low = sorted[first < 0 ? 0 : first];
    *high = sorted[last > count - 1 ? count - 1 : last];
    return true;
}

double stats_half_width(double value, double low, double high)
{
    double above = high - value, below = value - low;
    return isnan(above) || isnan(below) ? NAN : fmax(above, below);
}

double stats_mean(const double *samples, int count)
{
    double sum = 0;
    for (int k = 0; k < count; k++)
        sum += samples[k];
    return count > 0 ? sum / count : NAN;
}

double stats_sd(const double *samples, int count)
{
    if (count < 2)
        return NAN;
    double mean = stats_mean(samples, count), sum = 0;
    for (int k = 0; k < count; k++)
        sum += (samples[k] - mean) * (samples[k] - mean);
    return sqrt(sum / (count - 1));
}

double stats_median_error(const double *sorted, int count, double effective)
{
    if (count < 2 || !(effective > 0))
        return NAN;
    double half = 0.98 / sqrt(effective);
    double low = stats_quantile(sorted, count, fmax(0, 0.5 - half));
    double high = stats_quantile(sorted, count, fmin(1, 0.5 + half));
    return (high - low) / (2 * 1.959964);
}
