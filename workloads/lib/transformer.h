/* SPDX-License-Identifier: Apache-2.0
 * What encoders of text and of images share. Weights that learn begin with a deviation of 0.02,
 * biases with 0, as BERT's. */
#ifndef WORKLOADS_LIB_TRANSFORMER_H
#define WORKLOADS_LIB_TRANSFORMER_H

#include "workloads/lib/layers.h"

/* Where the graph learns, a weight whose layer is yet to come: it begins with normal numbers of
 * this deviation, or with zeros, instead of what the layer would draw. */
void transformer_begin(struct graph *g, const char *name, struct shape shape, double deviation);
/* As dense_scaled; one that learns begins as above, whatever the gain. */
int transformer_dense(struct graph *g, int x, const char *name, int64_t out, double gain);
/* Vectors that are learnt as they are, such as those of positions. */
int transformer_vectors(struct graph *g, const char *name, struct shape shape);

struct self_attention {
    const char *name;
    int64_t heads; /* they divide the width */
    int mask;      /* is added to the scores [N, heads, T, T]; NONE: nothing is */
    double drop;   /* while it learns: the share of probabilities that is dropped */
};
/* What the tokens x [N, T, D] see of each other, [N, T, D], before the last product. */
int self_attention(struct graph *g, int x, const struct self_attention *a);

#endif
