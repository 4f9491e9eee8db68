/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/ops/lib/attention.h"

#include <math.h>

static enum status packed_shape(const struct shape *q, struct attention_shape *s, struct error *err)
{
    int64_t all = s->heads + 2 * s->kv_heads;
    if (q->dim[2] % all != 0 || q->dim[2] < 1)
        return FAIL(err, STATUS_FAILED, "Attention: packed input is %lld wide, not %lld heads",
                    (long long)q->dim[2], (long long)all);
    s->packed = true;
    s->keys = s->queries;
    s->head_size = q->dim[2] / all;
    s->q_row = s->k_row = s->v_row = q->dim[2];
    s->k_start = s->heads * s->head_size;
    s->v_start = s->k_start + s->kv_heads * s->head_size;
    return STATUS_OK;
}

static enum status separate_shape(const struct shape *q, const struct shape *k,
                                  const struct shape *v, struct attention_shape *s,
                                  struct error *err)
{
    char text_q[96], text_k[96], text_v[96];
    bool fits = k->rank == 3 && shape_equal(k, v) && q->dim[0] == k->dim[0] &&
                q->dim[2] % s->heads == 0 && q->dim[2] > 0 &&
                q->dim[2] / s->heads * s->kv_heads == k->dim[2];
    if (!fits)
        return FAIL(err, STATUS_FAILED,
                    "Attention: q %s, k %s, v %s with %lld heads, %lld of keys and values",
                    shape_text(q, text_q), shape_text(k, text_k), shape_text(v, text_v),
                    (long long)s->heads, (long long)s->kv_heads);
    s->keys = k->dim[1];
    s->head_size = q->dim[2] / s->heads;
    s->q_row = q->dim[2];
    s->k_row = s->v_row = k->dim[2];
    return STATUS_OK;
}

enum status attention_shape_from(const struct node *node, const struct shape *q,
                                 const struct shape *k, const struct shape *v,
                                 struct attention_shape *shape, struct error *err)
{
    *shape = (struct attention_shape){.heads = node_int(node, "heads", 1)};
    if (q->rank != 3 || shape->heads < 1 || !k != !v)
        return FAIL(err, STATUS_FAILED,
                    "Attention: q has rank %d (3 is needed), heads is %lld, k %s, v %s", q->rank,
                    (long long)shape->heads, k ? "given" : "absent", v ? "given" : "absent");
    shape->batch = q->dim[0];
    shape->queries = q->dim[1];
    shape->kv_heads = node_int(node, "kv_heads", shape->heads);
    if (shape->kv_heads < 1 || shape->heads % shape->kv_heads)
        return FAIL(err, STATUS_FAILED,
                    "Attention: %lld heads cannot share %lld of keys and values",
                    (long long)shape->heads, (long long)shape->kv_heads);
    shape->group = shape->heads / shape->kv_heads;
    if (k)
        TRY(separate_shape(q, k, v, shape, err));
    else
        TRY(packed_shape(q, shape, err));
    shape->causal = node_int(node, "causal", 0) != 0;
    if (shape->causal && shape->queries > shape->keys)
        return FAIL(err, STATUS_FAILED, "Attention: causal, with %lld queries of %lld keys",
                    (long long)shape->queries, (long long)shape->keys);
    shape->zero_empty = node_int(node, "zero_empty", 0) != 0;
    shape->scale = node_float(node, "scale", 1 / sqrt((double)shape->head_size));
    return STATUS_OK;
}
