/* SPDX-License-Identifier: Apache-2.0
 *
 * Attention without a matrix of scores: a block has 32 queries of a head and walks the keys
 * 16 at a time, with the running maximum and sum of each query's softmax (Milakov and Gimelshein
 * 2018; Dao et al. 2022). Eight threads share a query: each has two scores of a step and every
 * eighth column of the result, all in registers. */
#include "engine/kernels/cuda/lib/query.h"

enum { QUERIES = 32, KEYS = 16, TEAM = BLOCK / QUERIES, EACH_KEYS = KEYS / TEAM };

struct attention {
    const void *q, *k, *v, *mask;
    void *y;
    unsigned heads, size, queries, keys;
    int64_t q_row, k_row, v_row, mask_at[4]; /* mask: batch, head, query, key */
    float scale;
};

/* columns: the most a thread has; the padding keeps rows off each other's banks, in p the eight
 * words of each of a warp's four queries. */
template <int columns> struct attention_memory {
    float q[QUERIES][TEAM * columns + 1];
    float k[KEYS][TEAM * columns + 1], v[KEYS][TEAM * columns + 1];
    float p[QUERIES][KEYS + TEAM];
};

template <int columns> struct running {
    float most, sum, y[columns];
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
                                                 int64_t row, unsigned rows, unsigned most,
                                                 unsigned size)
{
    for (unsigned t = threadIdx.x; t < most * size; t += BLOCK) {
        unsigned r = t / size, d = t - r * size;
        to[r * pitch + d] = r < rows ? to_float(from[r * row + d]) : 0.0f;
    }
}

template <int columns, class element>
static __device__ __forceinline__ void scores(const struct attention &a,
                                              const struct attention_memory<columns> &m,
                                              const element *mask, unsigned key0, float *s)
{
    unsigned query = threadIdx.x / TEAM, lane = threadIdx.x % TEAM;
#pragma unroll
    for (int i = 0; i < EACH_KEYS; i++) {
        unsigned j = lane + TEAM * i, key = key0 + j;
        float sum = 0;
        for (unsigned d = 0; d < a.size; d++)
            sum += m.q[query][d] * m.k[j][d];
        float shift = mask && key < a.keys ? to_float(mask[key * a.mask_at[3]]) : 0.0f;
        s[i] = key < a.keys ? a.scale * sum + shift : -INFINITY;
    }
}

/* Takes the step's scores into the running softmax and result. */
template <int columns>
static __device__ __forceinline__ void take_step(struct attention_memory<columns> &m,
                                                 const float *s, struct running<columns> &r)
{
    unsigned query = threadIdx.x / TEAM, lane = threadIdx.x % TEAM;
    float most = fmaxf(r.most, team_max(fmaxf(s[0], s[1])));
    float shift = most == -INFINITY ? 0.0f : most; /* all keys so far are masked out */
    float shrink = expf(r.most - shift), sum = 0;
#pragma unroll
    for (int i = 0; i < EACH_KEYS; i++) {
        float p = expf(s[i] - shift);
        m.p[query][lane + TEAM * i] = p;
        sum += p;
    }
    __syncwarp(); /* a query's threads are in one warp */
    r.sum = r.sum * shrink + team_sum(sum);
    r.most = most;
#pragma unroll
    for (int c = 0; c < columns; c++) {
        float y = r.y[c] * shrink;
        for (int j = 0; j < KEYS; j++)
            y += m.p[query][j] * m.v[j][lane + TEAM * c];
        r.y[c] = y;
    }
}

template <int columns, class element>
__global__ void __launch_bounds__(BLOCK)
    attention_blocks(const __grid_constant__ struct attention a)
{
    KERNEL_BEGIN();
    __shared__ struct attention_memory<columns> m;
    const unsigned pitch = TEAM * columns + 1;
    unsigned head = blockIdx.y, batch = blockIdx.z, query0 = blockIdx.x * QUERIES;
    unsigned query = query0 + threadIdx.x / TEAM, lane = threadIdx.x % TEAM;
    const element *q =
        (const element *)a.q + ((int64_t)batch * a.queries + query0) * a.q_row + head * a.size;
    const element *k = (const element *)a.k + (int64_t)batch * a.keys * a.k_row + head * a.size;
    const element *v = (const element *)a.v + (int64_t)batch * a.keys * a.v_row + head * a.size;
    const element *mask = (const element *)a.mask;
    struct running<columns> r = {
        - INFINITY, 0,
        {
        }
    };
    for (unsigned t = threadIdx.x; t < KEYS * pitch; t += BLOCK)
        m.v[t / pitch][t % pitch] = 0; /* columns beyond the head's size stay zero */
    __syncthreads();
    if (mask)
        mask += batch * a.mask_at[0] + head * a.mask_at[1] +
                (query < a.queries ? query : 0) * a.mask_at[2];
    load_rows(m.q[0], pitch, q, a.q_row, a.queries - query0, QUERIES, a.size);
    for (unsigned key0 = 0; key0 < a.keys; key0 += KEYS) {
        float s[EACH_KEYS];
        load_rows(m.k[0], pitch, k + key0 * a.k_row, a.k_row, a.keys - key0, KEYS, a.size);
        load_rows(m.v[0], pitch, v + key0 * a.v_row, a.v_row, a.keys - key0, KEYS, a.size);
        __syncthreads();
        scores<columns>(a, m, mask, key0, s);
        take_step<columns>(m, s, r);
        __syncthreads();
    }
    element *y = (element *)a.y + (((int64_t)batch * a.queries + query) * a.heads + head) * a.size;
#pragma unroll
    for (int c = 0; c < columns; c++)
        if (query < a.queries && lane + TEAM * c < a.size)
            float_put(&y[lane + TEAM * c], r.y[c] / r.sum);
}

/* ---- hooks ---- */

enum { COLUMNS_FEW = 8, COLUMNS_MANY = 16 };

struct kernel_state {
    struct attention a; /* pointers are left open */
    int in[3];          /* inputs that hold q, k and v */
    int64_t start[3];   /* bytes from their begin */
    bool masked;
    enum dtype type;
    struct cuda_grid grid;
};

static const struct desc *input(const struct kernel_query *q, int k)
{
    return k < q->in_count && q->in[k].dtype != DTYPE_NONE ? &q->in[k] : NULL;
}

static enum status plan(const struct kernel_query *q, int, struct kernel_state *s,
                        struct error *why)
{
    struct attention_shape of;
    const struct desc *k = input(q, 1), *v = input(q, 2), *mask = input(q, 3);
    TRY(plain_supported(q, why));
    TRY(floats_supported(q, 0, q->in_count, why));
    TRY(attention_shape_from(q->node, &q->in[0].shape, k ? &k->shape : NULL, v ? &v->shape : NULL,
                             &of, why));
    if (of.head_size > (int64_t)TEAM * COLUMNS_MANY)
        return REFUSE(why, "heads of more than %d elements", (int)TEAM * COLUMNS_MANY);
    if (of.heads > GRID_YZ || of.batch > GRID_YZ || of.keys == 0)
        return REFUSE(why, "no keys, or more heads or batches than a grid has");
    const int64_t starts[] = {of.q_start, of.k_start, of.v_start};
    s->type = q->in[0].dtype;
    for (int i = 0; i < ARRAY_COUNT(starts); i++) {
        s->in[i] = of.packed ? 0 : i;
        s->start[i] = starts[i] * element_bytes(s->type);
    }
    s->masked = mask != NULL;
    if (mask)
        strided_broadcast(mask, 4, s->a.mask_at);
    s->a.heads = (unsigned)of.heads;
    s->a.size = (unsigned)of.head_size;
    s->a.queries = (unsigned)of.queries;
    s->a.keys = (unsigned)of.keys;
    s->a.q_row = of.q_row;
    s->a.k_row = of.k_row;
    s->a.v_row = of.v_row;
    s->a.scale = (float)of.scale;
    s->grid = cuda_size(of.head_size ? (unsigned)div_up(of.queries, QUERIES) : 0,
                        (unsigned)of.heads, (unsigned)of.batch);
    return STATUS_OK;
}

static void launch(const struct kernel_state *state, const struct kernel_args *args)
{
    struct attention a = state->a;
    const void **to[] = {&a.q, &a.k, &a.v};
    for (int i = 0; i < ARRAY_COUNT(to); i++)
        *to[i] = (const char *)args->in[state->in[i]] + state->start[i];
    a.mask = state->masked ? args->in[3] : NULL;
    a.y = args->out[0];
    if (a.size <= (unsigned)TEAM * COLUMNS_FEW)
        LAUNCH_FLOATS(state->type, (attention_blocks<COLUMNS_FEW, element>), state->grid,
                      cuda_size(BLOCK), 0, &a, args);
    else
        LAUNCH_FLOATS(state->type, (attention_blocks<COLUMNS_MANY, element>), state->grid,
                      cuda_size(BLOCK), 0, &a, args);
}

static const char *const ops[] = {"Attention", NULL};

CUDA_KERNEL(attention) = {CUDA_NAME(attention), .ops = ops, CUDA_PLAN(plan), .launch = launch};
