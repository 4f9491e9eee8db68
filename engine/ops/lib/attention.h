/* SPDX-License-Identifier: Apache-2.0
 *
 * The sizes and strides of ridge Attention: q apart from k and v as [B, S, heads * D] and
 * [B, S, kv_heads * D], or q alone packed as [B, S, (heads + 2 * kv_heads) * D] in the order
 * q | k | v.
 */
#ifndef ENGINE_OPS_LIB_ATTENTION_H
#define ENGINE_OPS_LIB_ATTENTION_H

#include "engine/graph/op.h"

struct attention_shape {
    int64_t batch, heads, head_size;
    int64_t kv_heads, group;           /* heads of k and v; each serves a group of heads of q */
    int64_t queries, keys;             /* sequence lengths */
    int64_t q_row, k_row, v_row;       /* elements from one position to the next */
    int64_t q_start, k_start, v_start; /* of head 0 in the tensors of inputs 0, 1, 2 (packed: 0) */
    bool packed;
    bool causal;     /* the last query sees all keys, the one before it all but the last ... */
    bool zero_empty; /* a query to which the mask leaves no key gets zeros, not NaN */
    double scale;
};

/* How many keys a query sees, from the first on, if no mask hides them. */
static inline int64_t attention_seen(const struct attention_shape *s, int64_t query)
{
    return s->causal ? s->keys - s->queries + query + 1 : s->keys;
}

/* k and v: NULL when packed. */
enum status attention_shape_from(const struct node *node, const struct shape *q,
                                 const struct shape *k, const struct shape *v,
                                 struct attention_shape *shape, struct error *err);

#endif
