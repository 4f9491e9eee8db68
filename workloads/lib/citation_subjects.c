/* SPDX-License-Identifier: Apache-2.0 */
#include "workloads/lib/citation_subjects.h"

#include <stdlib.h>
#include <string.h>

enum { COMMON_WORDS = 32 };

static const void *constant(const struct graph *g, const char *name)
{
    return g->values[graph_find_value(g, name)].data;
}

/* Words are numbered from the most common one on. */
static void weigh_words(const struct graph *g, int64_t papers, int64_t classes, float *share)
{
    const int32_t *offsets = constant(g, "words.offsets"), *words = constant(g, "words.columns");
    for (int64_t p = 0; p < papers; p++)
        for (int32_t k = offsets[p]; k < offsets[p + 1]; k++)
            if (words[k] < COMMON_WORDS) {
                int64_t subject = (int64_t)((uint32_t)words[k] * 2654435761u >> 8) % classes;
                share[p * classes + subject] += 1 / (float)(offsets[p + 1] - offsets[p]);
            }
}

/* to = adjacency x from */
static void smooth(const struct graph *g, int64_t papers, int64_t classes, const float *from,
                   float *to)
{
    const int32_t *offsets = constant(g, "adjacency.offsets");
    const int32_t *papers_near = constant(g, "adjacency.columns");
    const float *weights = constant(g, "adjacency.values");
    memset(to, 0, (size_t)(papers * classes) * sizeof(*to));
    for (int64_t p = 0; p < papers; p++)
        for (int32_t k = offsets[p]; k < offsets[p + 1]; k++)
            for (int64_t c = 0; c < classes; c++)
                to[p * classes + c] += weights[k] * from[papers_near[k] * classes + c];
}

static void subtract_means(int64_t papers, int64_t classes, float *share)
{
    for (int64_t c = 0; c < classes; c++) {
        double sum = 0;
        for (int64_t p = 0; p < papers; p++)
            sum += (double)share[p * classes + c];
        for (int64_t p = 0; p < papers; p++)
            share[p * classes + c] -= (float)(sum / (double)papers);
    }
}

void citation_subjects(const struct graph *g, int64_t papers, int64_t classes, int64_t *subject)
{
    size_t size = (size_t)(papers * classes);
    float *share = calloc(2 * size + 1, sizeof(*share));
    if (!share)
        return;
    float *other = share + size;
    weigh_words(g, papers, classes, share);
    smooth(g, papers, classes, share, other);
    smooth(g, papers, classes, other, share);
    subtract_means(papers, classes, share);
    for (int64_t p = 0; p < papers; p++) {
        const float *row = share + p * classes;
        subject[p] = 0;
        for (int64_t c = 1; c < classes; c++)
            if (row[c] > row[subject[p]])
                subject[p] = c;
    }
    free(share);
}
