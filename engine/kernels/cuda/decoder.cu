/* SPDX-License-Identifier: Apache-2.0
 *
 * AttentionDecoder. A step is a launch per LSTM layer (the cell is computed from the sums of its
 * gates), one each for the attention's query, the attention and the logits, and one for the choice
 * of a word, or two where a beam is followed (lib/beam.h). All steps are launched: which word is
 * the last one is not known on the host, and what has ended goes on with `end`. */
#include "engine/kernels/cuda/lib/beam.h"
#include "engine/kernels/cuda/lib/skinny.h"

enum { WARPS = BLOCK / WARP, GATES = 4, LAYERS_MAX = 64 };

struct decoder {
    const void *in[DECODER_INPUTS]; /* floats of one type */
    /* Workspace. h, c: [L, rows, H] before and after the step; out: what layers hand on. */
    float *h[2], *c[2], *out[2], *context, *query, *weights, *logits;
    struct beams beams;
    unsigned rows, source, hidden, attention, layers, vocabulary; /* rows: sentences times beam */
    unsigned step, layer, residual, row_warps;
    int start;
    float forget_bias;
    bool wide_lengths;
};

template <class element>
static __device__ __forceinline__ const element *input(const struct decoder &k, int which)
{
    return (const element *)k.in[which];
}

/* The row of the last step that this one goes on from. */
static __device__ __forceinline__ unsigned before(const struct decoder &k, unsigned row)
{
    return k.beams.beam > 1 ? (unsigned)k.beams.parent[row] : row;
}

/* ---- begin ---- */

template <class element>
__global__ void __launch_bounds__(BLOCK) decoder_start(const __grid_constant__ struct decoder k)
{
    unsigned step = gridDim.x * BLOCK, count = k.layers * k.rows * k.hidden;
    for (unsigned i = blockIdx.x * BLOCK + threadIdx.x; i < count; i += step) {
        /* Layers have a whole number of sentences, so that they need not be told apart. */
        unsigned from = i / k.hidden / k.beams.beam * k.hidden + i % k.hidden;
        k.h[0][i] = to_float(input<element>(k, DECODER_H)[from]);
        k.c[0][i] = to_float(input<element>(k, DECODER_C)[from]);
        if (i < k.rows * k.hidden)
            k.context[i] = 0;
        if (i >= k.rows)
            continue;
        k.beams.token[i] = k.start;
        k.beams.finished[i] = k.beams.length[i] = 0;
        k.beams.total[i] = beam_first_total(i, k.beams.beam);
        k.beams.parent[i] = (int)i;
    }
}

/* ---- LSTM layers ---- */

/* Of the first layer. */
template <class element>
static __device__ __forceinline__ const element *word_of(const struct decoder &k, unsigned row)
{
    return input<element>(k, DECODER_EMBEDDING) + (size_t)k.beams.token[row] * k.hidden;
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
    size_t at = (size_t)row * k.hidden + u, layer = (size_t)k.layer * k.rows * k.hidden;
    size_t old = layer + (size_t)before(k, row) * k.hidden + u, state = layer + at;
    float i = math_sigmoid(sum[0] + to_float(bias[0]));
    float g = tanhf(sum[1] + to_float(bias[k.hidden]));
    float forget = math_sigmoid(sum[2] + to_float(bias[2 * k.hidden]) + k.forget_bias);
    float o = math_sigmoid(sum[3] + to_float(bias[3 * k.hidden]));
    float c = forget * k.c[k.step & 1][old] + i * g, h = o * tanhf(c);
    k.c[~k.step & 1][state] = c;
    k.h[~k.step & 1][state] = h;
    float residual = k.layer < k.residual ? 0.0f
                     : k.layer            ? layer_input(k, row)[u]
                                          : to_float(word_of<element>(k, row)[u]);
    k.out[~k.layer & 1][at] = h + residual;
}

enum { PART_INPUT, PART_CONTEXT, PART_STATE, PARTS };

/* The context is the last step's for the first layer, and this one's for the others. */
template <int rows>
static __device__ __forceinline__ void left_rows(const struct decoder &k, unsigned part,
                                                 unsigned first, const float **left)
{
    const float *state = k.h[k.step & 1] + (size_t)k.layer * k.rows * k.hidden;
    for (int i = 0; i < rows; i++) {
        unsigned row = min(first + i, k.rows - 1), old = before(k, row);
        left[i] = part == PART_INPUT     ? layer_input(k, row)
                  : part == PART_CONTEXT ? k.context + (size_t)(k.layer ? row : old) * k.hidden
                                         : state + (size_t)old * k.hidden;
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
    bool is_there = u < k.hidden && p.row < k.rows;
    if (is_there && k.layer == 0) {
        const element *words[rows];
        for (int i = 0; i < rows; i++)
            words[i] = word_of<element>(k, min(p.row + i, k.rows - 1));
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
    for (unsigned i = 0; i < rows && p.row + i < k.rows; i++)
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
        left[i] = from + (size_t)min(p.row + i, k.rows - 1) * k.hidden;
    if (p.column < width && p.row < k.rows)
        skinny_add<1, rows>(p, left, right + p.column, width, 0, k.hidden, sums);
    if (!skinny_meet<1, rows>(p, sums) || p.column >= width)
        return;
    for (unsigned i = 0; i < rows && p.row + i < k.rows; i++)
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

/* ---- attention: a block per row ---- */

template <class element>
static __device__ __forceinline__ void score_words(const struct decoder &k, unsigned row,
                                                   unsigned length, float *weights)
{
    const element *v = input<element>(k, DECODER_SCORE), *shift = input<element>(k, DECODER_SHIFT);
    const float *query = k.query + (size_t)row * k.attention;
    for (unsigned t = threadIdx.x / WARP; t < length; t += WARPS) {
        const element *key = input<element>(k, DECODER_KEYS) +
                             ((size_t)row / k.beams.beam * k.source + t) * k.attention;
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
    unsigned row = blockIdx.x, sentence = row / k.beams.beam;
    int64_t given = index_at(k.in[DECODER_LENGTHS], k.wide_lengths, sentence);
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
    const element *memory =
        input<element>(k, DECODER_MEMORY) + (size_t)sentence * k.source * k.hidden;
    for (unsigned i = threadIdx.x; i < k.hidden; i += BLOCK) {
        float total = 0;
        for (unsigned t = 0; t < length; t++)
            total += weights[t] * to_float(memory[(size_t)t * k.hidden + i]);
        k.context[(size_t)row * k.hidden + i] = total / sum;
    }
}

/* ---- the next word of a beam of one: a block per sentence ---- */

template <class element>
static __device__ __forceinline__ void accept(const struct decoder &k, unsigned row, int best)
{
    const struct beams &b = k.beams;
    int word = b.finished[row] ? b.end : best;
    if (!b.finished[row])
        b.total[row] += (double)k.logits[(size_t)row * k.vocabulary + (unsigned)word];
    b.token[row] = word;
    b.finished[row] |= word == b.end;
    if (b.out)
        b.out[(size_t)row * b.steps + k.step] = word;
    if (b.scores)
        float_put((element *)b.scores + row, (float)b.total[row]);
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
    struct beams *b = &k->beams;
    b->beam = (unsigned)cuda_host->node_int(q->node, "beam", 1);
    b->rows = k->rows = (unsigned)keys[0] * b->beam;
    k->source = (unsigned)keys[1];
    k->attention = (unsigned)keys[2];
    k->layers = (unsigned)h[0];
    k->hidden = (unsigned)h[2];
    b->vocabulary = k->vocabulary = (unsigned)q->in[DECODER_OUTPUT].shape.dim[1];
    b->steps = (unsigned)cuda_host->node_int(q->node, "steps", 1);
    b->end = (int)cuda_host->node_int(q->node, "end", 2);
    b->penalty = (float)cuda_host->node_float(q->node, "length_penalty", 1);
    k->start = (int)cuda_host->node_int(q->node, "start", 1);
    k->forget_bias = (float)cuda_host->node_float(q->node, "forget_bias", 1);
    k->residual = (unsigned)cuda_host->node_int(q->node, "residual", h[0]);
    k->wide_lengths = q->in[DECODER_LENGTHS].dtype == DTYPE_I64;
    k->row_warps = skinny_row_warps(k->rows, k->rows < SKINNY_ROWS ? 1 : (unsigned)SKINNY_ROWS);
}

static enum status supports(const struct kernel_query *q, struct error *why)
{
    TRY(plain_supported(q, why));
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
    int64_t wide = (int64_t)k->rows * k->hidden, state = wide * k->layers;
    struct {
        float **to;
        int64_t count;
    } parts[] = {{&k->h[0], state},
                 {&k->h[1], state},
                 {&k->c[0], state},
                 {&k->c[1], state},
                 {&k->out[0], wide},
                 {&k->out[1], wide},
                 {&k->context, wide},
                 {&k->query, (int64_t)k->rows * k->attention},
                 {&k->weights, (int64_t)k->rows * k->source},
                 {&k->logits, (int64_t)k->rows * k->vocabulary}};
    size_t at = 0;
    for (int i = 0; i < ARRAY_COUNT(parts); i++) {
        *parts[i].to = (float *)(memory + at);
        at += padded_bytes(parts[i].count, sizeof(float));
    }
    k->beams.logits = k->logits;
    return at + beam_lay_out(&k->beams, memory + at);
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
    if (k->rows < SKINNY_ROWS)
        LAUNCH_FLOATS(type, (decoder_layer<1, element>), skinny_grid(k->hidden, k->rows, 1), block,
                      0, k, args);
    else
        LAUNCH_FLOATS(type, (decoder_layer<SKINNY_ROWS, element>),
                      skinny_grid(k->hidden, k->rows, SKINNY_ROWS), block, 0, k, args);
}

static void launch_query(const struct decoder *k, enum dtype type, const struct kernel_args *args)
{
    struct cuda_grid block = cuda_size(BLOCK);
    if (k->rows < SKINNY_ROWS)
        LAUNCH_FLOATS(type, (decoder_query<1, element>), skinny_grid(k->attention, k->rows, 1),
                      block, 0, k, args);
    else
        LAUNCH_FLOATS(type, (decoder_query<SKINNY_ROWS, element>),
                      skinny_grid(k->attention, k->rows, SKINNY_ROWS), block, 0, k, args);
    LAUNCH_FLOATS(type, decoder_attend<element>, cuda_size(k->rows), block, 0, k, args);
}

static void launch_choice(const struct decoder *k, enum dtype type, const struct kernel_args *args)
{
    struct cuda_grid block = cuda_size(BLOCK);
    if (k->rows < SKINNY_ROWS)
        LAUNCH_FLOATS(type, (decoder_logits<1, element>), skinny_grid(k->vocabulary, k->rows, 1),
                      block, 0, k, args);
    else
        LAUNCH_FLOATS(type, (decoder_logits<SKINNY_ROWS, element>),
                      skinny_grid(k->vocabulary, k->rows, SKINNY_ROWS), block, 0, k, args);
    if (k->beams.beam == 1) {
        LAUNCH_FLOATS(type, decoder_choose<element>, cuda_size(k->rows), block, 0, k, args);
        return;
    }
    struct beams b = k->beams;
    b.step = k->step;
    LAUNCH(beam_words, cuda_size(b.rows), block, 0, &b, args);
    LAUNCH(beam_pick, cuda_size(b.rows / b.beam), block, 0, &b, args);
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
    k.beams.out = output_wanted(q, 0) ? (int *)args->out[0] : NULL;
    k.beams.scores = output_wanted(q, 1) ? args->out[1] : NULL;
    LAUNCH_FLOATS(type, decoder_start<element>, grid_for(q, (int64_t)k.layers * k.rows * k.hidden),
                  cuda_size(BLOCK), 0, &k, args);
    for (k.step = 0; k.step < k.beams.steps; k.step++) {
        for (k.layer = 0; k.layer < k.layers; k.layer++) {
            launch_layer(&k, type, args);
            if (k.layer == 0)
                launch_query(&k, type, args);
        }
        launch_choice(&k, type, args);
    }
    if (k.beams.beam > 1)
        LAUNCH_FLOATS(type, beam_collect<element>,
                      cuda_size((unsigned)div_up(k.rows, (int)BLOCK)), cuda_size(BLOCK), 0,
                      &k.beams, args);
}

static const char *const ops[] = {"AttentionDecoder", NULL};

CUDA_KERNEL(decoder) = {CUDA_NAME(decoder), .ops = ops, .supports = supports,
                        .workspace = workspace, .launch = launch};
