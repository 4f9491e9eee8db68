/* SPDX-License-Identifier: Apache-2.0
 *
 * Attention without a matrix of scores: a block has 32 queries of a head and walks the keys
 * 16 at a time, with the running maximum and sum of each query's softmax (Milakov and Gimelshein
 * 2018; Dao et al. 2022). Eight threads share a query: each has two scores of a step and every
 * eighth column of the result, all in registers. */
#include "engine/kernels/cuda/lib/attention.h"

enum { QUERIES = 32, KEYS = 16, TEAM = BLOCK / QUERIES, EACH_KEYS = KEYS / TEAM };

/* columns: the most a thread has; the padding keeps rows off each other's banks, in p the eight
 * words of each of a warp's four queries. */
template <int columns> struct attention_memory {
    float q[QUERIES][TEAM * columns + 1];
    float k[KEYS][TEAM * columns + 1], v[KEYS][TEAM * columns + 1];
    float p[QUERIES][KEYS + TEAM];
};

template <int columns> struct running {
    float largest, sum, y[columns];
};

/* Sum or maximum over the eight threads of a query. */
static __device__ __forceinline__ float team_max(float x)
{
    for (int with = TEAM / 2; with > 0; with /= 2)
        x = fmaxf(x, __shfl_xor_sync(all_lanes, x, with));
    return x;
}

static __device__ __forceinline__ float team_sum(float x)
{
    for (int with = TEAM / 2; with > 0; with /= 2)
        x += __shfl_xor_sync(all_lanes, x, with);
    return x;
}

/* Rows beyond the end are zeros. to: row r is at to + r pitch. */
template <class element>
static __device__ __forceinline__ void load_rows(float *to, unsigned pitch, const element *from,
                                                 int64_t row, unsigned rows, unsigned limit,
                                                 unsigned size)
{
    for (unsigned t = threadIdx.x; t < limit * size; t += BLOCK) {
        unsigned r = t / size, d = t - r * size;
        to[r * pitch + d] = r < rows ? to_float(from[r * row + d]) : 0.0f;
    }
}

template <int columns, class element>
static __device__ __forceinline__ void load_queries(const struct attention &a, unsigned query0,
                                                    struct attention_memory<columns> &m)
{
    struct attention_head<element> h = attention_head_of<element>(a);
    load_rows(m.q[0], TEAM * columns + 1, h.q + query0 * a.q_row, a.q_row, a.queries - query0,
              QUERIES, a.size);
}

template <int columns, class element>
static __device__ __forceinline__ void load_keys(const struct attention &a, unsigned key0,
                                                 struct attention_memory<columns> &m)
{
    const unsigned pitch = TEAM * columns + 1, rows = a.keys - key0;
    struct attention_head<element> h = attention_head_of<element>(a);
    load_rows(m.k[0], pitch, h.k + key0 * a.k_row, a.k_row, rows, KEYS, a.size);
    load_rows(m.v[0], pitch, h.v + key0 * a.v_row, a.v_row, rows, KEYS, a.size);
}

/* row: the number of the query in its head. */
template <int columns>
static __device__ __forceinline__ void scores(const struct attention &a,
                                              const struct attention_memory<columns> &m,
                                              unsigned row, unsigned key0, float *s)
{
    unsigned query = threadIdx.x / TEAM, lane = threadIdx.x % TEAM;
    unsigned mask =
        (unsigned)(blockIdx.z * a.mask_at[0] + blockIdx.y * a.mask_at[1] + row * a.mask_at[2]);
    unsigned seen = attention_seen(a, row);
#pragma unroll
    for (int i = 0; i < EACH_KEYS; i++) {
        unsigned j = lane + TEAM * i, key = key0 + j;
        float sum = 0;
        for (unsigned d = 0; d < a.size; d++)
            sum += m.q[query][d] * m.k[j][d];
        float shift = 0;
        if (a.mask && key < seen)
            shift = group_as<1>(a.type, a.mask, mask + key * (unsigned)a.mask_at[3]).v[0];
        s[i] = key < seen ? a.scale * sum + shift : -INFINITY;
    }
}

/* Takes the step's scores into the running softmax and result. */
template <int columns>
static __device__ __forceinline__ void take_step(struct attention_memory<columns> &m,
                                                 const float *s, struct running<columns> &r)
{
    unsigned query = threadIdx.x / TEAM, lane = threadIdx.x % TEAM;
    float largest = fmaxf(r.largest, team_max(fmaxf(s[0], s[1])));
    float shift = largest == -INFINITY ? 0.0f : largest; /* all keys so far are masked out */
    float shrink = expf(r.largest - shift), sum = 0;
#pragma unroll
    for (int i = 0; i < EACH_KEYS; i++) {
        float p = expf(s[i] - shift);
        m.p[query][lane + TEAM * i] = p;
        sum += p;
    }
    __syncwarp(); /* a query's threads are in one warp */
    r.sum = r.sum * shrink + team_sum(sum);
    r.largest = largest;
#pragma unroll
    for (int c = 0; c < columns; c++) {
        float y = r.y[c] * shrink;
        for (int j = 0; j < KEYS; j++)
            y += m.p[query][j] * m.v[j][lane + TEAM * c];
        r.y[c] = y;
    }
}

/* row: the number of the query in its head. */
template <int columns, class element>
static __device__ __forceinline__ void store(const struct attention &a, unsigned row,
                                             const struct running<columns> &r)
{
    unsigned lane = threadIdx.x % TEAM;
    float divisor = attention_divisor(a, r.sum);
    element *y = attention_head_of<element>(a).y + (int64_t)row * a.heads * a.size;
#pragma unroll
    for (int c = 0; c < columns; c++)
        if (lane + TEAM * c < a.size)
            float_put(&y[lane + TEAM * c], r.y[c] / divisor);
}

template <int columns>
__global__ void __launch_bounds__(BLOCK)
    attention_blocks(const __grid_constant__ struct attention a)
{
    KERNEL_BEGIN();
    __shared__ struct attention_memory<columns> m;
    const unsigned pitch = TEAM * columns + 1;
    unsigned query0 = blockIdx.x * QUERIES, query = query0 + threadIdx.x / TEAM;
    struct running<columns> r = {
        - INFINITY, 0,
        {
        }
    };
    for (unsigned t = threadIdx.x; t < KEYS * pitch; t += BLOCK)
        m.v[t / pitch][t % pitch] = 0; /* columns beyond the head's size stay zero */
    __syncthreads();
    WITH_ELEMENT(a.type, 1, (load_queries<columns, element>(a, query0, m)));
    unsigned keys = attention_keys(a, query0 + QUERIES);
    for (unsigned key0 = 0; key0 < keys; key0 += KEYS) {
        float s[EACH_KEYS];
        WITH_ELEMENT(a.type, 1, (load_keys<columns, element>(a, key0, m)));
        __syncthreads();
        scores<columns>(a, m, query < a.queries ? query : 0, key0, s);
        take_step<columns>(m, s, r);
        __syncthreads();
    }
    if (query < a.queries)
        WITH_ELEMENT(a.type, 1, (store<columns, element>(a, query, r)));
}

/* ---- rows of scores, between a library's products ---- */

enum { KEPT_KEYS = 512 };

struct score_rows {
    struct device_softmax s;
    unsigned count; /* of rows */
    struct divisor heads, queries;
};

/* The mask's row for a row of scores; NULL: none. */
static __device__ __forceinline__ const float *mask_of_row(const struct score_rows &r, unsigned row)
{
    unsigned plane = divide(row, r.queries), query = row - plane * r.queries.d;
    unsigned batch = divide(plane, r.heads), head = plane - batch * r.heads.d;
    const int64_t *at = r.s.mask_at;
    return r.s.mask ? r.s.mask + batch * at[0] + head * at[1] + query * at[2] : NULL;
}

/* What is taken off before the exponential; of a row to which the mask leaves nothing all weights
 * become NaN, or zero where that is wanted. */
static __device__ __forceinline__ float shift_of(const struct score_rows &r, float largest)
{
    return largest == -INFINITY && r.s.zero_empty ? 0 : largest;
}

static __device__ __forceinline__ float factor_of(const struct score_rows &r, float sum)
{
    return sum == 0 && r.s.zero_empty ? 0 : 1 / sum;
}

/* A warp has a row of up to KEPT_KEYS scores in registers: read once, written once. */
__global__ void __launch_bounds__(BLOCK)
    attention_softmax_kept(const __grid_constant__ struct score_rows r)
{
    KERNEL_BEGIN();
    const int each = KEPT_KEYS / (int)WARP;
    unsigned lane = threadIdx.x % WARP, keys = (unsigned)r.s.keys;
    unsigned step = gridDim.x * (BLOCK / WARP);
    for (unsigned row = (blockIdx.x * BLOCK + threadIdx.x) / WARP; row < r.count; row += step) {
        const float *mask = mask_of_row(r, row);
        float *x = r.s.x + (size_t)row * keys, v[each], largest = -INFINITY, sum = 0;
#pragma unroll
        for (int i = 0; i < each; i++)
            v[i] = i * WARP + lane < keys ? x[i * WARP + lane] : -INFINITY;
#pragma unroll
        for (int i = 0; i < each; i++) {
            if (mask && i * WARP + lane < keys)
                v[i] += mask[(i * WARP + lane) * r.s.mask_at[3]];
            largest = fmaxf(largest, v[i]);
        }
        largest = shift_of(r, warp_max(largest));
#pragma unroll
        for (int i = 0; i < each; i++)
            sum += v[i] = i * WARP + lane < keys ? expf(v[i] - largest) : 0;
        float factor = factor_of(r, warp_sum(sum));
#pragma unroll
        for (int i = 0; i < each; i++)
            if (i * WARP + lane < keys)
                x[i * WARP + lane] = v[i] * factor;
    }
}

/* A warp has a longer row, which is in the first cache after it was read once. */
__global__ void __launch_bounds__(BLOCK)
    attention_softmax(const __grid_constant__ struct score_rows r)
{
    KERNEL_BEGIN();
    const struct device_softmax &s = r.s;
    unsigned lane = threadIdx.x % WARP, keys = (unsigned)s.keys;
    unsigned step = gridDim.x * (BLOCK / WARP);
    for (unsigned row = (blockIdx.x * BLOCK + threadIdx.x) / WARP; row < r.count; row += step) {
        const float *mask = mask_of_row(r, row);
        float *x = s.x + (size_t)row * keys, largest = -INFINITY, sum = 0;
        for (unsigned k = lane; k < keys; k += WARP) {
            x[k] += mask ? mask[k * s.mask_at[3]] : 0.0f;
            largest = fmaxf(largest, x[k]);
        }
        largest = shift_of(r, warp_max(largest));
        for (unsigned k = lane; k < keys; k += WARP)
            sum += x[k] = expf(x[k] - largest);
        float factor = factor_of(r, warp_sum(sum));
        for (unsigned k = lane; k < keys; k += WARP)
            x[k] *= factor;
    }
}

extern "C" enum status cuda_softmax(const struct device *device,
                                    const struct device_softmax *softmax, void *stream,
                                    struct error *err)
{
    struct error refused = {};
    struct kernel_args args = {};
    struct kernel_query q = {};
    int64_t rows = softmax->batch * softmax->heads * softmax->queries;
    struct score_rows r = {*softmax, (unsigned)rows, divisor_of(softmax->heads),
                           divisor_of(softmax->queries)};
    if (rows > INT32_MAX || softmax->keys > INT32_MAX)
        return REFUSE(err, "more than 2^31 rows of scores");
    q.device = device;
    args.stream = stream;
    args.err = &refused;
    if (softmax->keys <= KEPT_KEYS)
        LAUNCH(attention_softmax_kept, grid_for(&q, rows * WARP), cuda_size(BLOCK), 0, &r, &args);
    else
        LAUNCH(attention_softmax, grid_for(&q, rows * WARP), cuda_size(BLOCK), 0, &r, &args);
    if (refused.code != STATUS_OK && err)
        *err = refused;
    return refused.code;
}

/* ---- hooks ---- */

enum { COLUMNS_FEW = 8, COLUMNS_MANY = 16 };

struct kernel_state {
    struct attention_call call;
};

static enum status plan(const struct kernel_query *q, int, struct kernel_state *s,
                        struct error *why)
{
    return attention_plan(q, QUERIES, (int)TEAM * COLUMNS_MANY, &s->call, why);
}

static void launch(const struct kernel_state *s, const struct kernel_args *args)
{
    struct attention a = attention_resolve(&s->call, args);
    if (a.size <= (unsigned)TEAM * COLUMNS_FEW)
        LAUNCH(attention_blocks<COLUMNS_FEW>, s->call.grid, cuda_size(BLOCK), 0, &a, args);
    else
        LAUNCH(attention_blocks<COLUMNS_MANY>, s->call.grid, cuda_size(BLOCK), 0, &a, args);
}

static const char *const ops[] = {"Attention", NULL};

CUDA_KERNEL(attention) = {CUDA_NAME(attention), .ops = ops, CUDA_PLAN, CUDA_HOOK(launch),
                          .general = true};
