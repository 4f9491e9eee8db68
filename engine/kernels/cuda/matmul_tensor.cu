/* SPDX-License-Identifier: Apache-2.0
 *
 * MatMul and Gemm on tensor cores: f16, bf16, and f32 where tf32 is allowed, by blocks of 128 or 64
 * results a side (lib/mma_tile.h). */
#include "engine/kernels/cuda/lib/mma_tile.h"
#include "engine/kernels/cuda/lib/product.h"

/* 16 rows, and 8 columns, of a warp: so many times. */
enum { EACH_SMALL = 2, EACH_LARGE = 4 };

struct tensor_product {
    struct product p;
    unsigned piece_a, piece_b; /* bytes: every line of the factor begins at a multiple */
    bool pairs;                /* two neighbouring results can be stored at once */
};

/* ---- storing ---- */

static __device__ __forceinline__ void put_pair(float *y, float first, float second)
{
    y[0] = first;
    y[1] = second;
}

template <class element>
static __device__ __forceinline__ void put_pair(element *y, float first, float second)
{
    element e[2];
    float_put(&e[0], first);
    float_put(&e[1], second);
    *(unsigned *)y = e[0].bits | (unsigned)e[1].bits << 16;
}

template <class element>
static __device__ __forceinline__ float value_of(const struct product &p, float sum, size_t at,
                                                 unsigned row, unsigned column)
{
    float value = p.alpha * sum;
    return p.epilogue.count ? epilogue_value<element>(p.epilogue, value, at, row, column) : value;
}

/* A lane's two neighbouring results of a row. */
template <class element>
static __device__ __forceinline__ void store_two(const struct tensor_product &k, int64_t c,
                                                 unsigned row, unsigned column, float first,
                                                 float second)
{
    const struct product &p = k.p;
    if (row >= p.m || column >= p.n)
        return;
    size_t at = (size_t)(c + row * p.c_row + column * p.c_col), next = at + (size_t)p.c_col;
    element *y = (element *)p.c;
    first = value_of<element>(p, first, at, row, column);
    if (column + 1 < p.n)
        second = value_of<element>(p, second, next, row, column + 1);
    if (k.pairs) {
        put_pair(y + at, first, second);
        return;
    }
    float_put(y + at, first);
    if (column + 1 < p.n)
        float_put(y + next, second);
}

template <class element, int each>
static __device__ __forceinline__ void store(const struct tensor_product &k, int64_t c,
                                             const float (&sums)[each][each][4])
{
#pragma unroll
    for (int i = 0; i < each; i++)
#pragma unroll
        for (int j = 0; j < each; j++)
#pragma unroll
            for (int half_of = 0; half_of < 2; half_of++)
                store_two<element>(k, c, mma_result_row<each>(i, half_of),
                                   mma_result_column<each>(j), sums[i][j][half_of * 2],
                                   sums[i][j][half_of * 2 + 1]);
}

template <class element, bool across, int each>
__global__ void __launch_bounds__(BLOCK)
    matmul_tensor(const __grid_constant__ struct tensor_product k)
{
    KERNEL_BEGIN();
    __shared__ struct mma_stage<each> stages[MMA_STAGES];
    const struct product &p = k.p;
    const unsigned depth = MMA_LINE_BYTES / sizeof(element);
    struct product_offsets at = product_at(p, blockIdx.z);
    struct mma_block<element, across, each> b = {
        {(const element *)p.a + at.a, p.a_row, p.m, p.k, k.piece_a},
            {(const element *)p.b + at.b, across ? p.b_row : p.b_col, across ? p.k : p.n,
             across ? p.n : p.k, k.piece_b},
            blockIdx.y *MMA_SIDE *each, blockIdx.x *MMA_SIDE *each
    };
    float sums[each][each][4] = {};
    mma_product(b, 0, (p.k + depth - 1) / depth, stages, sums);
    store<element, each>(k, at.c, sums);
}

/* ---- hooks ---- */

struct kernel_state {
    struct tensor_product k; /* pointers are left open */
    enum dtype type;
    bool across;
    int each;
    struct cuda_grid grid;
};

/* How the right factor lies; false: neither along the depth nor across it. */
static bool find_right(const struct product *p, bool *across)
{
    bool along = p->b_row == 1 || p->k == 1;
    *across = p->b_col == 1 && !(p->n == 1 && along);
    if (!*across && !along)
        *across = p->n == 1;
    return *across || along;
}

static enum status plan(const struct kernel_query *q, int variant, struct kernel_state *s,
                        struct error *why)
{
    struct product *p = &s->k.p;
    TRY(product_plan(q, (int64_t)MMA_SIDE * EACH_SMALL, p, why));
    if (q->out[0].dtype == DTYPE_F32 && !q->tf32)
        return REFUSE(why, "tensor cores round f32 to tf32, which is not asked for");
    if (product_is_f8(q))
        return REFUSE(why, "no tile of f8 factors");
    if (q->device->properties.major < 8)
        return REFUSE(why, "no such tensor cores before sm_80");
    if (p->a_col != 1 && p->k > 1)
        return REFUSE(why, "the left factor does not lie along the depth");
    if (!find_right(p, &s->across))
        return REFUSE(why, "the right factor lies neither along the depth nor across it");
    s->type = q->out[0].dtype;
    s->each = variant ? EACH_LARGE : EACH_SMALL;
    s->grid = product_grid(p, MMA_SIDE * s->each);
    int64_t size = element_bytes(s->type);
    s->k.piece_a = mma_piece_of(p->m == 1 ? 0 : p->a_row * size, MMA_CHUNK);
    s->k.piece_b = mma_piece_of((s->across ? p->b_row : p->b_col) * size, MMA_CHUNK);
    s->k.pairs = p->c_col == 1 && p->c_row % 2 == 0 && p->n % 2 == 0;
    for (int d = 0; d < p->batch_rank; d++) {
        s->k.piece_a = mma_piece_of(p->a_batch[d] * size, s->k.piece_a);
        s->k.piece_b = mma_piece_of(p->b_batch[d] * size, s->k.piece_b);
        s->k.pairs = s->k.pairs && p->c_batch[d] % 2 == 0;
    }
    return STATUS_OK;
}

/* The larger blocks only where both sides fill more than half of one. */
static int variants(const struct kernel_state *state)
{
    unsigned small = (unsigned)MMA_SIDE * EACH_SMALL;
    return state->k.p.m > small && state->k.p.n > small ? 2 : 1;
}

static void describe(const struct kernel_state *state, char *text, size_t size)
{
    int side = MMA_SIDE * state->each;
    snprintf(text, size, "%dx%d stages %d", side, side, (int)MMA_STAGES);
}

template <bool across, int each>
static void launch_blocks(const struct kernel_state *s, const struct tensor_product *k,
                          const struct kernel_args *args)
{
    LAUNCH_FLOATS(s->type, (matmul_tensor<element, across, each>), s->grid, cuda_size(BLOCK), 0, k,
                  args);
}

static void launch(const struct kernel_state *state, const struct kernel_args *args)
{
    struct tensor_product k = state->k;
    product_resolve(&k.p, args);
    /* Tensors begin at multiples of 64 bytes; what a caller brings may not. */
    k.piece_a = mma_piece_of((int64_t)(uintptr_t)k.p.a, k.piece_a);
    k.piece_b = mma_piece_of((int64_t)(uintptr_t)k.p.b, k.piece_b);
    if (state->across && state->each == EACH_LARGE)
        launch_blocks<true, EACH_LARGE>(state, &k, args);
    else if (state->across)
        launch_blocks<true, EACH_SMALL>(state, &k, args);
    else if (state->each == EACH_LARGE)
        launch_blocks<false, EACH_LARGE>(state, &k, args);
    else
        launch_blocks<false, EACH_SMALL>(state, &k, args);
}

static const char *const ops[] = {"MatMul", "Gemm", NULL};

CUDA_KERNEL(matmul_tensor) = {CUDA_NAME(matmul_tensor), .ops = ops,           CUDA_PLAN(plan),
                              .variants = variants,     .describe = describe, .launch = launch,
                              .unlike_variants = true};
