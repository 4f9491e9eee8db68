/* SPDX-License-Identifier: Apache-2.0
 *
 * MatMulNBits of a few rows, as when text is generated: a warp has two rows of weights, of which a
 * lane reads 16 bytes at a time, and one or four rows of A, which come from the caches. A code
 * becomes a float by its place in the mantissa, and the factor of a block is applied to a lane's
 * part of the sum over it. */
#include "engine/kernels/cuda/lib/codes_product.h"

enum {
    COLUMNS = 2,
    WARPS = 4,
    THREADS = 128,
    FEW_ROWS = 4,

    PIECE_BYTES = 16,
    WORDS = 4
};

template <int rows> struct lane_sums {
    float v[rows][COLUMNS];
};

/* 2^23 + code - (2^23 + zero), each exact. */
static __device__ __forceinline__ float code_less_zero(unsigned code, float zero)
{
    return __int_as_float((int)(0x4b000000u | code)) - zero;
}

/* Some of each row of A times a word of each row of weights; at: the first element of row 0. */
template <int bits, int rows>
static __device__ __forceinline__ void
add_word(const struct codes_product &k, const size_t (&at)[rows], const unsigned (&words)[COLUMNS],
         const float (&zeros)[COLUMNS], struct lane_sums<rows> &sums)
{
    const unsigned codes = 32 / bits, mask = (1u << bits) - 1;
#pragma unroll
    for (unsigned first = 0; first < codes; first += 4) {
        struct group<4> a[rows];
#pragma unroll
        for (int r = 0; r < rows; r++)
            a[r] = group_as<4>(k.p.epilogue.type, k.p.a, at[r] + first);
#pragma unroll
        for (unsigned e = 0; e < 4; e++)
#pragma unroll
            for (int c = 0; c < COLUMNS; c++) {
                float weight = code_less_zero(words[c] >> bits * (first + e) & mask, zeros[c]);
#pragma unroll
                for (int r = 0; r < rows; r++)
                    sums.v[r][c] = fmaf(a[r].v[e], weight, sums.v[r][c]);
            }
    }
}

/* A lane's piece of both rows of weights. */
template <int bits, int rows>
static __device__ __forceinline__ void add_piece(const struct codes_product &k, unsigned piece,
                                                 unsigned row, unsigned column,
                                                 struct lane_sums<rows> &sums)
{
    const unsigned codes = PIECE_BYTES * 8 / bits;
    const struct codes &weights = k.weights;
    unsigned block = piece * codes >> weights.block_shift, words[WORDS][COLUMNS];
    float zeros[COLUMNS], scales[COLUMNS];
    size_t at[rows];
#pragma unroll
    for (int c = 0; c < COLUMNS; c++) {
        unsigned line = column + c < weights.rows ? column + c : weights.rows - 1;
        const uint8_t *from = weights.codes + (size_t)line * weights.row_bytes;
        uint4 v = ((const uint4 *)from)[piece];
        words[0][c] = v.x;
        words[1][c] = v.y;
        words[2][c] = v.z;
        words[3][c] = v.w;
        zeros[c] = 8388608.0f + (float)zero_of_block(weights, line, block);
        scales[c] = scale_of_block(weights, line, block);
    }
#pragma unroll
    for (int r = 0; r < rows; r++)
        at[r] = (size_t)(row + r < k.p.m ? row + r : k.p.m - 1) * k.p.k + piece * codes;
    struct lane_sums<rows> part = {
    };
#pragma unroll
    for (int w = 0; w < WORDS; w++) {
        add_word<bits, rows>(k, at, words[w], zeros, part);
#pragma unroll
        for (int r = 0; r < rows; r++)
            at[r] += codes / WORDS;
    }
#pragma unroll
    for (int r = 0; r < rows; r++)
#pragma unroll
        for (int c = 0; c < COLUMNS; c++)
            sums.v[r][c] = fmaf(part.v[r][c], scales[c], sums.v[r][c]);
}

/* Lane r COLUMNS + c has the whole sum of row r and column c. */
template <int rows>
static __device__ __forceinline__ float meet(const struct lane_sums<rows> &sums, unsigned lane)
{
    float mine = 0;
#pragma unroll
    for (int r = 0; r < rows; r++)
#pragma unroll
        for (int c = 0; c < COLUMNS; c++) {
            float whole = warp_sum(sums.v[r][c]);
            mine = lane == (unsigned)(r * COLUMNS + c) ? whole : mine;
        }
    return mine;
}

template <int bits, int rows>
__global__ void __launch_bounds__(THREADS)
    codes_rows(const __grid_constant__ struct codes_product k)
{
    KERNEL_BEGIN();
    const struct product &p = k.p;
    unsigned lane = threadIdx.x % WARP, pieces = k.weights.row_bytes / PIECE_BYTES;
    unsigned column = (blockIdx.x * WARPS + threadIdx.x / WARP) * COLUMNS, row = blockIdx.y * rows;
    struct lane_sums<rows> sums = {
    };
    for (unsigned piece = lane; column < p.n && piece < pieces; piece += WARP)
        add_piece<bits, rows>(k, piece, row, column, sums);
    float sum = meet<rows>(sums, lane);
    row += lane / COLUMNS;
    column += lane % COLUMNS;
    if (lane >= (unsigned)rows * COLUMNS || row >= p.m || column >= p.n)
        return;
    size_t at = (size_t)row * p.n + column;
    float value = epilogue_value(p.epilogue, sum, at, row, column);
    group_store_as<1>(p.epilogue.type, p.c, at, {{value}});
}

/* ---- hooks ---- */

struct kernel_state {
    struct codes_product k; /* pointers are left open */
    struct cuda_grid grid;
};

static enum status plan(const struct kernel_query *q, int, struct kernel_state *s,
                        struct error *why)
{
    const struct product *p = &s->k.p;
    const struct codes *weights = &s->k.weights;
    TRY(codes_product_plan(q, &s->k, why));
    unsigned codes = (unsigned)PIECE_BYTES * 8 / weights->bits;
    if (p->m > BLOCK_CODES_FEW_ROWS)
        return REFUSE(why, "more than %d rows", (int)BLOCK_CODES_FEW_ROWS);
    if (p->k % codes || 1u << weights->block_shift < codes)
        return REFUSE(why, "blocks or rows of weights are not in pieces of %d bytes",
                      (int)PIECE_BYTES);
    s->grid = cuda_size((unsigned)div_up(p->n, (int)COLUMNS * WARPS),
                        p->m == 1 ? 1 : (unsigned)div_up(p->m, FEW_ROWS));
    return STATUS_OK;
}

template <int bits>
static void launch_rows(const struct kernel_state *s, const struct codes_product *k,
                        const struct kernel_args *args)
{
    struct cuda_grid block = cuda_size(THREADS);
    if (k->p.m == 1)
        LAUNCH((codes_rows<bits, 1>), s->grid, block, 0, k, args);
    else
        LAUNCH((codes_rows<bits, FEW_ROWS>), s->grid, block, 0, k, args);
}

static void launch(const struct kernel_state *state, const struct kernel_args *args)
{
    struct codes_product k = state->k;
    codes_product_resolve(&k, args);
    if (k.weights.bits == 8)
        launch_rows<8>(state, &k, args);
    else
        launch_rows<4>(state, &k, args);
}

static const char *const ops[] = {"MatMulNBits", NULL};

CUDA_KERNEL(matmul_codes_rows) = {CUDA_NAME(matmul_codes_rows), .ops = ops, CUDA_PLAN,
                                  CUDA_HOOK(launch)};
