/* SPDX-License-Identifier: Apache-2.0
 *
 * AttentionDecoder. A step is a handful of matrix products with packed weights (a layer's input,
 * context and state side by side make one product of it), and between them loops over the rows:
 * cells, attention, choice of words. With few rows the products read every weight once per step, so
 * that memory bandwidth is the limit; with many rows they are as fast as any.
 *
 * bf16: products read the weights as they are, the rest widens what it reads; states and logits are
 * f32 as ever, because choices of words hang on small differences.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/numbers/integers.h"
#include "engine/graph/kernel.h"
#include "engine/kernels/lib/best_words.h"
#include "engine/kernels/lib/row_pitch.h"
#include "engine/kernels/lib/simd_floats.h"
#include "engine/kernels/lib/simd_math.h"
#include "engine/kernels/lib/step_product.h"
#include "engine/kernels/lib/workspace.h"
#include "engine/ops/lib/decoder.h"

struct kernel_state {
    struct decoder_shape s;
    struct step_product layer;   /* of every layer, but for the weights */
    struct step_product *layers; /* [L] */
    struct step_product query, output;
    size_t gemm_bytes, workspace;
    bool wants_words, wants_scores;
    bool bf16; /* all floats outside */
};

/* The workspace. Two buffers of what follows the hypotheses: now and next. */
struct scratch {
    float *x, *gates;                /* [rows, 3 H], [rows, 4 H] */
    float *h[2], *c[2], *context[2]; /* [L, rows, H]; [rows, H] */
    float *out, *query, *weights;    /* [rows, H], [rows, A], [rows, S] */
    float *logits;                   /* [rows, V] */
    struct candidate *candidates;    /* [rows, beam + 1] */
    int *counts;                     /* [rows] */
    void *beams, *gemm;
    size_t bytes;
};

struct run {
    const struct kernel_state *state;
    const struct kernel_args *args;
    struct scratch m;
    struct decoder_beams beams;
    int64_t layer;
};

/* ---- plans ---- */

static void plan_products(struct kernel_state *state, int threads)
{
    bool bf16 = state->bf16;
    const struct decoder_shape *s = &state->s;
    struct step_product *products[] = {&state->layer, &state->query, &state->output};
    state->layer = step_product_plan(s->rows, 4 * s->hidden, 3 * s->hidden, bf16, threads);
    state->query = step_product_plan(s->rows, s->attention, s->hidden, bf16, threads);
    state->output = step_product_plan(s->rows, s->vocabulary, s->hidden, bf16, threads);
    for (int k = 0; k < ARRAY_COUNT(products); k++) {
        size_t bytes = step_product_workspace(products[k]);
        state->gemm_bytes = larger(state->gemm_bytes, bytes);
    }
}

static struct scratch lay_out(const struct kernel_state *state, void *base)
{
    const struct decoder_shape *s = &state->s;
    struct scratch m = {0};
    struct decoder_beams beams;
    int64_t d = s->hidden, rows = s->rows;
    size_t *at = &m.bytes;
    m.x = take_floats(base, at, rows * 3 * d);
    m.gates = take_floats(base, at, rows * 4 * d);
    for (int k = 0; k < 2; k++) {
        m.h[k] = take_floats(base, at, s->layers * rows * d);
        m.c[k] = take_floats(base, at, s->layers * rows * d);
        m.context[k] = take_floats(base, at, rows * d);
    }
    m.out = take_floats(base, at, rows * d);
    m.query = take_floats(base, at, rows * s->attention);
    m.weights = take_floats(base, at, rows * s->source);
    m.logits = take_floats(base, at, rows * s->vocabulary);
    m.candidates = take_bytes(base, at, (size_t)(rows * (s->beam + 1)) * sizeof(*m.candidates));
    m.counts = take_bytes(base, at, (size_t)rows * sizeof(*m.counts));
    m.beams = take_bytes(base, at, decoder_beams_place(&beams, s, NULL));
    m.gemm = take_bytes(base, at, state->gemm_bytes);
    return m;
}

static enum status shape_of_query(const struct kernel_query *q, struct decoder_shape *s,
                                  struct error *why)
{
    const struct shape *in[DECODER_INPUTS];
    for (int k = 0; k < DECODER_INPUTS; k++)
        in[k] = &q->in[k].shape;
    return decoder_shape_from(q->node, in, s, why);
}

static enum status plan(const struct kernel_query *q, int variant, struct kernel_state *state,
                        struct error *why)
{
    (void)variant;
    struct decoder_shape *s = &state->s;
    state->bf16 = q->in[DECODER_KEYS].dtype == DTYPE_BF16;
    enum dtype floats = state->bf16 ? DTYPE_BF16 : DTYPE_F32;
    for (int k = 0; k < DECODER_INPUTS; k++) {
        enum dtype want = k == DECODER_LENGTHS ? DTYPE_I32 : floats;
        if (q->in[k].dtype != want || !desc_is_plain(&q->in[k]))
            return UNSUPPORTED(why, "input %d is not plain %s", k, dtype_name(want));
    }
    if (q->node->post_count)
        return UNSUPPORTED(why, "no fused epilogue");
    TRY(query_plain_results(q, why));
    TRY(shape_of_query(q, s, why));
    if (s->rows * s->source * s->hidden * s->attention * s->layers == 0)
        return UNSUPPORTED(why, "nothing to decode");
    state->wants_words = q->out[0].dtype != DTYPE_NONE;
    if (q->out_count > 1 && q->out[1].dtype != DTYPE_NONE && q->out[1].dtype != floats)
        return UNSUPPORTED(why, "scores are not %s", dtype_name(floats));
    state->wants_scores = q->out_count > 1 && q->out[1].dtype != DTYPE_NONE;
    plan_products(state, q->threads);
    state->workspace = lay_out(state, NULL).bytes;
    return STATUS_OK;
}

static size_t workspace(const struct kernel_state *state)
{
    return state->workspace;
}

/* ---- weights ---- */

static void release(struct kernel_state *state)
{
    for (int64_t k = 0; state->layers && k < state->s.layers; k++)
        step_product_release(&state->layers[k]);
    step_product_release(&state->query);
    step_product_release(&state->output);
    free(state->layers);
}

static enum status prepare(const struct kernel_query *q, struct kernel_state *state,
                           size_t *packed_bytes, struct error *err)
{
    const struct decoder_shape *s = &state->s;
    (void)q;
    state->layers = calloc((size_t)s->layers, sizeof(*state->layers));
    bool fine = state->layers && step_product_alloc(&state->query, false, packed_bytes) &&
                step_product_alloc(&state->output, false, packed_bytes);
    for (int64_t k = 0; fine && k < s->layers; k++) {
        state->layers[k] = state->layer;
        fine = step_product_alloc(&state->layers[k], true, packed_bytes);
    }
    return fine ? STATUS_OK : FAIL_NO_MEMORY(err);
}

static void pack_product(const struct step_product *p, const void *weights, struct pool *pool)
{
    step_product_pack(p, weights, p->n, 1, pool);
}

static void pack(struct kernel_state *state, const struct kernel_args *args)
{
    int64_t d = state->s.hidden;
    const void *weights = args->in[DECODER_WEIGHTS], *bias = args->in[DECODER_BIAS];
    pack_product(&state->query, args->in[DECODER_QUERY], args->pool);
    pack_product(&state->output, args->in[DECODER_OUTPUT], args->pool);
    for (int64_t layer = 0; layer < state->s.layers; layer++) {
        struct step_product *p = &state->layers[layer];
        for (int64_t k = 0; k < 4 * d; k++)
            p->bias[k] = float_read(bias, layer * 4 * d + k, state->bf16) +
                         (k / d == 2 ? (float)state->s.forget_bias : 0);
        pack_product(p, float_at(weights, layer * 12 * d * d, state->bf16), args->pool);
    }
}

/* ---- a step ---- */

static void multiply(const struct run *r, const struct step_product *p, const float *a, float *c)
{
    struct step_rows rows = {a, c, p->k, p->n};
    step_product_run(p, &rows, r->m.gemm, r->args->pool);
}

static void run_cell(void *context, int64_t row, int thread)
{
    const struct run *r = context;
    (void)thread;
    const struct decoder_shape *s = &r->state->s;
    int64_t d = s->hidden, at = (r->layer * s->rows + row) * d;
    const float *gates = r->m.gates + row * 4 * d;
    float *h = r->m.h[0] + at, *c = r->m.c[0] + at, *out = r->m.out + row * d;
    bool adds = r->layer >= s->residual;
    for (int64_t k = 0; k < d; k += VL) {
        vm lanes = vm_first(d - k);
        vf in = vf_sigmoid(vf_load_m(gates + k, lanes));
        vf fresh = vf_tanh(vf_load_m(gates + d + k, lanes));
        vf keep = vf_sigmoid(vf_load_m(gates + 2 * d + k, lanes));
        vf show = vf_sigmoid(vf_load_m(gates + 3 * d + k, lanes));
        vf memory = vf_fma(keep, vf_load_m(c + k, lanes), vf_mul(in, fresh));
        vf state = vf_mul(show, vf_tanh(memory));
        vf_store_m(c + k, lanes, memory);
        vf_store_m(h + k, lanes, state);
        vf_store_m(out + k, lanes, adds ? vf_add(state, vf_load_m(out + k, lanes)) : state);
    }
}

/* m.out holds the input of the layer, then its output. */
static void run_layer(struct run *r, int64_t layer)
{
    const struct decoder_shape *s = &r->state->s;
    int64_t d = s->hidden;
    size_t bytes = (size_t)d * sizeof(float);
    for (int64_t row = 0; row < s->rows; row++) {
        float *x = r->m.x + row * 3 * d;
        memcpy(x, r->m.out + row * d, bytes);
        memcpy(x + d, r->m.context[0] + row * d, bytes);
        memcpy(x + 2 * d, r->m.h[0] + (layer * s->rows + row) * d, bytes);
    }
    r->layer = layer;
    multiply(r, &r->state->layers[layer], r->m.x, r->m.gates);
    pool_run(r->args->pool, s->rows, run_cell, r);
}

static int64_t length_of(const struct run *r, int64_t sentence)
{
    int32_t length = ((const int32_t *)r->args->in[DECODER_LENGTHS])[sentence];
    return length < 1 ? 1 : length > r->state->s.source ? r->state->s.source : length;
}

/* `bf16` is a constant here and below. */
SIMD_INLINE void score_words(const struct run *r, int64_t row, int64_t sentence, int64_t length,
                             bool bf16)
{
    int64_t a = r->state->s.attention, first = sentence * r->state->s.source * a;
    const void *keys = r->args->in[DECODER_KEYS], *v = r->args->in[DECODER_SCORE];
    const void *shift = r->args->in[DECODER_SHIFT];
    const float *query = r->m.query + row * a;
    for (int64_t t = 0; t < length; t++) {
        vf sum = vf_zero();
        for (int64_t k = 0; k < a; k += VL) {
            vm lanes = vm_first(a - k);
            vf x = vf_add(vf_load_m(query + k, lanes), vf_read_m(shift, k, lanes, bf16));
            x = vf_tanh(vf_add(x, vf_read_m(keys, first + t * a + k, lanes, bf16)));
            sum = vf_fma(vf_read_m(v, k, lanes, bf16), x, sum);
        }
        r->m.weights[row * r->state->s.source + t] = vf_sum(sum);
    }
}

SIMD_INLINE void attend_in(const struct run *r, int64_t row, bool bf16)
{
    const struct decoder_shape *s = &r->state->s;
    int64_t d = s->hidden, sentence = row / s->beam, length = length_of(r, sentence);
    int64_t first = sentence * s->source * d;
    const void *memory = r->args->in[DECODER_MEMORY];
    float *weights = r->m.weights + row * s->source, *to = r->m.context[0] + row * d;
    float high = -INFINITY, sum = 0;
    score_words(r, row, sentence, length, bf16);
    for (int64_t t = 0; t < length; t++)
        high = weights[t] > high ? weights[t] : high;
    for (int64_t t = 0; t < length; t++)
        sum += weights[t] = expf(weights[t] - high);
    for (int64_t k = 0; k < d; k += VL) {
        vm lanes = vm_first(d - k);
        vf mean = vf_zero();
        for (int64_t t = 0; t < length; t++)
            mean = vf_fma(vf_set1(weights[t]), vf_read_m(memory, first + t * d + k, lanes, bf16),
                          mean);
        vf_store_m(to + k, lanes, vf_mul(mean, vf_set1(1 / sum)));
    }
}

static void attend(void *context, int64_t row, int thread)
{
    const struct run *r = context;
    (void)thread;
    if (r->state->bf16)
        attend_in(r, row, true);
    else
        attend_in(r, row, false);
}

/* ---- choice of words ---- */

/* A beam's rows offer `end` besides: its hypothesis has another length, so another divisor, and it
 * may win although its logit is not among the best, or lose to words of smaller logits. */
static void find_words(void *context, int64_t row, int thread)
{
    const struct run *r = context;
    (void)thread;
    const struct decoder_shape *s = &r->state->s;
    const float *x = r->m.logits + row * s->vocabulary;
    struct candidate *best = r->m.candidates + row * (s->beam + 1);
    bool has_end = s->beam == 1;
    if (r->beams.now.finished[row]) {
        best[0] = (struct candidate){0, s->end};
        r->m.counts[row] = 1;
        return;
    }
    int count = largest(x, s->vocabulary, s->beam > 1 ? s->beam + 1 : 1, best);
    double base = s->beam > 1 ? log_sum(x, s->vocabulary) : 0;
    for (int k = 0; k < count; k++) {
        best[k].gain -= base;
        has_end = has_end || best[k].token == s->end;
    }
    if (!has_end)
        best[count - 1] = (struct candidate){(double)x[s->end] - base, s->end};
    r->m.counts[row] = count;
}

static void choose(struct run *r, int64_t step)
{
    const struct decoder_shape *s = &r->state->s;
    pool_run(r->args->pool, s->rows, find_words, r);
    for (int64_t sentence = 0; sentence < s->batch; sentence++) {
        struct decoder_picks picks = {0};
        for (int64_t row = sentence * s->beam; row < (sentence + 1) * s->beam; row++)
            for (int k = 0; k < r->m.counts[row]; k++) {
                const struct candidate *c = &r->m.candidates[row * (s->beam + 1) + k];
                decoder_offer(&r->beams, &picks, row, c->token, c->gain);
            }
        decoder_accept(&r->beams, sentence, &picks, step);
    }
}

static void follow(const struct run *r, float **pair, int64_t layers)
{
    const struct decoder_shape *s = &r->state->s;
    for (int64_t i = 0; i < layers * s->rows; i++) {
        int64_t parent = i / s->rows * s->rows + r->beams.parent[i % s->rows];
        memcpy(pair[1] + i * s->hidden, pair[0] + parent * s->hidden,
               (size_t)s->hidden * sizeof(float));
    }
    float *made = pair[1];
    pair[1] = pair[0];
    pair[0] = made;
}

/* H numbers of input k, from element `first` on. */
static void read_numbers(const struct run *r, enum decoder_input k, int64_t first, float *to)
{
    const void *from = float_at(r->args->in[k], first, r->state->bf16);
    int64_t count = r->state->s.hidden;
    if (!r->state->bf16) {
        memcpy(to, from, (size_t)count * sizeof(float));
        return;
    }
    for (int64_t i = 0; i < count; i += VL)
        vf_store_m(to + i, vm_first(count - i), vf_read_m(from, i, vm_first(count - i), true));
}

static bool run_step(struct run *r, int64_t step)
{
    const struct decoder_shape *s = &r->state->s;
    for (int64_t row = 0; row < s->rows; row++)
        read_numbers(r, DECODER_EMBEDDING, r->beams.now.token[row] * s->hidden,
                     r->m.out + row * s->hidden);
    run_layer(r, 0);
    multiply(r, &r->state->query, r->m.h[0], r->m.query);
    pool_run(r->args->pool, s->rows, attend, r);
    for (int64_t layer = 1; layer < s->layers; layer++)
        run_layer(r, layer);
    multiply(r, &r->state->output, r->m.out, r->m.logits);
    choose(r, step);
    if (s->beam > 1) {
        follow(r, r->m.h, s->layers);
        follow(r, r->m.c, s->layers);
        follow(r, r->m.context, 1);
    }
    return decoder_turn(&r->beams);
}

/* ---- a launch ---- */

static void begin(struct run *r)
{
    const struct decoder_shape *s = &r->state->s;
    int64_t d = s->hidden;
    decoder_begin(&r->beams);
    memset(r->m.context[0], 0, (size_t)(s->rows * d) * sizeof(float));
    for (int64_t i = 0; i < s->layers * s->rows; i++) {
        int64_t from = (i / s->rows * s->batch + i % s->rows / s->beam) * d;
        read_numbers(r, DECODER_H, from, r->m.h[0] + i * d);
        read_numbers(r, DECODER_C, from, r->m.c[0] + i * d);
    }
}

static void launch(const struct kernel_state *state, const struct kernel_args *args)
{
    const struct decoder_shape *s = &state->s;
    struct run r = {.state = state, .args = args};
    bool more = true;
    r.m = lay_out(state, args->workspace);
    decoder_beams_place(&r.beams, s, r.m.beams);
    begin(&r);
    for (int64_t step = 0; more && step < s->steps; step++)
        more = run_step(&r, step);
    if (state->wants_words)
        memcpy(args->out[0], r.beams.now.tokens, (size_t)(s->rows * s->steps) * sizeof(int32_t));
    for (int64_t row = 0; state->wants_scores && row < s->rows; row++)
        float_write(args->out[1], row, (float)decoder_score(&r.beams, row), state->bf16);
}

REGISTER_KERNEL(decoder_loop) = {
    NATIVE(decoder_loop),
    .ops = OPS("AttentionDecoder"),
    .packs = 1u << DECODER_QUERY | 1u << DECODER_WEIGHTS | 1u << DECODER_BIAS |
             1u << DECODER_OUTPUT,
    .state_size = sizeof(struct kernel_state),
    .plan = plan,
    .workspace = workspace,
    .prepare = prepare,
    .pack = pack,
    .launch = launch,
    .release = release,
};
