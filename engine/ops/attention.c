/* SPDX-License-Identifier: Apache-2.0
 * Attention (ridge): softmax(scale Q K' + mask) V for each head. Inputs q, k, v and an additive
 * mask that broadcasts to [batch, heads, queries, keys]; zero_empty: a query whose mask is -inf
 * throughout gets zeros (as in PyTorch), not NaN (as by the formula). Vaswani et al., 2017,
 * section 3.2. kv_heads: of keys and values, where they are fewer; each serves as many neighbouring
 * heads of q (Ainslie et al., 2023). causal: the last query is that of the last key, and each sees
 * the keys up to its own. */
#include "engine/ops/lib/attention.h"
#include "engine/graph/op_list.h"
#include "engine/ops/family/gradient.h"

#include <math.h>
#include <stdlib.h>

#include "engine/ops/compute/ref_gemm.h"

static const char *const attrs[] = {"heads", "kv_heads", "causal", "scale", "zero_empty", NULL};

static const struct shape *shape_or_null(const struct infer *c, int input)
{
    return infer_has(c, input) ? &c->in[input]->shape : NULL;
}

static enum status infer(const struct infer *c, struct error *err)
{
    struct attention_shape s;
    TRY(attention_shape_from(c->node, &c->in[0]->shape, shape_or_null(c, 1), shape_or_null(c, 2),
                             &s, err));
    if (infer_has(c, 3)) {
        struct shape scores = shape_of(s.batch, s.heads, s.queries, s.keys), both;
        char text[96], text_scores[96];
        if (!shape_broadcast(&scores, &c->in[3]->shape, &both) || !shape_equal(&scores, &both))
            return FAIL(err, STATUS_FAILED, "Attention: mask %s does not broadcast to %s",
                        shape_text(&c->in[3]->shape, text), shape_text(&scores, text_scores));
    }
    struct shape y = shape_of(s.batch, s.queries, s.heads * s.head_size);
    infer_set(c, 0, c->in[0]->dtype, &y);
    return STATUS_OK;
}

static void cost(const struct infer *c, struct cost *cost)
{
    struct attention_shape s;
    if (attention_shape_from(c->node, &c->in[0]->shape, shape_or_null(c, 1), shape_or_null(c, 2),
                             &s, NULL) != STATUS_OK)
        return;
    double hidden = s.causal ? 0.5 * (double)s.queries * (double)(s.queries - 1) : 0;
    double scores = (double)(s.batch * s.heads) * ((double)(s.queries * s.keys) - hidden);
    cost->macs = 2 * scores * (double)s.head_size;
    cost->elementwise = (infer_has(c, 3) ? 7 : 6) * scores; /* softmax 5, scale 1, mask 1 */
    cost->transcendentals = scores;
}

/* Scores of one batch element, [heads, queries, keys]. */
struct scores {
    const struct attention_shape *shape;
    const struct ref_tensor *mask;
    int64_t batch;
    double *data;
};

/* The first mask element of a row of scores and the distance to the next one. */
static const double *mask_row(const struct scores *s, int64_t row, int64_t *step)
{
    static const double zero = 0;
    const struct attention_shape *a = s->shape;
    const struct ref_tensor *mask = s->mask;
    *step = 0;
    if (!mask)
        return &zero;
    struct shape of = shape_of(a->batch, a->heads, a->queries, a->keys);
    int64_t at = (s->batch * a->heads * a->queries + row) * a->keys;
    *step = mask->shape.rank > 0 && mask->shape.dim[mask->shape.rank - 1] > 1;
    return mask->f + ref_broadcast_index(&of, at, &mask->shape);
}

static void softmax_row(void *context, int64_t row, int thread)
{
    (void)thread;
    const struct scores *s = context;
    int64_t keys = s->shape->keys, step, seen = attention_seen(s->shape, row % s->shape->queries);
    const double *mask = mask_row(s, row, &step);
    double *line = s->data + row * keys, largest = (double)-INFINITY, sum = 0;
    for (int64_t k = 0; k < keys; k++) {
        line[k] = k < seen ? s->shape->scale * line[k] + mask[k * step] : (double)-INFINITY;
        largest = fmax(largest, line[k]);
    }
    if (s->shape->zero_empty && largest == (double)-INFINITY)
        largest = 0; /* weights of zero */
    for (int64_t k = 0; k < keys; k++)
        sum += line[k] = exp(line[k] - largest);
    if (s->shape->zero_empty && sum == 0)
        sum = 1;
    for (int64_t k = 0; k < keys; k++)
        line[k] /= sum;
}

/* scores = Q K', then softmax, then Y = scores V; all heads of one batch element at once. */
static void attend(const struct ref_call *call, const struct scores *s, struct ref_gemm *items)
{
    const struct attention_shape *a = s->shape;
    int64_t size = a->head_size, area = a->queries * a->keys, width = a->heads * size;
    const double *q = call->in[0]->f + a->q_start + s->batch * a->queries * a->q_row;
    const double *k = call->in[a->packed ? 0 : 1]->f + a->k_start + s->batch * a->keys * a->k_row;
    const double *v = call->in[a->packed ? 0 : 2]->f + a->v_start + s->batch * a->keys * a->v_row;
    double *y = call->out[0]->f + s->batch * a->queries * width;
    for (int64_t h = 0; h < a->heads; h++)
        items[h] = (struct ref_gemm){.m = a->queries,
                                     .n = a->keys,
                                     .k = size,
                                     .a = q + h * size,
                                     .a_row = a->q_row,
                                     .a_col = 1,
                                     .b = k + h / a->group * size,
                                     .b_row = 1,
                                     .b_col = a->k_row,
                                     .c = s->data + h * area,
                                     .c_row = a->keys};
    for (int64_t i = 0; i < a->heads * area; i++)
        s->data[i] = 0;
    ref_gemm_run(call->pool, items, a->heads);
    struct scores rows = *s;
    pool_run(call->pool, a->heads * a->queries, softmax_row, &rows);
    for (int64_t h = 0; h < a->heads; h++)
        items[h] = (struct ref_gemm){.m = a->queries,
                                     .n = size,
                                     .k = a->keys,
                                     .a = s->data + h * area,
                                     .a_row = a->keys,
                                     .a_col = 1,
                                     .b = v + h / a->group * size,
                                     .b_row = a->v_row,
                                     .b_col = 1,
                                     .c = y + h * size,
                                     .c_row = width};
    ref_gemm_run(call->pool, items, a->heads);
}

static enum status reference(const struct ref_call *call, struct error *err)
{
    const struct ref_tensor *k = call->in_count > 1 ? call->in[1] : NULL;
    const struct ref_tensor *v = call->in_count > 2 ? call->in[2] : NULL;
    struct attention_shape a;
    TRY(attention_shape_from(call->node, &call->in[0]->shape, k ? &k->shape : NULL,
                             v ? &v->shape : NULL, &a, err));
    struct scores scores = {.shape = &a, .mask = call->in_count > 3 ? call->in[3] : NULL};
    scores.data = malloc((size_t)(a.heads * a.queries * a.keys) * sizeof(double) + 1);
    struct ref_gemm *items = calloc((size_t)a.heads, sizeof(*items));
    bool fine = scores.data && items;
    for (int64_t b = 0; fine && b < a.batch; b++) {
        scores.batch = b;
        attend(call, &scores, items);
    }
    free(items);
    free(scores.data);
    return fine ? STATUS_OK : FAIL_NO_MEMORY(err);
}

/* [B, S, heads D] as [B, heads, S, D]. */
static int heads_of(struct graph *g, int x, int64_t heads)
{
    static const int64_t perm[] = {0, 2, 1, 3};
    struct shape from = gradient_shape(g, x);
    struct shape apart = shape_of(from.dim[0], from.dim[1], heads, from.dim[2] / heads);
    return make_permuted(g, make_reshaped(g, x, &apart), 4, perm);
}

/* Those of keys or values, each as often as heads of q share it. */
static int shared_heads_of(struct graph *g, int x, const struct attention_shape *s)
{
    x = heads_of(g, x, s->kv_heads);
    if (s->group == 1)
        return x;
    struct shape once = {5, {s->batch, s->kv_heads, 1, s->keys, s->head_size}}, each = once;
    struct shape all = shape_of(s->batch, s->heads, s->keys, s->head_size);
    each.dim[2] = s->group;
    return make_reshaped(g, make_expanded(g, make_reshaped(g, x, &once), &each), &all);
}

/* [B, heads, S, D] as [B, S, kv_heads D], summed over the heads that share one; kv_heads may be
 * heads. */
static int joined(struct graph *g, int x, int64_t kv_heads)
{
    static const int64_t perm[] = {0, 2, 1, 3}, shared = 2;
    struct shape from = gradient_shape(g, x);
    int64_t group = from.dim[1] / kv_heads;
    struct shape apart = {5, {from.dim[0], kv_heads, group, from.dim[2], from.dim[3]}};
    struct shape to = shape_of(from.dim[0], from.dim[2], kv_heads * from.dim[3]);
    if (group > 1)
        x = make_sum(g, make_reshaped(g, x, &apart), 1, &shared, false);
    return make_reshaped(g, make_permuted(g, x, 4, perm), &to);
}

/* q, k or v of those that lie side by side. */
static int part_of(struct graph *g, int x, int which, const struct attention_shape *s)
{
    struct shape shape = gradient_shape(g, x);
    const int64_t at[] = {0, s->k_start, s->v_start};
    int64_t start[3] = {0, 0, at[which]};
    shape.dim[2] = (which == 0 ? s->heads : s->kv_heads) * s->head_size;
    return make_slice(g, x, start, &shape);
}

/* -inf where a query does not see a key. */
static int hidden_keys(struct graph *g, const struct attention_shape *s, struct error *err)
{
    float *data = malloc((size_t)(s->queries * s->keys) * sizeof(*data) + 1);
    if (!data) {
        FAIL_NO_MEMORY(err);
        return NONE;
    }
    for (int64_t i = 0; i < s->queries * s->keys; i++)
        data[i] = i % s->keys < attention_seen(s, i / s->keys) ? 0 : -INFINITY;
    int v = graph_const(g, NULL, DTYPE_F32, shape_of(s->queries, s->keys), data);
    free(data);
    return v;
}

static enum status probabilities(struct graph *g, const int *in, int mask,
                                 const struct attention_shape *s, int *p, struct error *err)
{
    int scores = make_scaled(g, make_mat_mul(g, in[0], make_transposed(g, in[1])), s->scale);
    if (mask != NONE)
        scores = make_add(g, scores, mask);
    if (s->causal) {
        int hidden = hidden_keys(g, s, err);
        if (hidden == NONE)
            return g->failed ? graph_check(g, err) : STATUS_NO_MEMORY;
        scores = make_add(g, scores, hidden);
    }
    *p = graph_node(g, op_softmax.name, NULL, INPUTS(scores), ATTRS(attr_int("axis", -1)));
    return STATUS_OK;
}

/* With the probabilities P anew: dV = P' dY, dS = P (dY V' - sum dY Y), dQ = scale dS K,
 * dK = scale dS' Q. */
static enum status gradient(const struct gradient_call *c, struct error *err)
{
    struct graph *g = c->g;
    struct attention_shape s;
    int in[3] = {gradient_in(c, 0), gradient_in(c, 1), gradient_in(c, 2)}, mask = gradient_in(c, 3);
    bool packed = in[1] == NONE;
    struct shape q = gradient_shape(g, in[0]), k = gradient_shape(g, in[packed ? 0 : 1]);
    int p = NONE;
    TRY(attention_shape_from(gradient_node(c), &q, packed ? NULL : &k, packed ? NULL : &k, &s,
                             err));
    for (int i = 0; i < 3; i++) {
        int x = packed ? part_of(g, gradient_in(c, 0), i, &s) : in[i];
        in[i] = i == 0 ? heads_of(g, x, s.heads) : shared_heads_of(g, x, &s);
    }
    int dy = heads_of(g, c->dy[0], s.heads), y = heads_of(g, gradient_out(c, 0), s.heads);
    TRY(probabilities(g, in, mask, &s, &p, err));
    int along = make_sum_of_lines(g, make_mul(g, dy, y), 3, 4);
    int dp = make_mat_mul(g, dy, make_transposed(g, in[2]));
    int ds = make_mul(g, p, make_sub(g, dp, along));
    int dx[3] = {make_scaled(g, make_mat_mul(g, ds, in[1]), s.scale),
                 make_scaled(g, make_mat_mul(g, make_transposed(g, ds), in[0]), s.scale),
                 make_mat_mul(g, make_transposed(g, p), dy)};
    for (int i = 0; i < 3; i++)
        dx[i] = joined(g, dx[i], i == 0 ? s.heads : s.kv_heads);
    for (int i = 0; i < 3 && !packed; i++)
        c->dx[i] = dx[i];
    if (packed)
        c->dx[0] = graph_node(g, op_concat.name, NULL, 3, dx, ATTRS(attr_int("axis", 2)));
    if (mask != NONE && c->wanted[3])
        c->dx[3] = make_sum_to(g, ds, mask);
    return STATUS_OK;
}

#define TIMES_8(text)  text text text text text text text text
#define TIMES_64(text) TIMES_8(TIMES_8(text))

static const struct op_case cases[] = {
    {.name = "two_heads", .inputs = "f32[2,9,32] f32[2,9,32] f32[2,9,32]", .attrs = "heads=2"},
    {.name = "packed", .inputs = "f32[2,17,96]", .attrs = "heads=4"},
    {.name = "packed_head_size_64", .inputs = "f32[1,33,384]{-2:2}", .attrs = "heads=2"},
    {.name = "scale",
     .inputs = "f32[1,7,24] f32[1,7,24] f32[1,7,24]",
     .attrs = "heads=3 scale=0.5"},
    {.name = "padding_mask", .inputs = "f32[2,16,192] - - f32[2,1,1,16]{-9:0}", .attrs = "heads=2"},
    {.name = "full_mask",
     .inputs = "f32[2,5,16] f32[2,5,16] f32[2,5,16] f32[2,2,5,5]{-3:3}",
     .attrs = "heads=2"},
    {.name = "one_mask_for_all",
     .inputs = "f32[2,6,16] f32[2,6,16] f32[2,6,16] f32[6,6]{-3:3}",
     .attrs = "heads=4"},
    {.name = "cross_attention",
     .inputs = "f32[2,5,48] f32[2,21,48] f32[2,21,48]",
     .attrs = "heads=3"},
    {.name = "one_query", .inputs = "f32[3,1,40] f32[3,30,40] f32[3,30,40]", .attrs = "heads=5"},
    {.name = "query_without_keys",
     .inputs = "f32[1,3,8] f32[1,3,8] f32[1,3,8] f32[3,3]=0,-inf,-inf,-inf,-inf,-inf,0,0,-inf",
     .attrs = "heads=2 zero_empty=1"},
    {.name = "queries_without_keys",
     .inputs = "f32[2,40,96] - - f32[2,1,40,1]=-inf",
     .attrs = "heads=2 zero_empty=1"},
    {.name = "odd_head_size",
     .inputs = "f32[1,20,63] f32[1,23,63] f32[1,23,63]",
     .attrs = "heads=9"},
    /* Kernels that take keys by chunks carry the softmax on from one to the next. */
    {.name = "keys_of_two_chunks",
     .inputs = "f32[1,3,18] f32[1,601,18]{-3:3} f32[1,601,18]",
     .attrs = "heads=1"},
    {.name = "sequence_of_130", .inputs = "f32[1,130,96]{-2:2}", .attrs = "heads=1"},
    {.name = "causal", .inputs = "f32[2,45,96]{-2:2}", .attrs = "heads=2 causal=1"},
    {.name = "causal_of_two_chunks",
     .inputs = "f32[1,530,16]{-2:2} f32[1,530,8]{-2:2} f32[1,530,8]",
     .attrs = "heads=2 kv_heads=1 causal=1"},
    {.name = "causal_after_others",
     .inputs = "f32[1,5,36] f32[1,29,36]{-2:2} f32[1,29,36]",
     .attrs = "heads=2 causal=1"},
    {.name = "causal_with_mask",
     .inputs = "f32[2,14,32] f32[2,20,16]{-2:2} f32[2,20,16] f32[2,1,1,20]{-3:3}",
     .attrs = "heads=4 kv_heads=2 causal=1"},
    {.name = "shared_keys",
     .inputs = "f32[2,19,96] f32[2,23,32]{-2:2} f32[2,23,32]",
     .attrs = "heads=6 kv_heads=2"},
    {.name = "shared_keys_packed", .inputs = "f32[2,37,320]{-2:2}", .attrs = "heads=8 kv_heads=1"},
    {.name = "shared_keys_with_mask",
     .inputs = "f32[2,3,48] f32[2,9,24] f32[2,9,24] f32[2,4,3,9]{-3:3}",
     .attrs = "heads=4 kv_heads=2"},
    {.name = "one_query_of_many_keys",
     .inputs = "f32[2,1,512] f32[2,700,128]{-2:2} f32[2,700,128]",
     .attrs = "heads=8 kv_heads=2 causal=1"},
    /* More stretches of 64 keys than a warp has lanes. */
    {.name = "one_query_of_2200_keys",
     .inputs = "f32[1,1,128] f32[1,2200,64]{-3:3} f32[1,2200,64]",
     .attrs = "heads=2 kv_heads=1"},
    {.name = "few_queries_of_many_keys",
     .inputs = "f32[1,3,180] f32[1,290,36]{-2:2} f32[1,290,36]",
     .attrs = "heads=5 kv_heads=1 causal=1"},
    {.name = "one_query_without_keys",
     .inputs = "f32[1,1,32] f32[1,600,16] f32[1,600,16] f32[1,2,1,600]=-inf",
     .attrs = "heads=2 kv_heads=1 zero_empty=1"},
    /* Nobody sees the last of the stretches of 64 keys, as in a cache that is not full. */
    {.name = "keys_that_nobody_sees",
     .inputs = "f32[1,1,64] f32[1,193,32]{-2:2} f32[1,193,32] f32[193]=0" TIMES_64(",-inf")
         TIMES_64(",0") TIMES_64(",-inf"),
     .attrs = "heads=4 kv_heads=2"},
    {.name = "more_queries_than_a_block",
     .inputs = "f32[2,3,256]{-2:2} f32[2,150,64] f32[2,150,64]",
     .attrs = "heads=4 kv_heads=1 causal=1"},
    {.name = "one_query_of_heads_of_96",
     .inputs = "f32[1,1,384]{-2:2} f32[1,130,192] f32[1,130,192]",
     .attrs = "heads=4 kv_heads=2"},
    {.name = "five_heads_of_128",
     .inputs = "f32[1,1,640] f32[1,130,128] f32[1,130,128] f32[1,5,1,130]{-3:3}",
     .attrs = "heads=5 kv_heads=1"},
    {.name = "head_of_200",
     .inputs = "f32[2,1,200] f32[2,80,200] f32[2,80,200]",
     .attrs = "heads=1"},
    {.name = "heads_of_256",
     .inputs = "f32[1,2,1024] f32[1,70,256] f32[1,70,256]",
     .attrs = "heads=4 kv_heads=1 causal=1"},
};

REGISTER(op, attention) = {
    .name = "Attention",
    .narrow = NARROW_WORK,
    .narrow_roundings = 2,
    .domain = "ridge",
    .inputs_min = 1,
    .inputs_max = 4,
    .attrs = attrs,
    .infer = infer,
    .cost = cost,
    .reference = reference,
    .gradient = gradient,
    OP_CASES(cases),
};
