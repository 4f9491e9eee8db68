/* SPDX-License-Identifier: Apache-2.0
 *
 * Attention as exporters write it, in products and a softmax: programs look for just that form when
 * they have a kernel for the whole. */
#include "engine/ops/lib/attention.h"

#include <math.h>
#include <string.h>

#include "engine/ops/lib/op_args.h"
#include "workloads/onnx/export/inner.h"

enum { Q, K, V, MASK, INPUTS_COUNT };

struct written {
    struct graph *g;
    struct attention_shape s;
    enum dtype dtype;
    int in[INPUTS_COUNT]; /* captured; NONE: absent */
};

static int shaped(struct graph *g, int x, int rank, const int64_t *dim)
{
    return op2(g, "Reshape", x, graph_const_i64(g, rank, dim));
}

static int permuted(struct graph *g, int x, const int64_t *perm)
{
    return graph_node(g, "Transpose", NULL, INPUTS(x), ATTRS(attr_ints("perm", 4, perm)));
}

static int number(const struct written *w, double value)
{
    float single = (float)value, stored = single;
    bool wide = w->dtype == DTYPE_F64;
    floats_store(wide ? DTYPE_F32 : w->dtype, &single, &stored, 1);
    return graph_const(w->g, NULL, w->dtype, shape_scalar(),
                       wide ? (const void *)&value : (const void *)&stored);
}

/* One value may be several inputs: it is captured once. */
static void capture(struct written *w, const struct form *f)
{
    for (int k = 0; k < INPUTS_COUNT; k++) {
        int v = k < f->node->op_inputs ? f->node->inputs[k] : NONE;
        w->in[k] = NONE;
        for (int before = 0; before < k; before++)
            if (f->node->inputs[before] == v)
                w->in[k] = w->in[before];
        if (v != NONE && w->in[k] == NONE)
            w->in[k] = inner_capture(w->g, f->x->g, v);
    }
}

static void take_apart(struct written *w)
{
    int64_t kv_width = w->s.kv_heads * w->s.head_size;
    const int64_t width[3] = {w->s.heads * w->s.head_size, kv_width, kv_width};
    int parts[3], sizes = graph_const_i64(w->g, 3, width);
    if (graph_node_many(w->g, "Split", NULL, INPUTS(w->in[Q], sizes), ATTRS(attr_int("axis", 2)), 3,
                        parts) == STATUS_OK)
        for (int k = 0; k < 3; k++)
            w->in[k] = parts[k];
}

/* [B, S, heads * D] as [B, heads, S, D]; heads that share a key see copies of it. */
static int heads_of(const struct written *w, int x, int64_t length, int64_t heads)
{
    static const int64_t perm[] = {0, 2, 1, 3};
    const struct attention_shape *s = &w->s;
    int64_t group = s->heads / heads, size = s->head_size;
    x = shaped(w->g, x, 4, (int64_t[]){s->batch, length, heads, size});
    x = permuted(w->g, x, perm);
    if (group == 1)
        return x;
    x = shaped(w->g, x, 5, (int64_t[]){s->batch, heads, 1, length, size});
    int all = graph_const_i64(w->g, 5, (int64_t[]){s->batch, heads, group, length, size});
    return shaped(w->g, op2(w->g, "Expand", x, all), 4,
                  (int64_t[]){s->batch, s->heads, length, size});
}

/* -inf where a query does not see a key. */
static int hidden_keys(const struct written *w)
{
    const struct attention_shape *s = &w->s;
    size_t count = (size_t)(s->queries * s->keys), item = dtype_size(w->dtype);
    char *data = arena_array(&w->g->arena, count + 1, item);
    if (!data)
        return NONE;
    for (size_t k = 0; k < count; k++) {
        int64_t query = (int64_t)k / s->keys, key = (int64_t)k % s->keys;
        float value = key < attention_seen(s, query) ? 0 : -INFINITY;
        double wide = (double)value;
        if (w->dtype == DTYPE_F64)
            memcpy(data + k * item, &wide, item);
        else
            floats_store(w->dtype, &value, data + k * item, 1);
    }
    return graph_const(w->g, NULL, w->dtype, shape_of(s->queries, s->keys), data);
}

static int mask_of(const struct written *w)
{
    int mask = w->in[MASK];
    if (w->g->values[mask].dtype == w->dtype)
        return mask;
    return graph_node(w->g, "Cast", NULL, INPUTS(mask),
                      ATTRS(attr_int("to", dtype_to_onnx(w->dtype))));
}

/* A query without keys has shares that are no numbers. */
static int shares_of(const struct written *w, int scores)
{
    int x = graph_node(w->g, "Softmax", NULL, INPUTS(scores), ATTRS(attr_int("axis", -1)));
    if (!w->s.zero_empty)
        return x;
    return op3(w->g, "Where", op1(w->g, "IsNaN", x), number(w, 0), x);
}

static int attend(struct written *w)
{
    static const int64_t turned[] = {0, 1, 3, 2}, back[] = {0, 2, 1, 3};
    const struct attention_shape *s = &w->s;
    struct graph *g = w->g;
    int q = heads_of(w, w->in[Q], s->queries, s->heads);
    int k = permuted(g, heads_of(w, w->in[K], s->keys, s->kv_heads), turned);
    int v = heads_of(w, w->in[V], s->keys, s->kv_heads);
    int scores = op2(g, "MatMul", op2(g, "Mul", q, number(w, s->scale)), k);
    if (w->in[MASK] != NONE)
        scores = op2(g, "Add", scores, mask_of(w));
    if (s->causal && s->queries > 1)
        scores = op2(g, "Add", scores, hidden_keys(w));
    int y = permuted(g, op2(g, "MatMul", shares_of(w, scores), v), back);
    return shaped(g, y, 3, (int64_t[]){s->batch, s->queries, s->heads * s->head_size});
}

enum status export_attention(const struct form *f, struct error *err)
{
    const struct value *values = f->x->g->values;
    const int *in = f->node->inputs;
    bool packed = f->node->op_inputs < 3 || in[K] == NONE;
    struct written w = {.dtype = values[in[Q]].dtype};
    TRY(attention_shape_from(f->node, &values[in[Q]].shape, packed ? NULL : &values[in[K]].shape,
                             packed ? NULL : &values[in[V]].shape, &w.s, err));
    w.g = inner_new(f->x, arena_printf(&f->x->arena, "%s:attention", f->outputs[0]));
    if (!w.g)
        return FAIL_NO_MEMORY(err);
    capture(&w, f);
    if (packed)
        take_apart(&w);
    graph_output(w.g, attend(&w));
    return inner_inline(f->x, w.g, f->outputs, err);
}
