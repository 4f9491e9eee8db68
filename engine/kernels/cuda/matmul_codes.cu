/* SPDX-License-Identifier: Apache-2.0
 *
 * MatMulNBits of any sizes, f32 multiply-add: weights become floats on their way into shared memory
 * (lib/tile.h). Few rows have a kernel of their own, matmul_codes_rows. */
#include "engine/kernels/cuda/lib/codes_product.h"
#include "engine/kernels/cuda/lib/tile_product.h"

enum { EACH = 4 };

/* Threads go along the depth, where both factors lie together. */
template <class element>
static __device__ __forceinline__ void load_tiles(const struct codes_product &k, unsigned depth,
                                                  struct tile_memory<EACH> &m)
{
    const unsigned side = (unsigned)TILE_SIDE * EACH;
    const element *a = (const element *)k.p.a;
    unsigned row0 = blockIdx.y * side, column0 = blockIdx.x * side;
    for (unsigned t = threadIdx.x; t < side * TILE_DEPTH; t += BLOCK) {
        unsigned i = t / TILE_DEPTH, d = t % TILE_DEPTH;
        bool row = row0 + i < k.p.m, column = column0 + i < k.p.n, inside = depth + d < k.p.k;
        m.a[d][i] = row && inside ? to_float(a[(row0 + i) * k.p.a_row + depth + d]) : 0.0f;
        m.b[d][i] = column && inside ? weight_at(k.weights, column0 + i, depth + d) : 0.0f;
    }
}

template <class element>
__global__ void __launch_bounds__(BLOCK) codes_tile(const __grid_constant__ struct codes_product k)
{
    KERNEL_BEGIN();
    __shared__ struct tile_memory<EACH> m;
    struct tile_sums<EACH> sums = {
    };
    for (unsigned depth = 0; depth < k.p.k; depth += TILE_DEPTH) {
        load_tiles<element>(k, depth, m);
        __syncthreads();
        tile_multiply<EACH>(m, sums);
        __syncthreads();
    }
    tile_store<EACH>(k.p, 0, sums);
}

/* ---- hooks ---- */

struct kernel_state {
    struct codes_product k; /* pointers are left open */
    struct cuda_grid grid;
};

static enum status plan(const struct kernel_query *q, int, struct kernel_state *s,
                        struct error *why)
{
    const int side = (int)TILE_SIDE * EACH;
    TRY(codes_product_plan(q, &s->k, why));
    if (s->k.p.m > (int64_t)GRID_YZ * side)
        return REFUSE(why, "more rows than a grid has");
    s->grid = product_grid(&s->k.p, side);
    return STATUS_OK;
}

static void launch(const struct kernel_state *state, const struct kernel_args *args)
{
    struct codes_product k = state->k;
    codes_product_resolve(&k, args);
    LAUNCH_FLOATS(k.p.epilogue.type, codes_tile<element>, state->grid, cuda_size(BLOCK), 0, &k,
                  args);
}

static const char *const ops[] = {"MatMulNBits", NULL};

CUDA_KERNEL(matmul_codes) = {CUDA_NAME(matmul_codes), .ops = ops, CUDA_PLAN, CUDA_HOOK(launch),
                             .general = true};
