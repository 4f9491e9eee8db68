/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/ops/lib/attention.h"

#include <math.h>

static enum status packed_shape(const struct shape *q, struct attention_shape *s, struct error *err)
{
    int64_t width = q->dim[2] / 3;
    if (width * 3 != q->dim[2] || width % s->heads != 0 || width < 1)
        return FAIL(err, STATUS_FAILED, "Attention: packed input is %lld wide, not 3 x %lld heads",
                    (long long)q->dim[2], (long long)s->heads);
    s->packed = true;
    s->keys = s->queries;
    s->head_size = width / s->heads;
    s->q_row = s->k_row = s->v_row = 3 * width;
    s->k_start = width;
    s->v_start = 2 * width;
    return STATUS_OK;
}

static enum status separate_shape(const struct shape *q, const struct shape *k,
                                  const struct shape *v, struct attention_shape *s,
                                  struct error *err)
{
    char text_q[96], text_k[96], text_v[96];
    bool fits = k->rank == 3 && shape_equal(k, v) && q->dim[0] == k->dim[0] &&
                q->dim[2] == k->dim[2] && q->dim[2] % s->heads == 0 && q->dim[2] > 0;
    if (!fits)
        return FAIL(err, STATUS_FAILED, "Attention: q %s, k %s, v %s with %lld heads",
                    shape_text(q, text_q), shape_text(k, text_k), shape_text(v, text_v),
                    (long long)s->heads);
    s->keys = k->dim[1];
    s->head_size = q->dim[2] / s->heads;
    s->q_row = s->k_row = s->v_row = q->dim[2];
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
    if (k)
        TRY(separate_shape(q, k, v, shape, err));
    else
        TRY(packed_shape(q, shape, err));
    shape->zero_empty = node_int(node, "zero_empty", 0) != 0;
    shape->scale = node_float(node, "scale", 1 / sqrt((double)shape->head_size));
    return STATUS_OK;
}
