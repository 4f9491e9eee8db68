/* SPDX-License-Identifier: Apache-2.0
 *
 * What is added to the scores of ONNX's Attention: the mask of the file, and -inf for keys that lie
 * after the query, outside of its window or past the end of the sequence. */
#include <math.h>
#include <string.h>

#include "workloads/onnx/import/attention.h"

int attention_number(const struct attention_draft *a, double number)
{
    float single = (float)number, stored = single;
    bool wide = a->dtype == DTYPE_F64;
    floats_store(wide ? DTYPE_F32 : a->dtype, &single, &stored, 1);
    return graph_const(a->im->g, NULL, a->dtype, shape_scalar(),
                       wide ? (const void *)&number : (const void *)&stored);
}

static const struct value *mask_of(const struct attention_draft *a)
{
    int mask = a->in[ATTENTION_MASK];
    return mask == NONE ? NULL : &a->im->g->values[mask];
}

/* Before opset 24 a mask of one column was for all keys; since then it is a short one. */
static int64_t missing_columns(const struct attention_draft *a)
{
    const struct shape *shape = &mask_of(a)->shape;
    int64_t width = shape->rank ? shape->dim[shape->rank - 1] : a->keys;
    return width == 1 && a->d->opset < 24 ? 0 : a->keys - width;
}

enum status attention_check_mask(const struct attention_draft *a, struct error *err)
{
    if (!mask_of(a))
        return STATUS_OK;
    struct shape mask = mask_of(a)->shape, both;
    struct shape scores = shape_of(a->batch, a->heads, a->queries, a->keys);
    char text[96], text_scores[96];
    shape_text(&mask, text);
    if (mask.rank && missing_columns(a) > 0)
        mask.dim[mask.rank - 1] = a->keys;
    if (!shape_broadcast(&scores, &mask, &both) || !shape_equal(&scores, &both))
        return FAIL(err, STATUS_FAILED, "a mask %s for scores %s", text,
                    shape_text(&scores, text_scores));
    return STATUS_OK;
}

/* ---- which keys are seen ---- */

static int both_of(const struct attention_draft *a, int x, int y)
{
    return x == NONE ? y : add_node(a->im, "And", INPUTS(x, y), NO_ATTRS);
}

/* 0, 1, 2 ... from `first` on, as a row or a column. */
static int places(const struct attention_draft *a, int64_t count, int64_t first, bool column)
{
    int64_t *data = arena_array(&a->im->scratch, (size_t)count, sizeof(*data));
    struct shape shape = column ? shape_of(count, 1) : shape_of(count);
    for (int64_t k = 0; data && k < count; k++)
        data[k] = first + k;
    if (data)
        return graph_const(a->im->g, NULL, DTYPE_I64, shape, data);
    if (!a->im->g->failed)
        FAIL_NO_MEMORY(&a->im->g->err);
    a->im->g->failed = true;
    return NONE;
}

/* Of each sequence of the batch, [B, 1, 1, 1]. */
static int lengths_of(const struct attention_draft *a)
{
    const int64_t dim[4] = {a->batch, 1, 1, 1};
    int shape = graph_const_i64(a->im->g, 4, dim);
    return add_node(a->im, "Reshape", INPUTS(a->in[ATTENTION_LENGTHS], shape), NO_ATTRS);
}

/* The key of each query, or one that lies `shift` further. The queries follow the keys of the past;
 * where lengths are given, they are the last of the sequence. */
static int key_of_query(const struct attention_draft *a, int64_t shift)
{
    if (a->in[ATTENTION_LENGTHS] == NONE)
        return places(a, a->queries, a->past + shift, true);
    return add_node(a->im, "Add",
                    INPUTS(places(a, a->queries, shift - a->queries, true), lengths_of(a)),
                    NO_ATTRS);
}

/* bool, NONE: all. */
static int seen_keys(const struct attention_draft *a, bool causal)
{
    int seen = NONE, keys = places(a, a->keys, 0, false);
    bool lengths = a->in[ATTENTION_LENGTHS] != NONE;
    if (causal)
        seen = add_node(a->im, "LessOrEqual", INPUTS(keys, key_of_query(a, 0)), NO_ATTRS);
    if (a->before >= 0)
        seen = both_of(
            a, seen,
            add_node(a->im, "GreaterOrEqual", INPUTS(keys, key_of_query(a, -a->before)), NO_ATTRS));
    if (a->after >= 0 && !a->causal)
        seen = both_of(
            a, seen,
            add_node(a->im, "LessOrEqual", INPUTS(keys, key_of_query(a, a->after)), NO_ATTRS));
    if (lengths && !causal)
        seen = both_of(a, seen, add_node(a->im, "Less", INPUTS(keys, lengths_of(a)), NO_ATTRS));
    return seen;
}

/* ---- the sum ---- */

/* The mask of the file as numbers, as long as the keys. */
static int mask_as_numbers(const struct attention_draft *a)
{
    int mask = a->in[ATTENTION_MASK], hidden = attention_number(a, -INFINITY);
    int64_t pads[2 * RANK_MAX] = {0};
    struct shape shape = mask_of(a)->shape;
    if (mask_of(a)->dtype == DTYPE_BOOL)
        mask = add_node(a->im, "Where", INPUTS(mask, attention_number(a, 0), hidden), NO_ATTRS);
    else if (mask_of(a)->dtype != a->dtype)
        mask = add_node(a->im, "CastLike", INPUTS(mask, a->in[ATTENTION_Q]), NO_ATTRS);
    if (missing_columns(a) <= 0)
        return mask;
    pads[2 * shape.rank - 1] = missing_columns(a);
    int list = graph_const_i64(a->im->g, 2 * shape.rank, pads);
    return add_node(a->im, "Pad", INPUTS(mask, list, hidden), NO_ATTRS);
}

static int make_bias(const struct attention_draft *a, bool causal)
{
    const struct value *mask = mask_of(a);
    bool choice = mask && mask->dtype == DTYPE_BOOL && missing_columns(a) <= 0;
    int numbers = mask && !choice ? mask_as_numbers(a) : NONE, seen = seen_keys(a, causal);
    if (choice)
        seen = both_of(a, seen, a->in[ATTENTION_MASK]);
    if (seen == NONE)
        return numbers;
    numbers = numbers == NONE ? attention_number(a, 0) : numbers;
    return add_node(a->im, "Where", INPUTS(seen, numbers, attention_number(a, -INFINITY)),
                    NO_ATTRS);
}

int attention_bias(const struct attention_draft *a, bool causal, bool *may_empty)
{
    int mask = a->in[ATTENTION_MASK], lengths = a->in[ATTENTION_LENGTHS];
    struct last_bias *last = &a->im->bias;
    const int64_t key[BIAS_KEYS] = {mask,      lengths,  causal,      a->causal,
                                    a->before, a->after, a->batch,    a->queries,
                                    a->keys,   a->past,  a->d->opset, a->dtype};
    *may_empty = mask != NONE || lengths != NONE || a->before >= 0 || a->after >= 0;
    if (!last->known || memcmp(last->key, key, sizeof(key)) != 0)
        last->value = make_bias(a, causal);
    last->known = true;
    memcpy(last->key, key, sizeof(key));
    return last->value;
}
