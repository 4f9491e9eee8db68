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

enum {
    DECODER_GATES = 4,
    DECODER_EACH = 2,        /* of a tile: 64 results a side */
    DECODER_GROUP = 8,       /* rows whose lines are beside each other */
    DECODER_DEPTH_MIN = 32,  /* of a part of a product */
    DECODER_SPLITS_MAX = 16, /* parts of a product */
    DECODER_BLOCKS = 4,      /* per multiprocessor that a product should have */
};

/* Of what a layer multiplies. */
enum { PART_INPUT, PART_CONTEXT, PART_STATE, PARTS };

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
    unsigned step, layer, residual, row_warps, lines;             /* lines: of a left factor */
    unsigned layer_splits, query_splits;
    int start, type;
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

/* Element `at` of an input. */
static __device__ __forceinline__ float input_at(const struct decoder &k, int which, size_t at)
{
    return group_as<1>(k.type, k.in[which], at).v[0];
}

/* The input of the first layer. */
template <class element>
static __device__ __forceinline__ const element *word_of(const struct decoder &k, unsigned row)
{
    return input<element>(k, DECODER_EMBEDDING) + (size_t)k.beams.token[row] * k.hidden;
}

static __device__ __forceinline__ float word_at(const struct decoder &k, unsigned row, unsigned at)
{
    return input_at(k, DECODER_EMBEDDING, (size_t)k.beams.token[row] * k.hidden + at);
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
static __device__ __forceinline__ void put_both(element *to, size_t rest, float x)
{
    element rounded;
    put_rounded(&rounded, x);
    *to = rounded;
    float_put(to + rest, x - to_float(rounded));
}

static __device__ __forceinline__ void
put_line(const struct decoder &k, const struct decoder_lines &l, unsigned row, unsigned at, float x)
{
    unsigned group = DECODER_GROUP, line = row / group * 2 * group + row % group;
    size_t to = (size_t)line * l.pitch + at, rest = (size_t)group * l.pitch;
    WITH_ELEMENT(k.type, 1, put_both((element *)l.data + to, rest, x));
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
    KERNEL_BEGIN();
    const int each = DECODER_EACH;
    __shared__ struct mma_stage<each> stages[MMA_STAGES(each)];
    const unsigned per_stage = MMA_LINE_BYTES / sizeof(element);
    struct mma_block<element, true, each> b = {
        {(const element *)k.left, k.pitch, k.lines, k.depth, MMA_CHUNK},
            {(const element *)k.right, k.width, k.depth, k.width, k.piece},
            blockIdx.y *MMA_SIDE *each, blockIdx.x *MMA_SIDE *each
    };
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

/* ---- host ---- */

/* Parts of a product of so many blocks. */
static inline unsigned decoder_splits(const struct kernel_query *q, int64_t blocks, int64_t depth)
{
    int64_t wanted = DECODER_BLOCKS * (int64_t)q->device->properties.units / blocks;
    int64_t limit = depth / DECODER_DEPTH_MIN;
    limit = limit < DECODER_SPLITS_MAX ? limit : (int64_t)DECODER_SPLITS_MAX;
    wanted = wanted < limit ? wanted : limit;
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
