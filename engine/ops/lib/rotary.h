/* SPDX-License-Identifier: Apache-2.0
 *
 * Where RotaryEmbedding finds its heads: x is [batches, heads, tokens, size], or [batches, tokens,
 * heads, size] with its last two axes as one. Plain memory is rows of one head of one token. */
#ifndef ENGINE_OPS_LIB_ROTARY_H
#define ENGINE_OPS_LIB_ROTARY_H

#include <stdbool.h>

#include "engine/graph/tensor.h"

struct rotary {
    int64_t batches, heads, tokens, size;
    int64_t half;       /* pairs of a row that are turned: its first 2 half elements */
    bool tokens_inside; /* the row after one is that of the next token, not of the next head */
};

/* heads and turned are the attributes num_heads and rotary_embedding_dim, 0: not given. size 0:
 * x has no such heads. */
static inline struct rotary rotary_of(const struct shape *x, int64_t heads, int64_t turned)
{
    struct rotary r = {0, 0, 0, 0, 0, false};
    if (x->rank == 4) {
        r.heads = x->dim[1];
        r.tokens = x->dim[2];
        r.size = x->dim[3];
        r.tokens_inside = true;
    } else if (x->rank == 3 && heads > 0 && x->dim[2] % heads == 0) {
        r.heads = heads;
        r.tokens = x->dim[1];
        r.size = x->dim[2] / heads;
    } else {
        return r;
    }
    r.batches = x->dim[0];
    r.half = (turned ? turned : r.size) / 2;
    return r;
}

/* Which token's angles a row is turned by. */
static inline int64_t rotary_token(const struct rotary *r, int64_t row)
{
    if (!r->tokens_inside)
        return row / r->heads;
    return row / (r->heads * r->tokens) * r->tokens + row % r->tokens;
}

#endif
