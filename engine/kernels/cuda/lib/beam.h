/* SPDX-License-Identifier: Apache-2.0
 *
 * Beam search. The hypotheses of a sentence are `beam` rows beside each other, best first. After
 * a step a block per row finds the words with the largest logits, then a block per sentence takes
 * the best of all its rows; the rest of the decoder reads the states of row `parent`. Each step
 * notes word and parent, and going back from the last step gives the words of a hypothesis. What is
 * chosen is what decoder_offer (engine/decoder.h) chooses. */
#ifndef ENGINE_KERNELS_CUDA_LIB_BEAM_H
#define ENGINE_KERNELS_CUDA_LIB_BEAM_H

#include "engine/kernels/cuda/lib/math.h"
#include "engine/kernels/cuda/lib/ranking.h"

extern "C" {
#include "engine/decoder.h"
}

/* A row offers its beam + 1 best words, one of which may be `end`, and `end` itself. */
enum { BEAM_ROOM = 64, BEAM_OFFERS_MAX = DECODER_BEAM_MAX * (DECODER_BEAM_MAX + 2) };

struct beams {
    const float *logits;                     /* [rows, vocabulary] */
    double *total;                           /* per row: sum of log probabilities */
    float *base;                             /* per row: log of the sum of exp of its logits */
    int *length, *token, *finished, *parent; /* per row; length without `end` */
    int *best;                               /* [rows, beam + 1] */
    int *words, *parents;                    /* [steps, rows] */
    int *out;                                /* [rows, steps]; may be NULL */
    void *scores;                            /* [rows]; may be NULL */
    unsigned rows, beam, steps, vocabulary, step;
    int end;
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

__global__ void __launch_bounds__(BLOCK) beam_words(const __grid_constant__ struct beams b)
{
    __shared__ float part[WARP];
    __shared__ rank_key keys[BEAM_ROOM];
    __shared__ struct rank_memory memory;
    unsigned row = blockIdx.x, count = b.beam + 1;
    const float *logits = b.logits + (size_t)row * b.vocabulary;
    float most = -INFINITY, sum = 0;
    if (b.finished[row])
        return;
    for (unsigned w = threadIdx.x; w < b.vocabulary; w += BLOCK)
        most = fmaxf(most, logits[w]);
    most = block_max(most, part);
    for (unsigned w = threadIdx.x; w < b.vocabulary; w += BLOCK)
        sum += expf(logits[w] - most);
    sum = block_sum(sum, part);
    struct candidates c = {logits, DTYPE_F32, 1, b.vocabulary, true, false, false, 0.0f};
    unsigned found = rank_best(c, count, keys, BEAM_ROOM, &memory);
    for (unsigned i = threadIdx.x; i < found; i += BLOCK)
        b.best[row * count + i] = (int)place_of_key(c, keys[i]);
    if (threadIdx.x == 0)
        b.base[row] = most + logf(sum);
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

template <class element>
__global__ void __launch_bounds__(BLOCK) beam_collect(const __grid_constant__ struct beams b)
{
    unsigned row = blockIdx.x * BLOCK + threadIdx.x, from = row;
    if (row >= b.rows)
        return;
    if (b.scores)
        float_put((element *)b.scores + row,
                  (float)(b.total[row] / beam_divisor(b, b.length[row])));
    for (unsigned t = b.steps; t > 0 && b.out; t--) {
        size_t at = (size_t)(t - 1) * b.rows + from;
        b.out[(size_t)row * b.steps + t - 1] = b.words[at];
        from = (unsigned)b.parents[at];
    }
}

/* ---- host ---- */

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
    for (int k = 0; k < ARRAY_COUNT(parts); k++) {
        *parts[k].to = (int *)(memory + at);
        at += padded_bytes(parts[k].count, sizeof(int));
    }
    return at;
}

#endif
