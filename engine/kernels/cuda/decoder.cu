/* SPDX-License-Identifier: Apache-2.0
 *
 * AttentionDecoder with a beam of one. A step is a launch per LSTM layer (the cell is computed from
 * the sums of its gates), one each for the attention's query, the attention, the logits and the
 * choice of a word. All steps are launched: which word is the last one is not known on the host,
 * and what has ended goes on with `end`. */
#include "engine/kernels/cuda/lib/math.h"
#include "engine/kernels/cuda/lib/ranking.h"
#include "engine/kernels/cuda/lib/skinny.h"

extern "C" {
#include "engine/decoder.h"
}

enum { WARPS = BLOCK / WARP, GATES = 4, LAYERS_MAX = 64 };

struct decoder {
    const void *in[DECODER_INPUTS]; /* floats of one type */
    int *words;                     /* [B, steps]; may be NULL */
    void *scores;                   /* [B]; of the same type; may be NULL */
    /* Workspace. h: [L, B, H] before and after the step; out: what layers hand on, by turns. */
    float *h[2], *c, *out[2], *context, *query, *weights, *logits;
    double *total;
    int *token, *finished;
    unsigned batch, source, hidden, attention, layers, vocabulary, steps;
    unsigned step, layer, residual, row_warps;
    int start, end;
    float forget_bias;
    bool wide_lengths;
};

template <class element>
static __device__ __forceinline__ const element *input(const struct decoder &k, int which)
{
    return (const element *)k.in[which];
}

/* ---- begin ---- */

template <class element>
__global__ void __launch_bounds__(BLOCK) decoder_start(const __grid_constant__ struct decoder k)
{
    unsigned step = gridDim.x * BLOCK, count = k.layers * k.batch * k.hidden;
    for (unsigned i = blockIdx.x * BLOCK + threadIdx.x; i < count; i += step) {
        k.h[0][i] = to_float(input<element>(k, DECODER_H)[i]);
        k.c[i] = to_float(input<element>(k, DECODER_C)[i]);
        if (i < k.batch * k.hidden)
            k.context[i] = 0;
        if (i >= k.batch)
            continue;
        k.token[i] = k.start;
        k.finished[i] = 0;
        k.total[i] = 0;
    }
}

/* ---- LSTM layers ---- */

/* Of the first layer. */
template <class element>
static __device__ __forceinline__ const element *word_of(const struct decoder &k, unsigned row)
{
    return input<element>(k, DECODER_EMBEDDING) + (size_t)k.token[row] * k.hidden;
}

/* Of the others. */
static __device__ __forceinline__ const float *layer_input(const struct decoder &k, unsigned row)
{
    return k.out[k.layer & 1] + (size_t)row * k.hidden;
}

template <class element>
static __device__ __forceinline__ void cell(const struct decoder &k, unsigned row, unsigned u,
                                            const float *sum)
{
    const element *bias = input<element>(k, DECODER_BIAS) + (size_t)k.layer * GATES * k.hidden + u;
    size_t at = (size_t)row * k.hidden + u, state = (size_t)k.layer * k.batch * k.hidden + at;
    float i = math_sigmoid(sum[0] + to_float(bias[0]));
    float g = tanhf(sum[1] + to_float(bias[k.hidden]));
    float forget = math_sigmoid(sum[2] + to_float(bias[2 * k.hidden]) + k.forget_bias);
    float o = math_sigmoid(sum[3] + to_float(bias[3 * k.hidden]));
    float c = forget * k.c[state] + i * g, h = o * tanhf(c);
    k.c[state] = c;
    k.h[~k.step & 1][state] = h;
    float residual = k.layer < k.residual ? 0.0f
                     : k.layer            ? layer_input(k, row)[u]
                                          : to_float(word_of<element>(k, row)[u]);
    k.out[~k.layer & 1][at] = h + residual;
}

enum { PART_INPUT, PART_CONTEXT, PART_STATE, PARTS };

template <int rows>
static __device__ __forceinline__ void left_rows(const struct decoder &k, unsigned part,
                                                 unsigned first, const float **left)
{
    const float *state = k.h[k.step & 1] + (size_t)k.layer * k.batch * k.hidden;
    for (int i = 0; i < rows; i++) {
        unsigned row = min(first + i, k.batch - 1);
        left[i] = part == PART_INPUT
                      ? layer_input(k, row)
                      : (part == PART_CONTEXT ? k.context : state) + (size_t)row * k.hidden;
    }
}

/* Input, context and state times their parts of the weights. */
template <int rows, class element>
__global__ void __launch_bounds__(BLOCK) decoder_layer(const __grid_constant__ struct decoder k)
{
    struct skinny_sums<GATES, rows> sums = {
    };
    struct skinny_place p = skinny_place_of(k.row_warps, rows);
    unsigned u = p.column, width = GATES * k.hidden;
    const element *weights =
        input<element>(k, DECODER_WEIGHTS) + (size_t)k.layer * PARTS * k.hidden * width + u;
    bool is_there = u < k.hidden && p.row < k.batch;
    if (is_there && k.layer == 0) {
        const element *words[rows];
        for (int i = 0; i < rows; i++)
            words[i] = word_of<element>(k, min(p.row + i, k.batch - 1));
        skinny_add<GATES, rows>(p, words, weights, width, k.hidden, k.hidden, sums);
    }
    for (unsigned part = k.layer == 0; part < PARTS && is_there; part++) {
        const float *left[rows];
        left_rows<rows>(k, part, p.row, left);
        skinny_add<GATES, rows>(p, left, weights + (size_t)part * k.hidden * width, width, k.hidden,
                                k.hidden, sums);
    }
    if (!skinny_meet<GATES, rows>(p, sums) || u >= k.hidden)
        return;
    for (unsigned i = 0; i < rows && p.row + i < k.batch; i++)
        cell<element>(k, p.row + i, u, sums.v[i]);
}

/* ---- products: the query from the first layer's state, logits from what the last hands on ---- */

template <int rows, class element>
static __device__ __forceinline__ void product(const struct decoder &k, const float *from,
                                               const element *right, float *to, unsigned width)
{
    struct skinny_sums<1, rows> sums = {
    };
    struct skinny_place p = skinny_place_of(k.row_warps, rows);
    const float *left[rows];
    for (int i = 0; i < rows; i++)
        left[i] = from + (size_t)min(p.row + i, k.batch - 1) * k.hidden;
    if (p.column < width && p.row < k.batch)
        skinny_add<1, rows>(p, left, right + p.column, width, 0, k.hidden, sums);
    if (!skinny_meet<1, rows>(p, sums) || p.column >= width)
        return;
    for (unsigned i = 0; i < rows && p.row + i < k.batch; i++)
        to[(size_t)(p.row + i) * width + p.column] = sums.v[i][0];
}

template <int rows, class element>
__global__ void __launch_bounds__(BLOCK) decoder_query(const __grid_constant__ struct decoder k)
{
    product<rows>(k, k.h[~k.step & 1], input<element>(k, DECODER_QUERY), k.query, k.attention);
}

template <int rows, class element>
__global__ void __launch_bounds__(BLOCK) decoder_logits(const __grid_constant__ struct decoder k)
{
    product<rows>(k, k.out[k.layers & 1], input<element>(k, DECODER_OUTPUT), k.logits,
                  k.vocabulary);
}

/* ---- attention: a block per sentence ---- */

template <class element>
static __device__ __forceinline__ void score_words(const struct decoder &k, unsigned row,
                                                   unsigned length, float *weights)
{
    const element *v = input<element>(k, DECODER_SCORE), *shift = input<element>(k, DECODER_SHIFT);
    const float *query = k.query + (size_t)row * k.attention;
    for (unsigned t = threadIdx.x / WARP; t < length; t += WARPS) {
        const element *key =
            input<element>(k, DECODER_KEYS) + ((size_t)row * k.source + t) * k.attention;
        float sum = 0;
        for (unsigned i = threadIdx.x % WARP; i < k.attention; i += WARP)
            sum += to_float(v[i]) * tanhf(to_float(key[i]) + query[i] + to_float(shift[i]));
        sum = warp_sum(sum);
        if (threadIdx.x % WARP == 0)
            weights[t] = sum;
    }
    __syncthreads();
}

template <class element>
__global__ void __launch_bounds__(BLOCK) decoder_attend(const __grid_constant__ struct decoder k)
{
    __shared__ float part[WARP];
    unsigned row = blockIdx.x;
    int64_t given = index_at(k.in[DECODER_LENGTHS], k.wide_lengths, row);
    unsigned length = given < 1 ? 1 : given > k.source ? k.source : (unsigned)given;
    float *weights = k.weights + (size_t)row * k.source, most = -INFINITY, sum = 0;
    score_words<element>(k, row, length, weights);
    for (unsigned t = threadIdx.x; t < length; t += BLOCK)
        most = fmaxf(most, weights[t]);
    most = block_max(most, part);
    for (unsigned t = threadIdx.x; t < length; t += BLOCK) {
        weights[t] = expf(weights[t] - most);
        sum += weights[t];
    }
    sum = block_sum(sum, part);
    const element *memory = input<element>(k, DECODER_MEMORY) + (size_t)row * k.source * k.hidden;
    for (unsigned i = threadIdx.x; i < k.hidden; i += BLOCK) {
        float total = 0;
        for (unsigned t = 0; t < length; t++)
            total += weights[t] * to_float(memory[(size_t)t * k.hidden + i]);
        k.context[(size_t)row * k.hidden + i] = total / sum;
    }
}

/* ---- the next word: a block per sentence ---- */

template <class element>
static __device__ __forceinline__ void accept(const struct decoder &k, unsigned row, int best)
{
    int word = k.finished[row] ? k.end : best;
    if (!k.finished[row])
        k.total[row] += (double)k.logits[(size_t)row * k.vocabulary + (unsigned)word];
    k.token[row] = word;
    k.finished[row] |= word == k.end;
    if (k.words)
        k.words[(size_t)row * k.steps + k.step] = word;
    if (k.scores)
        float_put((element *)k.scores + row, (float)k.total[row]);
}

template <class element>
__global__ void __launch_bounds__(BLOCK) decoder_choose(const __grid_constant__ struct decoder k)
{
    __shared__ rank_key firsts[WARPS];
    unsigned row = blockIdx.x, warp = threadIdx.x / WARP;
    unsigned each = (k.vocabulary + WARPS - 1) / WARPS, from = warp * each;
    struct candidates c = {
        k.logits + (size_t)row * k.vocabulary + from, DTYPE_F32, 1, 0, true, false, false, 0.0f};
    if (from < k.vocabulary)
        c.count = min(each, k.vocabulary - from);
    rank_key best = rank_first(c);
    if (threadIdx.x % WARP == 0)
        firsts[warp] = best == rank_absent ? best : best + from;
    __syncthreads();
    if (threadIdx.x)
        return;
    for (int w = 0; w < WARPS; w++)
        best = firsts[w] < best ? firsts[w] : best;
    accept<element>(k, row, (int)(unsigned)best);
}

/* ---- hooks ---- */

static void read_query(const struct kernel_query *q, struct decoder *k)
{
    const int64_t *keys = q->in[DECODER_KEYS].shape.dim, *h = q->in[DECODER_H].shape.dim;
    *k = (struct decoder){};
    k->batch = (unsigned)keys[0];
    k->source = (unsigned)keys[1];
    k->attention = (unsigned)keys[2];
    k->layers = (unsigned)h[0];
    k->hidden = (unsigned)h[2];
    k->vocabulary = (unsigned)q->in[DECODER_OUTPUT].shape.dim[1];
    k->steps = (unsigned)cuda_host->node_int(q->node, "steps", 1);
    k->start = (int)cuda_host->node_int(q->node, "start", 1);
    k->end = (int)cuda_host->node_int(q->node, "end", 2);
    k->forget_bias = (float)cuda_host->node_float(q->node, "forget_bias", 1);
    k->residual = (unsigned)cuda_host->node_int(q->node, "residual", h[0]);
    k->wide_lengths = q->in[DECODER_LENGTHS].dtype == DTYPE_I64;
    k->row_warps = skinny_row_warps(k->batch, k->batch < SKINNY_ROWS ? 1 : (unsigned)SKINNY_ROWS);
}

static enum status supports(const struct kernel_query *q, struct error *why)
{
    TRY(plain_supported(q, why));
    if (cuda_host->node_int(q->node, "beam", 1) != 1)
        return REFUSE(why, "a beam of more than one");
    enum dtype type = q->in[DECODER_KEYS].dtype;
    for (int k = 0; k < DECODER_INPUTS; k++)
        if (k == DECODER_LENGTHS ? !is_index(q->in[k].dtype) : q->in[k].dtype != type)
            return REFUSE(why, "input %d is of another type than the keys, or than an index", k);
    if (!is_float(type))
        return REFUSE(why, "only f32, f16 and bf16");
    if (shape_count(&q->in[DECODER_KEYS].shape) == 0 || shape_count(&q->in[DECODER_H].shape) == 0)
        return REFUSE(why, "no elements");
    return q->in[DECODER_H].shape.dim[0] <= LAYERS_MAX ? STATUS_OK : REFUSE(why, "too many layers");
}

/* Puts the parts of the workspace into k; returns how long it is. */
static size_t lay_out(struct decoder *k, char *memory)
{
    int64_t wide = (int64_t)k->batch * k->hidden, state = wide * k->layers;
    struct {
        float **to;
        int64_t count;
    } parts[] = {{&k->h[0], state},
                 {&k->h[1], state},
                 {&k->c, state},
                 {&k->out[0], wide},
                 {&k->out[1], wide},
                 {&k->context, wide},
                 {&k->query, (int64_t)k->batch * k->attention},
                 {&k->weights, (int64_t)k->batch * k->source},
                 {&k->logits, (int64_t)k->batch * k->vocabulary}};
    size_t at = 0;
    for (int i = 0; i < ARRAY_COUNT(parts); i++) {
        *parts[i].to = (float *)(memory + at);
        at += padded_bytes(parts[i].count, sizeof(float));
    }
    k->total = (double *)(memory + at);
    at += padded_bytes(k->batch, sizeof(double));
    k->token = (int *)(memory + at);
    at += padded_bytes(k->batch, sizeof(int));
    k->finished = (int *)(memory + at);
    return at + padded_bytes(k->batch, sizeof(int));
}

static size_t workspace(const struct kernel_query *q, int variant)
{
    (void)variant;
    struct decoder k;
    read_query(q, &k);
    return lay_out(&k, NULL);
}

static void launch_layer(const struct decoder *k, enum dtype type, const struct kernel_args *args)
{
    struct cuda_grid block = cuda_size(BLOCK);
    if (k->batch < SKINNY_ROWS)
        LAUNCH_FLOATS(type, (decoder_layer<1, element>), skinny_grid(k->hidden, k->batch, 1), block,
                      0, k, args);
    else
        LAUNCH_FLOATS(type, (decoder_layer<SKINNY_ROWS, element>),
                      skinny_grid(k->hidden, k->batch, SKINNY_ROWS), block, 0, k, args);
}

static void launch_query(const struct decoder *k, enum dtype type, const struct kernel_args *args)
{
    struct cuda_grid block = cuda_size(BLOCK);
    if (k->batch < SKINNY_ROWS)
        LAUNCH_FLOATS(type, (decoder_query<1, element>), skinny_grid(k->attention, k->batch, 1),
                      block, 0, k, args);
    else
        LAUNCH_FLOATS(type, (decoder_query<SKINNY_ROWS, element>),
                      skinny_grid(k->attention, k->batch, SKINNY_ROWS), block, 0, k, args);
    LAUNCH_FLOATS(type, decoder_attend<element>, cuda_size(k->batch), block, 0, k, args);
}

static void launch_choice(const struct decoder *k, enum dtype type, const struct kernel_args *args)
{
    struct cuda_grid block = cuda_size(BLOCK);
    if (k->batch < SKINNY_ROWS)
        LAUNCH_FLOATS(type, (decoder_logits<1, element>), skinny_grid(k->vocabulary, k->batch, 1),
                      block, 0, k, args);
    else
        LAUNCH_FLOATS(type, (decoder_logits<SKINNY_ROWS, element>),
                      skinny_grid(k->vocabulary, k->batch, SKINNY_ROWS), block, 0, k, args);
    LAUNCH_FLOATS(type, decoder_choose<element>, cuda_size(k->batch), block, 0, k, args);
}

static void launch(const struct kernel_state *state, const struct kernel_query *q,
                   const struct kernel_args *args)
{
    (void)state;
    struct decoder k;
    enum dtype type = q->in[DECODER_KEYS].dtype;
    read_query(q, &k);
    lay_out(&k, (char *)args->workspace);
    for (int i = 0; i < DECODER_INPUTS; i++)
        k.in[i] = args->in[i];
    k.words = output_wanted(q, 0) ? (int *)args->out[0] : NULL;
    k.scores = output_wanted(q, 1) ? args->out[1] : NULL;
    LAUNCH_FLOATS(type, decoder_start<element>, grid_for(q, (int64_t)k.layers * k.batch * k.hidden),
                  cuda_size(BLOCK), 0, &k, args);
    for (k.step = 0; k.step < k.steps; k.step++) {
        for (k.layer = 0; k.layer < k.layers; k.layer++) {
            launch_layer(&k, type, args);
            if (k.layer == 0)
                launch_query(&k, type, args);
        }
        launch_choice(&k, type, args);
    }
}

static const char *const ops[] = {"AttentionDecoder", NULL};

CUDA_KERNEL(decoder) = {CUDA_NAME(decoder), .ops = ops, .supports = supports,
                        .workspace = workspace, .launch = launch};
