/* SPDX-License-Identifier: Apache-2.0
 * A row of logits: its largest entries, and the logarithm of its sum of exponentials. */
#ifndef ENGINE_KERNELS_LIB_BEST_WORDS_H
#define ENGINE_KERNELS_LIB_BEST_WORDS_H

#include "engine/kernels/lib/simd_math.h"

struct candidate {
    double gain;
    int32_t token;
};

SIMD_INLINE double sum_of_exp(const float *x, int64_t count, float top)
{
    vf sum = vf_zero();
    for (int64_t k = 0; k < count; k += VL) {
        vm lanes = vm_first(count - k);
        vf part = vf_exp_fast(vf_sub(vf_load_m(x + k, lanes), vf_set1(top)));
        sum = vf_add(sum, vf_select(lanes, part, vf_zero()));
    }
    return (double)vf_sum(sum);
}

/* log of the sum of exp over a row; short sums in float, theirs in double. */
SIMD_INLINE double log_sum(const float *x, int64_t count)
{
    enum { PART = 64 * VL };
    vf high = vf_set1(-INFINITY);
    double sum = 0;
    for (int64_t k = 0; k < count; k += VL) {
        vm lanes = vm_first(count - k);
        high = vf_max(high, vf_select(lanes, vf_load_m(x + k, lanes), high));
    }
    float top = vf_max_of(high);
    for (int64_t k = 0; k < count; k += PART)
        sum += sum_of_exp(x + k, count - k < PART ? count - k : PART, top);
    return (double)top + log(sum);
}

/* Keeps the `limit` largest in descending order, equal ones as they came. */
SIMD_INLINE int insert(struct candidate *best, int count, int64_t limit, struct candidate new)
{
    int at = count < limit ? count : count - 1;
    for (; at > 0 && new.gain > best[at - 1].gain; at--)
        best[at] = best[at - 1];
    best[at] = new;
    return count < limit ? count + 1 : count;
}

/* The `beam` words with the largest logits; whole vectors below all of them are passed over. */
SIMD_INLINE int largest(const float *x, int64_t count, int64_t limit, struct candidate *best)
{
    int found = 0;
    for (int64_t k = 0; k < count; k += VL) {
        vf bar = vf_set1(found < limit ? -INFINITY : (float)best[found - 1].gain);
        vm lanes = vm_first(count - k);
        vf part = vf_select(lanes, vf_load_m(x + k, lanes), vf_set1(-INFINITY));
        if (found == limit && !vm_bits(vf_lt(bar, part)))
            continue;
        for (int64_t w = k; w < k + VL && w < count; w++)
            if (found < limit || (double)x[w] > best[found - 1].gain)
                found = insert(best, found, limit, (struct candidate){(double)x[w], (int32_t)w});
    }
    return found;
}

#endif
