/* SPDX-License-Identifier: Apache-2.0 */
#include "results/compare_pairs.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/rank.h"
#include "base/series.h"
#include "base/stats.h"

static bool is_paired(const struct compare_point *point, int *longest)
{
    int count = point->base.run_count;
    if (!point->paired || count != point->head.run_count || count > COMPARE_PAIRS_MAX)
        return false;
    *longest = 0;
    for (int k = 0; k < count; k++) {
        int samples = point->base.runs[k].count;
        if (samples != point->head.runs[k].count)
            return false;
        *longest = samples > *longest ? samples : *longest;
    }
    return true;
}

/* Differences of one pair into the sums; `order` and `sorted` are scratch. */
static void add_pair(const struct compare_series *base, const struct compare_series *head,
                     struct compare_pairs *pairs, double sums[2], double *order, double *sorted)
{
    int above = 0, below = 0;
    for (int k = 0; k < base->count; k++) {
        order[k] = sorted[k] = log(head->times[k] / base->times[k]);
        above += order[k] > 0;
        below += order[k] < 0;
    }
    stats_sort(sorted, base->count);
    double median = stats_median(sorted, base->count);
    double effective = series_effective(order, base->count, median);
    double error = stats_median_error(sorted, base->count, effective);
    pairs->shift[pairs->count++] = median;
    pairs->within += 0.5 * error * error; /* a difference has the variance of both sides */
    if (above + below) {
        sums[0] += effective * (above - below) / (above + below);
        sums[1] += effective;
    }
}

enum status compare_pairs(const struct compare_point *point, struct compare_pairs *pairs,
                          struct error *err)
{
    int longest;
    double sums[2] = {0, 0};
    *pairs = (struct compare_pairs){.p_sign = 1};
    if (!is_paired(point, &longest))
        return STATUS_OK;
    double *scratch = calloc(2 * (size_t)longest + 1, sizeof(*scratch));
    if (!scratch)
        return FAIL_NO_MEMORY(err);
    for (int k = 0; k < point->base.run_count; k++)
        add_pair(&point->base.runs[k], &point->head.runs[k], pairs, sums, scratch,
                 scratch + longest);
    free(scratch);
    pairs->within /= pairs->count;
    /* Under no difference the sum of n signs has variance n. */
    if (sums[1] > 0)
        pairs->p_sign = erfc(fabs(sums[0]) / sqrt(2 * sums[1]));
    return STATUS_OK;
}

double compare_pairs_shift(const struct compare_pairs *pairs)
{
    double half[2][COMPARE_PAIRS_MAX];
    for (int k = 0; k < pairs->count; k++) {
        half[1][k] = 0.5 * pairs->shift[k];
        half[0][k] = -half[1][k];
    }
    stats_sort(half[0], pairs->count);
    stats_sort(half[1], pairs->count);
    /* Differences of d/2 and -d/2 are the means of two. */
    return shift_estimate(half[0], pairs->count, half[1], pairs->count);
}
