/* SPDX-License-Identifier: Apache-2.0
 *
 * ONNX's Attention as ridge's where that computes it, else as the products and the softmax that it
 * is made of: with a soft cap, with scores that someone wants to see, with a softmax in another
 * precision, and with values of another size than keys. */
#include "workloads/onnx/import/attention.h"

#include <math.h>
#include <string.h>

enum { SCORES_RAW, SCORES_CAPPED, SCORES_MASKED, SCORES_SHARES, SCORES_KINDS };

/* ---- what the node says ---- */

static double attr_number(struct draft *d, const char *name, double fallback)
{
    const struct attr *attr = draft_attr(d, name);
    return !attr ? fallback : attr->kind == ATTR_INT ? (double)attr->i : attr->f;
}

static int64_t attr_whole(struct draft *d, const char *name, int64_t fallback)
{
    const struct attr *attr = draft_attr(d, name);
    return attr ? attr->i : fallback;
}

static enum status check_names(const struct draft *d, struct error *err)
{
    static const char *const names[] = {"is_causal",
                                        "kv_num_heads",
                                        "left_window_size",
                                        "q_num_heads",
                                        "qk_matmul_output_mode",
                                        "scale",
                                        "right_window_size",
                                        "softmax_precision",
                                        "softcap",
                                        NULL};
    for (int k = 0; k < d->attr_count; k++) {
        const char *const *name = names;
        while (*name && strcmp(*name, d->attrs[k].name) != 0)
            name++;
        if (!*name)
            return UNSUPPORTED(err, "attribute \"%s\" of Attention is not supported",
                               d->attrs[k].name);
        TRY(check_attr_kind(&d->attrs[k], err));
    }
    return STATUS_OK;
}

static enum status read_attrs(struct attention_draft *a, struct error *err)
{
    enum { F32 = 1, F16 = 10, F64 = 11, BF16 = 16 };
    struct draft *d = a->d;
    TRY(check_names(d, err));
    a->causal = attr_whole(d, "is_causal", 0) != 0;
    a->before = attr_whole(d, "left_window_size", -1);
    a->after = attr_whole(d, "right_window_size", -1);
    a->softcap = attr_number(d, "softcap", 0);
    a->precision = attr_whole(d, "softmax_precision", 0);
    a->shown = attr_whole(d, "qk_matmul_output_mode", SCORES_RAW);
    int64_t p = a->precision;
    if (p && p != F32 && p != F16 && p != F64 && p != BF16)
        return FAIL(err, STATUS_FAILED, "softmax_precision %lld is no type of floats",
                    (long long)p);
    if (a->shown < 0 || a->shown >= SCORES_KINDS)
        return UNSUPPORTED(err, "qk_matmul_output_mode %lld", (long long)a->shown);
    if (a->before < -1 || a->after < -1 || a->before > ONNX_SIZE_MAX || a->after > ONNX_SIZE_MAX)
        return FAIL(err, STATUS_FAILED, "a window of %lld keys before and %lld after",
                    (long long)a->before, (long long)a->after);
    return STATUS_OK;
}

static const struct shape *shape_in(const struct attention_draft *a, int input)
{
    return &a->im->g->values[a->in[input]].shape;
}

static enum dtype dtype_in(const struct attention_draft *a, int input)
{
    return a->im->g->values[a->in[input]].dtype;
}

/* Sizes of q, k and v, which have the same rank, 3 or 4. */
static bool read_sizes(struct attention_draft *a)
{
    const struct shape *q = shape_in(a, ATTENTION_Q), *k = shape_in(a, ATTENTION_K);
    const struct shape *v = shape_in(a, ATTENTION_V);
    int at = a->flat ? 1 : 2;
    a->heads = a->flat ? attr_whole(a->d, "q_num_heads", 0) : q->dim[1];
    a->kv_heads = a->flat ? attr_whole(a->d, "kv_num_heads", 0) : k->dim[1];
    a->batch = q->dim[0];
    a->queries = q->dim[at];
    a->fresh = k->dim[at];
    if (a->heads < 1 || a->kv_heads < 1 || a->heads % a->kv_heads)
        return false;
    int64_t parts = a->flat ? a->heads : 1, kv_parts = a->flat ? a->kv_heads : 1;
    a->size = q->dim[at + 1] / parts;
    a->v_size = v->dim[at + 1] / kv_parts;
    return k->dim[0] == a->batch && v->dim[0] == a->batch && v->dim[at] == a->fresh &&
           (a->flat || v->dim[1] == a->kv_heads) && q->dim[at + 1] == parts * a->size &&
           k->dim[at + 1] == kv_parts * a->size && v->dim[at + 1] == kv_parts * a->v_size &&
           a->batch > 0 && a->queries > 0 && a->fresh > 0 && a->size > 0 && a->v_size > 0;
}

static enum status read_past(struct attention_draft *a, struct error *err)
{
    bool key = a->in[ATTENTION_PAST_KEY] != NONE, value = a->in[ATTENTION_PAST_VALUE] != NONE;
    bool lengths = a->in[ATTENTION_LENGTHS] != NONE;
    struct shape batch = shape_of(a->batch);
    if (key != value || (key && lengths))
        return FAIL(err, STATUS_FAILED,
                    "past_key and past_value belong together, and not to nonpad_kv_seqlen");
    if (lengths && !shape_equal(shape_in(a, ATTENTION_LENGTHS), &batch))
        return FAIL(err, STATUS_FAILED, "nonpad_kv_seqlen has one number per sequence");
    if (key) {
        const struct shape *past = shape_in(a, ATTENTION_PAST_KEY);
        a->past = past->rank == 4 ? past->dim[2] : 0;
        struct shape keys = shape_of(a->batch, a->kv_heads, a->past, a->size), values = keys;
        values.dim[3] = a->v_size;
        if (!shape_equal(past, &keys) || !shape_equal(shape_in(a, ATTENTION_PAST_VALUE), &values))
            return FAIL(err, STATUS_FAILED, "past_key and past_value do not fit K and V");
    }
    a->keys = a->past + a->fresh;
    struct shape scores = shape_of(a->batch, a->heads, a->queries, a->keys);
    return onnx_shape_sane(&scores) ? STATUS_OK
                                    : FAIL(err, STATUS_FAILED, "there are too many keys");
}

static enum status check_types(const struct attention_draft *a, struct error *err)
{
    const struct graph *g = a->im->g;
    TRY(check_draft_types(g, a->d, err));
    for (int k = 0; k < ATTENTION_INPUTS; k++)
        if (a->in[k] != NONE && g->values[a->in[k]].count != NONE)
            return UNSUPPORTED(err, "it works on \"%s\", whose size is known only at run time",
                               g->values[a->in[k]].name);
    bool past = a->in[ATTENTION_PAST_KEY] != NONE && a->in[ATTENTION_PAST_VALUE] != NONE;
    if (dtype_in(a, ATTENTION_K) != a->dtype ||
        (past && (dtype_in(a, ATTENTION_PAST_KEY) != a->dtype ||
                  dtype_in(a, ATTENTION_PAST_VALUE) != dtype_in(a, ATTENTION_V))))
        return FAIL(err, STATUS_FAILED, "Q, K and V have types that differ");
    return STATUS_OK;
}

static enum status read_draft(struct attention_draft *a, struct error *err)
{
    struct draft *d = a->d;
    char q[96], k[96], v[96];
    for (int n = 0; n < ATTENTION_INPUTS; n++)
        a->in[n] = n < d->input_count ? d->inputs[n] : NONE;
    if (d->input_count > ATTENTION_INPUTS || a->in[ATTENTION_Q] == NONE ||
        a->in[ATTENTION_K] == NONE || a->in[ATTENTION_V] == NONE)
        return FAIL(err, STATUS_FAILED, "Attention has Q, K, V and up to 4 more inputs");
    a->dtype = dtype_in(a, ATTENTION_Q);
    int rank = shape_in(a, ATTENTION_Q)->rank;
    a->flat = rank == 3;
    TRY(check_types(a, err));
    TRY(read_attrs(a, err));
    if ((rank != 3 && rank != 4) || shape_in(a, ATTENTION_K)->rank != rank ||
        shape_in(a, ATTENTION_V)->rank != rank || !read_sizes(a))
        return FAIL(
            err, STATUS_FAILED, "Q %s, K %s, V %s with %lld heads, %lld of keys and values",
            shape_text(shape_in(a, ATTENTION_Q), q), shape_text(shape_in(a, ATTENTION_K), k),
            shape_text(shape_in(a, ATTENTION_V), v), (long long)a->heads, (long long)a->kv_heads);
    a->scale = attr_number(d, "scale", 1 / sqrt((double)a->size));
    TRY(read_past(a, err));
    return attention_check_mask(a, err);
}

/* ---- nodes ---- */

/* Of what was made; once the graph has failed nothing is. */
static struct shape shape_at(const struct attention_draft *a, int value)
{
    return value == NONE ? (struct shape){.rank = 4} : a->im->g->values[value].shape;
}

static int binary(const struct attention_draft *a, const char *op, int x, int y)
{
    return add_node(a->im, op, INPUTS(x, y), NO_ATTRS);
}

static int reshaped(const struct attention_draft *a, int x, const struct shape *to)
{
    return binary(a, "Reshape", x, graph_const_i64(a->im->g, to->rank, to->dim));
}

static int permuted(const struct attention_draft *a, int x, const int64_t *perm)
{
    return add_node(a->im, "Transpose", INPUTS(x), ATTRS(attr_ints("perm", 4, perm)));
}

/* [B, S, heads * size] as [B, heads, S, size]. */
static int heads_apart(const struct attention_draft *a, int x, int64_t heads, int64_t size)
{
    static const int64_t perm[] = {0, 2, 1, 3};
    struct shape apart = shape_of(a->batch, shape_at(a, x).dim[1], heads, size);
    return permuted(a, reshaped(a, x, &apart), perm);
}

/* And back. */
static int heads_joined(const struct attention_draft *a, int x)
{
    static const int64_t perm[] = {0, 2, 1, 3};
    const struct shape from = shape_at(a, x);
    struct shape to = shape_of(from.dim[0], from.dim[2], from.dim[1] * from.dim[3]);
    return reshaped(a, permuted(a, x, perm), &to);
}

/* Keys or values of the past and of the call, [B, kv_heads, keys, size]. */
static int present(const struct attention_draft *a, int fresh, int past, int64_t size)
{
    int x = a->flat ? heads_apart(a, a->in[fresh], a->kv_heads, size) : a->in[fresh];
    if (!a->past)
        return x;
    return add_node(a->im, "Concat", INPUTS(a->in[past], x), ATTRS(attr_int("axis", 2)));
}

/* ---- as one node ---- */

static bool is_ours(const struct attention_draft *a)
{
    enum { F32 = 1 };
    bool usual = !a->precision || (a->precision == F32 && dtype_size(a->dtype) <= 4);
    return usual && a->softcap <= 0 && !a->wanted[ATTENTION_SCORES] && a->size == a->v_size &&
           dtype_in(a, ATTENTION_V) == a->dtype;
}

/* Ours counts from the last key, ONNX's from the first one after the past. */
static int fused(const struct attention_draft *a, int keys, int values)
{
    bool by_node = a->causal && a->in[ATTENTION_LENGTHS] == NONE && a->queries == a->fresh;
    bool may_empty, as_given = a->flat && !a->past;
    int bias = attention_bias(a, a->causal && !by_node, &may_empty);
    int q = a->flat ? a->in[ATTENTION_Q] : heads_joined(a, a->in[ATTENTION_Q]);
    int k = as_given ? a->in[ATTENTION_K] : heads_joined(a, keys);
    int v = as_given ? a->in[ATTENTION_V] : heads_joined(a, values);
    struct attr attrs[5] = {attr_int("heads", a->heads), attr_int("kv_heads", a->kv_heads),
                            attr_int("causal", by_node), attr_float("scale", a->scale),
                            attr_int("zero_empty", bias != NONE && may_empty)};
    int inputs[4] = {q, k, v, bias};
    int y = add_node(a->im, "Attention", bias == NONE ? 3 : 4, inputs, 5, attrs);
    int maker = a->im->g->failed ? NONE : a->im->g->values[y].producer;
    if (maker != NONE && a->d->name && *a->d->name)
        a->im->g->nodes[maker].name = arena_strdup(&a->im->g->arena, a->d->name);
    return a->flat || a->im->g->failed ? y : heads_apart(a, y, a->heads, a->size);
}

/* ---- as several ---- */

/* [B, heads, S, n] as [B, kv_heads, group * S, n], so that those who share a key make one matrix,
 * and back. */
static int by_key_heads(const struct attention_draft *a, int x, bool back)
{
    if (a->heads == a->kv_heads)
        return x;
    struct shape to = shape_at(a, x);
    to.dim[1] = back ? a->heads : a->kv_heads;
    to.dim[2] = back ? a->queries : a->queries * (a->heads / a->kv_heads);
    return reshaped(a, x, &to);
}

/* f16 holds no large product: both sides take the root of the scale. */
static int raw_scores(const struct attention_draft *a, int q, int keys)
{
    static const int64_t perm[] = {0, 1, 3, 2};
    bool both = a->dtype == DTYPE_F16 && a->scale > 0;
    int factor = attention_number(a, both ? sqrt(a->scale) : a->scale);
    int k = permuted(a, keys, perm);
    q = binary(a, "Mul", by_key_heads(a, q, false), factor);
    return by_key_heads(a, binary(a, "MatMul", q, both ? binary(a, "Mul", k, factor) : k), true);
}

static int capped(const struct attention_draft *a, int scores)
{
    if (a->softcap <= 0)
        return scores;
    int cap = attention_number(a, a->softcap);
    int x = add_node(a->im, "Tanh", INPUTS(binary(a, "Div", scores, cap)), NO_ATTRS);
    return binary(a, "Mul", x, cap);
}

/* Softmax; a query without keys has shares of nothing, whatever its scores are. */
static int shares_of(const struct attention_draft *a, int scores, int bias)
{
    static const int64_t last = -1;
    if (a->precision)
        scores = add_node(a->im, "Cast", INPUTS(scores), ATTRS(attr_int("to", a->precision)));
    int x = add_node(a->im, "Softmax", INPUTS(scores), ATTRS(attr_int("axis", last)));
    if (a->precision)
        x = binary(a, "CastLike", x, a->in[ATTENTION_Q]);
    if (bias == NONE)
        return x;
    int most = add_node(a->im, "ReduceMax", INPUTS(bias, graph_const_i64(a->im->g, 1, &last)),
                        ATTRS(attr_int("keepdims", 1)));
    int none = binary(a, "Equal", most, attention_number(a, -INFINITY));
    return add_node(a->im, "Where", INPUTS(none, attention_number(a, 0), x), NO_ATTRS);
}

static int composed(const struct attention_draft *a, int keys, int values, int *shown)
{
    bool may_empty;
    int bias = attention_bias(a, a->causal, &may_empty), scores[SCORES_KINDS];
    int q = a->in[ATTENTION_Q];
    if (a->flat)
        q = heads_apart(a, q, a->heads, a->size);
    scores[SCORES_RAW] = raw_scores(a, q, keys);
    scores[SCORES_CAPPED] = capped(a, scores[SCORES_RAW]);
    scores[SCORES_MASKED] = scores[SCORES_CAPPED];
    if (bias != NONE)
        scores[SCORES_MASKED] = binary(a, "Add", scores[SCORES_CAPPED], bias);
    scores[SCORES_SHARES] = shares_of(a, scores[SCORES_MASKED], may_empty ? bias : NONE);
    *shown = scores[a->shown];
    if (dtype_in(a, ATTENTION_V) != a->dtype)
        values = binary(a, "CastLike", values, a->in[ATTENTION_Q]);
    int y = binary(a, "MatMul", by_key_heads(a, scores[SCORES_SHARES], false), values);
    y = by_key_heads(a, y, true);
    return a->flat ? heads_joined(a, y) : y;
}

enum status import_attention(struct importer *im, struct draft *d, const Onnx__NodeProto *node,
                             int *outputs, struct error *err)
{
    struct attention_draft a = {.im = im, .d = d};
    int before = im->g->value_count;
    if (node->n_output > ATTENTION_OUTPUTS)
        return FAIL(err, STATUS_FAILED, "Attention has no %zu outputs", node->n_output);
    for (size_t k = 0; k < node->n_output; k++)
        a.wanted[k] = *node->output[k] != 0;
    TRY(read_draft(&a, err));
    int keys = present(&a, ATTENTION_K, ATTENTION_PAST_KEY, a.size);
    int values = present(&a, ATTENTION_V, ATTENTION_PAST_VALUE, a.v_size);
    TRY(graph_failed(im->g, err));
    outputs[ATTENTION_SCORES] = NONE;
    outputs[ATTENTION_Y] = is_ours(&a) ? fused(&a, keys, values)
                                       : composed(&a, keys, values, &outputs[ATTENTION_SCORES]);
    outputs[ATTENTION_PRESENT_KEY] = keys;
    outputs[ATTENTION_PRESENT_VALUE] = values;
    TRY(graph_failed(im->g, err));
    for (size_t k = 0; k < node->n_output; k++)
        if (a.wanted[k] && outputs[k] >= before)
            graph_rename(im->g, outputs[k], node->output[k]);
    return graph_failed(im->g, err);
}
