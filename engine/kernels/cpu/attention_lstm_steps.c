/* SPDX-License-Identifier: Apache-2.0
 *
 * AttentionLSTM of f32. A step is a product of the rows of context and state with the packed
 * weights, one with QUERY, and between them loops over the rows: cells, attention. */
#include <math.h>
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
    struct step_product sums, query;
    unsigned wanted; /* bit k: output k */
    size_t gemm_bytes;
};

/* The workspace. */
struct scratch {
    float *state, *memory, *gates; /* [B, C + H], [B, H], [B, 4 H] */
    float *asked, *shares;         /* [B, A], [B, S] */
    void *gemm;
    size_t bytes;
};

struct run {
    const struct kernel_state *plan;
    const struct kernel_args *args;
    struct scratch m;
    int64_t t;
};

static enum status plan(const struct kernel_query *q, int variant, struct kernel_state *state,
                        struct error *why)
{
    (void)variant;
    const struct shape *in[ALSTM_INPUTS];
    for (int k = 0; k < ALSTM_INPUTS; k++) {
        const struct desc *desc = query_in(q, k);
        enum dtype want = k == ALSTM_LENGTHS ? DTYPE_I32 : DTYPE_F32;
        if (desc && (desc->dtype != want || !desc_is_plain(desc)))
            return UNSUPPORTED(why, "input %d is not plain %s", k, dtype_name(want));
        in[k] = desc ? &desc->shape : NULL;
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
    state->sums =
        step_product_plan(s->batch, 4 * s->hidden, s->context + s->hidden, false, q->threads);
    state->gemm_bytes = step_product_workspace(&state->sums);
    if (!s->attends)
        return STATUS_OK;
    state->query = step_product_plan(s->batch, s->keys, s->hidden, false, q->threads);
    size_t bytes = step_product_workspace(&state->query);
    state->gemm_bytes = larger(state->gemm_bytes, bytes);
    return STATUS_OK;
}

static struct scratch lay_out(const struct kernel_state *state, void *base)
{
    const struct attention_lstm *s = &state->s;
    struct scratch m = {0};
    m.state = take_floats(base, &m.bytes, s->batch * (s->context + s->hidden));
    m.memory = take_floats(base, &m.bytes, s->batch * s->hidden);
    m.gates = take_floats(base, &m.bytes, s->batch * 4 * s->hidden);
    m.asked = take_floats(base, &m.bytes, s->batch * s->keys);
    m.shares = take_floats(base, &m.bytes, s->batch * s->source);
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
    bool fine = step_product_alloc(&state->sums, false, packed_bytes);
    if (fine && state->s.attends)
        fine = step_product_alloc(&state->query, false, packed_bytes);
    return fine ? STATUS_OK : FAIL_NO_MEMORY(err);
}

static void pack(struct kernel_state *state, const struct kernel_args *args)
{
    const struct attention_lstm *s = &state->s;
    step_product_pack(&state->sums, args->in[ALSTM_W], 4 * s->hidden, 1, args->pool);
    if (s->attends)
        step_product_pack(&state->query, args->in[ALSTM_QUERY], s->keys, 1, args->pool);
}

static void release(struct kernel_state *state)
{
    step_product_release(&state->sums);
    step_product_release(&state->query);
}

/* ---- a step ---- */

/* Output k at row b of this step; NULL: not wanted. */
static float *output(const struct run *r, int k, int64_t b, int64_t width)
{
    bool wanted = r->plan->wanted >> k & 1;
    return wanted ? (float *)r->args->out[k] + (r->t * r->plan->s.batch + b) * width : NULL;
}

static void run_cell(void *context, int64_t b, int thread)
{
    const struct run *r = context;
    (void)thread;
    int64_t n = r->plan->s.hidden, ahead = r->plan->s.context;
    const float *x = (const float *)r->args->in[ALSTM_X] + (r->t * r->plan->s.batch + b) * 4 * n;
    const float *gates = r->m.gates + b * 4 * n;
    float *h = r->m.state + b * (ahead + n) + ahead, *c = r->m.memory + b * n;
    float *y = output(r, ALSTM_OUT_Y, b, n), *cells = output(r, ALSTM_OUT_CELLS, b, n);
    for (int64_t k = 0; k < n; k += VL) {
        vm lanes = vm_first(n - k);
        vf sum[4];
        for (int gate = 0; gate < 4; gate++)
            sum[gate] =
                vf_add(vf_load_m(gates + gate * n + k, lanes), vf_load_m(x + gate * n + k, lanes));
        vf fresh = vf_mul(vf_sigmoid(sum[0]), vf_tanh(sum[1]));
        vf memory = vf_fma(vf_sigmoid(sum[2]), vf_load_m(c + k, lanes), fresh);
        vf state = vf_mul(vf_sigmoid(sum[3]), vf_tanh(memory));
        vf_store_m(c + k, lanes, memory);
        vf_store_m(h + k, lanes, state);
        if (y)
            vf_store_m(y + k, lanes, state);
        if (cells)
            vf_store_m(cells + k, lanes, memory);
    }
}

static void score_words(const struct run *r, int64_t b, int64_t length, float *scores)
{
    const struct attention_lstm *s = &r->plan->s;
    const float *keys = (const float *)r->args->in[ALSTM_KEYS] + b * s->source * s->keys;
    const float *v = r->args->in[ALSTM_SCORE], *asked = r->m.asked + b * s->keys;
    for (int64_t w = 0; w < length; w++, keys += s->keys) {
        vf sum = vf_zero();
        for (int64_t k = 0; k < s->keys; k += VL) {
            vm lanes = vm_first(s->keys - k);
            vf u = vf_tanh(vf_add(vf_load_m(asked + k, lanes), vf_load_m(keys + k, lanes)));
            sum = vf_fma(vf_load_m(v + k, lanes), u, sum);
        }
        scores[w] = vf_sum(sum);
    }
}

static void attend(void *context, int64_t b, int thread)
{
    const struct run *r = context;
    (void)thread;
    const struct attention_lstm *s = &r->plan->s;
    int64_t length = attention_lstm_length(s, ((const int32_t *)r->args->in[ALSTM_LENGTHS])[b]);
    const float *memory = (const float *)r->args->in[ALSTM_MEMORY] + b * s->source * s->context;
    float *shares = r->m.shares + b * s->source, *to = r->m.state + b * (s->context + s->hidden);
    float *all = output(r, ALSTM_OUT_SHARES, b, s->source), largest = -INFINITY, sum = 0;
    float *answer = output(r, ALSTM_OUT_CONTEXT, b, s->context);
    score_words(r, b, length, shares);
    for (int64_t w = 0; w < length; w++)
        largest = shares[w] > largest ? shares[w] : largest;
    for (int64_t w = 0; w < length; w++)
        sum += shares[w] = expf(shares[w] - largest);
    for (int64_t w = 0; w < s->source; w++)
        shares[w] = w < length ? shares[w] / sum : 0;
    for (int64_t k = 0; k < s->context; k += VL) {
        vm lanes = vm_first(s->context - k);
        vf mean = vf_zero();
        for (int64_t w = 0; w < length; w++)
            mean = vf_fma(vf_set1(shares[w]), vf_load_m(memory + w * s->context + k, lanes), mean);
        vf_store_m(to + k, lanes, mean);
    }
    if (all)
        memcpy(all, shares, (size_t)s->source * sizeof(float));
    if (answer)
        memcpy(answer, to, (size_t)s->context * sizeof(float));
}

static void begin(const struct run *r)
{
    const struct attention_lstm *s = &r->plan->s;
    int64_t n = s->hidden, wide = s->context + n;
    memset(r->m.state, 0, (size_t)(s->batch * wide) * sizeof(float));
    for (int64_t b = 0; b < s->batch; b++)
        memcpy(r->m.state + b * wide + s->context, (const float *)r->args->in[ALSTM_H] + b * n,
               (size_t)n * sizeof(float));
    memcpy(r->m.memory, r->args->in[ALSTM_C], (size_t)(s->batch * n) * sizeof(float));
}

static void launch(const struct kernel_state *state, const struct kernel_args *args)
{
    const struct attention_lstm *s = &state->s;
    struct run r = {.plan = state, .args = args, .m = lay_out(state, args->workspace)};
    int64_t wide = s->context + s->hidden;
    struct step_rows sums = {r.m.state, r.m.gates, wide, 4 * s->hidden};
    struct step_rows asked = {r.m.state + s->context, r.m.asked, wide, s->keys};
    begin(&r);
    for (r.t = 0; r.t < s->steps; r.t++) {
        step_product_run(&state->sums, &sums, r.m.gemm, args->pool);
        pool_run(args->pool, s->batch, run_cell, &r);
        if (!s->attends)
            continue;
        step_product_run(&state->query, &asked, r.m.gemm, args->pool);
        pool_run(args->pool, s->batch, attend, &r);
    }
}

REGISTER_KERNEL(attention_lstm_steps) = {
    NATIVE(attention_lstm_steps),
    .ops = OPS("AttentionLSTM"),
    .packs = 1u << ALSTM_W | 1u << ALSTM_QUERY,
    .state_size = sizeof(struct kernel_state),
    .plan = plan,
    .workspace = workspace,
    .prepare = prepare,
    .pack = pack,
    .launch = launch,
    .release = release,
};
