/* SPDX-License-Identifier: Apache-2.0
 *
 * MatMulInteger with any signs, zero points, sizes, strides and batches: exact products of bytes
 * for what cuBLASLt refuses. A block has 64 x 64 results, a thread 4 x 4; zero points are taken off
 * on the way into shared memory, where the rest of an edge is 0. */
#include "engine/kernels/cuda/lib/product.h"
#include "engine/kernels/cuda/lib/tile.h"

enum { EACH = 4, SIDE = TILE_SIDE * EACH, DEPTH = 32 };

/* A factor's zero points: NULL, one, or one per row of the left and column of the right factor. */
struct zero_points {
    const void *values;
    unsigned step; /* 0: one for all */
    bool is_signed;
};

struct integer_product {
    struct product p;
    struct zero_points a, b; /* is_signed of the factor, too */
};

struct integer_tiles {
    short a[DEPTH][SIDE + 2], b[DEPTH][SIDE + 2]; /* 32 of depth begin in 32 banks */
};

static __device__ __forceinline__ int byte_at(const void *bytes, bool is_signed, int64_t at)
{
    return is_signed ? ((const signed char *)bytes)[at] : ((const unsigned char *)bytes)[at];
}

static __device__ __forceinline__ int centred(const void *bytes, int64_t at,
                                              const struct zero_points &z, unsigned line)
{
    int zero = z.values ? byte_at(z.values, z.is_signed, (int64_t)line * z.step) : 0;
    return byte_at(bytes, z.is_signed, at) - zero;
}

/* Threads go along the dimension that lies together in memory. */
static __device__ __forceinline__ void load_tiles(const struct integer_product &k,
                                                  const struct product_offsets &at, unsigned depth,
                                                  struct integer_tiles &m)
{
    const struct product &p = k.p;
    unsigned row0 = blockIdx.y * SIDE, column0 = blockIdx.x * SIDE;
    for (unsigned t = threadIdx.x; t < SIDE * DEPTH; t += BLOCK) {
        bool along = p.a_col == 1;
        unsigned i = along ? t / DEPTH : t % SIDE, d = along ? t % DEPTH : t / SIDE;
        unsigned row = row0 + i, step = depth + d;
        int value = 0;
        if (row < p.m && step < p.k)
            value = centred(p.a, at.a + row * p.a_row + step * p.a_col, k.a, row);
        m.a[d][i] = (short)value;
    }
    for (unsigned t = threadIdx.x; t < SIDE * DEPTH; t += BLOCK) {
        bool along = p.b_col == 1;
        unsigned j = along ? t % SIDE : t / DEPTH, d = along ? t / SIDE : t % DEPTH;
        unsigned column = column0 + j, step = depth + d;
        int value = 0;
        if (column < p.n && step < p.k)
            value = centred(p.b, at.b + step * p.b_row + column * p.b_col, k.b, column);
        m.b[d][j] = (short)value;
    }
}

static __device__ __forceinline__ void multiply(const struct integer_tiles &m, int sums[EACH][EACH])
{
    unsigned row = threadIdx.x / TILE_SIDE, column = threadIdx.x % TILE_SIDE;
    for (int d = 0; d < DEPTH; d++)
#pragma unroll
        for (int i = 0; i < EACH; i++)
#pragma unroll
            for (int j = 0; j < EACH; j++)
                sums[i][j] += (int)m.a[d][row + TILE_SIDE * i] * m.b[d][column + TILE_SIDE * j];
}

__global__ void __launch_bounds__(BLOCK)
    matmul_bytes(const __grid_constant__ struct integer_product k)
{
    KERNEL_BEGIN();
    __shared__ struct integer_tiles m;
    int sums[EACH][EACH] = {};
    const struct product &p = k.p;
    struct product_offsets at = product_at(p, blockIdx.z);
    for (unsigned depth = 0; depth < p.k; depth += DEPTH) {
        load_tiles(k, at, depth, m);
        __syncthreads();
        multiply(m, sums);
        __syncthreads();
    }
    unsigned row = blockIdx.y * SIDE + threadIdx.x / TILE_SIDE;
    unsigned column = blockIdx.x * SIDE + threadIdx.x % TILE_SIDE;
#pragma unroll
    for (int i = 0; i < EACH; i++)
#pragma unroll
        for (int j = 0; j < EACH; j++) {
            unsigned r = row + TILE_SIDE * i, s = column + TILE_SIDE * j;
            if (r < p.m && s < p.n)
                ((int *)p.c)[at.c + r * p.c_row + s * p.c_col] = sums[i][j];
        }
}

/* ---- hooks ---- */

enum { A_ZERO = 2, B_ZERO };

static bool is_byte(enum dtype dtype)
{
    return dtype == DTYPE_I8 || dtype == DTYPE_U8;
}

/* lines: rows of the left factor or columns of the right one, as the product counts them. */
static enum status zero_points_from(const struct kernel_query *q, int factor, unsigned lines,
                                    struct zero_points *z, struct error *why)
{
    int input = factor ? B_ZERO : A_ZERO;
    z->is_signed = q->in[factor].dtype == DTYPE_I8;
    if (!input_given(q, input))
        return STATUS_OK;
    const struct shape *shape = &q->in[input].shape;
    int64_t count = shape_count(shape);
    if (q->in[input].dtype != q->in[factor].dtype || shape->rank > 1 ||
        (count != 1 && count != lines))
        return REFUSE(why, "zero points of factor %d are neither one nor one per line", factor);
    z->step = count > 1;
    return STATUS_OK;
}

struct kernel_state {
    struct integer_product k; /* pointers are left open */
    unsigned given;
    struct cuda_grid grid;
};

static enum status plan(const struct kernel_query *q, int, struct kernel_state *s,
                        struct error *why)
{
    struct integer_product *k = &s->k;
    if (q->node->post_count || !is_byte(q->in[0].dtype) || !is_byte(q->in[1].dtype))
        return REFUSE(why, "only bytes, and no epilogue");
    if (!fits_index(&q->out[0]))
        return REFUSE(why, "more than 2^31 elements");
    struct matmul_shape shape = matmul_shape_from(q->node, &q->in[0], &q->in[1], &q->out[0]);
    TRY(product_depth_fits(&shape, why));
    if (shape.batch > GRID_YZ || shape.m > (int64_t)GRID_YZ * SIDE)
        return REFUSE(why, "more batches or rows than a grid has");
    product_fill(&shape, &k->p);
    s->given = inputs_given(q);
    s->grid = product_grid(&k->p, SIDE);
    TRY(zero_points_from(q, 0, k->p.m, &k->a, why));
    return zero_points_from(q, 1, k->p.n, &k->b, why);
}

static void launch(const struct kernel_state *state, const struct kernel_args *args)
{
    struct integer_product k = state->k;
    k.p.a = args->in[0];
    k.p.b = args->in[1];
    k.p.c = args->out[0];
    k.a.values = input_of(args, state->given, A_ZERO);
    k.b.values = input_of(args, state->given, B_ZERO);
    LAUNCH(matmul_bytes, state->grid, cuda_size(BLOCK), 0, &k, args);
}

static const char *const ops[] = {"MatMulInteger", NULL};

CUDA_KERNEL(matmul_integer) = {CUDA_NAME(matmul_integer), .ops = ops, CUDA_PLAN, CUDA_HOOK(launch)};
