/* SPDX-License-Identifier: Apache-2.0
 *
 * AttentionDecoder. A step is a product and a launch for the cells per LSTM layer, a product each
 * for the attention's query and the logits (lib/decoder.h: tensor cores and CUDA cores are
 * variants), one launch for the attention, and two for the choice of a word, or three where a beam
 * is followed (lib/beam.h). All steps are launched: which word is the last one is not known on the
 * host, and what has ended goes on with `end`. */
#include "engine/kernels/cuda/lib/decoder_skinny.h"

enum { WARPS = BLOCK / WARP, LAYERS_MAX = 64, TENSOR_ROWS = 8 };

/* ---- begin ---- */

static __device__ __forceinline__ void clear_lines(const struct decoder &k,
                                                   const struct decoder_lines &l)
{
    unsigned step = gridDim.x * BLOCK, count = l.data ? k.lines * l.pitch : 0;
    for (unsigned i = blockIdx.x * BLOCK + threadIdx.x; i < count; i += step)
        group_store_as<1>(k.type, l.data, i, {{0.0f}});
}

__global__ void __launch_bounds__(BLOCK) decoder_start(const __grid_constant__ struct decoder k)
{
    KERNEL_BEGIN();
    unsigned step = gridDim.x * BLOCK, count = k.layers * k.rows * k.hidden;
    clear_lines(k, k.layers_left);
    clear_lines(k, k.query_left);
    clear_lines(k, k.logits_left);
    for (unsigned i = blockIdx.x * BLOCK + threadIdx.x; i < count; i += step) {
        /* Layers have a whole number of sentences, so that they need not be distinguished. */
        unsigned from = i / k.hidden / k.beams.beam * k.hidden + i % k.hidden;
        k.h[0][i] = input_at(k, DECODER_H, from);
        k.c[0][i] = input_at(k, DECODER_C, from);
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

/* What the first layer multiplies, as lines. */
__global__ void __launch_bounds__(BLOCK) decoder_words(const __grid_constant__ struct decoder k)
{
    KERNEL_BEGIN();
    unsigned step = gridDim.x * BLOCK, count = k.rows * k.hidden;
    const struct decoder_lines &l = k.layers_left;
    for (unsigned i = blockIdx.x * BLOCK + threadIdx.x; i < count; i += step) {
        unsigned row = i / k.hidden, u = i % k.hidden;
        size_t old = (size_t)before(k, row) * k.hidden + u;
        put_line(k, l, row, u, word_at(k, row, u));
        put_line(k, l, row, k.hidden + u, k.context[old]);
        put_line(k, l, row, 2 * k.hidden + u, k.h[k.step & 1][old]);
    }
}

/* A unit's lines for the products that come next; the attention brings the context. */
static __device__ __forceinline__ void hand_on(const struct decoder &k, unsigned row, unsigned u,
                                               float h, float out)
{
    if (k.layer == 0)
        put_line(k, k.query_left, row, u, h);
    if (k.layer + 1 == k.layers) {
        put_line(k, k.logits_left, row, u, out);
        return;
    }
    size_t old = ((size_t)(k.layer + 1) * k.rows + before(k, row)) * k.hidden + u;
    put_line(k, k.layers_left, row, u, out);
    put_line(k, k.layers_left, row, 2 * k.hidden + u, k.h[k.step & 1][old]);
}

static __device__ __forceinline__ void cell(const struct decoder &k, unsigned row, unsigned u,
                                            const float *sum)
{
    float bias[DECODER_GATES];
    for (unsigned g = 0; g < DECODER_GATES; g++)
        bias[g] = input_at(k, DECODER_BIAS, ((size_t)k.layer * DECODER_GATES + g) * k.hidden + u);
    size_t at = (size_t)row * k.hidden + u, layer = (size_t)k.layer * k.rows * k.hidden;
    size_t old = layer + (size_t)before(k, row) * k.hidden + u, state = layer + at;
    float i = vf_sigmoid(sum[0] + bias[0]);
    float g = tanhf(sum[1] + bias[1]);
    float forget = vf_sigmoid(sum[2] + bias[2] + k.forget_bias);
    float o = vf_sigmoid(sum[3] + bias[3]);
    float c = forget * k.c[k.step & 1][old] + i * g, h = o * tanhf(c);
    k.c[~k.step & 1][state] = c;
    k.h[~k.step & 1][state] = h;
    float residual = k.layer < k.residual ? 0.0f
                     : k.layer            ? layer_input(k, row)[u]
                                          : word_at(k, row, u);
    k.out[~k.layer & 1][at] = h + residual;
    if (k.layers_left.data)
        hand_on(k, row, u, h, h + residual);
}

__global__ void __launch_bounds__(BLOCK) decoder_cells(const __grid_constant__ struct decoder k)
{
    KERNEL_BEGIN();
    unsigned step = gridDim.x * BLOCK, count = k.rows * k.hidden;
    for (unsigned i = blockIdx.x * BLOCK + threadIdx.x; i < count; i += step) {
        unsigned row = i / k.hidden, u = i % k.hidden, width = DECODER_GATES * k.hidden;
        float sum[DECODER_GATES];
        for (int g = 0; g < DECODER_GATES; g++)
            sum[g] = sum_of_parts(k, k.layer_splits, width, row, g * k.hidden + u);
        cell(k, row, u, sum);
    }
}

/* ---- attention: a block per row ---- */

static __device__ __forceinline__ void add_query(const struct decoder &k, unsigned row)
{
    for (unsigned i = threadIdx.x; i < k.attention; i += BLOCK)
        k.query[(size_t)row * k.attention + i] =
            sum_of_parts(k, k.query_splits, k.attention, row, i);
    __syncthreads();
}

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

/* The memory's words by their weights, over the sum of these. */
template <class element>
static __device__ __forceinline__ void sum_words(const struct decoder &k, unsigned row,
                                                 unsigned length, const float *weights, float sum)
{
    const element *memory =
        input<element>(k, DECODER_MEMORY) + (size_t)(row / k.beams.beam) * k.source * k.hidden;
    for (unsigned i = threadIdx.x; i < k.hidden; i += BLOCK) {
        float total = 0;
        for (unsigned t = 0; t < length; t++)
            total += weights[t] * to_float(memory[(size_t)t * k.hidden + i]);
        k.context[(size_t)row * k.hidden + i] = total / sum;
        if (k.layers_left.data)
            put_line(k, k.layers_left, row, k.hidden + i, total / sum);
    }
}

__global__ void __launch_bounds__(BLOCK) decoder_attend(const __grid_constant__ struct decoder k)
{
    KERNEL_BEGIN();
    __shared__ float part[WARP];
    unsigned row = blockIdx.x, sentence = row / k.beams.beam;
    int64_t given = index_at(k.in[DECODER_LENGTHS], k.wide_lengths, sentence);
    unsigned length = given < 1 ? 1 : given > k.source ? k.source : (unsigned)given;
    float *weights = k.weights + (size_t)row * k.source, largest = -INFINITY, sum = 0;
    add_query(k, row);
    WITH_ELEMENT(k.type, 1, score_words<element>(k, row, length, weights));
    for (unsigned t = threadIdx.x; t < length; t += BLOCK)
        largest = fmaxf(largest, weights[t]);
    largest = block_max(largest, part);
    for (unsigned t = threadIdx.x; t < length; t += BLOCK) {
        weights[t] = expf(weights[t] - largest);
        sum += weights[t];
    }
    sum = block_sum(sum, part);
    WITH_ELEMENT(k.type, 1, sum_words<element>(k, row, length, weights, sum));
}

/* ---- the next word of a beam of one ---- */

/* The best word of a part of the vocabulary: blockIdx.x is the row, blockIdx.y the part. */
__global__ void __launch_bounds__(BLOCK) decoder_best(const __grid_constant__ struct beams b)
{
    KERNEL_BEGIN();
    __shared__ rank_key firsts[WARPS];
    unsigned warp = threadIdx.x / WARP;
    struct candidates c = beam_part(b);
    unsigned each = (c.count + WARPS - 1) / WARPS, from = min(warp * each, c.count);
    c.x = (const float *)c.x + from;
    c.count = min(each, c.count - from);
    rank_key best = rank_first(c);
    if (threadIdx.x % WARP == 0)
        firsts[warp] = best == rank_absent ? best : best + from;
    __syncthreads();
    if (threadIdx.x)
        return;
    for (int w = 0; w < WARPS; w++)
        best = firsts[w] < best ? firsts[w] : best;
    b.keys[blockIdx.x * b.parts + blockIdx.y] =
        best == rank_absent ? best : best + blockIdx.y * beam_part_words(b);
}

__global__ void __launch_bounds__(BLOCK) decoder_choose(const __grid_constant__ struct beams b)
{
    KERNEL_BEGIN();
    unsigned row = blockIdx.x * BLOCK + threadIdx.x;
    if (row >= b.rows)
        return;
    rank_key best = rank_absent;
    for (unsigned p = 0; p < b.parts; p++)
        best = min(best, b.keys[row * b.parts + p]);
    int word = b.finished[row] ? b.end : (int)(unsigned)best;
    if (!b.finished[row])
        b.total[row] += (double)b.logits[(size_t)row * b.vocabulary + (unsigned)word];
    b.token[row] = word;
    b.finished[row] |= word == b.end;
    if (b.out)
        b.out[(size_t)row * b.steps + b.step] = word;
    if (b.scores)
        group_store_as<1>(b.type, b.scores, row, {{(float)b.total[row]}});
}

/* ---- hooks ---- */

struct kernel_state {
    struct decoder k; /* pointers are left open */
    size_t workspace;
    enum dtype type;
    bool can_tensor, tensor;
    unsigned wanted;
    struct cuda_grid layers, all; /* over the states of all layers, or of one */
};

/* f32 weights are rounded to tf32. */
static bool can_tensor(const struct kernel_query *q)
{
    bool is_f32 = q->in[DECODER_KEYS].dtype == DTYPE_F32;
    return q->device->properties.major >= 8 && (!is_f32 || q->tf32);
}

static void read_lines(struct decoder *k, int size)
{
    unsigned group = DECODER_GROUP, chunk = (unsigned)MMA_CHUNK / (unsigned)size;
    struct decoder_lines *all[] = {&k->layers_left, &k->query_left, &k->logits_left};
    for (int i = 0; i < ARRAY_COUNT(all); i++) {
        all[i]->depth = (i ? 1 : PARTS) * k->hidden;
        all[i]->pitch = (all[i]->depth + chunk - 1) / chunk * chunk;
    }
    k->lines = (k->rows + group - 1) / group * group * 2;
}

/* How the products of layers and query are split, by the blocks that they have. */
static void read_splits(const struct kernel_query *q, bool tensor, struct decoder *k)
{
    unsigned gates = DECODER_GATES * k->hidden, many = SKINNY_ROWS;
    unsigned rows = k->rows < many ? 1 : many;
    struct cuda_grid layer = skinny_grid(k->hidden, k->rows, rows);
    struct cuda_grid query = skinny_grid(k->attention, k->rows, rows);
    if (tensor) {
        layer = decoder_tiles(gates, k->lines, 1);
        query = decoder_tiles(k->attention, k->lines, 1);
    }
    k->layer_splits = decoder_splits(q, (int64_t)layer.x * layer.y, (int64_t)PARTS * k->hidden);
    k->query_splits = decoder_splits(q, (int64_t)query.x * query.y, k->hidden);
}

static void read_query(const struct kernel_query *q, bool tensor, struct decoder *k)
{
    const int64_t *keys = q->in[DECODER_KEYS].shape.dim, *h = q->in[DECODER_H].shape.dim;
    struct beams *b = &k->beams;
    b->type = k->type = q->in[DECODER_KEYS].dtype;
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
    b->parts = beam_parts(b, q->device->properties.units);
    if (tensor)
        read_lines(k, element_bytes(q->in[DECODER_KEYS].dtype));
    read_splits(q, tensor, k);
}

static enum status check(const struct kernel_query *q, struct error *why)
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

/* Puts the parts of the workspace into k, lines of elements of `size` bytes; returns how long it
 * is. */
static size_t lay_out(struct decoder *k, size_t size, char *memory)
{
    int64_t wide = (int64_t)k->rows * k->hidden, state = wide * k->layers;
    int64_t gates = wide * DECODER_GATES * k->layer_splits;
    int64_t query = (int64_t)k->rows * k->attention * k->query_splits;
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
                 {&k->logits, (int64_t)k->rows * k->vocabulary},
                 {&k->parts, gates > query ? gates : query}};
    size_t at = 0;
    for (int i = 0; i < ARRAY_COUNT(parts); i++) {
        *parts[i].to = (float *)(memory + at);
        at += padded_bytes(parts[i].count, sizeof(float));
    }
    struct decoder_lines *lines[] = {&k->layers_left, &k->query_left, &k->logits_left};
    for (int i = 0; k->lines && i < ARRAY_COUNT(lines); i++) {
        lines[i]->data = memory + at;
        at += padded_bytes((int64_t)k->lines * lines[i]->pitch, size);
    }
    k->beams.logits = k->logits;
    return at + beam_lay_out(&k->beams, memory + at);
}

static enum status plan(const struct kernel_query *q, int variant, struct kernel_state *s,
                        struct error *why)
{
    TRY(check(q, why));
    s->type = q->in[DECODER_KEYS].dtype;
    int64_t rows = q->in[DECODER_KEYS].shape.dim[0] * cuda_host->node_int(q->node, "beam", 1);
    s->can_tensor = can_tensor(q);
    /* From TENSOR_ROWS on tensor cores are the first choice. */
    s->tensor = s->can_tensor && (variant == 0) == (rows >= TENSOR_ROWS);
    s->wanted = outputs_wanted(q);
    read_query(q, s->tensor, &s->k);
    s->workspace = lay_out(&s->k, (size_t)element_bytes(s->type), NULL);
    int64_t wide = (int64_t)s->k.rows * s->k.hidden;
    s->all = grid_for(q, wide);
    s->layers = grid_for(q, s->k.layers * wide);
    return STATUS_OK;
}

static int variants(const struct kernel_state *state)
{
    return state->can_tensor ? 2 : 1;
}

static void describe(const struct kernel_state *state, char *text, size_t size)
{
    snprintf(text, size, state->tensor ? "tensor cores" : "CUDA cores");
}

static size_t workspace(const struct kernel_state *state)
{
    return state->workspace;
}

/* As many rows per block as there are. */
#define LAUNCH_SKINNY(kernel, width, splits)                                                       \
    do {                                                                                           \
        if (k->rows < SKINNY_ROWS)                                                                 \
            LAUNCH_FLOATS(type, (kernel<1, element>), skinny_grid(width, k->rows, 1, splits),      \
                          cuda_size(BLOCK), 0, k, args);                                           \
        else                                                                                       \
            LAUNCH_FLOATS(type, (kernel<SKINNY_ROWS, element>),                                    \
                          skinny_grid(width, k->rows, SKINNY_ROWS, splits), cuda_size(BLOCK), 0,   \
                          k, args);                                                                \
    } while (0)

static void launch_layer(const struct decoder *k, struct cuda_grid all, enum dtype type,
                         const struct kernel_args *args)
{
    unsigned gates = DECODER_GATES * k->hidden;
    size_t weights = (size_t)PARTS * k->hidden * gates * (size_t)element_bytes(type);
    if (k->lines)
        launch_tensor(k, &k->layers_left, (const char *)k->in[DECODER_WEIGHTS] + k->layer * weights,
                      k->parts, gates, k->layer_splits, type, args);
    else
        LAUNCH_SKINNY(decoder_layer, k->hidden, k->layer_splits);
    LAUNCH(decoder_cells, all, cuda_size(BLOCK), 0, k, args);
}

static void launch_attention(const struct decoder *k, enum dtype type,
                             const struct kernel_args *args)
{
    if (k->lines)
        launch_tensor(k, &k->query_left, k->in[DECODER_QUERY], k->parts, k->attention,
                      k->query_splits, type, args);
    else
        LAUNCH_SKINNY(decoder_query, k->attention, k->query_splits);
    LAUNCH(decoder_attend, cuda_size(k->rows), cuda_size(BLOCK), 0, k, args);
}

static void launch_choice(const struct decoder *k, enum dtype type, const struct kernel_args *args)
{
    struct cuda_grid block = cuda_size(BLOCK);
    struct beams b = k->beams;
    b.step = k->step;
    if (k->lines)
        launch_tensor(k, &k->logits_left, k->in[DECODER_OUTPUT], k->logits, k->vocabulary, 1, type,
                      args);
    else
        LAUNCH_SKINNY(decoder_logits, k->vocabulary, 1);
    if (b.beam == 1) {
        LAUNCH(decoder_best, cuda_size(b.rows, b.parts), block, 0, &b, args);
        LAUNCH(decoder_choose, cuda_size((unsigned)div_up(b.rows, BLOCK)), block, 0, &b, args);
        return;
    }
    LAUNCH(beam_words, cuda_size(b.rows, b.parts), block, 0, &b, args);
    LAUNCH(beam_merge, cuda_size(b.rows), block, 0, &b, args);
    LAUNCH(beam_pick, cuda_size(b.rows / b.beam), block, 0, &b, args);
}

static void launch_step(struct decoder *k, struct cuda_grid all, enum dtype type,
                        const struct kernel_args *args)
{
    k->layer = 0;
    if (k->lines)
        LAUNCH(decoder_words, all, cuda_size(BLOCK), 0, k, args);
    for (; k->layer < k->layers; k->layer++) {
        launch_layer(k, all, type, args);
        if (k->layer == 0)
            launch_attention(k, type, args);
    }
    launch_choice(k, type, args);
}

static void launch(const struct kernel_state *state, const struct kernel_args *args)
{
    struct decoder k = state->k;
    enum dtype type = state->type;
    lay_out(&k, (size_t)element_bytes(type), (char *)args->workspace);
    for (int i = 0; i < DECODER_INPUTS; i++)
        k.in[i] = args->in[i];
    k.beams.out = (int *)output_of(args, state->wanted, 0);
    k.beams.scores = output_of(args, state->wanted, 1);
    LAUNCH(decoder_start, state->layers, cuda_size(BLOCK), 0, &k, args);
    for (k.step = 0; k.step < k.beams.steps; k.step++)
        launch_step(&k, state->all, type, args);
    if (k.beams.beam > 1)
        LAUNCH(beam_collect, cuda_size((unsigned)div_up(k.rows, (int)BLOCK)), cuda_size(BLOCK), 0,
               &k.beams, args);
}

static const char *const ops[] = {"AttentionDecoder", NULL};

CUDA_KERNEL(decoder) = {CUDA_NAME(decoder),  .ops = ops,          CUDA_PLAN,
                        CUDA_HOOK(variants), CUDA_HOOK(describe), CUDA_HOOK(workspace),
                        CUDA_HOOK(launch)};
