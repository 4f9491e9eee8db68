/* SPDX-License-Identifier: Apache-2.0
 *
 * AttentionDecoder: what a launch knows, and the products of a step. A product is split along its
 * depth over enough blocks that all of the device reads weights; each part of the sums has a place
 * of its own, and who needs the sums adds the parts in their order.
 *
 * On tensor cores (lib/mma_tile.h) the left factors are lines in the type of the weights. States
 * keep what rounding takes from them: of each eight rows the rounded numbers are eight lines, the
 * rests the next eight. A lane has both sums of a row and adds them; weights are read once, and
 * where rows are few the second product costs nothing that they do not hide. */
#ifndef ENGINE_KERNELS_CUDA_LIB_DECODER_H
#define ENGINE_KERNELS_CUDA_LIB_DECODER_H

#include "engine/kernels/cuda/lib/beam.h"
#include "engine/kernels/cuda/lib/mma_tile.h"
#include "engine/kernels/cuda/lib/skinny.h"

enum {
    DECODER_GATES = 4,
    DECODER_EACH = 2,        /* of a tile: 64 results a side */
    DECODER_GROUP = 8,       /* rows whose lines are beside each other */
    DECODER_DEPTH_MIN = 32,  /* of a part of a product */
    DECODER_SPLITS_MAX = 16, /* parts of a product */
    DECODER_BLOCKS = 4,      /* per multiprocessor that a product should have */
};

/* Lines of a left factor for tensor cores, `pitch` elements apart. */
struct decoder_lines {
    void *data;
    unsigned depth, pitch;
};

struct decoder {
    const void *in[DECODER_INPUTS]; /* floats of one type */
    /* Workspace. h, c: [L, rows, H] before and after the step; out: what layers hand on; parts:
     * [splits, rows, columns] of the product before. */
    float *h[2], *c[2], *out[2], *context, *query, *weights, *logits, *parts;
    struct decoder_lines layers_left, query_left, logits_left; /* of a layer; data NULL: unused */
    struct beams beams;
    unsigned rows, source, hidden, attention, layers, vocabulary; /* rows: sentences times beam */
    unsigned step, layer, residual, row_warps, lines; /* lines: of a left factor */
    unsigned layer_splits, query_splits;
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

/* The input of the first layer. */
template <class element>
static __device__ __forceinline__ const element *word_of(const struct decoder &k, unsigned row)
{
    return input<element>(k, DECODER_EMBEDDING) + (size_t)k.beams.token[row] * k.hidden;
}

/* That of the others. */
static __device__ __forceinline__ const float *layer_input(const struct decoder &k, unsigned row)
{
    return k.out[k.layer & 1] + (size_t)row * k.hidden;
}

/* Sum of a product's parts. */
static __device__ __forceinline__ float sum_of_parts(const struct decoder &k, unsigned splits,
                                                     unsigned width, unsigned row, unsigned column)
{
    const float *part = k.parts + (size_t)row * width + column;
    float sum = 0;
    for (unsigned s = 0; s < splits; s++)
        sum += part[(size_t)s * k.rows * width];
    return sum;
}

/* ---- lines ---- */

/* What tensor cores keep of a number of such a type. */
static __device__ __forceinline__ void put_rounded(float *y, float x)
{
    *y = __int_as_float((int)((unsigned)__float_as_int(x) & 0xffffe000u));
}

template <class element> static __device__ __forceinline__ void put_rounded(element *y, float x)
{
    float_put(y, x);
}

template <class element>
static __device__ __forceinline__ void put_line(const struct decoder_lines &l, element *data,
                                                unsigned row, unsigned at, float x)
{
    unsigned group = DECODER_GROUP, line = row / group * 2 * group + row % group;
    element *to = data + (size_t)line * l.pitch + at, rounded;
    put_rounded(&rounded, x);
    *to = rounded;
    float_put(to + (size_t)group * l.pitch, x - to_float(rounded));
}

/* ---- a part of a product on tensor cores ---- */

struct decoder_product {
    const void *left, *right;
    float *parts;
    unsigned lines, rows, depth, pitch, width;
    unsigned stages; /* of the depth, per part */
    unsigned piece;  /* of the right factor's lines */
};

template <class element>
__global__ void __launch_bounds__(BLOCK)
    decoder_tensor(const __grid_constant__ struct decoder_product k)
{
    const int each = DECODER_EACH;
    __shared__ struct mma_stage<each> stages[MMA_STAGES];
    const unsigned per_stage = MMA_LINE_BYTES / sizeof(element);
    struct mma_block<element, true, each> b = {
        {(const element *)k.left, k.pitch, k.lines, k.depth, MMA_CHUNK},
        {(const element *)k.right, k.width, k.depth, k.width, k.piece},
        blockIdx.y * MMA_SIDE * each,
        blockIdx.x * MMA_SIDE * each};
    float sums[each][each][4] = {};
    unsigned first = blockIdx.z * k.stages, count = (k.depth + per_stage - 1) / per_stage;
    float *to = k.parts + (size_t)blockIdx.z * k.rows * k.width;
    mma_product(b, first, min(first + k.stages, count), stages, sums);
#pragma unroll
    for (int i = 0; i < each; i++)
#pragma unroll
        for (int j = 0; j < each; j++)
#pragma unroll
            for (int n = 0; n < 2; n++) {
                unsigned line = mma_result_row<each>(i, 0), group = DECODER_GROUP;
                unsigned row = line / (2 * group) * group + line % group;
                unsigned column = mma_result_column<each>(j) + n;
                if (row < k.rows && column < k.width)
                    to[(size_t)row * k.width + column] = sums[i][j][n] + sums[i][j][n + 2];
            }
}

/* ---- a part of a product on CUDA cores: input, context and state times their weights ---- */

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
    product<rows>(k, k.h[~k.step & 1], input<element>(k, DECODER_QUERY), k.parts, k.attention,
                  k.query_splits);
}

template <int rows, class element>
__global__ void __launch_bounds__(BLOCK) decoder_logits(const __grid_constant__ struct decoder k)
{
    product<rows>(k, k.out[k.layers & 1], input<element>(k, DECODER_OUTPUT), k.logits,
                  k.vocabulary, 1);
}

/* ---- host ---- */

/* Parts of a product of so many blocks. */
static inline unsigned decoder_splits(const struct kernel_query *q, int64_t blocks, int64_t depth)
{
    int64_t wanted = DECODER_BLOCKS * (int64_t)q->device->properties.units / blocks;
    int64_t most = depth / DECODER_DEPTH_MIN;
    most = most < DECODER_SPLITS_MAX ? most : (int64_t)DECODER_SPLITS_MAX;
    wanted = wanted < most ? wanted : most;
    return wanted < 1 ? 1 : (unsigned)wanted;
}

static inline struct cuda_grid decoder_tiles(int64_t width, int64_t lines, unsigned splits)
{
    const int64_t side = (int64_t)MMA_SIDE * DECODER_EACH;
    return cuda_size((unsigned)div_up(width, side), (unsigned)div_up(lines, side), splits);
}

static inline void launch_tensor(const struct decoder *k, const struct decoder_lines *left,
                                 const void *right, float *parts, unsigned width, unsigned splits,
                                 enum dtype type, const struct kernel_args *args)
{
    int size = element_bytes(type);
    int64_t per_stage = MMA_LINE_BYTES / size;
    struct decoder_product p = {left->data,  right,       parts, k->lines, k->rows,
                                left->depth, left->pitch, width, 0,        0};
    p.stages = (unsigned)div_up(div_up(left->depth, per_stage), splits);
    p.piece = mma_piece_of((int64_t)width * size, MMA_CHUNK);
    p.piece = mma_piece_of((int64_t)(uintptr_t)right, p.piece);
    LAUNCH_FLOATS(type, decoder_tensor<element>, decoder_tiles(width, k->lines, splits),
                  cuda_size(BLOCK), 0, &p, args);
}

#endif
