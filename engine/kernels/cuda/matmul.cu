/* SPDX-License-Identifier: Apache-2.0
 *
 * MatMul, Gemm and MatMulF8 with any strides, batches and broadcast, f32 multiply-add (lib/tile.h).
 * Two sizes of tile; the tuner decides. */
#include "engine/kernels/cuda/lib/product.h"
#include "engine/kernels/cuda/lib/tile.h"

struct kernel_state {
    struct product p;
    int each;
};

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

template <int each, class element>
static __device__ __forceinline__ void store(const struct product &p, int64_t c,
                                             const struct tile_sums<each> &sums)
{
    const unsigned side = TILE_SIDE * each;
    unsigned row = blockIdx.y * side + threadIdx.x / TILE_SIDE;
    unsigned column = blockIdx.x * side + threadIdx.x % TILE_SIDE;
#pragma unroll
    for (int i = 0; i < each; i++)
#pragma unroll
        for (int j = 0; j < each; j++) {
            unsigned r = row + TILE_SIDE * i, s = column + TILE_SIDE * j;
            if (r >= p.m || s >= p.n)
                continue;
            size_t at = (size_t)(c + r * p.c_row + s * p.c_col);
            float value = epilogue_value<element>(p.epilogue, p.alpha * sums.v[i][j], at, r, s);
            float_put((element *)p.c + at, value);
        }
}

template <int each, class factor, class element>
__global__ void __launch_bounds__(BLOCK) matmul_tile(const __grid_constant__ struct product p)
{
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
    store<each, element>(p, at.c, sums);
}

/* ---- hooks ---- */

enum { EACH_SMALL = 4, EACH_LARGE = 8 };

static enum status supports(const struct kernel_query *q, struct error *why)
{
    struct product p = {};
    return product_plan(q, (int64_t)TILE_SIDE * EACH_SMALL, &p, why);
}

static int variants(const struct kernel_query *q)
{
    (void)q;
    return 2;
}

static void describe(const struct kernel_query *q, int variant, char *text, size_t size)
{
    (void)q;
    int side = (int)TILE_SIDE * (variant ? EACH_LARGE : EACH_SMALL);
    snprintf(text, size, "%dx%d", side, side);
}

static enum status prepare(const struct kernel_query *q, int variant, struct kernel_state **state,
                           size_t *state_bytes, struct error *err)
{
    struct kernel_state *s = (struct kernel_state *)calloc(1, sizeof(*s));
    if (!s)
        return cuda_host->refuse(err, STATUS_NO_MEMORY, "out of memory");
    s->each = variant ? EACH_LARGE : EACH_SMALL;
    enum status status = product_plan(q, (int64_t)TILE_SIDE * EACH_SMALL, &s->p, err);
    if (status != STATUS_OK) {
        free(s);
        return status;
    }
    *state = s;
    *state_bytes = sizeof(*s);
    return STATUS_OK;
}

template <int each>
static void launch_tiles(const struct kernel_query *q, struct cuda_grid grid, struct product &p,
                         const struct kernel_args *args)
{
    struct cuda_grid block = cuda_size(BLOCK);
    enum dtype type = q->out[0].dtype;
    if (product_is_f8(q))
        LAUNCH_FLOATS(type, (matmul_tile<each, struct float8, element>), grid, block, 0, &p, args);
    else
        LAUNCH_FLOATS(type, (matmul_tile<each, element, element>), grid, block, 0, &p, args);
}

static void launch(const struct kernel_state *state, const struct kernel_query *q,
                   const struct kernel_args *args)
{
    struct product p = state->p;
    int side = (int)TILE_SIDE * state->each;
    if (p.m == 0 || p.n == 0 || p.batch == 0)
        return;
    product_resolve(&p, args);
    struct cuda_grid grid =
        cuda_size((unsigned)div_up(p.n, side), (unsigned)div_up(p.m, side), p.batch);
    if (state->each == EACH_LARGE)
        launch_tiles<EACH_LARGE>(q, grid, p, args);
    else
        launch_tiles<EACH_SMALL>(q, grid, p, args);
}

static void release(struct kernel_state *state)
{
    free(state);
}

static const char *const ops[] = {"MatMul", "Gemm", "MatMulF8", NULL};

CUDA_KERNEL(matmul) = {CUDA_NAME(matmul),        .ops = ops,
                       .supports = supports,     .old_variants = variants,
                       .old_describe = describe, .old_prepare = prepare,
                       .old_launch = launch,     .release = release,
                       .unlike_variants = true};
