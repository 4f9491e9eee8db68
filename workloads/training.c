/* SPDX-License-Identifier: Apache-2.0 */
#include "workloads/training.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

bool batch_gives(const struct graph *g, int input)
{
    const struct value *value = &g->values[g->inputs[input]];
    return value->kind == VALUE_INPUT && strcmp(value->name, TRAIN_RATE) != 0;
}

void *batch_input(const struct batch *batch, const char *name)
{
    int input = graph_input_named(batch->graph, name);
    return input == NONE ? NULL : batch->data[input];
}

/* ---- quality ---- */

struct answer {
    float score;
    bool positive;
};

static int by_score(const void *a, const void *b)
{
    float x = ((const struct answer *)a)->score, y = ((const struct answer *)b)->score;
    return (x > y) - (x < y);
}

static bool has_not_a_number(const float *list, int64_t count)
{
    for (int64_t k = 0; k < count; k++)
        if (isnan(list[k]))
            return true;
    return false;
}

/* The share of all pairs of a positive and a negative sample in which the positive one has the
 * higher score, ties counting half: from the sum of the positive ones' ranks. Scores that are not
 * numbers have no order, and then it is not known. */
static double auc(const struct judged *j)
{
    const float *targets = j->targets;
    int64_t count = j->answer_count < j->target_count ? j->answer_count : j->target_count;
    if (has_not_a_number(j->answers, count))
        return (double)NAN;
    struct answer *sorted = calloc((size_t)count + 1, sizeof(*sorted));
    double positives = 0, ranks = 0;
    for (int64_t k = 0; sorted && k < count; k++)
        sorted[k] = (struct answer){j->answers[k], targets[k] > 0.5f};
    if (sorted)
        qsort(sorted, (size_t)count, sizeof(*sorted), by_score);
    for (int64_t first = 0, next; sorted && first < count; first = next) {
        double here = 0;
        for (next = first; next < count && sorted[next].score == sorted[first].score; next++)
            here += sorted[next].positive;
        positives += here;
        ranks += here * 0.5 * (double)(first + 1 + next);
    }
    free(sorted);
    double pairs = positives * ((double)count - positives);
    return pairs > 0 ? (ranks - 0.5 * positives * (positives + 1)) / pairs : (double)NAN;
}

/* The share of rows whose true class is among the `best` largest answers. Where answers are equal
 * the first class is taken for the largest. */
static double share_of_best(const struct judged *j, int64_t best)
{
    int64_t right = 0, asked = 0, count = j->target_count;
    int64_t width = count ? j->answer_count / count : 0;
    for (int64_t k = 0; k < count; k++) {
        const float *row = j->answers + k * width;
        int64_t target = j->target_type == DTYPE_I64 ? ((const int64_t *)j->targets)[k]
                                                     : ((const int32_t *)j->targets)[k];
        int64_t above = 0;
        bool known = target >= 0 && target < width && !isnan(row[target]);
        for (int64_t c = 0; known && c < width; c++)
            above += row[c] > row[target] || (c < target && row[c] == row[target]);
        right += known && above < best;
        asked += target >= 0;
    }
    return asked ? (double)right / (double)asked : (double)NAN;
}

static double accuracy(const struct judged *j)
{
    return share_of_best(j, 1);
}

static double top_5(const struct judged *j)
{
    return share_of_best(j, 5);
}

static double share(const struct judged *j)
{
    double sum = 0;
    for (int64_t k = 0; k < j->answer_count; k++)
        sum += (double)j->answers[k];
    return j->answer_count ? sum / (double)j->answer_count : (double)NAN;
}

const struct quality quality_auc = {.name = "AUC", .of = auc};
static const struct quality quality_top_5 = {.name = "top-5", .of = top_5};
const struct quality quality_accuracy = {
    .name = "accuracy", .of = accuracy, .also = &quality_top_5};
const struct quality quality_share = {.name = "accuracy", .of = share};
