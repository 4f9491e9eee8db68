/* SPDX-License-Identifier: Apache-2.0
 *
 * Attention on tensor cores without a matrix of scores (Dao et al. 2022; Dao 2023): each warp has
 * 16 queries of a head in registers, with the running maximum and sum of their softmax; keys and
 * values go through shared memory in tiles of 8 KiB, the next of which are copied meanwhile.
 *
 * Scores leave the first product where the second wants its left factor: of 16 bits pair by pair.
 * Of f32 a lane has keys 2 (l % 4) and the next, where the instruction wants l % 4 and that plus 4;
 * the order of the keys is free, so the values are read in that of the scores.
 *
 * f32 without leave to round to tf32 is computed exactly enough all the same: each factor is a
 * rounded number of 11 bits and its rest, and of the four products the three that count are added,
 * the small ones first (Markidis et al. 2018; Ootomo and Yokota 2022). Tensor cores truncate sums:
 * here they add the keys of one tile only, and CUDA cores the tiles. */
#include "engine/kernels/cuda/lib/attention.h"
#include "engine/kernels/cuda/lib/mma_stage.h"

enum { TILE_BYTES = 8192, TILE_CHUNKS = TILE_BYTES / MMA_CHUNK, STAGES = 2, STEP_BYTES = 32 };

struct attention_stage {
    uint4 k[TILE_CHUNKS], v[TILE_CHUNKS];
};

struct tensor_attention {
    struct attention a;
    unsigned piece_k, piece_v; /* bytes: every row begins at a multiple */
    bool pairs;                /* two neighbouring results can be stored at once */
    bool words;                /* every row of queries begins at a multiple of 4 bytes */
};

/* columns: those of a head, 64 or 128, of which its size may be fewer; the others are zeros. */
#define ROW_CHUNKS(element, columns) (columns * (unsigned)sizeof(element) / MMA_CHUNK)
#define TILE_KEYS(element, columns)  (TILE_CHUNKS / ROW_CHUNKS(element, columns))
#define STEP_DEPTH(element)          (STEP_BYTES / (unsigned)sizeof(element))

/* ---- tiles ---- */

/* Where a chunk of a key's row lies: ldmatrix reads the same chunk of eight rows at once. */
template <unsigned chunks>
static __device__ __forceinline__ unsigned key_at(unsigned row, unsigned chunk)
{
    return row * chunks + (chunk ^ row % 8);
}

/* The same of values; in f32 the lanes read two chunks beside each other, of every other of eight
 * rows. */
template <class element, unsigned chunks>
static __device__ __forceinline__ unsigned value_at(unsigned row, unsigned chunk)
{
    return row * chunks + (chunk ^ (sizeof(element) == 2 ? row % 8 : row / 2 % 4 * 2));
}

template <class element>
static __device__ __forceinline__ struct mma_lines<element>
lines_of(const element *data, int64_t row, const struct attention &a, unsigned piece) {
    return {data, row, a.keys, a.size, piece};
}

/* `to`, and s.k or s.v at `at`: where the chunk goes. */
template <class element>
static __device__ __forceinline__ void fill_chunk(shared_place to, uint4 *half_of, unsigned at,
                                                  const element *from, unsigned bytes,
                                                  unsigned piece)
{
    if (piece == MMA_CHUNK)
        copy_later_to<MMA_CHUNK>(to + at * MMA_CHUNK, from, bytes);
    else
        mma_fill_odd(half_of + at, from, bytes, piece);
}

/* A thread has the same chunk of every so many rows. s and `to`: the same. */
template <class element, unsigned columns>
static __device__ __forceinline__ void fill(const struct mma_lines<element> &k,
                                            const struct mma_lines<element> &v, unsigned key,
                                            struct attention_stage &s, shared_place to)
{
    const unsigned chunks = ROW_CHUNKS(element, columns), per_chunk = MMA_CHUNK / sizeof(element);
    unsigned chunk = threadIdx.x % chunks, first = threadIdx.x / chunks, step = blockDim.x / chunks;
    unsigned at = chunk * per_chunk, count = at < k.length ? min(k.length - at, per_chunk) : 0;
    const element *from_k = k.data + (key + first) * k.stride + at;
    const element *from_v = v.data + (key + first) * v.stride + at;
#pragma unroll 1
    for (unsigned row = first; row < TILE_KEYS(element, columns); row += step) {
        unsigned bytes = key + row < k.count ? count * (unsigned)sizeof(element) : 0;
        fill_chunk(to, s.k, key_at<chunks>(row, chunk), from_k, bytes, k.piece);
        fill_chunk(to + sizeof s.k, s.v, value_at<element, chunks>(row, chunk), from_v, bytes,
                   v.piece);
        from_k += step * k.stride;
        from_v += step * v.stride;
    }
}

/* ---- factors ---- */

/* As tensor cores take them. rest: of a factor that is the sum of two. */
template <int count> struct factors {
    unsigned rounded[count], rest[count];
};

template <class element, bool exact, int count>
static __device__ __forceinline__ struct factors<count> factors_of(const unsigned (&bits)[count]) {
    struct factors<count> f;
#pragma unroll
    for (int k = 0; k < count; k++) {
        f.rounded[k] = bits[k];
        mma_round<element>(&f.rounded[k]);
        f.rest[k] = 0;
        if (exact) {
            f.rounded[k] &= 0xffffe000u; /* what the instruction does not look at */
            float rest = __int_as_float((int)bits[k]) - __int_as_float((int)f.rounded[k]);
            f.rest[k] = (unsigned)__float_as_int(rest);
        }
    }
    return f;
}

template <class element, bool exact>
static __device__ __forceinline__ void multiply(float c[4], const struct factors<4> &a,
                                                const unsigned (&right)[2])
{
    struct factors<2> b = factors_of<element, exact>(right);
    if (exact) {
        mma_step(element{}, c, a.rest, b.rounded);
        mma_step(element{}, c, a.rounded, b.rest);
    }
    mma_step(element{}, c, a.rounded, b.rounded);
}

/* The 4 bytes at a column of a row; 0 where there are none. words: the row begins at a multiple. */
static __device__ __forceinline__ unsigned word_at(const float *row, unsigned at, unsigned size,
                                                   bool)
{
    return at < size ? (unsigned)__float_as_int(row[at]) : 0u;
}

template <class element>
static __device__ __forceinline__ unsigned word_at(const element *row, unsigned at, unsigned size,
                                                   bool words)
{
    if (words)
        return at < size ? *(const unsigned *)(row + at) : 0u;
    unsigned low = at < size ? row[at].bits : 0u, high = at + 1 < size ? row[at + 1].bits : 0u;
    return low | high << 16;
}

/* Two results as one left factor of 16 bits. */
template <class element> static __device__ __forceinline__ unsigned pair_of(float low, float high)
{
    element e[2];
    float_put(&e[0], low);
    float_put(&e[1], high);
    return e[0].bits | (unsigned)e[1].bits << 16;
}

/* ---- a warp's work ---- */

/* The lane, in f32 read anew: places in shared memory that the compiler keeps from tile to tile
 * would cost registers that it does not have (sm_100). */
template <class element> static __device__ __forceinline__ unsigned lane_of(void)
{
    unsigned lane = threadIdx.x % WARP;
    if (sizeof(element) == 4)
        PTX(lane = threadIdx.x % WARP, "mov.u32 %0, %%laneid;" : "=r"(lane));
    return lane;
}

/* Of the warp's queries l / 4 and l / 4 + 8: what has been seen so far. A sum is the lane's own
 * until the end. */
template <unsigned columns> struct running {
    float largest[2], sum[2], y[columns / MMA_COLUMNS][4];
};

/* Beyond the last query they are those of the last one, whose results nobody stores twice. */
template <class element, unsigned columns>
static __device__ __forceinline__ void
load_queries(const struct attention &a, const element *q, unsigned query, bool words_are,
             unsigned (&words)[columns / STEP_DEPTH(element)][4])
{
    unsigned lane = threadIdx.x % WARP, per_word = 4 / (unsigned)sizeof(element);
    const element *rows[2];
#pragma unroll
    for (unsigned k = 0; k < 2; k++)
        rows[k] = q + min(query + lane / 4 + k * 8, a.queries - 1) * a.q_row;
#pragma unroll
    for (unsigned d = 0; d < columns / STEP_DEPTH(element); d++)
#pragma unroll
        for (unsigned k = 0; k < 4; k++) {
            unsigned at =
                d * STEP_DEPTH(element) + lane % 4 * per_word + k / 2 * (STEP_DEPTH(element) / 2);
            words[d][k] = word_at(rows[k % 2], at, a.size, words_are);
        }
}

template <class element, bool exact, unsigned columns>
static __device__ __forceinline__ void
scores(const uint4 *keys, const unsigned (&q)[columns / STEP_DEPTH(element)][4],
       float (&s)[TILE_KEYS(element, columns) / MMA_COLUMNS][4])
{
    const unsigned chunks = ROW_CHUNKS(element, columns);
    unsigned lane = lane_of<element>();
#pragma unroll
    for (unsigned d = 0; d < columns / STEP_DEPTH(element); d++) {
        struct factors<4> a = factors_of<element, exact>(q[d]);
#pragma unroll
        for (unsigned j = 0; j < TILE_KEYS(element, columns) / MMA_COLUMNS; j += 2) {
            unsigned row = j * MMA_COLUMNS + lane % 8 + lane / 16 * 8, b[4];
            matrices_load(keys + key_at<chunks>(row, d * 2 + lane / 8 % 2), b);
            const unsigned first[2] = {b[0], b[1]}, second[2] = {b[2], b[3]};
            multiply<element, exact>(s[j], a, first);
            multiply<element, exact>(s[j + 1], a, second);
        }
    }
}

/* Of the lane's two queries; where there is no second one, what it gets does not matter. */
template <class element> struct masks {
    const element *first;
    unsigned query;
    bool two;
};

/* Scale and mask; what is beyond the last key is no key. The mask is read without asking for each
 * score whether it is there, nor in 64 bits where: that was a third of the instructions of a tile,
 * and they were there where nothing is masked, too. */
template <class element, unsigned tiles>
static __device__ __forceinline__ void finish_scores(const struct attention &a,
                                                     const struct masks<element> &mask,
                                                     unsigned key0, float (&s)[tiles][4])
{
    unsigned first = key0 + threadIdx.x % 4 * 2;
#pragma unroll
    for (unsigned n = 0; n < tiles * 4; n++)
        s[n / 4][n % 4] *= a.scale;
    if (a.mask) {
        const element *rows[2] = {mask.first, mask.first + (mask.two ? 8 * a.mask_at[2] : 0)};
#pragma unroll
        for (unsigned n = 0; n < tiles * 4; n++) {
            unsigned key = min(first + n / 4 * MMA_COLUMNS + n % 2, a.keys - 1);
            s[n / 4][n % 4] += to_float(rows[n % 4 / 2][(int)key * (int)a.mask_at[3]]);
        }
    }
    if (key0 + tiles * MMA_COLUMNS <= attention_seen(a, 0))
        return;
    unsigned seen[2] = {attention_seen(a, mask.query), attention_seen(a, mask.query + 8)};
#pragma unroll
    for (unsigned n = 0; n < tiles * 4; n++)
        if (first + n / 4 * MMA_COLUMNS + n % 2 >= min(seen[n % 4 / 2], a.keys))
            s[n / 4][n % 4] = -INFINITY;
}

/* e^(x - shift). Of 16 bits by a power of 2, of half as many instructions: the error of its
 * argument is far below theirs. */
template <class element> static __device__ __forceinline__ float exp_of(float x, float shift)
{
    const float log2_e = 1.44269504f;
    return sizeof(element) == 2 ? exp2f(fmaf(x, log2_e, -shift * log2_e)) : expf(x - shift);
}

/* Scores become what they are in the softmax's sums; shrink: by how much what came before does. */
template <class element, unsigned tiles, unsigned columns>
static __device__ __forceinline__ void take_scores(float (&s)[tiles][4], struct running<columns> &r,
                                                   float (&shrink)[2])
{
#pragma unroll
    for (int row = 0; row < 2; row++) {
        float largest = r.largest[row], sum = 0;
#pragma unroll
        for (unsigned j = 0; j < tiles; j++)
            largest = fmaxf(largest, fmaxf(s[j][2 * row], s[j][2 * row + 1]));
        for (int with = 1; with < 4; with *= 2) /* the four lanes of a query */
            largest = fmaxf(largest, __shfl_xor_sync(all_lanes, largest, with));
        float shift = largest == -INFINITY ? 0.0f : largest; /* all keys so far are masked out */
        shrink[row] = exp_of<element>(r.largest[row], shift);
#pragma unroll
        for (unsigned j = 0; j < tiles; j++)
#pragma unroll
            for (int e = 2 * row; e < 2 * row + 2; e++)
                sum += s[j][e] = exp_of<element>(s[j][e], shift);
        r.largest[row] = largest;
        r.sum[row] = r.sum[row] * shrink[row] + sum;
    }
}

/* The left factor of a step over the values: its keys in the order that the head of this file
 * describes. */
template <unsigned tiles>
static __device__ __forceinline__ void take_left(float, const float (&s)[tiles][4], unsigned step,
                                                 unsigned (&left)[4])
{
#pragma unroll
    for (unsigned k = 0; k < 4; k++)
        left[k] = (unsigned)__float_as_int(s[step][k % 2 * 2 + k / 2]);
}

template <class element, unsigned tiles>
static __device__ __forceinline__ void take_left(element, const float (&s)[tiles][4], unsigned step,
                                                 unsigned (&left)[4])
{
#pragma unroll
    for (unsigned k = 0; k < 4; k++) {
        const float *tile = s[2 * step + k / 2] + k % 2 * 2;
        left[k] = pair_of<element>(tile[0], tile[1]);
    }
}

/* Of 16 columns, two steps beside each other; b: two registers of each. */
template <class element, unsigned chunks>
static __device__ __forceinline__ void load_values(const uint4 *values, unsigned lane, unsigned key,
                                                   unsigned column, unsigned b[4])
{
    unsigned per_chunk = MMA_CHUNK / (unsigned)sizeof(element);
    if (sizeof(element) == 2) {
        unsigned chunk = column / per_chunk + lane / 16;
        matrices_load_turned(values + value_at<element, chunks>(key + lane % 16, chunk), b);
    } else {
#pragma unroll
        for (unsigned k = 0; k < 4; k++) {
            unsigned row = key + lane % 4 * 2 + k % 2, at = column + k / 2 * 8 + lane / 4;
            const uint4 *chunk = values + value_at<element, chunks>(row, at / per_chunk);
            b[k] = ((const unsigned *)chunk)[at % per_chunk];
        }
    }
}

template <class element, bool exact, unsigned columns, unsigned tiles>
static __device__ __forceinline__ void add_values(const uint4 *values, const float (&s)[tiles][4],
                                                  const float (&shrink)[2],
                                                  struct running<columns> &r)
{
    const unsigned depth = STEP_DEPTH(element), steps = tiles * MMA_COLUMNS / depth;
    unsigned lane = lane_of<element>();
    struct factors<4> a[steps];
#pragma unroll
    for (unsigned step = 0; step < steps; step++) {
        unsigned left[4];
        take_left(element{}, s, step, left);
        a[step] = factors_of<element, exact>(left);
    }
#pragma unroll
    for (unsigned j = 0; j < columns / MMA_COLUMNS; j += 2) {
        float sums[2][4] = {};
#pragma unroll
        for (unsigned step = 0; step < steps; step++) {
            unsigned b[4];
            load_values<element, ROW_CHUNKS(element, columns)>(values, lane, step * depth,
                                                               j * MMA_COLUMNS, b);
            const unsigned first[2] = {b[0], b[1]}, second[2] = {b[2], b[3]};
            multiply<element, exact>(sums[0], a[step], first);
            multiply<element, exact>(sums[1], a[step], second);
        }
#pragma unroll
        for (unsigned e = 0; e < 8; e++)
            r.y[j + e / 4][e % 4] = r.y[j + e / 4][e % 4] * shrink[e % 4 / 2] + sums[e / 4][e % 4];
    }
}

/* ---- storing ---- */

static __device__ __forceinline__ void put_two(float *y, float first, float second)
{
    y[0] = first;
    y[1] = second;
}

template <class element>
static __device__ __forceinline__ void put_two(element *y, float first, float second)
{
    *(unsigned *)y = pair_of<element>(first, second);
}

/* Which queries of which head. Read anew: kept from the beginning it would cost the loop over the
 * keys registers. */
struct whose {
    unsigned query, head, batch;
};

static __device__ __forceinline__ struct whose whose_results(void)
{
    struct whose w;
    PTX(w.query = blockIdx.x, "mov.u32 %0, %%ctaid.x;" : "=r"(w.query));
    PTX(w.head = blockIdx.y, "mov.u32 %0, %%ctaid.y;" : "=r"(w.head));
    PTX(w.batch = blockIdx.z, "mov.u32 %0, %%ctaid.z;" : "=r"(w.batch));
    w.query = (w.query * blockDim.x + threadIdx.x) / WARP * MMA_ROWS;
    return w;
}

template <class element, unsigned columns>
static __device__ __forceinline__ void store(const struct tensor_attention &t,
                                             const struct running<columns> &r)
{
    unsigned lane = threadIdx.x % WARP;
    struct whose w = whose_results();
    int64_t lines = (int64_t)w.batch * t.a.queries * t.a.heads + w.head;
    element *y = (element *)t.a.y + lines * t.a.size;
#pragma unroll
    for (int row = 0; row < 2; row++) {
        float sum = r.sum[row];
        for (int with = 1; with < 4; with *= 2)
            sum += __shfl_xor_sync(all_lanes, sum, with);
        sum = attention_divisor(t.a, sum);
        unsigned at = w.query + lane / 4 + (unsigned)row * 8;
        if (at >= t.a.queries)
            continue;
        element *line = y + (int64_t)at * t.a.heads * t.a.size;
#pragma unroll
        for (unsigned j = 0; j < columns / MMA_COLUMNS; j++) {
            unsigned column = j * MMA_COLUMNS + lane % 4 * 2;
            float first = r.y[j][2 * row] / sum, second = r.y[j][2 * row + 1] / sum;
            if (column + 1 < t.a.size && t.pairs) {
                put_two(line + column, first, second);
                continue;
            }
            if (column < t.a.size)
                float_put(line + column, first);
            if (column + 1 < t.a.size)
                float_put(line + column + 1, second);
        }
    }
}

/* ---- a block ---- */

enum { WARPS_MOST = 8, BLOCK_MOST = WARPS_MOST * WARP };

/* A stage is filled again when all have passed the barrier after its last reading. A warp without
 * queries only copies. */
template <class element, bool exact, unsigned columns>
__global__ void __launch_bounds__(BLOCK_MOST, 1)
    attention_tensor(const __grid_constant__ struct tensor_attention t)
{
    KERNEL_BEGIN();
    __shared__ struct attention_stage stages[STAGES];
    const unsigned tile = TILE_KEYS(element, columns), tiles = tile / MMA_COLUMNS;
    const struct attention &a = t.a;
    struct attention_head<element> h = attention_head_of<element>(a);
    struct mma_lines<element> k = lines_of(h.k, a.k_row, a, t.piece_k);
    struct mma_lines<element> v = lines_of(h.v, a.v_row, a, t.piece_v);
    unsigned query = (blockIdx.x * blockDim.x + threadIdx.x) / WARP * MMA_ROWS;
    unsigned lane = threadIdx.x % WARP, q[columns / STEP_DEPTH(element)][4];
    unsigned row = query + lane / 4;
    struct masks<element> mask = {
        h.mask + (row < a.queries ? row : 0) * a.mask_at[2], row, row + 8 < a.queries
    };
    struct running<columns> r = {
    };
    r.largest[0] = r.largest[1] = -INFINITY;
    shared_place memory = shared_place_of(stages);
    KEEP(memory);
    fill<element, columns>(k, v, 0, stages[0], memory);
    copies_end_group();
    load_queries<element, columns>(a, h.q, query, t.words, q);
    unsigned keys = attention_keys(a, (blockIdx.x + 1) * (blockDim.x / WARP) * MMA_ROWS);
    for (unsigned key = 0, n = 0; key < keys; key += tile, n ^= 1) {
        if (key + tile < keys)
            fill<element, columns>(k, v, key + tile, stages[n ^ 1],
                                   memory + (n ^ 1) * sizeof stages[0]);
        copies_end_group();
        copies_wait<1>();
        __syncthreads();
        if (query < a.queries) {
            float s[tiles][4] = {}, shrink[2];
            scores<element, exact, columns>(stages[n].k, q, s);
            finish_scores<element>(a, mask, key, s);
            take_scores<element>(s, r, shrink);
            add_values<element, exact, columns>(stages[n].v, s, shrink, r);
        }
        __syncthreads();
    }
    if (query < a.queries)
        store<element, columns>(t, r);
}

/* ---- hooks ---- */

enum { SIZE_FEW = 64, SIZE_MANY = 128 };

static const int warps_of[] = {4, 2, WARPS_MOST};

struct kernel_state {
    struct attention_call call;
    struct tensor_attention t; /* the call's part is left open */
    int warps;
    bool exact;
};

static enum status plan(const struct kernel_query *q, int variant, struct kernel_state *s,
                        struct error *why)
{
    if (q->device->properties.major < 8)
        return REFUSE(why, "no such tensor cores before sm_80");
    s->warps = warps_of[variant];
    TRY(attention_plan(q, s->warps * MMA_ROWS, SIZE_MANY, &s->call, why));
    int64_t size = element_bytes(q->in[0].dtype), head = s->call.a.size * size;
    s->exact = s->call.a.type == DTYPE_F32 && !q->tf32;
    unsigned piece = mma_piece_of(head, MMA_CHUNK);
    s->t.piece_k = mma_piece_of(s->call.start[1], mma_piece_of(s->call.a.k_row * size, piece));
    s->t.piece_v = mma_piece_of(s->call.start[2], mma_piece_of(s->call.a.v_row * size, piece));
    s->t.pairs = s->call.a.size % 2 == 0;
    s->t.words = s->t.pairs && s->call.a.q_row * size % 4 == 0 && s->call.start[0] % 4 == 0;
    return STATUS_OK;
}

/* Blocks of 64 queries, then smaller ones, of which there are more; larger ones read keys and
 * values less often. */
static int variants(const struct kernel_state *s)
{
    return s->call.a.queries > (unsigned)(warps_of[0] * MMA_ROWS) ? ARRAY_COUNT(warps_of) : 2;
}

static void describe(const struct kernel_state *s, char *text, size_t size)
{
    const char *how = s->exact ? "3xtf32" : s->call.a.type == DTYPE_F32 ? "tf32" : "mma";
    snprintf(text, size, "%s queries %d stages %d", how, s->warps * MMA_ROWS, (int)STAGES);
}

template <unsigned columns>
static void launch_columns(const struct kernel_state *s, const struct tensor_attention *t,
                           const struct kernel_args *args)
{
    struct cuda_grid block = cuda_size((unsigned)s->warps * WARP);
    if (s->exact)
        LAUNCH((attention_tensor<float, true, columns>), s->call.grid, block, 0, t, args);
    else
        LAUNCH_FLOATS(s->call.a.type, (attention_tensor<element, false, columns>), s->call.grid,
                      block, 0, t, args);
}

static void launch(const struct kernel_state *s, const struct kernel_args *args)
{
    struct tensor_attention t = s->t;
    t.a = attention_resolve(&s->call, args);
    /* Tensors begin at multiples of 64 bytes; what a caller brings may not. */
    t.piece_k = mma_piece_of((int64_t)(uintptr_t)t.a.k, t.piece_k);
    t.piece_v = mma_piece_of((int64_t)(uintptr_t)t.a.v, t.piece_v);
    t.words = t.words && (uintptr_t)t.a.q % 4 == 0;
    if (t.a.size <= SIZE_FEW)
        launch_columns<SIZE_FEW>(s, &t, args);
    else
        launch_columns<SIZE_MANY>(s, &t, args);
}

static const char *const ops[] = {"Attention", NULL};

CUDA_KERNEL(attention_tensor) = {
    CUDA_NAME(attention_tensor), .ops = ops,          CUDA_PLAN,
    CUDA_HOOK(variants),         CUDA_HOOK(describe), CUDA_HOOK(launch)};
