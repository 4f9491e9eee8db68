/* SPDX-License-Identifier: Apache-2.0
 *
 * CTCLoss and CTCLossGradient of f32: samples side by side. The vectors lie along the states of a
 * sample, whose sums are kept as logarithms: a step costs three exponentials and a logarithm per
 * vector. Every step takes away the largest sum of the step before it, so the logarithms stay small
 * however long the sample is; what was taken away is added up in double, and the gradient, whose
 * probabilities are normalised per step, needs none of it.
 */
#include "base/numbers/integers.h"
#include "engine/graph/kernel.h"
#include "engine/kernels/lib/row_pitch.h"
#include "engine/kernels/lib/simd_math.h"
#include "engine/ops/lib/ctc.h"

enum { PAD = 16 }; /* floats round a row of states: one can be read two states further on */

static const float NEVER = -1e30f; /* log of 0; sums of it stay finite */
static const double FAR = 1e29;    /* a loss beyond has met NEVER */

struct integers {
    const void *data; /* NULL: there are none */
    bool wide;        /* i64, else i32 */
};

/* The plan; a launch completes a copy of it with its addresses. */
struct kernel_state {
    struct ctc c;
    const float *dy, *x;
    float *out; /* losses, or the gradient */
    struct integers labels, label_lengths, input_lengths;
    int first;      /* input that holds the logits */
    bool timed;     /* lengths of the inputs are given */
    int64_t stride; /* of a row of states */
    size_t thread_bytes;
    char *memory;
    int threads;
};

/* One sample, in the memory of a thread. Rows of states begin after their pad. */
struct sample {
    int64_t n, steps, states;
    bool valid;
    int32_t *symbol; /* [states] */
    float *log_sum;  /* [T]: of the exponentials of the step's logits */
    float *leap;     /* 0 where a path may leap into this state, else NEVER */
    float *emit;     /* [T] rows: log probability of the state's symbol */
    float *before;   /* [T] rows; the loss needs two */
    float *after[2], *next;
};

static int64_t rows_before(const struct kernel_state *s)
{
    return s->first ? s->c.steps : 2;
}

static enum status plan(const struct kernel_query *q, int variant, struct kernel_state *s,
                        struct error *why)
{
    (void)variant;
    s->first = q->in_count > 0 && q->in[0].shape.rank == 1;
    if (q->node->post_count)
        return UNSUPPORTED(why, "no fused epilogue");
    TRY(query_plain_results(q, why));
    for (int k = 0; k <= s->first; k++)
        if (q->in[k].dtype != DTYPE_F32 || !desc_is_plain(&q->in[k]))
            return UNSUPPORTED(why, "input %d is not plain f32", k);
    for (int k = s->first + CTC_LABELS; k < q->in_count; k++) {
        enum dtype type = q->in[k].dtype;
        if (type != DTYPE_I32 && type != DTYPE_I64 && type != DTYPE_NONE)
            return UNSUPPORTED(why, "only labels and lengths of i32 and i64");
    }
    s->c =
        ctc_of(q->node, &q->in[s->first + CTC_LOGITS].shape, &q->in[s->first + CTC_LABELS].shape);
    if (s->c.classes > INT32_MAX)
        return UNSUPPORTED(why, "more than 2^31 classes");
    s->labels.wide = q->in[s->first + CTC_LABELS].dtype == DTYPE_I64;
    s->label_lengths.wide = q->in[s->first + CTC_LABEL_LENGTHS].dtype == DTYPE_I64;
    const struct desc *lengths = query_in(q, s->first + CTC_INPUT_LENGTHS);
    s->timed = lengths != NULL;
    s->input_lengths.wide = lengths && lengths->dtype == DTYPE_I64;
    s->stride = (ctc_states(s->c.labels) + PAD - 1) / PAD * PAD + 2 * PAD;
    int64_t rows = 1 + s->c.steps + rows_before(s) + 3, steps = round_up(s->c.steps, PAD);
    s->thread_bytes =
        (size_t)(rows * s->stride + steps) * sizeof(float) + (size_t)s->stride * sizeof(int32_t);
    s->threads = q->threads;
    return STATUS_OK;
}

static size_t workspace(const struct kernel_state *s)
{
    return s->thread_bytes * (size_t)s->threads;
}

static int64_t integer_at(const struct integers *list, int64_t k)
{
    return list->wide ? ((const int64_t *)list->data)[k] : ((const int32_t *)list->data)[k];
}

/* ---- a sample ---- */

static void place_sample(const struct kernel_state *job, int thread, struct sample *a)
{
    float *memory = (float *)(void *)(job->memory + (size_t)thread * job->thread_bytes);
    float *row = memory + PAD;
    a->leap = row;
    a->emit = row + job->stride;
    a->before = a->emit + job->c.steps * job->stride;
    a->after[0] = a->before + rows_before(job) * job->stride;
    a->after[1] = a->after[0] + job->stride;
    a->next = a->after[1] + job->stride;
    a->log_sum = a->next + job->stride - PAD;
    a->symbol = (int32_t *)(void *)(a->log_sum + round_up(job->c.steps, PAD));
}

/* What cannot be, the reference reports as an error. */
static void read_sample(const struct kernel_state *job, int64_t n, struct sample *a)
{
    int64_t labels = integer_at(&job->label_lengths, n), last = -1;
    a->n = n;
    a->steps = job->timed ? integer_at(&job->input_lengths, n) : job->c.steps;
    a->valid = labels >= 0 && labels <= job->c.labels && a->steps >= 0 && a->steps <= job->c.steps;
    a->states = a->valid ? ctc_states(labels) : 0;
    for (int64_t s = -PAD; s < job->stride - PAD; s++)
        a->leap[s] = NEVER;
    for (int64_t s = 0; s < a->states; s++) {
        int64_t symbol = s % 2 ? integer_at(&job->labels, n * job->c.labels + s / 2) : job->c.blank;
        a->symbol[s] = (int32_t)symbol;
        if (s % 2 == 0)
            continue;
        a->valid = a->valid && symbol >= 0 && symbol < job->c.classes && symbol != job->c.blank;
        if (s > 1 && symbol != last)
            a->leap[s] = 0;
        last = symbol;
    }
}

static void clear_row(const struct kernel_state *job, float *row)
{
    for (int64_t s = -PAD; s < job->stride - PAD; s += VL)
        vf_store(row + s, vf_set1(NEVER));
}

static const float *logits_at(const struct kernel_state *job, int64_t t, int64_t n)
{
    return job->x + (t * job->c.samples + n) * job->c.classes;
}

static float log_sum_of(const float *x, int64_t count)
{
    vf largest = vf_set1(x[0]), sum = vf_zero();
    for (int64_t k = 0; k < count; k += VL) {
        vm lanes = vm_first(count - k);
        largest = vf_max(largest, vf_select(lanes, vf_load_m(x + k, lanes), largest));
    }
    float level = vf_max_of(largest);
    for (int64_t k = 0; k < count; k += VL) {
        vm lanes = vm_first(count - k);
        vf e = vf_exp_fast(vf_sub(vf_load_m(x + k, lanes), vf_set1(level)));
        sum = vf_add(sum, vf_select(lanes, e, vf_zero()));
    }
    return level + logf(vf_sum(sum));
}

static void find_emissions(const struct kernel_state *job, const struct sample *a)
{
    for (int64_t t = 0; t < a->steps; t++) {
        const float *x = logits_at(job, t, a->n);
        float *emit = a->emit + t * job->stride;
        a->log_sum[t] = log_sum_of(x, job->c.classes);
        clear_row(job, emit);
        for (int64_t s = 0; s < a->states; s++) {
            float e = x[a->symbol[s]] - a->log_sum[t];
            emit[s] = e < NEVER ? NEVER : e;
        }
    }
}

/* NaN in any of them gives NaN. */
SIMD_INLINE vf log_sum_of_three(vf a, vf b, vf c)
{
    vf largest = vf_max(vf_max(a, b), c);
    vf sum = vf_add(vf_exp_fast(vf_sub(a, largest)), vf_exp_fast(vf_sub(b, largest)));
    return vf_add(largest, vf_log(vf_add(sum, vf_exp_fast(vf_sub(c, largest)))));
}

static float *row_before(const struct kernel_state *job, const struct sample *a, int64_t t)
{
    return a->before + t % rows_before(job) * job->stride;
}

/* Returns the loss. */
static double sum_forward(const struct kernel_state *job, const struct sample *a)
{
    double total = 0;
    if (a->steps == 0)
        return a->states > 1 ? INFINITY : 0;
    float *last = row_before(job, a, 0);
    for (int64_t t = 0; t < rows_before(job) && t < a->steps; t++)
        clear_row(job, row_before(job, a, t));
    memcpy(last, a->emit, sizeof(*last) * (a->states > 1 ? 2 : 1));
    for (int64_t t = 1; t < a->steps; t++) {
        float *now = row_before(job, a, t);
        const float *emit = a->emit + t * job->stride;
        vf largest = vf_set1(NEVER);
        for (int64_t s = 0; s < a->states; s += VL)
            largest = vf_max(largest, vf_load(last + s));
        float base = vf_max_of(largest);
        total += base;
        for (int64_t s = 0; s < a->states; s += VL) {
            vf leap = vf_add(vf_load(last + s - 2), vf_load(a->leap + s));
            vf sum = log_sum_of_three(vf_load(last + s), vf_load(last + s - 1), leap);
            vf_store(now + s, vf_add(vf_sub(sum, vf_set1(base)), vf_load(emit + s)));
        }
        last = now;
    }
    double end = last[a->states - 1], other = a->states > 1 ? last[a->states - 2] : NEVER;
    double largest = end > other ? end : other;
    total += largest + log(exp(end - largest) + exp(other - largest));
    return total < -FAR ? INFINITY : -total;
}

/* Row t of `after` from row t + 1, which is taken less its largest. */
static void step_back(const struct kernel_state *job, const struct sample *a, int64_t t)
{
    const float *last = a->after[(t + 1) % 2], *emit = a->emit + (t + 1) * job->stride;
    float *now = a->after[t % 2];
    vf largest = vf_set1(NEVER);
    for (int64_t s = 0; s < a->states; s += VL) {
        vf next = vf_add(vf_load(last + s), vf_load(emit + s));
        largest = vf_max(largest, next);
        vf_store(a->next + s, next);
    }
    vf base = vf_set1(vf_max_of(largest));
    for (int64_t s = 0; s < a->states; s += VL) {
        vf leap = vf_add(vf_load(a->next + s + 2), vf_load(a->leap + s + 2));
        vf sum = log_sum_of_three(vf_load(a->next + s), vf_load(a->next + s + 1), leap);
        vf_store(now + s, vf_sub(sum, base));
    }
}

/* The softmax of step t less the share of the paths that have each symbol, times dy. */
static void write_step(const struct kernel_state *job, const struct sample *a, int64_t t)
{
    const float *x = logits_at(job, t, a->n), *before = row_before(job, a, t);
    const float *after = a->after[t % 2];
    float *dx = job->out + (t * job->c.samples + a->n) * job->c.classes, dy = job->dy[a->n];
    vf largest = vf_set1(NEVER), sum = vf_zero();
    for (int64_t k = 0; k < job->c.classes; k += VL) {
        vm lanes = vm_first(job->c.classes - k);
        vf e = vf_exp_fast(vf_sub(vf_load_m(x + k, lanes), vf_set1(a->log_sum[t])));
        vf_store_m(dx + k, lanes, vf_mul(e, vf_set1(dy)));
    }
    for (int64_t s = 0; s < a->states; s += VL) {
        vf both = vf_add(vf_load(before + s), vf_load(after + s));
        largest = vf_max(largest, both);
        vf_store(a->next + s, both);
    }
    float level = vf_max_of(largest);
    for (int64_t s = 0; s < a->states; s += VL) {
        vf e = vf_exp_fast(vf_sub(vf_load(a->next + s), vf_set1(level)));
        sum = vf_add(sum, e);
        vf_store(a->next + s, e);
    }
    float share = dy / vf_sum(sum);
    for (int64_t s = 0; s < a->states; s++)
        dx[a->symbol[s]] -= share * a->next[s];
}

static void write_gradient(const struct kernel_state *job, const struct sample *a, double loss)
{
    size_t row = (size_t)job->c.classes * sizeof(float);
    int64_t steps = a->valid && loss < INFINITY ? a->steps : 0;
    clear_row(job, a->after[0]);
    clear_row(job, a->after[1]);
    clear_row(job, a->next);
    for (int64_t s = a->states > 1 ? a->states - 2 : 0; steps && s < a->states; s++)
        a->after[(steps - 1) % 2][s] = 0;
    for (int64_t t = job->c.steps - 1; t >= steps; t--)
        memset(job->out + (t * job->c.samples + a->n) * job->c.classes, 0, row);
    for (int64_t t = steps - 1; t >= 0; t--) {
        if (t < steps - 1)
            step_back(job, a, t);
        write_step(job, a, t);
    }
}

static void sample_work(void *context, int64_t n, int thread)
{
    const struct kernel_state *job = context;
    struct sample a;
    double loss = NAN;
    place_sample(job, thread, &a);
    read_sample(job, n, &a);
    if (a.valid) {
        find_emissions(job, &a);
        loss = sum_forward(job, &a);
    }
    if (job->first)
        write_gradient(job, &a, loss);
    else
        job->out[n] = (float)loss;
}

static void launch(const struct kernel_state *plan, const struct kernel_args *args)
{
    struct kernel_state job = *plan;
    int first = job.first;
    job.dy = first ? args->in[0] : NULL;
    job.x = args->in[first + CTC_LOGITS];
    job.labels.data = args->in[first + CTC_LABELS];
    job.label_lengths.data = args->in[first + CTC_LABEL_LENGTHS];
    job.input_lengths.data = job.timed ? args->in[first + CTC_INPUT_LENGTHS] : NULL;
    job.out = args->out[0];
    job.memory = args->workspace;
    pool_run(args->pool, job.c.samples, sample_work, &job);
}

REGISTER_KERNEL(ctc_sequences) = {
    NATIVE(ctc_sequences),
    .ops = OPS("CTCLoss", "CTCLossGradient"),
    .state_size = sizeof(struct kernel_state),
    .plan = plan,
    .workspace = workspace,
    .launch = launch,
};
