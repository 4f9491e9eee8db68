/* SPDX-License-Identifier: Apache-2.0
 * RotaryEmbedding: pairs of a head's elements turned by angles that grow with the position of the
 * token, whose cosines and sines are given: by position, or by token where there are no positions.
 * Su et al. 2021. A pair is elements i and half + i, or with `interleaved` 2 i and 2 i + 1. Of the
 * caches the first half columns are read: ONNX 1.18 allows more.
 * Beyond ONNX the caches may be f32 where x is narrower: in bf16 a cosine has an error of 1 / 500
 * at any position. */
#include "engine/ops/lib/rotary.h"

#include "base/numbers/integers.h"
#include "engine/graph/op_list.h"
#include "engine/ops/family/gradient.h"

static const char *const attrs[] = {"interleaved", "num_heads", "rotary_embedding_dim", NULL};

enum { X, COSINES, SINES, POSITIONS };

static struct rotary rotary_of_node(const struct node *node, const struct shape *x)
{
    return rotary_of(x, node_int(node, "num_heads", 0), node_int(node, "rotary_embedding_dim", 0));
}

static enum status check_heads(const struct infer *c, struct rotary *r, struct error *err)
{
    const struct shape *x = &c->in[X]->shape;
    int64_t heads = node_int(c->node, "num_heads", 0);
    int64_t turned = node_int(c->node, "rotary_embedding_dim", 0);
    char text[96];
    if (x->rank != 3 && x->rank != 4)
        return FAIL(err, STATUS_FAILED, "RotaryEmbedding: x %s is neither of rank 3 nor of 4",
                    shape_text(x, text));
    if (x->rank == 3 && (heads <= 0 || x->dim[2] % heads))
        return FAIL(err, STATUS_FAILED,
                    "RotaryEmbedding: the last axis of x %s is not num_heads (%lld) heads",
                    shape_text(x, text), (long long)heads);
    *r = rotary_of_node(c->node, x);
    turned = turned ? turned : r->size;
    if (turned < 0 || turned > r->size || turned % 2)
        return FAIL(err, STATUS_FAILED,
                    "RotaryEmbedding: rotary_embedding_dim is %lld; it must be even and at most "
                    "%lld, the size of a head",
                    (long long)turned, (long long)r->size);
    return STATUS_OK;
}

static enum status check_cache(const struct infer *c, const struct rotary *r, int input,
                               struct error *err)
{
    const struct value *x = c->in[X], *cache = c->in[input];
    char text[96], wanted[96];
    if (cache->dtype != x->dtype && cache->dtype != DTYPE_F32)
        return FAIL(err, STATUS_FAILED, "RotaryEmbedding: input %d is %s, x is %s", input,
                    dtype_name(cache->dtype), dtype_name(x->dtype));
    const struct shape *cosines = &c->in[COSINES]->shape;
    int64_t width = cosines->rank ? cosines->dim[cosines->rank - 1] : 0;
    width = larger(width, r->half);
    struct shape shape = shape_of(r->batches, r->tokens, width);
    if (infer_has(c, POSITIONS))
        shape = shape_of(cosines->rank ? cosines->dim[0] : 0, width);
    if (!shape_equal(&cache->shape, &shape))
        return FAIL(err, STATUS_FAILED, "RotaryEmbedding: input %d is %s and should be %s", input,
                    shape_text(&cache->shape, text), shape_text(&shape, wanted));
    return STATUS_OK;
}

static enum status infer(const struct infer *c, struct error *err)
{
    struct rotary r;
    char text[96];
    TRY(check_heads(c, &r, err));
    TRY(check_cache(c, &r, COSINES, err));
    TRY(check_cache(c, &r, SINES, err));
    if (c->in[COSINES]->dtype != c->in[SINES]->dtype)
        return FAIL(err, STATUS_FAILED, "RotaryEmbedding: cosines are %s, sines %s",
                    dtype_name(c->in[COSINES]->dtype), dtype_name(c->in[SINES]->dtype));
    struct shape tokens = shape_of(r.batches, r.tokens);
    if (infer_has(c, POSITIONS) && !shape_equal(&c->in[POSITIONS]->shape, &tokens))
        return FAIL(err, STATUS_FAILED,
                    "RotaryEmbedding: position_ids %s are not one for each of %lld x %lld tokens",
                    shape_text(&c->in[POSITIONS]->shape, text), (long long)r.batches,
                    (long long)r.tokens);
    return infer_same(c, err);
}

/* Four products and two sums for each pair. */
static void cost(const struct infer *c, struct cost *cost)
{
    struct rotary r = rotary_of_node(c->node, &c->in[X]->shape);
    cost->elementwise = 6 * (double)r.half * (double)(r.batches * r.heads * r.tokens);
}

/* ---- reference ---- */

static enum status angle_row(const struct ref_call *call, int64_t token, int64_t *row,
                             struct error *err)
{
    bool given = call->in_count > POSITIONS && call->in[POSITIONS];
    int64_t rows = call->in[COSINES]->shape.dim[0];
    *row = given ? call->in[POSITIONS]->i[token] : token;
    if (given && (*row < 0 || *row >= rows))
        return FAIL(err, STATUS_FAILED,
                    "RotaryEmbedding: position %lld of token %lld is outside of caches with %lld",
                    (long long)*row, (long long)token, (long long)rows);
    return STATUS_OK;
}

static enum status reference(const struct ref_call *call, struct error *err)
{
    struct rotary r = rotary_of_node(call->node, &call->in[X]->shape);
    bool beside = node_int(call->node, "interleaved", 0) != 0;
    const struct shape *cache = &call->in[COSINES]->shape;
    int64_t width = cache->dim[cache->rank - 1];
    for (int64_t row = 0; row < r.batches * r.heads * r.tokens; row++) {
        const double *x = call->in[X]->f + row * r.size;
        double *y = call->out[0]->f + row * r.size;
        int64_t at;
        TRY(angle_row(call, rotary_token(&r, row), &at, err));
        for (int64_t i = 0; i < r.half; i++) {
            int64_t a = beside ? 2 * i : i, b = beside ? 2 * i + 1 : r.half + i;
            double cosine = call->in[COSINES]->f[at * width + i];
            double sine = call->in[SINES]->f[at * width + i];
            y[a] = cosine * x[a] - sine * x[b];
            y[b] = sine * x[a] + cosine * x[b];
        }
        for (int64_t i = 2 * r.half; i < r.size; i++)
            y[i] = x[i];
    }
    return STATUS_OK;
}

/* ---- gradient ---- */

/* The first or the second elements of all pairs of x: [batches, heads and tokens, half]. */
static int elements_of_pairs(struct graph *g, const struct rotary *r, int x, bool beside, int which)
{
    int64_t outer = r->tokens_inside ? r->heads : r->tokens;
    int64_t inner = r->tokens_inside ? r->tokens : r->heads;
    struct shape whole = shape_of(r->batches, outer, inner, r->size);
    struct shape part = shape_of(r->batches, outer, inner, r->half);
    int64_t start[RANK_MAX] = {0};
    x = make_reshaped(g, x, &whole);
    start[3] = beside ? 0 : which * r->half;
    if (!beside)
        return make_slice(g, x, start, &part);
    struct shape turned = shape_of(r->batches, outer, inner, 2 * r->half);
    struct shape pairs = shape_of(r->batches, outer, inner, r->half, 2);
    struct shape one = shape_of(r->batches, outer, inner, r->half, 1);
    x = make_reshaped(g, make_slice(g, x, start, &turned), &pairs);
    start[4] = which;
    return make_reshaped(g, make_slice(g, x, start, &one), &part);
}

/* What all heads of a token ask of its cosines or sines, where several tokens share a position
 * their sum. */
static int by_cache(const struct gradient_call *c, const struct rotary *r, int product)
{
    struct graph *g = c->g;
    int64_t axis = r->tokens_inside ? 1 : 2;
    int positions = gradient_node(c)->op_inputs > POSITIONS ? gradient_in(c, POSITIONS) : NONE;
    struct shape cache = gradient_shape(g, gradient_in(c, COSINES));
    const int64_t before[RANK_MAX] = {0};
    int64_t after[RANK_MAX] = {0};
    int sum = make_sum(g, product, 1, &axis, false);
    enum dtype dtype = g->values[gradient_in(c, COSINES)].dtype;
    if (sum != NONE && g->values[sum].dtype != dtype)
        sum = make_cast(g, sum, dtype);
    after[2] = cache.dim[cache.rank - 1] - r->half; /* columns that nobody reads */
    if (after[2] > 0)
        sum = make_padded(g, sum, before, after);
    if (positions == NONE)
        return sum;
    return graph_node(g, op_gather_gradient.name, op_gather_gradient.domain, INPUTS(sum, positions),
                      ATTRS(attr_int("axis", 0), attr_int("rows", cache.dim[0])));
}

static void caches_gradient(const struct gradient_call *c, const struct rotary *r, bool beside)
{
    struct graph *g = c->g;
    int x[2], dy[2];
    for (int k = 0; k < 2; k++) {
        x[k] = elements_of_pairs(g, r, gradient_in(c, X), beside, k);
        dy[k] = elements_of_pairs(g, r, c->dy[0], beside, k);
    }
    if (c->wanted[COSINES])
        c->dx[COSINES] =
            by_cache(c, r, make_add(g, make_mul(g, dy[0], x[0]), make_mul(g, dy[1], x[1])));
    if (c->wanted[SINES])
        c->dx[SINES] =
            by_cache(c, r, make_sub(g, make_mul(g, dy[1], x[0]), make_mul(g, dy[0], x[1])));
}

/* Turned back: x has the gradient of the result by the opposite angles. */
static enum status gradient(const struct gradient_call *c, struct error *err)
{
    struct graph *g = c->g;
    (void)err;
    const struct node *node = gradient_node(c);
    struct shape x = gradient_shape(g, gradient_in(c, X));
    struct rotary r = rotary_of_node(node, &x);
    bool beside = node_int(node, "interleaved", 0) != 0;
    int positions = node->op_inputs > POSITIONS ? gradient_in(c, POSITIONS) : NONE;
    struct attr same[] = {
        attr_int("interleaved", beside), attr_int("num_heads", node_int(node, "num_heads", 0)),
        attr_int("rotary_embedding_dim", node_int(node, "rotary_embedding_dim", 0))};
    if (c->wanted[X])
        c->dx[X] = graph_node(g, op_rotary_embedding.name, NULL,
                              INPUTS(c->dy[0], gradient_in(c, COSINES),
                                     make_neg(g, gradient_in(c, SINES)), positions),
                              ARRAY_COUNT(same), same);
    if (c->wanted[COSINES] || c->wanted[SINES])
        caches_gradient(c, &r, beside);
    return STATUS_OK;
}

static const struct op_case cases[] = {
    {.name = "heads_first", .inputs = "f32[2,3,5,64] f32[50,32] f32[50,32] i64[2,5]{0:50}"},
    {.name = "heads_last",
     .inputs = "f32[2,5,192] f32[50,32] f32[50,32] i64[2,5]{0:50}",
     .attrs = "num_heads=3"},
    {.name = "by_token", .inputs = "f32[2,3,5,8] f32[2,5,4] f32[2,5,4]"},
    {.name = "by_token_heads_last",
     .inputs = "f32[2,5,48] f32[2,5,8] f32[2,5,8]",
     .attrs = "num_heads=3"},
    {.name = "interleaved",
     .inputs = "f32[2,3,7,64] f32[9,32] f32[9,32] i64[2,7]{0:9}",
     .attrs = "interleaved=1"},
    {.name = "interleaved_heads_last",
     .inputs = "f32[2,3,92] f32[2,3,23] f32[2,3,23]",
     .attrs = "interleaved=1 num_heads=2"},
    {.name = "part",
     .inputs = "f32[2,4,3,80] f32[11,16] f32[11,16] i64[2,3]{0:11}",
     .attrs = "rotary_embedding_dim=32"},
    {.name = "part_interleaved",
     .inputs = "f32[1,3,4,19] f32[6,5] f32[6,5] i64[1,4]{0:6}",
     .attrs = "rotary_embedding_dim=10 interleaved=1"},
    {.name = "part_heads_last",
     .inputs = "f32[2,3,69] f32[2,3,7] f32[2,3,7]",
     .attrs = "rotary_embedding_dim=14 num_heads=3"},
    {.name = "wide_caches",
     .inputs = "f32[2,3,5,24] f32[9,12] f32[9,12] i64[2,5]{0:9}",
     .attrs = "rotary_embedding_dim=16"},
    {.name = "wide_caches_by_token",
     .inputs = "f32[2,5,33] f32[2,5,7] f32[2,5,7]",
     .attrs = "rotary_embedding_dim=8 num_heads=3 interleaved=1"},
    {.name = "odd_half", .inputs = "f32[3,2,5,70] f32[8,35] f32[8,35] i32[3,5]{0:8}"},
    {.name = "one_pair", .inputs = "f32[2,3,4,2] f32[5,1] f32[5,1] i64[2,4]{0:5}"},
    {.name = "one_position", .inputs = "f32[1,8,1,128] f32[4096,64] f32[4096,64] i64[1,1]=4095"},
    {.name = "ends", .inputs = "f32[1,2,3,16] f32[4,8]! f32[4,8]! i64[1,3]=0,3,0"},
    {.name = "many", .inputs = "f32[2,9,33,128] f32[64,64] f32[64,64] i64[2,33]{0:64}"},
    {.name = "all_bf16", .inputs = "bf16[2,3,5,38] bf16[9,19] bf16[9,19] i64[2,5]{0:9}"},
    {.name = "all_bf16_interleaved",
     .inputs = "bf16[2,5,228] bf16[2,5,38] bf16[2,5,38]",
     .attrs = "num_heads=3 interleaved=1"},
    {.name = "no_tokens", .inputs = "f32[2,3,0,8] f32[5,4] f32[5,4] i64[2,0]"},
};

REGISTER(op, rotary_embedding) = {
    .name = "RotaryEmbedding",
    .narrow = NARROW_MATH,
    .narrow_inputs = 1u << X,
    .inputs_min = 3,
    .inputs_max = 4,
    .int_inputs = 1u << POSITIONS,
    .attrs = attrs,
    .since = 23,
    .infer = infer,
    .cost = cost,
    .reference = reference,
    .gradient = gradient,
    OP_CASES(cases),
};
