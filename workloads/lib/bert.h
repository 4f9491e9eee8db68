/* SPDX-License-Identifier: Apache-2.0
 * BERT encoders of any size with the SQuAD span head (Devlin et al., NAACL 2019). */
#ifndef WORKLOADS_LIB_BERT_H
#define WORKLOADS_LIB_BERT_H

#include "workloads/lib/layers.h"

struct bert {
    int64_t batch, tokens;               /* N, T */
    int64_t layers, model, heads, inner; /* L, D, G, feed-forward width */
    int64_t vocabulary, positions;
};

void bert_squad(struct graph *g, const struct bert *b);

#endif
