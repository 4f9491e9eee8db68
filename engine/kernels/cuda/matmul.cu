/* SPDX-License-Identifier: Apache-2.0
 *
 * MatMul, Gemm and MatMulF8 with any strides, batches and broadcast, f32 multiply-add (lib/tile.h).
 * Two sizes of tile; the tuner decides. */
#include "engine/kernels/cuda/lib/tile_product.h"

/* Threads go along the dimension that lies together in memory. */
template <int each, class factor>
static __device__ __forceinline__ void load_tiles(const struct product &p, const factor *a,
                                                  const factor *b, unsigned depth,
                                                  struct tile_memory<each> &m)
{
    const unsigned side = TILE_SIDE * each;
    unsigned row0 = blockIdx.y * side, column0 = blockIdx.x * side;
    for (unsigned t = threadIdx.x; t < side * TILE_DEPTH; t += BLOCK) {
        bool along = p.a_col == 1;
        unsigned i = along ? t / TILE_DEPTH : t % side, d = along ? t % TILE_DEPTH : t / side;
        bool inside = row0 + i < p.m && depth + d < p.k;
        m.a[d][i] = inside ? to_float(a[(row0 + i) * p.a_row + (depth + d) * p.a_col]) : 0.0f;
    }
    for (unsigned t = threadIdx.x; t < side * TILE_DEPTH; t += BLOCK) {
        bool along = p.b_col == 1;
        unsigned j = along ? t % side : t / TILE_DEPTH, d = along ? t / side : t % TILE_DEPTH;
        bool inside = column0 + j < p.n && depth + d < p.k;
        m.b[d][j] = inside ? to_float(b[(depth + d) * p.b_row + (column0 + j) * p.b_col]) : 0.0f;
    }
}

template <int each, class factor>
__global__ void __launch_bounds__(BLOCK) matmul_tile(const __grid_constant__ struct product p)
{
    KERNEL_BEGIN();
    __shared__ struct tile_memory<each> m;
    struct tile_sums<each> sums = {
    };
    struct product_offsets at = product_at(p, blockIdx.z);
    for (unsigned depth = 0; depth < p.k; depth += TILE_DEPTH) {
        load_tiles<each>(p, (const factor *)p.a + at.a, (const factor *)p.b + at.b, depth, m);
        __syncthreads();
        tile_multiply<each>(m, sums);
        __syncthreads();
    }
    tile_store<each>(p, at.c, sums);
}

/* ---- hooks ---- */

enum { EACH_SMALL = 4, EACH_LARGE = 8 };

struct kernel_state {
    struct product p; /* pointers are left open */
    bool f8;
    int each;
    struct cuda_grid grid;
};

static int variants(const struct kernel_state *)
{
    return 2;
}

static enum status plan(const struct kernel_query *q, int variant, struct kernel_state *s,
                        struct error *why)
{
    TRY(product_plan(q, (int64_t)TILE_SIDE * EACH_SMALL, &s->p, why));
    s->f8 = product_is_f8(q);
    s->each = variant ? EACH_LARGE : EACH_SMALL;
    s->grid = product_grid(&s->p, (int)TILE_SIDE * s->each);
    return STATUS_OK;
}

static void describe(const struct kernel_state *state, char *text, size_t size)
{
    int side = (int)TILE_SIDE * state->each;
    snprintf(text, size, "%dx%d", side, side);
}

template <int each>
static void launch_tiles(const struct kernel_state *s, const struct product *p,
                         const struct kernel_args *args)
{
    if (s->f8)
        LAUNCH((matmul_tile<each, struct float8>), s->grid, cuda_size(BLOCK), 0, p, args);
    else
        LAUNCH_FLOATS(p->epilogue.type, (matmul_tile<each, element>), s->grid, cuda_size(BLOCK), 0,
                      p, args);
}

static void launch(const struct kernel_state *state, const struct kernel_args *args)
{
    struct product p = state->p;
    product_resolve(&p, args);
    if (state->each == EACH_LARGE)
        launch_tiles<EACH_LARGE>(state, &p, args);
    else
        launch_tiles<EACH_SMALL>(state, &p, args);
}

static const char *const ops[] = {"MatMul", "Gemm", "MatMulF8", NULL};

CUDA_KERNEL(matmul) = {CUDA_NAME(matmul),       .ops = ops,          CUDA_PLAN,
                       CUDA_HOOK(variants),     CUDA_HOOK(describe), CUDA_HOOK(launch),
                       .unlike_variants = true, .general = true};
