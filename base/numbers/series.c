/* SPDX-License-Identifier: Apache-2.0 */
#include "base/numbers/series.h"

#include <math.h>
#include <string.h>

#include "base/numbers/random.h"
#include "base/numbers/stats.h"

enum { PERMUTATIONS = 199, SIDE_MIN = 3, SPLITS_MAX = 64 };
#define ROUNDING 1e-9 /* the same sums in another order differ by less */

/* ---- independence ---- */

static double sign_of(double x, double median)
{
    return (x > median) - (x < median);
}

/* Autocovariance of the signs over their variance; + 1/n takes back the bias that comes from
 * subtracting the median of the same samples. */
static double sign_correlation(const double *samples, int count, double median, int lag)
{
    double sum = 0, square = 0;
    for (int k = 0; k < count; k++) {
        double sign = sign_of(samples[k], median);
        square += sign * sign;
        if (k + lag < count)
            sum += sign * sign_of(samples[k + lag], median);
    }
    return square > 0 ? sum / square + 1.0 / count : 0;
}

double series_effective(const double *samples, int count, double median)
{
    enum { LAG_MAX = 1000 };
    double time = 1;
    if (count < 4)
        return count;
    for (int lag = 1; lag + 1 < count / 2 && lag < LAG_MAX; lag += 2) {
        double pair = sign_correlation(samples, count, median, lag) +
                      sign_correlation(samples, count, median, lag + 1);
        if (pair <= 0)
            break;
        time += 2 * pair;
    }
    return fmax(1, count / time);
}

/* ---- change points ---- */

static double sum_to(const double *values, int from, int to, double x)
{
    double sum = 0;
    for (int k = from; k < to; k++)
        sum += fabs(values[k] - x);
    return sum;
}

/* The largest scaled energy distance over all splits; moving one value over costs one pass. */
static double best_split(const double *x, int count, int side_min, int *split)
{
    double inside_a = 0, inside_b = 0, between = 0, best = -1;
    for (int k = 0; k < count; k++)
        inside_b += sum_to(x, k + 1, count, x[k]);
    for (int n = 1; n <= count - side_min; n++) {
        double moved = x[n - 1];
        double to_a = sum_to(x, 0, n - 1, moved), to_b = sum_to(x, n, count, moved);
        inside_a += to_a;
        inside_b -= to_b;
        between += to_b - to_a;
        if (n < side_min)
            continue;
        double m = count - n;
        double energy = 2 * between / (n * m) - 2 * inside_a / ((double)n * (n - 1)) -
                        2 * inside_b / (m * (m - 1));
        double scaled = energy * n * m / count;
        if (scaled > best) {
            best = scaled;
            *split = n;
        }
    }
    return best;
}

static void shuffle(double *x, int count, uint64_t seed, uint64_t *draw)
{
    for (int k = count - 1; k > 0; k--) {
        int other = (int)(random_uniform(seed, (*draw)++) * (k + 1));
        double kept = x[k];
        x[k] = x[other];
        x[other] = kept;
    }
}

/* How likely chance alone keeps both sides of a split apart: no permutation test may say less,
 * whatever it draws. */
static double split_by_chance(int count, int split)
{
    double ways = 1;
    for (int k = 1; k <= split; k++)
        ways *= (double)(count - split + k) / k;
    return fmin(1, 2 / ways);
}

static double split_p(const double *x, int count, const struct change_rules *rules, double *scratch,
                      int *split)
{
    double found = best_split(x, count, rules->side_min, split) * (1 - ROUNDING);
    uint64_t draw = 0;
    int at_least = 0, unused;
    memcpy(scratch, x, (size_t)count * sizeof(*x));
    for (int k = 0; k < PERMUTATIONS; k++) {
        shuffle(scratch, count, rules->seed, &draw);
        at_least += best_split(scratch, count, rules->side_min, &unused) >= found;
    }
    return fmax((1.0 + at_least) / (1 + PERMUTATIONS), split_by_chance(count, *split));
}

static double level(const double *values, int from, int to, double *scratch)
{
    memcpy(scratch, values + from, (size_t)(to - from) * sizeof(*values));
    stats_sort(scratch, to - from);
    return stats_median(scratch, to - from);
}

static void insert(struct change_point *changes, int count, struct change_point change)
{
    int at = count;
    for (; at > 0 && changes[at - 1].index > change.index; at--)
        changes[at] = changes[at - 1];
    changes[at] = change;
}

int series_changes(const double *values, int count, const struct change_rules *asked,
                   double *scratch, struct change_point *changes, int change_max)
{
    struct change_rules rules = *asked;
    rules.side_min = rules.side_min >= 2 ? rules.side_min : SIDE_MIN;
    rules.p = rules.p > 0 ? rules.p : 0.01;
    int from[SPLITS_MAX] = {0}, to[SPLITS_MAX] = {count}, open = 1, found = 0, split = 0;
    while (open > 0 && found < change_max) {
        int a = from[--open], b = to[open];
        if (b - a < 2 * rules.side_min)
            continue;
        double p = split_p(values + a, b - a, &rules, scratch, &split);
        if (p > rules.p)
            continue;
        insert(changes, found++, (struct change_point){.index = a + split, .p = p});
        if (open + 2 > SPLITS_MAX)
            break;
        from[open] = a;
        to[open++] = a + split;
        from[open] = a + split;
        to[open++] = b;
    }
    for (int k = 0; k < found; k++) {
        int begin = k ? changes[k - 1].index : 0,
            end = k + 1 < found ? changes[k + 1].index : count;
        changes[k].before = level(values, begin, changes[k].index, scratch);
        changes[k].after = level(values, changes[k].index, end, scratch);
    }
    return found;
}
