/* SPDX-License-Identifier: Apache-2.0
 *
 * AttentionLSTMGradient of f32. The steps go back; each is loops over the rows, attention first,
 * and then the cell, with two products by transposed weights, packed that way. A row's sums over
 * steps are its own, so results do not depend on the threads. */
#include <string.h>

#include "base/numbers/integers.h"
#include "engine/graph/kernel.h"
#include "engine/kernels/lib/row_pitch.h"
#include "engine/kernels/lib/simd_math.h"
#include "engine/kernels/lib/step_product.h"
#include "engine/kernels/lib/workspace.h"
#include "engine/ops/lib/attention_lstm.h"

struct kernel_state {
    struct attention_lstm s;
    struct step_product weights, query;
    unsigned given, wanted; /* bit k: input k, output k */
    size_t gemm_bytes;
};

/* The workspace. */
struct scratch {
    float *by_state, *by_c;    /* [B, C + H], [B, H] */
    float *by_sums, *by_asked; /* [B, 4 H], [B, A] */
    float *asking;             /* [B, H]: by_asked QUERY' */
    float *by_words, *by_keys; /* [B, S], [B, S, A] where no output takes it */
    float *by_score;           /* [B, A] */
    void *gemm;
    size_t bytes;
};

struct run {
    const struct kernel_state *plan;
    const struct kernel_args *args;
    struct scratch m;
    int64_t t;
};

static void plan_products(struct kernel_state *state, int threads)
{
    const struct attention_lstm *s = &state->s;
    state->weights =
        step_product_plan(s->batch, s->context + s->hidden, 4 * s->hidden, false, threads);
    state->gemm_bytes = step_product_workspace(&state->weights);
    if (!s->attends)
        return;
    state->query = step_product_plan(s->batch, s->hidden, s->keys, false, threads);
    size_t bytes = step_product_workspace(&state->query);
    state->gemm_bytes = larger(state->gemm_bytes, bytes);
}

static enum status plan(const struct kernel_query *q, int variant, struct kernel_state *state,
                        struct error *why)
{
    (void)variant;
    const struct shape *in[ALSTM_INPUTS];
    for (int k = 0; k < ALSTM_GRADIENT_INPUTS; k++) {
        const struct desc *desc = query_in(q, k);
        enum dtype want = k == ALSTM_LENGTHS ? DTYPE_I32 : DTYPE_F32;
        if (desc && (desc->dtype != want || !desc_is_plain(desc)))
            return UNSUPPORTED(why, "input %d is not plain %s", k, dtype_name(want));
        if (k < ALSTM_INPUTS)
            in[k] = desc ? &desc->shape : NULL;
        state->given |= desc ? 1u << k : 0;
    }
    if (q->node->post_count)
        return UNSUPPORTED(why, "no fused epilogue");
    TRY(query_plain_results(q, why));
    for (int k = 0; k < q->out_count; k++)
        state->wanted |= q->out[k].dtype != DTYPE_NONE ? 1u << k : 0;
    struct attention_lstm *s = &state->s;
    TRY(attention_lstm_from(in, s, why));
    if (s->steps * s->batch * s->hidden == 0 || (s->attends && s->keys * s->context == 0))
        return UNSUPPORTED(why, "nothing to do");
    plan_products(state, q->threads);
    return STATUS_OK;
}

static struct scratch lay_out(const struct kernel_state *state, void *base)
{
    const struct attention_lstm *s = &state->s;
    struct scratch m = {0};
    bool keys_wanted = state->wanted >> ALSTM_BY_KEYS & 1;
    m.by_state = take_floats(base, &m.bytes, s->batch * (s->context + s->hidden));
    m.by_c = take_floats(base, &m.bytes, s->batch * s->hidden);
    m.by_sums = take_floats(base, &m.bytes, s->batch * 4 * s->hidden);
    m.by_asked = take_floats(base, &m.bytes, s->batch * s->keys);
    m.asking = take_floats(base, &m.bytes, s->attends ? s->batch * s->hidden : 0);
    m.by_words = take_floats(base, &m.bytes, s->batch * s->source);
    m.by_keys = take_floats(base, &m.bytes, keys_wanted ? 0 : s->batch * s->source * s->keys);
    m.by_score = take_floats(base, &m.bytes, s->batch * s->keys);
    m.gemm = take_bytes(base, &m.bytes, state->gemm_bytes);
    return m;
}

static size_t workspace(const struct kernel_state *state)
{
    return lay_out(state, NULL).bytes;
}

static enum status prepare(const struct kernel_query *q, struct kernel_state *state,
                           size_t *packed_bytes, struct error *err)
{
    (void)q;
    bool fine = step_product_alloc(&state->weights, false, packed_bytes);
    if (fine && state->s.attends)
        fine = step_product_alloc(&state->query, false, packed_bytes);
    return fine ? STATUS_OK : FAIL_NO_MEMORY(err);
}

static void pack(struct kernel_state *state, const struct kernel_args *args)
{
    const struct attention_lstm *s = &state->s;
    step_product_pack(&state->weights, args->in[ALSTM_W], 1, 4 * s->hidden, args->pool);
    if (s->attends)
        step_product_pack(&state->query, args->in[ALSTM_QUERY], 1, s->keys, args->pool);
}

static void release(struct kernel_state *state)
{
    step_product_release(&state->weights);
    step_product_release(&state->query);
}

/* ---- a step ---- */

/* Row b of this step of an input or output that has rows for each; NULL: absent. */
static const float *input(const struct run *r, int k, int64_t b, int64_t width)
{
    bool given = r->plan->given >> k & 1;
    return given ? (const float *)r->args->in[k] + (r->t * r->plan->s.batch + b) * width : NULL;
}

static float *output(const struct run *r, int k, int64_t b, int64_t width)
{
    bool wanted = r->plan->wanted >> k & 1;
    return wanted ? (float *)r->args->out[k] + (r->t * r->plan->s.batch + b) * width : NULL;
}

static void add(float *to, const float *from, int64_t count)
{
    for (int64_t k = 0; from && k < count; k += VL) {
        vm lanes = vm_first(count - k);
        vf_store_m(to + k, lanes, vf_add(vf_load_m(to + k, lanes), vf_load_m(from + k, lanes)));
    }
}

static void copy(float *to, const float *from, int64_t count)
{
    if (to)
        memcpy(to, from, (size_t)count * sizeof(float));
}

/* The gradient of each word's score; d: that of the context. */
static void back_shares(const struct run *r, int64_t b, int64_t length, const float *d,
                        float *by_words)
{
    const struct attention_lstm *s = &r->plan->s;
    const float *shares = input(r, ALSTM_SHARES, b, s->source);
    const float *memory = (const float *)r->args->in[ALSTM_MEMORY] + b * s->source * s->context;
    float mean = 0;
    for (int64_t w = 0; w < length; w++) {
        vf sum = vf_zero();
        for (int64_t k = 0; k < s->context; k += VL) {
            vm lanes = vm_first(s->context - k);
            vf word = vf_load_m(memory + w * s->context + k, lanes);
            sum = vf_fma(vf_load_m(d + k, lanes), word, sum);
        }
        by_words[w] = vf_sum(sum);
        mean += shares[w] * by_words[w];
    }
    for (int64_t w = 0; w < length; w++)
        by_words[w] = shares[w] * (by_words[w] - mean);
}

static void back_attention(const struct run *r, int64_t b, const float *d)
{
    const struct attention_lstm *s = &r->plan->s;
    int64_t length = attention_lstm_length(s, ((const int32_t *)r->args->in[ALSTM_LENGTHS])[b]);
    const float *keys = (const float *)r->args->in[ALSTM_KEYS] + b * s->source * s->keys;
    const float *v = r->args->in[ALSTM_SCORE], *asked = input(r, ALSTM_ASKED, b, s->keys);
    float *by_keys = r->m.by_keys + b * s->source * s->keys,
          *by_score = r->m.by_score + b * s->keys;
    float *by_asked = r->m.by_asked + b * s->keys, *by_words = r->m.by_words + b * s->source;
    back_shares(r, b, length, d, by_words);
    for (int64_t k = 0; k < s->keys; k += VL) {
        vm lanes = vm_first(s->keys - k);
        vf all = vf_zero(), scored = vf_load_m(by_score + k, lanes);
        vf question = vf_load_m(asked + k, lanes), factor = vf_load_m(v + k, lanes);
        for (int64_t w = 0; w < length; w++) {
            float *to = by_keys + w * s->keys + k;
            vf u = vf_tanh(vf_add(question, vf_load_m(keys + w * s->keys + k, lanes)));
            vf by_word = vf_set1(by_words[w]);
            vf by = vf_mul(vf_mul(by_word, factor), vf_fnma(u, u, vf_set1(1.0f)));
            scored = vf_fma(by_word, u, scored);
            all = vf_add(all, by);
            vf_store_m(to, lanes, vf_add(vf_load_m(to, lanes), by));
        }
        vf_store_m(by_asked + k, lanes, all);
        vf_store_m(by_score + k, lanes, scored);
    }
    copy(output(r, ALSTM_BY_ASKED, b, s->keys), by_asked, s->keys);
}

static void ask_back(void *context, int64_t b, int thread)
{
    const struct run *r = context;
    (void)thread;
    const struct attention_lstm *s = &r->plan->s;
    float *d = r->m.by_state + b * (s->context + s->hidden);
    add(d, input(r, ALSTM_DCONTEXT, b, s->context), s->context);
    add(d + s->context, input(r, ALSTM_DY, b, s->hidden), s->hidden);
    copy(output(r, ALSTM_BY_CONTEXT, b, s->context), d, s->context);
    if (s->attends)
        back_attention(r, b, d);
}

SIMD_INLINE vf by_sigmoid(vf x, vf v)
{
    return vf_mul(x, vf_mul(v, vf_sub(vf_set1(1.0f), v)));
}

SIMD_INLINE vf by_tanh(vf x, vf v)
{
    return vf_mul(x, vf_fnma(v, v, vf_set1(1.0f)));
}

static void back_cell(void *context, int64_t b, int thread)
{
    const struct run *r = context;
    (void)thread;
    const struct attention_lstm *s = &r->plan->s;
    int64_t n = s->hidden;
    const float *x = input(r, ALSTM_X, b, 4 * n), *now = input(r, ALSTM_CELLS, b, n);
    const float *before = r->t ? now - s->batch * n : (const float *)r->args->in[ALSTM_C] + b * n;
    float *by_h = r->m.by_state + b * (s->context + n) + s->context, *by_c = r->m.by_c + b * n;
    float *by = r->m.by_sums + b * 4 * n;
    if (s->attends)
        add(by_h, r->m.asking + b * n, n);
    for (int64_t k = 0; k < n; k += VL) {
        vm lanes = vm_first(n - k);
        vf i = vf_sigmoid(vf_load_m(x + k, lanes)), g = vf_tanh(vf_load_m(x + n + k, lanes));
        vf f = vf_sigmoid(vf_load_m(x + 2 * n + k, lanes));
        vf o = vf_sigmoid(vf_load_m(x + 3 * n + k, lanes));
        vf seen = vf_tanh(vf_load_m(now + k, lanes)), d = vf_load_m(by_h + k, lanes);
        vf c = vf_add(vf_load_m(by_c + k, lanes), by_tanh(vf_mul(d, o), seen));
        vf_store_m(by + k, lanes, by_sigmoid(vf_mul(c, g), i));
        vf_store_m(by + n + k, lanes, by_tanh(vf_mul(c, i), g));
        vf_store_m(by + 2 * n + k, lanes, by_sigmoid(vf_mul(c, vf_load_m(before + k, lanes)), f));
        vf_store_m(by + 3 * n + k, lanes, by_sigmoid(vf_mul(d, seen), o));
        vf_store_m(by_c + k, lanes, vf_mul(c, f));
    }
    copy(output(r, ALSTM_BY_X, b, 4 * n), by, 4 * n);
}

/* ---- a launch ---- */

static void begin(struct run *r)
{
    const struct attention_lstm *s = &r->plan->s;
    if (r->plan->wanted >> ALSTM_BY_KEYS & 1)
        r->m.by_keys = r->args->out[ALSTM_BY_KEYS];
    memset(r->m.by_state, 0, (size_t)(s->batch * (s->context + s->hidden)) * sizeof(float));
    memset(r->m.by_c, 0, (size_t)(s->batch * s->hidden) * sizeof(float));
    memset(r->m.by_score, 0, (size_t)(s->batch * s->keys) * sizeof(float));
    memset(r->m.by_keys, 0, (size_t)(s->batch * s->source * s->keys) * sizeof(float));
}

static void end(struct run *r)
{
    const struct attention_lstm *s = &r->plan->s;
    int64_t n = s->hidden;
    r->t = 0;
    for (int64_t b = 0; b < s->batch; b++) {
        const float *by_h = r->m.by_state + b * (s->context + n) + s->context;
        copy(output(r, ALSTM_BY_H, b, n), by_h, n);
    }
    copy(output(r, ALSTM_BY_C, 0, 0), r->m.by_c, s->batch * n);
    for (int64_t b = 1; b < s->batch; b++)
        add(r->m.by_score, r->m.by_score + b * s->keys, s->keys);
    copy(output(r, ALSTM_BY_SCORE, 0, 0), r->m.by_score, s->keys);
}

static void launch(const struct kernel_state *state, const struct kernel_args *args)
{
    const struct attention_lstm *s = &state->s;
    struct run r = {.plan = state, .args = args, .m = lay_out(state, args->workspace)};
    struct step_rows asking = {r.m.by_asked, r.m.asking, s->keys, s->hidden};
    struct step_rows back = {r.m.by_sums, r.m.by_state, 4 * s->hidden, s->context + s->hidden};
    begin(&r);
    for (r.t = s->steps - 1; r.t >= 0; r.t--) {
        pool_run(args->pool, s->batch, ask_back, &r);
        if (s->attends)
            step_product_run(&state->query, &asking, r.m.gemm, args->pool);
        pool_run(args->pool, s->batch, back_cell, &r);
        step_product_run(&state->weights, &back, r.m.gemm, args->pool);
    }
    end(&r);
}

REGISTER_KERNEL(attention_lstm_gradient_steps) = {
    NATIVE(attention_lstm_gradient_steps),
    .ops = OPS("AttentionLSTMGradient"),
    .packs = 1u << ALSTM_W | 1u << ALSTM_QUERY,
    .state_size = sizeof(struct kernel_state),
    .plan = plan,
    .workspace = workspace,
    .prepare = prepare,
    .pack = pack,
    .launch = launch,
    .release = release,
};
