/* SPDX-License-Identifier: Apache-2.0
 *
 * What kernels of Attention share: whether they multiply words of two bf16 (AVX512-BF16), and the
 * softmax of a row of scores. `bf16` and `words` are constants wherever these are inlined. */
#ifndef ENGINE_KERNELS_LIB_ATTENTION_SCORES_H
#define ENGINE_KERNELS_LIB_ATTENTION_SCORES_H

#include <math.h>

#include "engine/kernels/lib/plain_floats.h"
#include "engine/kernels/lib/simd_math.h"
#include "engine/ops/lib/attention.h"

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
