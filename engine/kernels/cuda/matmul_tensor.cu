/* SPDX-License-Identifier: Apache-2.0
 *
 * MatMul and Gemm on tensor cores: f16, bf16, and f32 where tf32 is allowed. Eight warps, two by
 * four, have the results of a square of 128 or 64 a side in registers; the factors go through
 * shared memory in stages of 64 bytes of depth, which are copied while those before them are
 * multiplied.
 *
 * The left factor lies along the depth; the right one along it (a transposed weight) or across it
 * (any other weight). Chunks of 16 bytes are stored at their place with some bits changed by the
 * row's, so that neither copies nor ldmatrix meet in a bank. What is beyond a matrix is 0 there,
 * so that nobody else has to know. */
#include "engine/kernels/cuda/lib/mma.h"
#include "engine/kernels/cuda/lib/product.h"

enum {
    STAGES = 3,
    LINE_CHUNKS = 4, /* along the depth, per stage */
    STEPS = 2,       /* of the tensor cores, per stage */
    WARPS_DOWN = 2,
    WARPS_ACROSS = 4,
    EACH_SMALL = 2, /* 16 rows, and 8 columns, of a warp: so many times */
    EACH_LARGE = 4,
    SIDE = 32,       /* of a block's results, times `each` */
    LINE_BYTES = 64, /* of depth, per stage */
};

struct tensor_product {
    struct product p;
    bool whole_a, whole_b; /* every line of the factor begins at a multiple of 16 bytes */
    bool pairs;            /* two neighbouring results can be stored at once */
};

template <int each> struct stage {
    uint4 a[SIDE * each * LINE_CHUNKS], b[SIDE * each * LINE_CHUNKS];
};

/* ---- where a chunk lies ---- */

/* Of a line along the depth: two lines are as wide as all banks, so four pairs of them differ. */
static __device__ __forceinline__ unsigned along_at(unsigned line, unsigned chunk)
{
    return line * LINE_CHUNKS + (chunk ^ (line >> 1) % LINE_CHUNKS);
}

/* Of a row of `chunks` across the depth. ldmatrix reads a chunk of eight rows at once; of tf32 the
 * lanes read two neighbouring chunks of four rows. */
template <class element>
static __device__ __forceinline__ unsigned across_at(unsigned row, unsigned chunk, unsigned chunks)
{
    return row * chunks + (chunk ^ (sizeof(element) == 2 ? row % 8 : row % 4 * 2));
}

/* ---- filling ---- */

/* A factor's lines, `stride` elements apart: those of this block from `line` on. */
template <class element> struct lines {
    const element *data;
    int64_t stride;
    unsigned count, length; /* lines and elements of a line that there are */
    bool whole;
};

/* Elements at..at + 15 bytes of a line; 0 where there are none. */
template <class element>
static __device__ __forceinline__ void fill_chunk(uint4 *to, const struct lines<element> &f,
                                                  unsigned line, unsigned at)
{
    const unsigned most = MMA_CHUNK / sizeof(element);
    unsigned count = line < f.count && at < f.length ? min(f.length - at, most) : 0;
    const element *from = f.data + (count ? line * f.stride + at : 0);
    if (f.whole) {
        copy_later(to, from, count * (unsigned)sizeof(element));
        return;
    }
    for (unsigned k = 0; k < most; k++)
        ((element *)to)[k] = k < count ? from[k] : element{};
}

template <class element, int each>
static __device__ __forceinline__ void fill_along(uint4 *to, const struct lines<element> &f,
                                                  unsigned line, unsigned depth)
{
    const unsigned per_chunk = MMA_CHUNK / sizeof(element);
#pragma unroll
    for (unsigned t = threadIdx.x; t < SIDE * each * LINE_CHUNKS; t += BLOCK) {
        unsigned n = t / LINE_CHUNKS, chunk = t % LINE_CHUNKS;
        fill_chunk(to + along_at(n, chunk), f, line + n, depth + chunk * per_chunk);
    }
}

template <class element, int each>
static __device__ __forceinline__ void fill_across(uint4 *to, const struct lines<element> &f,
                                                   unsigned column, unsigned depth)
{
    const unsigned per_chunk = MMA_CHUNK / sizeof(element), chunks = SIDE * each / per_chunk;
#pragma unroll
    for (unsigned t = threadIdx.x; t < SIDE * each * LINE_CHUNKS; t += BLOCK) {
        unsigned row = t / chunks, chunk = t % chunks;
        fill_chunk(to + across_at<element>(row, chunk, chunks), f, depth + row,
                   column + chunk * per_chunk);
    }
}

/* ---- multiplying ---- */

/* Of 16 columns, two steps of the tensor cores beside each other; b: two registers of each. */
template <class element, bool across, int each>
static __device__ __forceinline__ void load_right(const uint4 *right, unsigned column,
                                                  unsigned step, unsigned b[4])
{
    unsigned lane = threadIdx.x % WARP, per_chunk = MMA_CHUNK / sizeof(element);
    unsigned chunks = SIDE * each / per_chunk;
    if (!across) {
        unsigned line = column + lane % 8 + lane / 16 * 8;
        matrices_load(right + along_at(line, step * 2 + lane / 8 % 2), b);
    } else if (sizeof(element) == 2) {
        unsigned row = step * 16 + lane % 16, chunk = column / per_chunk + lane / 16;
        matrices_load_turned(right + across_at<element>(row, chunk, chunks), b);
    } else {
#pragma unroll
        for (unsigned k = 0; k < 4; k++) {
            unsigned row = step * 8 + lane % 4 + k % 2 * 4, at = column + k / 2 * 8 + lane / 4;
            const uint4 *chunk = right + across_at<element>(row, at / 4, chunks);
            b[k] = ((const unsigned *)chunk)[at % 4];
        }
    }
#pragma unroll
    for (int k = 0; k < 4; k++)
        mma_round<element>(&b[k]);
}

template <class element, bool across, int each>
static __device__ __forceinline__ void multiply(const struct stage<each> &s,
                                                float (&sums)[each][each][4])
{
    unsigned lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
    unsigned row = warp / WARPS_ACROSS * (MMA_ROWS * each);
    unsigned column = warp % WARPS_ACROSS * (MMA_COLUMNS * each);
#pragma unroll
    for (unsigned step = 0; step < STEPS; step++) {
        unsigned a[each][4], b[each * 2];
#pragma unroll
        for (int i = 0; i < each; i++) {
            unsigned line = row + i * MMA_ROWS + lane % 16;
            matrices_load(s.a + along_at(line, step * 2 + lane / 16), a[i]);
#pragma unroll
            for (int k = 0; k < 4; k++)
                mma_round<element>(&a[i][k]);
        }
#pragma unroll
        for (int j = 0; j < each; j += 2)
            load_right<element, across, each>(s.b, column + j * MMA_COLUMNS, step, b + j * 2);
#pragma unroll
        for (int i = 0; i < each; i++)
#pragma unroll
            for (int j = 0; j < each; j++)
                mma_step(element{}, sums[i][j], a[i], b + j * 2);
    }
}

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
    unsigned lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
    unsigned row = blockIdx.y * SIDE * each + warp / WARPS_ACROSS * (MMA_ROWS * each) + lane / 4;
    unsigned column = blockIdx.x * SIDE * each + warp % WARPS_ACROSS * (MMA_COLUMNS * each);
#pragma unroll
    for (int i = 0; i < each; i++)
#pragma unroll
        for (int j = 0; j < each; j++)
#pragma unroll
            for (int half_of = 0; half_of < 2; half_of++)
                store_two<element>(k, c, row + i * MMA_ROWS + half_of * 8,
                                   column + j * MMA_COLUMNS + lane % 4 * 2,
                                   sums[i][j][half_of * 2], sums[i][j][half_of * 2 + 1]);
}

template <class element, bool across, int each> struct block {
    struct lines<element> a, b;
    unsigned row, column;
};

template <class element, bool across, int each>
static __device__ __forceinline__ void fill(const struct block<element, across, each> &at,
                                            unsigned number, struct stage<each> *stages)
{
    struct stage<each> &s = stages[number % STAGES];
    unsigned depth = number * (LINE_BYTES / sizeof(element));
    fill_along<element, each>(s.a, at.a, at.row, depth);
    if (across)
        fill_across<element, each>(s.b, at.b, at.column, depth);
    else
        fill_along<element, each>(s.b, at.b, at.column, depth);
}

/* A stage is filled again when all have passed the barrier behind its last reading. */
template <class element, bool across, int each>
__global__ void __launch_bounds__(BLOCK)
    matmul_tensor(const __grid_constant__ struct tensor_product k)
{
    __shared__ struct stage<each> stages[STAGES];
    const struct product &p = k.p;
    const unsigned depth = LINE_BYTES / sizeof(element);
    struct product_offsets at = product_at(p, blockIdx.z);
    struct block<element, across, each> b = {
        {(const element *)p.a + at.a, p.a_row, p.m, p.k, k.whole_a},
        {(const element *)p.b + at.b, across ? p.b_row : p.b_col, across ? p.k : p.n,
         across ? p.n : p.k, k.whole_b},
        blockIdx.y * SIDE * each,
        blockIdx.x * SIDE * each};
    unsigned warp = threadIdx.x / WARP;
    bool is_needed = b.row + warp / WARPS_ACROSS * (MMA_ROWS * each) < p.m &&
                     b.column + warp % WARPS_ACROSS * (MMA_COLUMNS * each) < p.n;
    float sums[each][each][4] = {};
    unsigned count = (p.k + depth - 1) / depth;
    for (unsigned n = 0; n < STAGES - 1; n++) {
        if (n < count)
            fill(b, n, stages);
        copies_end_group();
    }
    for (unsigned n = 0; n < count; n++) {
        copies_wait<STAGES - 2>();
        __syncthreads();
        if (n + STAGES - 1 < count)
            fill(b, n + STAGES - 1, stages);
        copies_end_group();
        if (is_needed)
            multiply<element, across, each>(stages[n % STAGES], sums);
    }
    store<element, each>(k, at.c, sums);
}

/* ---- hooks ---- */

struct kernel_state {
    struct tensor_product k;
    bool across;
    int each;
};

static bool is_multiple(const struct kernel_query *q, int64_t stride)
{
    return stride * element_bytes(q->out[0].dtype) % MMA_CHUNK == 0;
}

/* How the right factor lies; false: neither along the depth nor across it. */
static bool find_right(const struct product *p, bool *across)
{
    bool along = p->b_row == 1 || p->k == 1;
    *across = p->b_col == 1 && !(p->n == 1 && along);
    if (!*across && !along)
        *across = p->n == 1;
    return *across || along;
}

static enum status plan(const struct kernel_query *q, struct kernel_state *s, struct error *why)
{
    struct product *p = &s->k.p;
    TRY(product_plan(q, SIDE * EACH_SMALL, p, why));
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
    s->k.whole_a = is_multiple(q, p->a_row) || p->m == 1;
    s->k.whole_b = is_multiple(q, s->across ? p->b_row : p->b_col);
    s->k.pairs = p->c_col == 1 && p->c_row % 2 == 0 && p->n % 2 == 0;
    for (int d = 0; d < p->batch_rank; d++) {
        s->k.whole_a = s->k.whole_a && is_multiple(q, p->a_batch[d]);
        s->k.whole_b = s->k.whole_b && is_multiple(q, p->b_batch[d]);
        s->k.pairs = s->k.pairs && p->c_batch[d] % 2 == 0;
    }
    return STATUS_OK;
}

static enum status supports(const struct kernel_query *q, struct error *why)
{
    struct kernel_state s = {};
    return plan(q, &s, why);
}

/* The larger blocks only where both sides fill more than half of one. */
static int variants(const struct kernel_query *q)
{
    struct matmul_shape shape = cuda_host->matmul_shape(q->node, &q->in[0], &q->in[1], &q->out[0]);
    int64_t small = (int64_t)SIDE * EACH_SMALL;
    return shape.m > small && shape.n > small ? 2 : 1;
}

static void describe(const struct kernel_query *q, int variant, char *text, size_t size)
{
    (void)q;
    int side = SIDE * (variant ? (int)EACH_LARGE : (int)EACH_SMALL);
    snprintf(text, size, "%dx%d stages %d", side, side, (int)STAGES);
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

template <bool across, int each>
static void launch_blocks(enum dtype type, const struct tensor_product *k,
                          const struct kernel_args *args)
{
    const int side = SIDE * each;
    struct cuda_grid grid =
        cuda_size((unsigned)div_up(k->p.n, side), (unsigned)div_up(k->p.m, side), k->p.batch);
    LAUNCH_FLOATS(type, (matmul_tensor<element, across, each>), grid, cuda_size(BLOCK), 0, k, args);
}

/* Tensors begin at multiples of 64 bytes; what a caller brings may not. */
static bool begins_whole(const void *data)
{
    return (uintptr_t)data % MMA_CHUNK == 0;
}

static void launch(const struct kernel_state *state, const struct kernel_query *q,
                   const struct kernel_args *args)
{
    struct tensor_product k = state->k;
    enum dtype type = q->out[0].dtype;
    if (k.p.m == 0 || k.p.n == 0 || k.p.batch == 0)
        return;
    product_resolve(&k.p, args);
    k.whole_a = k.whole_a && begins_whole(k.p.a);
    k.whole_b = k.whole_b && begins_whole(k.p.b);
    if (state->across && state->each == EACH_LARGE)
        launch_blocks<true, EACH_LARGE>(type, &k, args);
    else if (state->across)
        launch_blocks<true, EACH_SMALL>(type, &k, args);
    else if (state->each == EACH_LARGE)
        launch_blocks<false, EACH_LARGE>(type, &k, args);
    else
        launch_blocks<false, EACH_SMALL>(type, &k, args);
}

static void release(struct kernel_state *state)
{
    free(state);
}

static const char *const ops[] = {"MatMul", "Gemm", NULL};

CUDA_KERNEL(matmul_tensor) = {CUDA_NAME(matmul_tensor),
                              .ops = ops,
                              .supports = supports,
                              .variants = variants,
                              .describe = describe,
                              .prepare = prepare,
                              .launch = launch,
                              .release = release,
                              .unlike_variants = true};
