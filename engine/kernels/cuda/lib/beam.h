/* SPDX-License-Identifier: Apache-2.0
 *
 * Beam search. The hypotheses of a sentence are `beam` rows beside each other, best first. After
 * a step blocks find the words with the largest logits in parts of the vocabulary, a block per row
 * merges these, and a block per sentence takes the best of all its rows; the rest of the decoder
 * reads the states of row `parent`. Each step notes word and parent, and going back from the last
 * step gives the words of a hypothesis. What is chosen is what decoder_offer
 * (engine/ops/lib/decoder.h) chooses. */
#ifndef ENGINE_KERNELS_CUDA_LIB_BEAM_H
#define ENGINE_KERNELS_CUDA_LIB_BEAM_H

#include "engine/kernels/cuda/lib/math.h"
#include "engine/kernels/cuda/lib/ranking.h"

extern "C" {
#include "engine/ops/lib/decoder.h"
}

/* A row offers its beam + 1 best words, one of which may be `end`, and `end` itself. */
enum {
    BEAM_ROOM = 64,
    BEAM_OFFERS_MAX = DECODER_BEAM_MAX * (DECODER_BEAM_MAX + 2),
    BEAM_PARTS_MAX = 16,   /* of the vocabulary */
    BEAM_PART_WORDS = 512, /* at least */
    BEAM_KEYS = 1024,      /* a power of two, for what all parts of a row offer */
};

struct beams {
    const float *logits;   /* [rows, vocabulary] */
    double *total;         /* per row: sum of log probabilities */
    float *base;           /* per row: log of the sum of exp of its logits */
    rank_key *keys;        /* [rows, parts, beam + 1]; greedy: [rows, parts] */
    float *largest, *sums; /* [rows, parts]: largest logit; sum of exp of the logits less that */
    int *length, *token, *finished, *parent;             /* per row; length without `end` */
    int *best;                                           /* [rows, beam + 1] */
    int *words, *parents;                                /* [steps, rows] */
    int *out;                                            /* [rows, steps]; may be NULL */
    void *scores;                                        /* [rows]; may be NULL */
    unsigned rows, beam, steps, vocabulary, step, parts; /* parts: of the vocabulary */
    int end, type;                                       /* type: of scores */
    float penalty;
};

/* Rows that begin with it are not followed: all of a sentence begin alike. */
static __device__ __forceinline__ double beam_first_total(unsigned row, unsigned beam)
{
    return row % beam ? -1e9 : 0.0;
}

static __device__ __forceinline__ double beam_divisor(const struct beams &b, int length)
{
    return (double)powf((5.0f + (float)length) / 6.0f, b.penalty);
}

/* ---- parts of the vocabulary: blockIdx.x is the row, blockIdx.y the part ---- */

static __device__ __forceinline__ unsigned beam_part_words(const struct beams &b)
{
    return (b.vocabulary + b.parts - 1) / b.parts;
}

static __device__ __forceinline__ struct candidates beam_part(const struct beams &b)
{
    unsigned each = beam_part_words(b), from = min(blockIdx.y * each, b.vocabulary);
    const float *logits = b.logits + (size_t)blockIdx.x * b.vocabulary + from;
    return {logits, DTYPE_F32, 1, min(each, b.vocabulary - from), true, false, false, 0.0f};
}

/* Keys name words of the whole vocabulary. */
__global__ void __launch_bounds__(BLOCK) beam_words(const __grid_constant__ struct beams b)
{
    KERNEL_BEGIN();
    __shared__ float part[WARP];
    __shared__ rank_key keys[BEAM_ROOM];
    __shared__ struct rank_memory memory;
    unsigned count = b.beam + 1, at = blockIdx.x * b.parts + blockIdx.y;
    struct candidates c = beam_part(b);
    const float *logits = (const float *)c.x;
    float largest = -INFINITY, sum = 0;
    if (b.finished[blockIdx.x])
        return;
    for (unsigned w = threadIdx.x; w < c.count; w += BLOCK)
        largest = fmaxf(largest, logits[w]);
    largest = block_max(largest, part);
    for (unsigned w = threadIdx.x; w < c.count; w += BLOCK)
        sum += expf(logits[w] - largest);
    sum = block_sum(sum, part);
    unsigned found = rank_best(c, count, keys, BEAM_ROOM, &memory);
    for (unsigned i = threadIdx.x; i < count; i += BLOCK)
        b.keys[(size_t)at * count + i] =
            i < found ? keys[i] + blockIdx.y * beam_part_words(b) : rank_absent;
    if (threadIdx.x == 0) {
        b.largest[at] = largest;
        b.sums[at] = sum;
    }
}

/* What the parts of a row have found. */
__global__ void __launch_bounds__(BLOCK) beam_merge(const __grid_constant__ struct beams b)
{
    KERNEL_BEGIN();
    __shared__ rank_key keys[BEAM_KEYS];
    unsigned row = blockIdx.x, count = b.beam + 1, all = b.parts * count, size = 1;
    if (b.finished[row])
        return;
    while (size < all)
        size *= 2;
    for (unsigned i = threadIdx.x; i < size; i += BLOCK)
        keys[i] = i < all ? b.keys[(size_t)row * all + i] : rank_absent;
    rank_sort(keys, size);
    for (unsigned i = threadIdx.x; i < count; i += BLOCK)
        if (keys[i] != rank_absent)
            b.best[row * count + i] = (int)(unsigned)keys[i];
    if (threadIdx.x)
        return;
    float largest = -INFINITY, sum = 0;
    for (unsigned p = 0; p < b.parts; p++)
        largest = fmaxf(largest, b.largest[row * b.parts + p]);
    for (unsigned p = 0; p < b.parts; p++)
        sum += b.sums[row * b.parts + p] * expf(b.largest[row * b.parts + p] - largest);
    b.base[row] = largest + logf(sum);
}

/* A way of going on: -INFINITY where there is none. */
struct beam_offer {
    double total, score;
    int row, word, length, finished;
};

static __device__ __forceinline__ struct beam_offer beam_offer_at(const struct beams &b, unsigned i)
{
    unsigned each = b.beam + 2, row = blockIdx.x * b.beam + i / each, at = i % each;
    int finished = b.finished[row];
    struct beam_offer o = {-INFINITY, -INFINITY, (int)row, b.end, b.length[row], 1};
    if (at + 1 < each) {
        if (finished || b.best[row * (b.beam + 1) + at] == b.end)
            return o;
        o.word = b.best[row * (b.beam + 1) + at];
        o.length++;
        o.finished = 0;
    }
    o.total = b.total[row];
    if (!finished)
        o.total +=
            (double)b.logits[(size_t)row * b.vocabulary + (unsigned)o.word] - (double)b.base[row];
    o.score = o.total / beam_divisor(b, o.length);
    return o;
}

__global__ void __launch_bounds__(BLOCK) beam_pick(const __grid_constant__ struct beams b)
{
    KERNEL_BEGIN();
    __shared__ double scores[BEAM_OFFERS_MAX];
    __shared__ int places[BEAM_OFFERS_MAX]; /* of equal scores the lower row, then the lower word */
    __shared__ unsigned picks[DECODER_BEAM_MAX];
    unsigned count = b.beam * (b.beam + 2), row = blockIdx.x * b.beam + threadIdx.x;
    if (threadIdx.x < b.beam)
        picks[threadIdx.x] = 0; /* scores that are NaN have no order */
    for (unsigned i = threadIdx.x; i < count; i += BLOCK) {
        struct beam_offer o = beam_offer_at(b, i);
        scores[i] = o.score;
        places[i] = o.word;
    }
    __syncthreads();
    for (unsigned i = threadIdx.x; i < count; i += BLOCK) {
        unsigned before = 0, mine = i / (b.beam + 2);
        for (unsigned j = 0; j < count; j++) {
            unsigned other = j / (b.beam + 2);
            bool first =
                other < mine ||
                (other == mine && (places[j] < places[i] || (places[j] == places[i] && j < i)));
            before += scores[j] > scores[i] || (scores[j] == scores[i] && first);
        }
        if (before < b.beam)
            picks[before] = i;
    }
    __syncthreads();
    struct beam_offer o = {};
    if (threadIdx.x < b.beam)
        o = beam_offer_at(b, picks[threadIdx.x]);
    __syncthreads(); /* all have read what the rows were */
    if (threadIdx.x >= b.beam)
        return;
    b.total[row] = o.total;
    b.length[row] = o.length;
    b.token[row] = b.words[(size_t)b.step * b.rows + row] = o.word;
    b.parent[row] = b.parents[(size_t)b.step * b.rows + row] = o.row;
    b.finished[row] = o.finished;
}

__global__ void __launch_bounds__(BLOCK) beam_collect(const __grid_constant__ struct beams b)
{
    KERNEL_BEGIN();
    unsigned row = blockIdx.x * BLOCK + threadIdx.x, from = row;
    if (row >= b.rows)
        return;
    if (b.scores)
        group_store_as<1>(b.type, b.scores, row,
                          {{(float)(b.total[row] / beam_divisor(b, b.length[row]))}});
    for (unsigned t = b.steps; t > 0 && b.out; t--) {
        size_t at = (size_t)(t - 1) * b.rows + from;
        b.out[(size_t)row * b.steps + t - 1] = b.words[at];
        from = (unsigned)b.parents[at];
    }
}

/* ---- host ---- */

/* Enough blocks for all multiprocessors, but words enough for each. */
static inline unsigned beam_parts(const struct beams *b, int units)
{
    int64_t wanted = div_up(4 * (int64_t)units, b->rows);
    int64_t limit = div_up(b->vocabulary, BEAM_PART_WORDS);
    limit = limit < BEAM_PARTS_MAX ? limit : (int64_t)BEAM_PARTS_MAX;
    wanted = wanted < limit ? wanted : limit;
    return wanted < 1 ? 1 : (unsigned)wanted;
}

/* Puts the arrays into b, which has its sizes; returns how long they are. */
static inline size_t beam_lay_out(struct beams *b, char *memory)
{
    int64_t rows = b->rows, noted = rows * b->steps;
    const struct {
        int **to;
        int64_t count;
    } parts[] = {{&b->length, rows},
                 {&b->token, rows},
                 {&b->finished, rows},
                 {&b->parent, rows},
                 {&b->words, noted},
                 {&b->parents, noted},
                 {&b->best, rows * (b->beam + 1)}};
    size_t at = padded_bytes(rows, sizeof(*b->total));
    b->total = (double *)memory;
    b->base = (float *)(memory + at);
    at += padded_bytes(rows, sizeof(*b->base));
    b->keys = (rank_key *)(memory + at);
    at += padded_bytes(rows * b->parts * (b->beam + 1), sizeof(*b->keys));
    b->largest = (float *)(memory + at);
    at += padded_bytes(rows * b->parts, sizeof(*b->largest));
    b->sums = (float *)(memory + at);
    at += padded_bytes(rows * b->parts, sizeof(*b->sums));
    for (int k = 0; k < ARRAY_COUNT(parts); k++) {
        *parts[k].to = (int *)(memory + at);
        at += padded_bytes(parts[k].count, sizeof(int));
    }
    return at;
}

#endif
