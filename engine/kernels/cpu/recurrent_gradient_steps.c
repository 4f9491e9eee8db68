/* SPDX-License-Identifier: Apache-2.0
 *
 * RecurrentGradient of f32. The gates are computed from their sums anew as the steps go back, so
 * nothing but LSTM's memory is kept. What a step hands to the one before it, dh += da R, reads R as
 * it lies: its rows are as long as dh. The batch is cut into parts, one per thread, which run
 * through all steps by themselves, so a sequence's result does not depend on the threads.
 */
#include <string.h>

#include "base/numbers/integers.h"
#include "engine/graph/kernel.h"
#include "engine/kernels/lib/simd_math.h"
#include "engine/ops/lib/recurrence.h"

/* Sums of ROWS x VECTORS vectors, at most four, stay in registers. */
enum { ROWS = 6, VECTORS = VL == 16 ? 4 : 2, PART_LINES = 6 };

/* The plan; a launch completes a copy of it with its addresses. */
struct kernel_state {
    struct recurrence r;
    unsigned given, wanted; /* bit k: there is input k; output k is asked for */
    int64_t parts;
    const void *const *in;
    void *const *out;
    float *memory, *dh, *dc, *du, *reset; /* [T, B, H], [B, H] twice, [B, G H], [B, H] */
};

static enum status plan(const struct kernel_query *q, int variant, struct kernel_state *s,
                        struct error *why)
{
    (void)variant;
    if (q->node->post_count)
        return UNSUPPORTED(why, "no fused epilogue");
    for (int k = 0; k < q->in_count; k++) {
        if (!query_in(q, k))
            continue;
        if (q->in[k].dtype != (k == RECURRENCE_LENGTHS ? DTYPE_I32 : DTYPE_F32))
            return UNSUPPORTED(why, "input %d is %s", k, dtype_name(q->in[k].dtype));
        if (!desc_is_plain(&q->in[k]))
            return UNSUPPORTED(why, "input %d is not plain", k);
        s->given |= 1u << k;
    }
    for (int k = 0; k < q->out_count; k++) {
        if (q->out[k].dtype == DTYPE_NONE)
            continue;
        if (!desc_is_plain(&q->out[k]))
            return UNSUPPORTED(why, "output %d is not plain", k);
        s->wanted |= 1u << k;
    }
    if (!(s->wanted & 1u << RECURRENCE_OF_A))
        return UNSUPPORTED(why, "output 0 is not wanted");
    TRY(recurrence_from(q->node, &q->in[RECURRENCE_A].shape, &s->r, why));
    if (s->r.batch * s->r.hidden * s->r.steps == 0)
        return UNSUPPORTED(why, "an empty sequence");
    s->parts = divide_up(s->r.batch, PART_LINES);
    s->parts = smaller(s->parts, q->threads);
    return STATUS_OK;
}

static int64_t padded(int64_t floats)
{
    return (floats + 15) / 16 * 16;
}

static size_t workspace(const struct kernel_state *s)
{
    const struct recurrence *r = &s->r;
    int64_t state = padded(r->batch * r->hidden), sums = padded(r->batch * r->width);
    int64_t memory = r->cell == CELL_LSTM ? padded(r->steps * r->batch * r->hidden) : 0;
    return (size_t)(memory + 3 * state + sums) * sizeof(float);
}

static const float *input(const struct kernel_state *s, int k)
{
    return s->given >> k & 1 ? s->in[k] : NULL;
}

static float *output(const struct kernel_state *s, int k)
{
    return s->wanted >> k & 1 ? s->out[k] : NULL;
}

static int64_t time_of(const struct kernel_state *s, int64_t b, int64_t step)
{
    bool given = s->given >> RECURRENCE_LENGTHS & 1;
    const int32_t *lengths = given ? s->in[RECURRENCE_LENGTHS] : NULL;
    return recurrence_time(&s->r, lengths ? lengths[b] : s->r.steps, step);
}

/* ---- products with R ---- */

/* Sequences of one step that have not ended. */
struct lines {
    int64_t count, of[ROWS], time[ROWS];
};

/* `rows` and `vectors` are constants. to += x R for `count` rows of R; `last`: lanes of the last
 * vector. */
SIMD_INLINE void multiply(const float *const *x, const float *weights, int64_t count, int64_t row,
                          float *const *to, vm last, int rows, int vectors)
{
    vf sum[ROWS][4];
    for (int i = 0; i < rows; i++)
        for (int v = 0; v < vectors; v++)
            sum[i][v] = v < vectors - 1 ? vf_load(to[i] + v * VL) : vf_load_m(to[i] + v * VL, last);
    for (int64_t k = 0; k < count; k++, weights += row) {
        vf w[4];
        for (int v = 0; v < vectors; v++)
            w[v] = v < vectors - 1 ? vf_load(weights + v * VL) : vf_load_m(weights + v * VL, last);
        for (int i = 0; i < rows; i++) {
            vf factor = vf_set1(x[i][k]);
            for (int v = 0; v < vectors; v++)
                sum[i][v] = vf_fma(factor, w[v], sum[i][v]);
        }
    }
    for (int i = 0; i < rows; i++)
        for (int v = 0; v < vectors; v++) {
            if (v < vectors - 1)
                vf_store(to[i] + v * VL, sum[i][v]);
            else
                vf_store_m(to[i] + v * VL, last, sum[i][v]);
        }
}

SIMD_INLINE void multiply_rows(const float *const *x, const float *weights, int64_t count,
                               int64_t n, float *const *to, int rows)
{
    float *at[ROWS];
    for (int64_t j = 0; j < n; j += VECTORS * VL) {
        int64_t left = n - j;
        for (int i = 0; i < rows; i++)
            at[i] = to[i] + j;
        if (VECTORS > 3 && left > 3 * VL)
            multiply(x, weights + j, count, n, at, vm_first(left - 3 * VL), rows, 4);
        else if (VECTORS > 2 && left > 2 * VL)
            multiply(x, weights + j, count, n, at, vm_first(left - 2 * VL), rows, 3);
        else if (left > VL)
            multiply(x, weights + j, count, n, at, vm_first(left - VL), rows, 2);
        else
            multiply(x, weights + j, count, n, at, vm_first(left), rows, 1);
    }
}

/* Rows [first, first + count) of R. x and to: of each line. */
static void through(const struct kernel_state *s, const struct lines *lines, const float *const *x,
                    int64_t first, int64_t count, float *const *to)
{
    int64_t n = s->r.hidden;
    const float *weights = input(s, RECURRENCE_R) + first * n;
    switch (lines->count) {
    case 6:
        multiply_rows(x, weights, count, n, to, 6);
        break;
    case 5:
        multiply_rows(x, weights, count, n, to, 5);
        break;
    case 4:
        multiply_rows(x, weights, count, n, to, 4);
        break;
    case 3:
        multiply_rows(x, weights, count, n, to, 3);
        break;
    case 2:
        multiply_rows(x, weights, count, n, to, 2);
        break;
    default:
        multiply_rows(x, weights, count, n, to, 1);
    }
}

/* ---- cells ---- */

/* v (1 - v) and 1 - v^2 times x */
SIMD_INLINE vf by_sigmoid(vf x, vf v)
{
    return vf_mul(x, vf_mul(v, vf_sub(vf_set1(1.0f), v)));
}

SIMD_INLINE vf by_tanh(vf x, vf v)
{
    return vf_mul(x, vf_sub(vf_set1(1.0f), vf_mul(v, v)));
}

static void back_rnn(const struct kernel_state *s, const float *a, float *da, float *dh)
{
    for (int64_t k = 0; k < s->r.hidden; k += VL) {
        vm lanes = vm_first(s->r.hidden - k);
        vf sum = vf_load_m(a + k, lanes), d = vf_load_m(dh + k, lanes);
        vf rectified = vf_select(vf_lt(vf_zero(), sum), d, vf_zero());
        vf_store_m(da + k, lanes, s->r.relu ? rectified : by_tanh(d, vf_tanh(sum)));
        vf_store_m(dh + k, lanes, vf_zero());
    }
}

/* before: NULL where the memory is zero. */
static void back_lstm(const struct kernel_state *s, const float *a, const float *before,
                      const float *now, float *da, float *dh, float *dc)
{
    int64_t n = s->r.hidden;
    for (int64_t k = 0; k < n; k += VL) {
        vm lanes = vm_first(n - k);
        vf i = vf_sigmoid(vf_load_m(a + k, lanes)), o = vf_sigmoid(vf_load_m(a + n + k, lanes));
        vf f = vf_sigmoid(vf_load_m(a + 2 * n + k, lanes));
        vf g = vf_tanh(vf_load_m(a + 3 * n + k, lanes)), seen = vf_tanh(vf_load_m(now + k, lanes));
        vf d = vf_load_m(dh + k, lanes);
        vf c = vf_add(vf_load_m(dc + k, lanes), by_tanh(vf_mul(d, o), seen));
        vf last = before ? vf_load_m(before + k, lanes) : vf_zero();
        vf_store_m(da + k, lanes, by_sigmoid(vf_mul(c, g), i));
        vf_store_m(da + n + k, lanes, by_sigmoid(vf_mul(d, seen), o));
        vf_store_m(da + 2 * n + k, lanes, by_sigmoid(vf_mul(c, last), f));
        vf_store_m(da + 3 * n + k, lanes, by_tanh(vf_mul(c, i), g));
        vf_store_m(dc + k, lanes, vf_mul(c, f));
        vf_store_m(dh + k, lanes, vf_zero());
    }
}

/* All of a GRU's step that comes before a product; returns the gradient by keep. Where the reset
 * comes before the product, dr waits for it. */
static float back_gru(const struct kernel_state *s, const float *a, const float *u, const float *h,
                      float keep, float *da, float *du, float *dh)
{
    int64_t n = s->r.hidden;
    bool linear = s->r.linear;
    vf all = vf_zero(), one = vf_set1(1.0f);
    for (int64_t k = 0; k < n; k += VL) {
        vm lanes = vm_first(n - k);
        vf gate = vf_sigmoid(vf_add(vf_load_m(a + k, lanes), vf_load_m(u + k, lanes)));
        vf r = vf_sigmoid(vf_add(vf_load_m(a + n + k, lanes), vf_load_m(u + n + k, lanes)));
        vf z = vf_mul(gate, vf_set1(keep)), last = vf_load_m(u + 2 * n + k, lanes);
        vf v = vf_tanh(vf_fma(linear ? r : one, last, vf_load_m(a + 2 * n + k, lanes)));
        vf d = vf_load_m(dh + k, lanes);
        vf dz = vf_mul(d, vf_sub(vf_load_m(h + k, lanes), v));
        vf dv = by_tanh(vf_mul(d, vf_sub(one, z)), v);
        vf sum = by_sigmoid(vf_mul(dz, vf_set1(keep)), gate);
        vf dr = by_sigmoid(vf_mul(dv, last), r);
        vf_store_m(da + k, lanes, sum);
        vf_store_m(du + k, lanes, sum);
        vf_store_m(da + n + k, lanes, dr);
        vf_store_m(du + n + k, lanes, dr);
        vf_store_m(da + 2 * n + k, lanes, dv);
        vf_store_m(du + 2 * n + k, lanes, linear ? vf_mul(dv, r) : dv);
        vf_store_m(dh + k, lanes, vf_mul(d, z));
        all = vf_add(all, vf_select(lanes, vf_mul(dz, gate), vf_zero()));
    }
    return vf_sum(all);
}

/* reset: the gradient by r h. */
static void back_reset(const struct kernel_state *s, const float *a, const float *u, const float *h,
                       const float *reset, float *da, float *du, float *dh)
{
    int64_t n = s->r.hidden;
    for (int64_t k = 0; k < n; k += VL) {
        vm lanes = vm_first(n - k);
        vf r = vf_sigmoid(vf_add(vf_load_m(a + n + k, lanes), vf_load_m(u + n + k, lanes)));
        vf d = vf_load_m(reset + k, lanes);
        vf dr = by_sigmoid(vf_mul(d, vf_load_m(h + k, lanes)), r);
        vf_store_m(da + n + k, lanes, dr);
        vf_store_m(du + n + k, lanes, dr);
        vf_store_m(dh + k, lanes, vf_fma(d, r, vf_load_m(dh + k, lanes)));
    }
}

/* ---- steps ---- */

/* LSTM's memory after each step of the sequences [first, end). */
static void remember(const struct kernel_state *s, int64_t first, int64_t end)
{
    const struct recurrence *r = &s->r;
    int64_t n = r->hidden;
    const float *initial = input(s, RECURRENCE_C);
    for (int64_t step = 0; step < r->steps; step++)
        for (int64_t b = first; b < end; b++) {
            int64_t time = time_of(s, b, step);
            if (time < 0)
                continue;
            const float *a = input(s, RECURRENCE_A) + (time * r->batch + b) * r->width;
            float *now = s->memory + (step * r->batch + b) * n;
            const float *before = step ? now - r->batch * n : initial ? initial + b * n : NULL;
            for (int64_t k = 0; k < n; k += VL) {
                vm lanes = vm_first(n - k);
                vf i = vf_sigmoid(vf_load_m(a + k, lanes));
                vf f = vf_sigmoid(vf_load_m(a + 2 * n + k, lanes));
                vf g = vf_tanh(vf_load_m(a + 3 * n + k, lanes));
                vf last = before ? vf_load_m(before + k, lanes) : vf_zero();
                vf_store_m(now + k, lanes, vf_fma(f, last, vf_mul(i, g)));
            }
        }
}

static void back_line(const struct kernel_state *s, int64_t b, int64_t step, int64_t time)
{
    const struct recurrence *r = &s->r;
    int64_t n = r->hidden, at = time * r->batch + b;
    const float *a = input(s, RECURRENCE_A) + at * r->width, *dy = input(s, RECURRENCE_DY);
    const float *initial = input(s, RECURRENCE_C), *attention = input(s, RECURRENCE_ATTENTION);
    float *da = output(s, RECURRENCE_OF_A) + at * r->width, *dh = s->dh + b * n;
    float *dattention = output(s, RECURRENCE_OF_ATTENTION);
    for (int64_t k = 0; dy && k < n; k += VL) {
        vm lanes = vm_first(n - k);
        vf_store_m(dh + k, lanes,
                   vf_add(vf_load_m(dh + k, lanes), vf_load_m(dy + at * n + k, lanes)));
    }
    if (r->cell == CELL_RNN) {
        back_rnn(s, a, da, dh);
    } else if (r->cell == CELL_LSTM) {
        const float *now = s->memory + (step * r->batch + b) * n;
        back_lstm(s, a,
                  step      ? now - r->batch * n
                  : initial ? initial + b * n
                            : NULL,
                  now, da, dh, s->dc + b * n);
    } else {
        float keep = r->cell == CELL_AUGRU ? 1 - attention[at] : 1;
        float by_keep =
            back_gru(s, a, input(s, RECURRENCE_U) + at * r->width, input(s, RECURRENCE_H) + at * n,
                     keep, da, s->du + b * r->width, dh);
        if (dattention)
            dattention[at] = -by_keep;
    }
}

/* Up to ROWS sequences at one step. */
static void back_lines(const struct kernel_state *s, const struct lines *lines, int64_t step)
{
    const struct recurrence *r = &s->r;
    int64_t n = r->hidden;
    bool resets = cell_resets(r->cell);
    const float *x[ROWS], *last[ROWS];
    float *to[ROWS], *reset[ROWS], *du = output(s, RECURRENCE_OF_U);
    for (int64_t i = 0; i < lines->count; i++) {
        int64_t b = lines->of[i], at = lines->time[i] * r->batch + b;
        back_line(s, b, step, lines->time[i]);
        x[i] = resets ? s->du + b * r->width : output(s, RECURRENCE_OF_A) + at * r->width;
        last[i] = x[i] + (resets ? 2 * n : 0);
        to[i] = s->dh + b * n;
        reset[i] = s->reset + b * n;
        memset(reset[i], 0, (size_t)n * sizeof(float));
    }
    bool two = resets && !r->linear;
    if (two)
        through(s, lines, last, 2 * n, n, reset);
    for (int64_t i = 0; two && i < lines->count; i++) {
        int64_t b = lines->of[i], at = lines->time[i] * r->batch + b;
        back_reset(s, input(s, RECURRENCE_A) + at * r->width,
                   input(s, RECURRENCE_U) + at * r->width, input(s, RECURRENCE_H) + at * n,
                   reset[i], output(s, RECURRENCE_OF_A) + at * r->width, s->du + b * r->width,
                   to[i]);
    }
    through(s, lines, x, 0, two ? 2 * n : r->width, to);
    for (int64_t i = 0; resets && du && i < lines->count; i++)
        memcpy(du + (lines->time[i] * r->batch + lines->of[i]) * r->width, x[i],
               (size_t)r->width * sizeof(float));
}

/* Moments after the end of a sequence have no gradient, nor what its cell does not have. Those of
 * a sequence are [0, length) both ways. */
static void clear_rest(const struct kernel_state *s, int64_t b)
{
    const struct recurrence *r = &s->r;
    const struct {
        int output;
        int64_t size;
        bool filled;
    } each[] = {{RECURRENCE_OF_A, r->width, true},
                {RECURRENCE_OF_U, r->width, cell_resets(r->cell)},
                {RECURRENCE_OF_ATTENTION, 1, r->cell == CELL_AUGRU}};
    for (int64_t time = 0; time < r->steps; time++) {
        for (size_t k = 0; k < sizeof(each) / sizeof(*each); k++) {
            float *out = output(s, each[k].output);
            int64_t size = each[k].size;
            if (out && !(each[k].filled && time_of(s, b, time) >= 0))
                memset(out + (time * r->batch + b) * size, 0, (size_t)size * sizeof(float));
        }
    }
}

static void load_state(const float *from, float *to, int64_t count)
{
    if (from)
        memcpy(to, from, (size_t)count * sizeof(float));
    else
        memset(to, 0, (size_t)count * sizeof(float));
}

static void run_part(void *context, int64_t part, int thread)
{
    (void)thread;
    const struct kernel_state *s = context;
    const struct recurrence *r = &s->r;
    int64_t first = r->batch * part / s->parts, end = r->batch * (part + 1) / s->parts;
    int64_t n = r->hidden, count = (end - first) * n;
    int64_t groups = (end - first + ROWS - 1) / ROWS, even = (end - first + groups - 1) / groups;
    const float *dh = input(s, RECURRENCE_DH), *dc = input(s, RECURRENCE_DC);
    float *by_first = output(s, RECURRENCE_OF_FIRST), *by_memory = output(s, RECURRENCE_OF_MEMORY);
    load_state(dh ? dh + first * n : NULL, s->dh + first * n, count);
    load_state(dc ? dc + first * n : NULL, s->dc + first * n, count);
    for (int64_t b = first; b < end; b++)
        clear_rest(s, b);
    if (r->cell == CELL_LSTM)
        remember(s, first, end);
    for (int64_t step = r->steps - 1; step >= 0; step--)
        for (int64_t b = first; b < end;) {
            struct lines lines = {0};
            for (; b < end && lines.count < even; b++) {
                int64_t time = time_of(s, b, step);
                if (time < 0)
                    continue;
                lines.time[lines.count] = time;
                lines.of[lines.count++] = b;
            }
            if (lines.count)
                back_lines(s, &lines, step);
        }
    if (by_first)
        load_state(s->dh + first * n, by_first + first * n, count);
    if (by_memory)
        load_state(s->dc + first * n, by_memory + first * n, count);
}

static void launch(const struct kernel_state *plan, const struct kernel_args *args)
{
    struct kernel_state s = *plan;
    const struct recurrence *r = &s.r;
    int64_t state = padded(r->batch * r->hidden);
    s.in = args->in;
    s.out = args->out;
    s.dh = args->workspace;
    s.dc = s.dh + state;
    s.reset = s.dc + state;
    s.du = s.reset + state;
    s.memory = s.du + padded(r->batch * r->width);
    pool_run(args->pool, s.parts, run_part, &s);
}

REGISTER_KERNEL(recurrent_gradient_steps) = {
    NATIVE(recurrent_gradient_steps),
    .ops = OPS("RecurrentGradient"),
    .state_size = sizeof(struct kernel_state),
    .plan = plan,
    .workspace = workspace,
    .launch = launch,
};
