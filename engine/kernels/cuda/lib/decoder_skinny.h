/* SPDX-License-Identifier: Apache-2.0
 *
 * Parts of the decoder's products on CUDA cores, for f32 and for few rows (lib/skinny.h). */
#ifndef ENGINE_KERNELS_CUDA_LIB_DECODER_SKINNY_H
#define ENGINE_KERNELS_CUDA_LIB_DECODER_SKINNY_H

#include "engine/kernels/cuda/lib/decoder.h"
#include "engine/kernels/cuda/lib/skinny.h"

/* ---- layers: input, context and state times their weights ---- */

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

/* Depth `first` to `end`: part number `number` of a product. */
struct decoder_range {
    unsigned first, end, number;
};

static __device__ __forceinline__ struct decoder_range range_of(unsigned depth, unsigned splits)
{
    unsigned number = splits > 1 ? blockIdx.z : 0, each = (depth + splits - 1) / splits;
    unsigned first = min(number * each, depth);
    return {first, min(first + each, depth), number};
}

template <int rows, class left_element, class element>
static __device__ __forceinline__ void
add_range(const struct skinny_place &p, const struct decoder_range &r, const left_element **left,
          const element *weights, unsigned width, unsigned band,
          struct skinny_sums<DECODER_GATES, rows> &sums)
{
    if (r.first >= r.end)
        return;
    for (int i = 0; i < rows; i++)
        left[i] += r.first;
    skinny_add<DECODER_GATES, rows>(p, left, weights + (size_t)r.first * width, width, band,
                                    r.end - r.first, sums);
}

template <int rows, class element>
__global__ void __launch_bounds__(BLOCK) decoder_layer(const __grid_constant__ struct decoder k)
{
    KERNEL_BEGIN();
    struct skinny_sums<DECODER_GATES, rows> sums = {
    };
    struct skinny_place p = skinny_place_of(k.row_warps, rows);
    unsigned u = p.column, hidden = k.hidden, width = DECODER_GATES * hidden;
    struct decoder_range all = range_of(PARTS * hidden, k.layer_splits);
    const element *weights =
        input<element>(k, DECODER_WEIGHTS) + (size_t)k.layer * PARTS * hidden * width + u;
    for (unsigned part = 0; part < PARTS && u < hidden && p.row < k.rows; part++) {
        unsigned from = part * hidden;
        struct decoder_range r = {max(all.first, from) - from,
                                  max(min(all.end, from + hidden), from) - from, all.number};
        const element *of_part = weights + (size_t)from * width;
        if (part == PART_INPUT && k.layer == 0) {
            const element *words[rows];
            for (int i = 0; i < rows; i++)
                words[i] = word_of<element>(k, min(p.row + i, k.rows - 1));
            add_range<rows>(p, r, words, of_part, width, hidden, sums);
        } else {
            const float *left[rows];
            left_rows<rows>(k, part, p.row, left);
            add_range<rows>(p, r, left, of_part, width, hidden, sums);
        }
    }
    if (!skinny_meet<DECODER_GATES, rows>(p, sums) || u >= hidden)
        return;
    for (unsigned i = 0; i < rows && p.row + i < k.rows; i++)
        for (int g = 0; g < DECODER_GATES; g++)
            k.parts[((size_t)blockIdx.z * k.rows + p.row + i) * width + g * hidden + u] =
                sums.v[i][g];
}

/* The query from the first layer's state, logits from what the last layer hands on. */
template <int rows, class element>
static __device__ __forceinline__ void product(const struct decoder &k, const float *from,
                                               const element *right, float *to, unsigned width,
                                               unsigned splits)
{
    struct skinny_sums<1, rows> sums = {
    };
    struct skinny_place p = skinny_place_of(k.row_warps, rows);
    struct decoder_range r = range_of(k.hidden, splits);
    const float *left[rows];
    for (int i = 0; i < rows; i++)
        left[i] = from + (size_t)min(p.row + i, k.rows - 1) * k.hidden + r.first;
    if (p.column < width && p.row < k.rows)
        skinny_add<1, rows>(p, left, right + p.column + (size_t)r.first * width, width, 0,
                            r.end - r.first, sums);
    if (!skinny_meet<1, rows>(p, sums) || p.column >= width)
        return;
    for (unsigned i = 0; i < rows && p.row + i < k.rows; i++)
        to[((size_t)r.number * k.rows + p.row + i) * width + p.column] = sums.v[i][0];
}

template <int rows, class element>
__global__ void __launch_bounds__(BLOCK) decoder_query(const __grid_constant__ struct decoder k)
{
    KERNEL_BEGIN();
    product<rows>(k, k.h[~k.step & 1], input<element>(k, DECODER_QUERY), k.parts, k.attention,
                  k.query_splits);
}

template <int rows, class element>
__global__ void __launch_bounds__(BLOCK) decoder_logits(const __grid_constant__ struct decoder k)
{
    KERNEL_BEGIN();
    product<rows>(k, k.out[k.layers & 1], input<element>(k, DECODER_OUTPUT), k.logits, k.vocabulary,
                  1);
}

#endif
