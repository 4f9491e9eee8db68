/* SPDX-License-Identifier: Apache-2.0
 *
 * MatMul, Gemm and MatMulF8 with any strides, batches and broadcast, f32 multiply-add (lib/tile.h).
 * Two sizes of tile; the tuner decides. */
#include "engine/kernels/cuda/lib/query.h"
#include "engine/kernels/cuda/lib/tile.h"

struct product {
    const void *a, *b;
    void *c;
    unsigned m, n, k;
    int64_t a_row, a_col, b_row, b_col, c_row, c_col;
    int batch_rank;
    unsigned batch_dim[RANK_MAX];
    int64_t a_batch[RANK_MAX], b_batch[RANK_MAX], c_batch[RANK_MAX];
    float alpha;
    struct epilogue epilogue;
};

struct kernel_state {
    struct product p;
    int64_t batch;
    int each;
};

struct offsets {
    int64_t a, b, c;
};

static __device__ __forceinline__ struct offsets batch_offsets(const struct product &p,
                                                               unsigned batch)
{
    struct offsets at = {0, 0, 0};
    for (int d = p.batch_rank - 1; d >= 0; d--) {
        unsigned index = batch % p.batch_dim[d];
        batch /= p.batch_dim[d];
        at.a += index * p.a_batch[d];
        at.b += index * p.b_batch[d];
        at.c += index * p.c_batch[d];
    }
    return at;
}

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
    struct offsets at = batch_offsets(p, blockIdx.z);
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

/* Both factors; the result is of a float type. */
static bool is_f8(const struct kernel_query *q)
{
    return q->in[0].dtype == DTYPE_F8E4M3;
}

static enum status add_gemm(const struct kernel_query *q, struct product *p, struct error *why)
{
    float beta = (float)cuda_host->node_float(q->node, "beta", 1);
    if (q->node->op_inputs < 3 || q->in[2].dtype == DTYPE_NONE || beta == 0)
        return STATUS_OK;
    struct epilogue_op c = {POST_ADD, 0, 0, 2, beta, 0, NULL};
    return epilogue_add(q, c, 1, 0, &p->epilogue, why);
}

static void fill_product(const struct matmul_shape *s, struct product *p)
{
    p->m = (unsigned)s->m;
    p->n = (unsigned)s->n;
    p->k = (unsigned)s->k;
    p->a_row = s->a_row;
    p->a_col = s->a_col;
    p->b_row = s->b_row;
    p->b_col = s->b_col;
    p->c_row = s->c_row;
    p->c_col = s->c_col;
    p->batch_rank = s->batch_rank;
    for (int d = 0; d < s->batch_rank; d++) {
        p->batch_dim[d] = (unsigned)s->batch_dim[d];
        p->a_batch[d] = s->a_batch[d];
        p->b_batch[d] = s->b_batch[d];
        p->c_batch[d] = s->c_batch[d];
    }
}

static enum status plan(const struct kernel_query *q, struct kernel_state *s, struct error *why)
{
    if (!is_f8(q))
        TRY(floats_supported(q, 0, 2, why));
    if (!fits_index(&q->out[0]))
        return REFUSE(why, "more than 2^31 elements");
    struct matmul_shape shape = cuda_host->matmul_shape(q->node, &q->in[0], &q->in[1], &q->out[0]);
    s->batch = shape.batch;
    s->p.alpha = (float)cuda_host->node_float(q->node, "alpha", 1); /* MatMul has none */
    fill_product(&shape, &s->p);
    if (shape.batch > GRID_YZ || shape.m > (int64_t)GRID_YZ * TILE_SIDE * EACH_SMALL)
        return REFUSE(why, "more batches or rows than a grid has");
    if (strcmp(cuda_host->node_op(q->node), "Gemm") == 0)
        TRY(add_gemm(q, &s->p, why));
    /* A vector times a matrix has no column dimension to speak of: operands must fit as a whole. */
    return epilogue_add_posts(q, q->out[0].shape.rank - 1, &s->p.epilogue, why);
}

/* Rows that the epilogue counts are those of one batch product: with a folded batch the operand of
 * a column is still right, for columns are counted by n; a vector result has its rows there. */
static enum status supports(const struct kernel_query *q, struct error *why)
{
    struct kernel_state s = {};
    TRY(plan(q, &s, why));
    if (q->node->post_count && q->out[0].shape.rank > 0 &&
        q->out[0].shape.dim[q->out[0].shape.rank - 1] != (int64_t)s.p.n)
        return REFUSE(why, "an epilogue on a matrix times a vector");
    return STATUS_OK;
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
    enum status status = plan(q, s, err);
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
    if (is_f8(q))
        LAUNCH_FLOATS(type, (matmul_tile<each, struct float8, element>), grid, block, 0, &p, args);
    else
        LAUNCH_FLOATS(type, (matmul_tile<each, element, element>), grid, block, 0, &p, args);
}

static void launch(const struct kernel_state *state, const struct kernel_query *q,
                   const struct kernel_args *args)
{
    struct product p = state->p;
    int side = (int)TILE_SIDE * state->each;
    if (p.m == 0 || p.n == 0 || state->batch == 0)
        return;
    p.a = args->in[0];
    p.b = args->in[1];
    p.c = args->out[0];
    epilogue_resolve(&p.epilogue, args);
    struct cuda_grid grid =
        cuda_size((unsigned)div_up(p.n, side), (unsigned)div_up(p.m, side), (unsigned)state->batch);
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

CUDA_KERNEL(matmul) = {CUDA_NAME(matmul),    .ops = ops,           .supports = supports,
                       .variants = variants, .describe = describe, .prepare = prepare,
                       .launch = launch,     .release = release};
