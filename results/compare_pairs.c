/* SPDX-License-Identifier: Apache-2.0 */
#include "results/compare_pairs.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/numbers/series.h"
#include "base/numbers/stats.h"

enum {
    SAMPLES_MIN = 2, /* of a pair, to have a difference that is not one accident */
    FEW = 6,         /* fewer have no 95 % interval of the median */
};

/* The visit of HEAD that was taken beside this one of BASE, -1: there is none. */
static int other_half(const struct compare_point *point, const struct compare_visit *base)
{
    for (int k = 0; k < point->head.visit_count; k++) {
        const struct compare_visit *head = &point->head.visits[k];
        if (head->run == base->run && head->round == base->round)
            return base->count >= SAMPLES_MIN && head->count >= SAMPLES_MIN ? k : -1;
    }
    return -1;
}

static const double half_pi = 1.570796;

/* Variance of the median of a few, of which an interval by order statistics knows nothing: that of
 * a mean times pi / 2, which only two of them have not lost by becoming a median. */
static double variance_of_few(const double *sorted, int count)
{
    double sd = stats_sd(sorted, count);
    return sd * sd / count * (count > 2 ? half_pi : 1);
}

/* Differences of one pair into the sums; `order` and `sorted` are scratch. */
static void add_pair(const struct compare_visit *base, const struct compare_visit *head,
                     struct compare_pairs *pairs, double sums[2], double *order, double *sorted)
{
    int above = 0, below = 0, count = base->count < head->count ? base->count : head->count;
    for (int k = 0; k < count; k++) {
        order[k] = sorted[k] = log(head->times[k] / base->times[k]);
        above += order[k] > 0;
        below += order[k] < 0;
    }
    stats_sort(sorted, count);
    double median = stats_median(sorted, count);
    double effective = series_effective(order, count, median);
    double error = stats_median_error(sorted, count, effective);
    double variance = count < FEW ? variance_of_few(sorted, count) : error * error;
    pairs->own[pairs->count] = 0.5 * variance; /* a difference has the variance of both sides */
    pairs->within += pairs->own[pairs->count];
    pairs->shift[pairs->count++] = median;
    if (above + below) {
        sums[0] += effective * (above - below) / (above + below);
        sums[1] += effective;
    }
}

enum status compare_pairs(const struct compare_point *point, struct compare_pairs *pairs,
                          struct error *err)
{
    size_t longest = 1;
    double sums[2] = {0, 0};
    *pairs = (struct compare_pairs){.p_sign = 1};
    for (int k = 0; k < point->base.visit_count; k++)
        if ((size_t)point->base.visits[k].count > longest)
            longest = (size_t)point->base.visits[k].count;
    if (!point->paired)
        return STATUS_OK;
    double *scratch = calloc(2 * longest, sizeof(*scratch));
    if (!scratch)
        return FAIL_NO_MEMORY(err);
    for (int k = 0; k < point->base.visit_count && pairs->count < COMPARE_PAIRS_MAX; k++) {
        int other = other_half(point, &point->base.visits[k]);
        if (other < 0)
            continue;
        pairs->base_visit[pairs->count] = k;
        pairs->head_visit[pairs->count] = other;
        add_pair(&point->base.visits[k], &point->head.visits[other], pairs, sums, scratch,
                 scratch + longest);
    }
    free(scratch);
    if (pairs->count)
        pairs->within /= pairs->count;
    /* Under no difference the sum of n signs has variance n. */
    if (sums[1] > 0)
        pairs->p_sign = erfc(fabs(sums[0]) / sqrt(2 * sums[1]));
    return STATUS_OK;
}

struct compare_weighed compare_pairs_weigh(const struct compare_pairs *pairs, double between)
{
    double weights = 0, sum = 0, squares = 0;
    for (int k = 0; k < pairs->count; k++) {
        weights += 1 / (between + pairs->own[k]);
        sum += pairs->shift[k] / (between + pairs->own[k]);
    }
    double mean = sum / weights;
    for (int k = 0; k < pairs->count; k++)
        squares += (pairs->shift[k] - mean) * (pairs->shift[k] - mean) / (between + pairs->own[k]);
    double expected = pairs->count / weights;
    double found = pairs->count > 1 ? 0.5 * squares / (pairs->count - 1) : 0;
    return (struct compare_weighed){
        .shift = mean, .expected = expected, .variance = found * expected};
}
