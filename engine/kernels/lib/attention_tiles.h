/* SPDX-License-Identifier: Apache-2.0
 *
 * What kernels of Attention do with a tile of keys: rows become columns, which are multiplied by a
 * few queries; then the softmax of a line. Of bf16 a tile holds words of two elements where the CPU
 * multiplies those (AVX512-BF16), otherwise floats. `bf16` and `words` are constants wherever these
 * are inlined. */
#ifndef ENGINE_KERNELS_LIB_ATTENTION_TILES_H
#define ENGINE_KERNELS_LIB_ATTENTION_TILES_H

#include <math.h>

#include "base/numbers/integers.h"
#include "engine/kernels/lib/plain_floats.h"
#include "engine/kernels/lib/simd_math.h"
#include "engine/kernels/lib/simd_square.h"
#include "engine/ops/lib/attention.h"

enum { TILE_KEYS = 2 * VL };

#if defined(__AVX512F__)
#define has_word_dots cpu_has_bf16
#define dot_words     vf_dot_bf16
#define store_weights vf_store_bf16_one
#else
/* There are no words here: never called. */
#define has_word_dots()       false
#define dot_words(sum, a, b)  (sum)
#define store_weights(to, vf) vf_store_bf16(to, vf)
#endif

/* Rows must lie at whole words. */
static inline bool attention_has_words(const struct attention_shape *s, bool bf16)
{
    bool even = s->head_size % 2 == 0 && s->q_row % 2 == 0 && s->k_row % 2 == 0;
    return bf16 && even && has_word_dots();
}

/* ---- rows of a head as columns ---- */

struct head_rows {
    int64_t size;     /* elements of a head */
    int64_t depth;    /* floats or words of it */
    bool bf16, words; /* how they lie in memory, and in columns */
    float *wide;      /* bf16 that are not words: [VL][size] as floats, on their way */
};

/* Columns of words: their bits stay as they are. */
static void turn_words(const float *from, int64_t depth, struct turn turn, int64_t rows)
{
    for (int64_t at = 0; at < depth; at += VL) {
        float *to[VL];
        for (int64_t i = 0; i < VL; i++)
            to[i] = turn.to + (at + i) * turn.to_row;
        turn_columns(from + at, turn.from_row / 2, to, smaller(depth - at, VL), rows);
    }
}

/* Columns of the rows from element `at` on, VL at most; scale: of all but words. */
static void turn_head_rows(const struct head_rows *h, const void *from, int64_t at,
                           struct turn turn, int64_t rows, float scale)
{
    turn.from = float_at(from, at, h->bf16);
    if (h->words) {
        turn_words(turn.from, h->depth, turn, rows);
        return;
    }
    if (h->bf16) {
        for (int64_t r = 0; r < rows && r < VL; r++)
            floats_widen((const uint16_t *)from + at + r * turn.from_row, h->wide + r * h->size,
                         h->size);
        turn.from = h->wide;
        turn.from_row = h->size;
    }
    turn_rows(turn, rows, h->size, vf_set1(scale));
}

/* ---- products ---- */

/* sums[r] = sum over k of left[k left_step + r left_row] right[k][0 .. TILE_KEYS); rows and words
 * are constants. */
SIMD_INLINE void multiply_tile(const float *left, int64_t left_step, int64_t left_row,
                               const float *right, int64_t count, vf (*sums)[2], int rows,
                               bool words)
{
    for (int r = 0; r < rows; r++)
        sums[r][0] = sums[r][1] = vf_zero();
    for (int64_t k = 0; k < count; k++) {
        vf b0 = vf_load(right + k * TILE_KEYS), b1 = vf_load(right + k * TILE_KEYS + VL);
        for (int r = 0; r < rows; r++) {
            vf a = vf_set1(left[k * left_step + r * left_row]);
            sums[r][0] = words ? dot_words(sums[r][0], a, b0) : vf_fma(a, b0, sums[r][0]);
            sums[r][1] = words ? dot_words(sums[r][1], a, b1) : vf_fma(a, b1, sums[r][1]);
        }
    }
}

/* ---- softmax ---- */

/* Adds the mask (step 0: one value, 1: a row; NULL: none) to n scores, in a row that is padded to
 * whole vectors; returns the maximum. */
SIMD_INLINE float mask_scores(float *x, int64_t n, const void *mask, int64_t step, bool bf16)
{
    vf largest = vf_set1(-INFINITY), low = largest;
    vf all = mask && !step ? vf_set1(float_read(mask, 0, bf16)) : vf_zero();
    for (int64_t i = 0; i < n; i += VL) {
        vm lanes = vm_first(n - i);
        vf value = vf_load(x + i);
        if (mask) {
            value = vf_add(value, step ? vf_read_m(mask, i, lanes, bf16) : all);
            vf_store(x + i, value);
        }
        largest = vf_max(largest, vf_select(lanes, value, low));
    }
    return vf_max_of(largest);
}

/* Weights from element i on. Words: as bf16, which overtake no score that is still to be read. */
SIMD_INLINE void put_weights(float *x, int64_t i, vf weights, bool words)
{
    if (words)
        store_weights((uint16_t *)(void *)x + i, weights);
    else
        vf_store(x + i, weights);
}

/* x = e^(x - largest); returns the sum. Words: zeros follow, for the last one may be half empty. */
SIMD_INLINE float exp_scores(float *x, int64_t n, float largest, bool words)
{
    vf shift = vf_set1(largest), s0 = vf_zero(), s1 = vf_zero();
    int64_t i = 0;
    for (; i + 2 * VL <= n; i += 2 * VL) {
        vf e0 = vf_exp_fast(vf_sub(vf_load(x + i), shift));
        vf e1 = vf_exp_fast(vf_sub(vf_load(x + i + VL), shift));
        put_weights(x, i, e0, words);
        put_weights(x, i + VL, e1, words);
        s0 = vf_add(s0, e0);
        s1 = vf_add(s1, e1);
    }
    for (; i < n; i += VL) {
        vf e = vf_exp_fast(vf_sub(vf_load(x + i), shift));
        vf real = vf_select(vm_first(n - i), e, vf_zero());
        put_weights(x, i, words ? real : e, words);
        s0 = vf_add(s0, real);
    }
    return vf_sum(vf_add(s0, s1));
}

#endif
