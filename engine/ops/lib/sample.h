/* SPDX-License-Identifier: Apache-2.0
 *
 * The settings of a SampleTargets node, and the random word that each element draws: for place p of
 * row n it is word k % 4 of counter k / 4 of stream dropout_seed (engine/ops/lib/dropout.h), with
 * k = (first + n) P + p. */
#ifndef ENGINE_OPS_LIB_SAMPLE_H
#define ENGINE_OPS_LIB_SAMPLE_H

#include "base/numbers/random.h"
#include "engine/ops/lib/dropout.h"

enum { SAMPLE_CLASSES, SAMPLE_STEP, SAMPLE_INPUTS };

struct sample {
    int64_t rows, places;     /* N, P */
    int64_t first;            /* the number of row 0 */
    int64_t count, positives; /* of each row at most */
    double ratio;             /* of negatives for each positive one at most; 0: any number */
};

static inline struct sample sample_of(const struct node *node, const struct shape *classes)
{
    int64_t count = node_int(node, "count", 256);
    return (struct sample){.rows = classes->dim[0],
                           .places = classes->dim[1],
                           .first = node_int(node, "first", 0),
                           .count = count,
                           .positives = node_int(node, "positives", count / 2),
                           .ratio = node_float(node, "ratio", 0)};
}

/* How many negatives go with so many positives, where there are enough. */
static inline int64_t sample_negatives(const struct sample *s, int64_t positives)
{
    int64_t room = s->count - positives, limit = (int64_t)(s->ratio * (double)positives);
    return s->ratio > 0 && limit < room ? limit : room;
}

static inline uint32_t sample_lot(uint64_t seed, int64_t k)
{
    uint32_t word[4];
    random_words(seed, (uint64_t)k / 4, word);
    return word[k % 4];
}

#endif
