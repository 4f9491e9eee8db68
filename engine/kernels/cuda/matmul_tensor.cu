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
    bool together;             /* eight neighbours of a row can be stored at once */
};

/* ---- storing ---- */

/* A warp's sums of 16 rows go through shared memory, so that a lane gets eight neighbours of a row
 * of them: their operands and results move by 16 bytes, and the code of the epilogue is there once
 * for each 16 rows. Unrolled over single results it was 19 to 77 KiB, most of the kernel, and each
 * of them waited for its own operands. The spare words set rows apart in the banks. */
template <int each> struct results {
    enum { LINE = MMA_COLUMNS * each + 8 };
    float row[MMA_ROWS][LINE];
};

template <class element>
static __device__ __forceinline__ void store_group(const struct tensor_product &k, int64_t c,
                                                   unsigned row, unsigned column, const float *sums)
{
    const struct product &p = k.p;
    if (row >= p.m || column >= p.n)
        return;
    struct epilogue_place to = {(size_t)(c + row * p.c_row + column * p.c_col),
                                (size_t)p.c_col,
                                row,
                                column,
                                p.n - column,
                                k.together};
    struct group<EPILOGUE_GROUP> x = group_at(sums, group<EPILOGUE_GROUP>{});
#pragma unroll
    for (int i = 0; i < EPILOGUE_GROUP; i++)
        x.v[i] *= p.alpha;
    epilogue_group<element>(p.epilogue, x, to);
    epilogue_store((element *)p.c, x, to);
}

template <class element, int each>
static __device__ __forceinline__ void store(const struct tensor_product &k, int64_t c,
                                             const float (&sums)[each][each][4],
                                             struct results<each> *all)
{
    unsigned warp = threadIdx.x / WARP, row0 = mma_warp_row<each>();
    unsigned column0 = mma_warp_column<each>();
    struct results<each> &mine = all[warp];
    __syncthreads(); /* stages become results */
#pragma unroll
    for (int i = 0; i < each; i++) {
        mma_put_sums<each>(sums[i], mine.row[0], results<each>::LINE);
        __syncwarp();
#pragma unroll 1
        for (unsigned g = threadIdx.x % WARP; g < MMA_ROWS * each; g += WARP) {
            unsigned row = g / each, column = g % each * EPILOGUE_GROUP;
            store_group<element>(k, c, row0 + i * MMA_ROWS + row, column0 + column,
                                 &mine.row[row][column]);
        }
        __syncwarp();
    }
}

template <class element, bool across, int each>
__global__ void __launch_bounds__(BLOCK)
    matmul_tensor(const __grid_constant__ struct tensor_product k)
{
    KERNEL_BEGIN();
    __shared__ struct mma_stage<each> stages[MMA_STAGES(each)];
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
    static_assert(sizeof(struct results<each>) * (BLOCK / WARP) <= sizeof stages,
                  "too many results");
    store<element, each>(k, at.c, sums, (struct results<each> *)stages);
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
    s->k.together = p->c_col == 1 && p->c_row % 8 == 0 && p->n % 8 == 0;
    for (int d = 0; d < p->batch_rank; d++) {
        s->k.piece_a = mma_piece_of(p->a_batch[d] * size, s->k.piece_a);
        s->k.piece_b = mma_piece_of(p->b_batch[d] * size, s->k.piece_b);
        s->k.together = s->k.together && p->c_batch[d] % 8 == 0;
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
    snprintf(text, size, "%dx%d stages %d", side, side, MMA_STAGES(state->each));
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
    k.together = k.together && (uintptr_t)k.p.c % 16 == 0 && epilogue_is_aligned(&k.p.epilogue);
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

CUDA_KERNEL(matmul_tensor) = {CUDA_NAME(matmul_tensor), .ops = ops,          CUDA_PLAN,
                              CUDA_HOOK(variants),      CUDA_HOOK(describe), CUDA_HOOK(launch),
                              .unlike_variants = true};
