/* SPDX-License-Identifier: Apache-2.0 */
#include "results/compare_process.h"

#include <math.h>
#include <stdlib.h>

#include "base/numbers/series.h"
#include "base/numbers/stats.h"
#include "base/registry.h"

double compare_lowest_weight(int n, int k, int i)
{
    double weight = (double)k / n; /* C(n-1, k-1) / C(n, k) */
    for (int j = 0; j < i; j++)
        weight *= (double)(n - j - k) / (n - j - 1);
    return n > 1 ? weight : 1;
}

/* Variance of the lowest of n standard normal numbers over the mean square of the distance of the
 * two lowest, n = 2 .. 8: from the moments of normal order statistics (Sarhan and Greenberg 1962).
 */
static double two_lowest(int n)
{
    static const double variance[] = {0.682, 0.559, 0.492, 0.448, 0.416, 0.392, 0.373};
    static const double square[] = {2.000, 1.173, 0.897, 0.757, 0.670, 0.610, 0.566};
    int k = n < 2 ? 0 : n > 8 ? 6 : n - 2;
    return variance[k] / square[k];
}

struct ranked {
    double median;
    int visit;
};

static int by_median(const void *a, const void *b)
{
    double x = ((const struct ranked *)a)->median, y = ((const struct ranked *)b)->median;
    return (x > y) - (x < y);
}

/* A level that one visit lacks is taken from the others. */
static double level_beside(const struct ranked *order, const double (*slow)[LEVEL_COUNT], int level,
                           int visits, int k)
{
    double sum = 0, weights = 0;
    for (int i = 0; i < visits; i++) {
        double weight = compare_lowest_weight(visits, k, i), value = slow[order[i].visit][level];
        if (isnan(value))
            continue;
        sum += weight * value;
        weights += weight;
    }
    return weights > 0 ? sum / weights : NAN;
}

struct compare_process compare_process(const double *medians, const double (*slow)[LEVEL_COUNT],
                                       int visits, int k)
{
    struct ranked order[COMPARE_VISITS_MAX];
    visits = visits < COMPARE_VISITS_MAX ? visits : COMPARE_VISITS_MAX;
    k = k < visits ? k : visits;
    for (int i = 0; i < visits; i++)
        order[i] = (struct ranked){medians[i], i};
    qsort(order, (size_t)visits, sizeof(*order), by_median);
    double apart = visits > 1 ? order[1].median - order[0].median : NAN;
    struct compare_process p = {.visits = visits,
                                .lowest = order[0].median,
                                .highest = order[visits - 1].median,
                                .noise = two_lowest(visits) * apart * apart};
    for (int i = 0; i < visits; i++)
        p.value += compare_lowest_weight(visits, k, i) * order[i].median;
    for (int level = 0; level < LEVEL_COUNT; level++)
        p.slow[level] = level_beside(order, slow, level, visits, k);
    return p;
}

void compare_log_slow(const double slow[LEVEL_COUNT], double out[LEVEL_COUNT])
{
    for (int level = 0; level < LEVEL_COUNT; level++)
        out[level] = slow[level] > 0 && isfinite(slow[level]) ? log(slow[level]) : NAN;
}

void compare_side_release(struct compare_side_values *values)
{
    free(values->processes);
    free(values->sorted);
    free(values->medians);
    free(values->slow);
    free(values->first);
    *values = (struct compare_side_values){.runs = 0};
}

static void add_visit(struct compare_side_values *values, const struct compare_visit *visit,
                      double *order, double *sorted)
{
    for (int i = 0; i < visit->count; i++)
        sorted[i] = order[i] = log(visit->times[i]);
    stats_sort(sorted, visit->count);
    double median = stats_median(sorted, visit->count);
    double effective = series_effective(order, visit->count, median);
    double error = visit->count > 1 ? stats_median_error(sorted, visit->count, effective) : 0;
    values->medians[values->visits] = median;
    compare_log_slow(visit->slow, values->slow[values->visits++]);
    values->within += error * error;
    values->spread = fmax(values->spread, stats_quantile(sorted, visit->count, 0.75) -
                                              stats_quantile(sorted, visit->count, 0.25));
    values->effective += effective;
    values->samples += visit->count;
}

static void find_runs(struct compare_side_values *values, const struct compare_side *side)
{
    values->runs = 0;
    values->visits_least = side->visit_count;
    for (int k = 0; k < side->visit_count; k++)
        if (k == 0 || side->visits[k].run != side->visits[k - 1].run)
            values->first[values->runs++] = k;
    values->first[values->runs] = side->visit_count;
    for (int k = 0; k < values->runs; k++) {
        int visits = values->first[k + 1] - values->first[k];
        values->visits_least = visits < values->visits_least ? visits : values->visits_least;
    }
}

enum status compare_side_read(struct compare_side_values *values, const struct compare_side *side,
                              struct error *err)
{
    size_t visits = (size_t)side->visit_count + 1, longest = 1;
    for (int k = 0; k < side->visit_count; k++)
        longest = (size_t)side->visits[k].count > longest ? (size_t)side->visits[k].count : longest;
    *values = (struct compare_side_values){
        .processes = calloc(visits, sizeof(*values->processes)),
        .sorted = calloc(visits, sizeof(*values->sorted)),
        .medians = calloc(visits, sizeof(*values->medians)),
        .slow = calloc(visits, sizeof(*values->slow)),
        .first = calloc(visits, sizeof(*values->first)),
    };
    double *scratch = calloc(2 * longest, sizeof(*scratch));
    if (!values->processes || !values->sorted || !values->medians || !values->slow ||
        !values->first || !scratch) {
        free(scratch);
        compare_side_release(values);
        return FAIL_NO_MEMORY(err);
    }
    for (int k = 0; k < side->visit_count; k++)
        add_visit(values, &side->visits[k], scratch, scratch + longest);
    free(scratch);
    values->within /= side->visit_count > 0 ? side->visit_count : 1;
    find_runs(values, side);
    return STATUS_OK;
}

double compare_visit_median(const struct compare_visit *visit)
{
    struct compare_side_values values;
    struct compare_side side = {.visits = visit, .visit_count = 1};
    for (int i = 0; i < visit->count; i++)
        if (!(visit->times[i] > 0))
            return NAN;
    if (visit->count < 1 || compare_side_read(&values, &side, NULL) != STATUS_OK)
        return NAN;
    double median = exp(values.medians[0]);
    compare_side_release(&values);
    return median;
}

void compare_side_settle(struct compare_side_values *values, int k)
{
    for (int i = 0; i < values->runs; i++) {
        int first = values->first[i];
        values->processes[i] = compare_process(values->medians + first,
                                               (const double(*)[LEVEL_COUNT])values->slow + first,
                                               values->first[i + 1] - first, k);
        values->sorted[i] = values->processes[i].value;
    }
    stats_sort(values->sorted, values->runs);
}
