/* SPDX-License-Identifier: Apache-2.0
 * AttentionDecoder (ridge): the loop of a recurrent translator, as one operator. In every step the
 * last word and the last context go through LSTM layers; the first one's state asks the source
 * sentence (Bahdanau's attention: v tanh(key + query + b), softmax over its words), the answer is
 * the context, an input of all layers above (GNMT: Wu et al. 2016). From `residual` on a layer's
 * input is added to its output. The word with the largest logit goes on (beam 1), or the `beam`
 * best hypotheses by log probability over ((5 + length) / 6)^length_penalty.
 *
 * Inputs: enum decoder_input. Outputs: words i32 [B, beam, steps], filled up with `end`; their
 * scores [B, beam]. The steps end early when all hypotheses have; the cost is that of all steps. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/ops/compute/ref_gemm.h"
#include "engine/ops/lib/decoder.h"

static const char *const attrs[] = {"beam",           "steps",       "start",    "end",
                                    "length_penalty", "forget_bias", "residual", NULL};

static enum status shape_of_infer(const struct infer *c, struct decoder_shape *s, struct error *err)
{
    const struct shape *in[DECODER_INPUTS];
    for (int k = 0; k < DECODER_INPUTS; k++)
        in[k] = &c->in[k]->shape;
    return decoder_shape_from(c->node, in, s, err);
}

static enum status infer(const struct infer *c, struct error *err)
{
    struct decoder_shape s;
    TRY(shape_of_infer(c, &s, err));
    struct shape words = shape_of(s.batch, s.beam, s.steps), scores = shape_of(s.batch, s.beam);
    infer_set(c, 0, DTYPE_I32, &words);
    infer_set(c, 1, c->in[DECODER_KEYS]->dtype, &scores);
    return STATUS_OK;
}

static void cost(const struct infer *c, struct cost *cost)
{
    struct decoder_shape s;
    if (shape_of_infer(c, &s, NULL) != STATUS_OK)
        return;
    double d = (double)s.hidden, layers = (double)s.layers, a = (double)s.attention;
    double source = (double)s.source, words = (double)s.vocabulary;
    double turns = (double)(s.rows * s.steps);
    double residuals = s.layers > s.residual ? (double)(s.layers - s.residual) : 0;
    cost->macs = turns * (layers * 12 * d * d + d * a + source * a + source * d + d * words);
    cost->elementwise = turns * (30 * layers * d + source * (7 * a + 5) + residuals * d +
                                 (s.beam > 1 ? 5 * words : 0));
    cost->transcendentals = turns * (5 * layers * d + source * (a + 1) + (s.beam > 1 ? words : 0));
}

/* ---- reference ---- */

struct run {
    const struct ref_call *call;
    struct decoder_shape s;
    struct decoder_beams beams;
    double *x, *gates;      /* [rows, 3 H], [rows, 4 H] */
    double *h, *c, *spare;  /* [L, rows, H] */
    double *context, *out;  /* [rows, H] */
    double *query, *logits; /* [rows, A], [rows, V] */
    double *weights;        /* [S] */
};

static double *input(const struct run *r, int k)
{
    return r->call->in[k]->f;
}

/* c [rows, n] += a [rows, k] b */
static void multiply(const struct run *r, const double *a, int64_t k, const double *b, int64_t n,
                     double *c)
{
    struct ref_gemm product = {.m = r->s.rows,
                               .n = n,
                               .k = k,
                               .a = a,
                               .a_row = k,
                               .a_col = 1,
                               .b = b,
                               .b_row = n,
                               .b_col = 1,
                               .c = c,
                               .c_row = n};
    ref_gemm_run(r->call->pool, &product, 1);
}

static double logistic(double x)
{
    return 1 / (1 + exp(-x));
}

/* `out` holds the input of the layer, then its output. */
static void run_layer(const struct run *r, int64_t layer)
{
    int64_t d = r->s.hidden;
    double *h = r->h + layer * r->s.rows * d, *c = r->c + layer * r->s.rows * d;
    for (int64_t row = 0; row < r->s.rows; row++) {
        double *x = r->x + row * 3 * d;
        memcpy(x, r->out + row * d, (size_t)d * sizeof(*x));
        memcpy(x + d, r->context + row * d, (size_t)d * sizeof(*x));
        memcpy(x + 2 * d, h + row * d, (size_t)d * sizeof(*x));
        memcpy(r->gates + row * 4 * d, input(r, DECODER_BIAS) + layer * 4 * d,
               (size_t)(4 * d) * sizeof(*x));
    }
    multiply(r, r->x, 3 * d, input(r, DECODER_WEIGHTS) + layer * 12 * d * d, 4 * d, r->gates);
    for (int64_t i = 0; i < r->s.rows * d; i++) {
        const double *gate = r->gates + i / d * 4 * d + i % d;
        c[i] = logistic(gate[2 * d] + r->s.forget_bias) * c[i] + logistic(gate[0]) * tanh(gate[d]);
        h[i] = logistic(gate[3 * d]) * tanh(c[i]);
        r->out[i] = h[i] + (layer >= r->s.residual ? r->out[i] : 0);
    }
}

static void attend(const struct run *r, int64_t row)
{
    int64_t sentence = row / r->s.beam, a = r->s.attention, d = r->s.hidden;
    int64_t length = r->call->in[DECODER_LENGTHS]->i[sentence];
    const double *v = input(r, DECODER_SCORE), *shift = input(r, DECODER_SHIFT);
    double *context = r->context + row * d, largest = -INFINITY, sum = 0;
    length = length < 1 ? 1 : length > r->s.source ? r->s.source : length;
    for (int64_t t = 0; t < length; t++) {
        const double *key = input(r, DECODER_KEYS) + (sentence * r->s.source + t) * a;
        r->weights[t] = 0;
        for (int64_t k = 0; k < a; k++)
            r->weights[t] += v[k] * tanh(key[k] + r->query[row * a + k] + shift[k]);
        largest = fmax(largest, r->weights[t]);
    }
    for (int64_t t = 0; t < length; t++)
        sum += r->weights[t] = exp(r->weights[t] - largest);
    memset(context, 0, (size_t)d * sizeof(*context));
    for (int64_t t = 0; t < length; t++) {
        const double *memory = input(r, DECODER_MEMORY) + (sentence * r->s.source + t) * d;
        for (int64_t k = 0; k < d; k++)
            context[k] += r->weights[t] / sum * memory[k];
    }
}

static void choose(struct run *r, int64_t sentence, int64_t step)
{
    struct decoder_picks picks = {0};
    for (int64_t k = 0; k < r->s.beam; k++) {
        int64_t row = sentence * r->s.beam + k;
        const double *logits = r->logits + row * r->s.vocabulary;
        double largest = -INFINITY, sum = 0;
        for (int64_t w = 0; w < r->s.vocabulary; w++)
            largest = fmax(largest, logits[w]);
        for (int64_t w = 0; w < r->s.vocabulary; w++)
            sum += exp(logits[w] - largest);
        double base = r->s.beam > 1 ? largest + log(sum) : 0;
        for (int64_t w = 0; w < r->s.vocabulary; w++)
            decoder_offer(&r->beams, &picks, row, (int32_t)w, logits[w] - base);
    }
    decoder_accept(&r->beams, sentence, &picks, step);
}

/* The states follow their hypotheses. */
static void reorder(struct run *r, double *state, int64_t layers)
{
    size_t row_bytes = (size_t)r->s.hidden * sizeof(double);
    int64_t count = layers * r->s.rows;
    memcpy(r->spare, state, (size_t)count * row_bytes);
    for (int64_t i = 0; i < count; i++) {
        int64_t parent = i / r->s.rows * r->s.rows + r->beams.parent[i % r->s.rows];
        memcpy(state + i * r->s.hidden, r->spare + parent * r->s.hidden, row_bytes);
    }
}

static void run_step(struct run *r, int64_t step)
{
    int64_t d = r->s.hidden, rows = r->s.rows;
    for (int64_t row = 0; row < rows; row++)
        memcpy(r->out + row * d, input(r, DECODER_EMBEDDING) + r->beams.now.token[row] * d,
               (size_t)d * sizeof(double));
    run_layer(r, 0);
    memset(r->query, 0, (size_t)(rows * r->s.attention) * sizeof(double));
    multiply(r, r->h, d, input(r, DECODER_QUERY), r->s.attention, r->query);
    for (int64_t row = 0; row < rows; row++)
        attend(r, row);
    for (int64_t layer = 1; layer < r->s.layers; layer++)
        run_layer(r, layer);
    memset(r->logits, 0, (size_t)(rows * r->s.vocabulary) * sizeof(double));
    multiply(r, r->out, d, input(r, DECODER_OUTPUT), r->s.vocabulary, r->logits);
    for (int64_t sentence = 0; sentence < r->s.batch; sentence++)
        choose(r, sentence, step);
    reorder(r, r->h, r->s.layers);
    reorder(r, r->c, r->s.layers);
    reorder(r, r->context, 1);
}

static void begin(struct run *r)
{
    int64_t d = r->s.hidden;
    decoder_begin(&r->beams);
    for (int64_t i = 0; i < r->s.layers * r->s.rows; i++) {
        int64_t from = (i / r->s.rows * r->s.batch + i % r->s.rows / r->s.beam) * d;
        memcpy(r->h + i * d, input(r, DECODER_H) + from, (size_t)d * sizeof(double));
        memcpy(r->c + i * d, input(r, DECODER_C) + from, (size_t)d * sizeof(double));
    }
}

static void finish(const struct run *r)
{
    const struct ref_call *call = r->call;
    for (int64_t row = 0; row < r->s.rows; row++) {
        for (int64_t t = 0; call->out[0] && t < r->s.steps; t++)
            call->out[0]->i[row * r->s.steps + t] = r->beams.now.tokens[row * r->s.steps + t];
        if (call->out_count > 1 && call->out[1])
            call->out[1]->f[row] = decoder_score(&r->beams, row);
    }
}

/* All arrays in one piece; NULL: out of memory. */
static void *place(struct run *r)
{
    int64_t d = r->s.hidden, rows = r->s.rows, state = r->s.layers * rows * d;
    int64_t sizes[] = {
        rows * 3 * d,          rows * 4 * d,           state,      state, state, rows * d, rows * d,
        rows * r->s.attention, rows * r->s.vocabulary, r->s.source};
    double **arrays[] = {&r->x,       &r->gates, &r->h,     &r->c,      &r->spare,
                         &r->context, &r->out,   &r->query, &r->logits, &r->weights};
    size_t total = decoder_beams_place(&r->beams, &r->s, NULL), at = total;
    for (int k = 0; k < ARRAY_COUNT(sizes); k++)
        total += (size_t)sizes[k] * sizeof(double);
    char *memory = calloc(1, total + 1);
    if (!memory)
        return NULL;
    decoder_beams_place(&r->beams, &r->s, memory);
    for (int k = 0; k < ARRAY_COUNT(sizes); k++) {
        *arrays[k] = (double *)(void *)(memory + at);
        at += (size_t)sizes[k] * sizeof(double);
    }
    return memory;
}

static enum status reference(const struct ref_call *call, struct error *err)
{
    struct run r = {.call = call};
    const struct shape *in[DECODER_INPUTS];
    for (int k = 0; k < DECODER_INPUTS; k++)
        in[k] = &call->in[k]->shape;
    TRY(decoder_shape_from(call->node, in, &r.s, err));
    void *memory = place(&r);
    if (!memory)
        return FAIL_NO_MEMORY(err);
    begin(&r);
    bool more = true;
    for (int64_t step = 0; more && step < r.s.steps; step++) {
        run_step(&r, step);
        more = decoder_turn(&r.beams);
    }
    finish(&r);
    free(memory);
    return STATUS_OK;
}

#define SMALL_WEIGHTS                                                                              \
    "f32[40,16]! f32[16,12]! f32[12]! f32[12]! f32[3,48,64]! f32[3,64]! f32[16,40]!{-3:3}"

static const struct op_case cases[] = {
    {.name = "greedy",
     .inputs = "f32[2,5,12] f32[2,5,16] i32[2]=5,3 f32[3,2,16] f32[3,2,16] " SMALL_WEIGHTS,
     .attrs = "steps=7 residual=2",
     .outputs = 2},
    {.name = "greedy_many",
     .inputs = "f32[6,5,12] f32[6,5,16] i32[6]=5,3,1,2,5,4 f32[3,6,16] f32[3,6,16] " SMALL_WEIGHTS,
     .attrs = "steps=4 residual=2",
     .outputs = 2},
    {.name = "beam",
     .inputs = "f32[2,5,12] f32[2,5,16] i32[2]=4,5 f32[3,2,16] f32[3,2,16] " SMALL_WEIGHTS,
     .attrs = "steps=9 beam=4 residual=2 length_penalty=1.0",
     .outputs = 2},
    {.name = "one_layer_wide_beam",
     .inputs = "f32[1,3,8] f32[1,3,20] i32[1]=3 f32[1,1,20] f32[1,1,20] f32[33,20]! f32[20,8]! "
               "f32[8]! f32[8]! f32[1,60,80]! f32[1,80]! f32[20,33]!{-3:3}",
     .attrs = "steps=5 beam=10 length_penalty=0.6 forget_bias=0.0 start=4 end=3",
     .outputs = 2},
    {.name = "odd_sizes", /* no pairs of 16 bits */
     .inputs = "f32[2,3,5] f32[2,3,7] i32[2]=3,2 f32[2,2,7] f32[2,2,7] f32[19,7]! f32[7,5]! "
               "f32[5]! f32[5]! f32[2,21,28]! f32[2,28]! f32[7,19]!{-3:3}",
     .attrs = "steps=4 beam=2 residual=1",
     .outputs = 2},
    {.name = "ends_early", /* only word 2 has a weight: it comes first */
     .inputs = "f32[1,2,4] f32[1,2,4] i32[1]=2 f32[1,1,4]{1:2} f32[1,1,4]{1:2} f32[3,4]! "
               "f32[4,4]! f32[4]! f32[4]! f32[1,12,16]{0.1:0.2} f32[1,16]{0.1:1} "
               "f32[4,3]=-1,-2,3,-1,-2,3,-1,-2,3,-1,-2,3",
     .attrs = "steps=6",
     .outputs = 2},
    {.name = "many_words_greedy", /* parts of sums, of vocabulary; more rows than eight */
     .inputs = "f32[9,4,20] f32[9,4,72] i32[9]=4,1,2,3,4,4,1,2,3 f32[2,9,72] f32[2,9,72] "
               "f32[600,72]! f32[72,20]! f32[20]! f32[20]! f32[2,216,288]! f32[2,288]! "
               "f32[72,600]!{-3:3}",
     .attrs = "steps=3 residual=1",
     .outputs = 2},
    {.name = "many_words_beam",
     .inputs = "f32[2,4,20] f32[2,4,72] i32[2]=4,1 f32[2,2,72] f32[2,2,72] "
               "f32[600,72]! f32[72,20]! f32[20]! f32[20]! f32[2,216,288]! f32[2,288]! "
               "f32[72,600]!{-3:3}",
     .attrs = "steps=3 beam=5 residual=2",
     .outputs = 2},
    {.name = "end_takes_no_place", /* its logit is among the best three, its score is the fourth */
     .inputs = "f32[1,2,4] f32[1,2,4] i32[1]=2 f32[1,1,4]{1:2} f32[1,1,4]{1:2} f32[5,4]! "
               "f32[4,4]! f32[4]! f32[4]! f32[1,12,16]{0.1:0.2} f32[1,16]{0.1:1} "
               "f32[4,5]=.12,.04,.07,-1,.1,.12,.04,.07,-1,.1,.12,.04,.07,-1,.1,.12,.04,.07,-1,.1",
     .attrs = "steps=1 beam=3",
     .outputs = 2},
    {.name = "small_differences", /* of states, too small for 16 bits */
     .inputs = "f32[1,2,4] f32[1,2,4] i32[1]=2 f32[1,1,4]{1:1.1} f32[1,1,4]{1:1.1} "
               "f32[3,4]!{0.1:0.11} f32[4,4]! f32[4]! f32[4]! f32[1,12,16]!{0.1:0.11} "
               "f32[1,16]!{0.1:0.11} f32[4,3]=64,-64,-64,-64,64,-64,64,-64,-64,-64,64,-64",
     .attrs = "steps=3 residual=1",
     .outputs = 2},
};

REGISTER(op, attention_decoder) = {
    .name = "AttentionDecoder",
    .narrow = NARROW_WORK,
    .narrow_roundings = 4,
    .domain = "ridge",
    .inputs_min = DECODER_INPUTS,
    .inputs_max = DECODER_INPUTS,
    .int_inputs = 1u << DECODER_LENGTHS,
    .outputs_max = 2,
    .attrs = attrs,
    .infer = infer,
    .cost = cost,
    .reference = reference,
    .no_gradient = "it decodes; training feeds the teacher's words to its parts",
    OP_CASES(cases),
};
