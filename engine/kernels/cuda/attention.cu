/* SPDX-License-Identifier: Apache-2.0
 *
 * Attention in f32 with an online softmax (Milakov and Gimelshein 2018): a block has 16 queries of
 * a head and goes over the keys, 32 at a time, through shared memory; scores never reach memory.
 * Eight neighbouring threads share a query: four scores each of a tile, then every eighth element
 * of the result, kept in registers and scaled down whenever a larger score comes. */
#include "engine/kernels/cuda/lib/query.h"

extern "C" {
#include "engine/attention.h"
}

enum {
    QUERIES = 16,
    KEYS = 32,
    LANES = 8, /* threads of a query */
    THREADS = QUERIES * LANES,
    KEYS_EACH = KEYS / LANES,
    HEAD_MAX = 128,
};

struct attention {
    const float *q, *k, *v, *mask; /* mask may be NULL */
    float *y;
    int queries, keys, heads, size; /* size: of a head */
    int64_t q_row, k_row, v_row;
    int64_t mask_batch, mask_head, mask_query, mask_key; /* strides; 0: broadcast */
    float scale;
};

/* Parts of shared memory; rows are padded so that threads of a query's neighbours read other
 * banks. */
struct tiles {
    float *q, *k, *v, *scores;
    int row, score_row;
};

static __device__ __forceinline__ struct tiles tiles_at(float *memory, int size)
{
    struct tiles t;
    t.row = size + 1;
    t.score_row = KEYS + 1;
    t.q = memory;
    t.k = t.q + QUERIES * t.row;
    t.v = t.k + KEYS * t.row;
    t.scores = t.v + KEYS * t.row;
    return t;
}

/* Rows that are not there become zeros. */
static __device__ __forceinline__ void load_rows(float *to, const struct tiles &t,
                                                 const float *from, int64_t row, int there,
                                                 int rows, int size)
{
    for (int i = (int)threadIdx.x; i < rows * size; i += THREADS) {
        int r = i / size, d = i - r * size;
        to[r * t.row + d] = r < there ? from[r * row + d] : 0.0f;
    }
}

/* A thread's four scores: keys lane, lane + 8 ... of the tile; -infinity behind the last. */
static __device__ __forceinline__ void tile_scores(const struct attention &a, const struct tiles &t,
                                                   const float *mask, int first, float *score)
{
    int query = (int)threadIdx.x / LANES, lane = (int)threadIdx.x % LANES;
    for (int j = 0; j < KEYS_EACH; j++)
        score[j] = 0;
    for (int d = 0; d < a.size; d++) {
        float q = t.q[query * t.row + d];
        for (int j = 0; j < KEYS_EACH; j++)
            score[j] += q * t.k[(lane + LANES * j) * t.row + d];
    }
    for (int j = 0; j < KEYS_EACH; j++) {
        int key = first + lane + LANES * j;
        if (key >= a.keys)
            score[j] = -INFINITY;
        else
            score[j] = a.scale * score[j] + (mask ? mask[key * a.mask_key] : 0.0f);
    }
}

static __device__ __forceinline__ float lanes_max(float x)
{
    for (int with = LANES / 2; with > 0; with /= 2)
        x = fmaxf(x, __shfl_xor_sync(all_lanes, x, with));
    return x;
}

static __device__ __forceinline__ float lanes_sum(float x)
{
    for (int with = LANES / 2; with > 0; with /= 2)
        x += __shfl_xor_sync(all_lanes, x, with);
    return x;
}

/* What has been seen of a query's keys. */
template <int each> struct progress {
    float most, sum;
    float y[each]; /* elements lane, lane + 8 ... */
};

template <int each>
static __device__ __forceinline__ void add_tile(const struct attention &a, const struct tiles &t,
                                                float *score, struct progress<each> &p)
{
    int query = (int)threadIdx.x / LANES, lane = (int)threadIdx.x % LANES;
    float *line = t.scores + query * t.score_row, most = p.most, sum = 0;
    for (int j = 0; j < KEYS_EACH; j++)
        most = fmaxf(most, score[j]);
    most = lanes_max(most);
    float base = most == -INFINITY ? 0.0f : most; /* all masked so far */
    float old = expf(p.most - base);
    for (int j = 0; j < KEYS_EACH; j++) {
        float e = expf(score[j] - base);
        line[lane + LANES * j] = e;
        sum += e;
    }
    p.sum = p.sum * old + lanes_sum(sum);
    p.most = most;
    __syncwarp();
    for (int i = 0; i < each; i++) {
        int d = lane + LANES * i;
        float y = 0;
        for (int j = 0; d < a.size && j < KEYS; j++)
            y += line[j] * t.v[j * t.row + d];
        p.y[i] = p.y[i] * old + y;
    }
}

template <int each>
__global__ void __launch_bounds__(THREADS)
    attention_tiles(const __grid_constant__ struct attention a)
{
    SHARED_MEMORY(float, memory);
    struct tiles t = tiles_at(memory, a.size);
    int head = (int)blockIdx.y % a.heads, batch = (int)blockIdx.y / a.heads;
    int first = (int)blockIdx.x * QUERIES, left = a.queries - first;
    int mine = first + (int)threadIdx.x / LANES, lane = (int)threadIdx.x % LANES;
    const float *k = a.k + batch * a.keys * a.k_row + head * a.size;
    const float *v = a.v + batch * a.keys * a.v_row + head * a.size;
    const float *mask = a.mask && mine < a.queries ? a.mask + batch * a.mask_batch +
                                                         head * a.mask_head + mine * a.mask_query
                                                   : NULL;
    struct progress<each> p = {
    };
    p.most = -INFINITY;
    load_rows(t.q, t, a.q + (batch * (int64_t)a.queries + first) * a.q_row + head * a.size, a.q_row,
              left, QUERIES, a.size);
    for (int key = 0; key < a.keys; key += KEYS) {
        float score[KEYS_EACH];
        load_rows(t.k, t, k + key * a.k_row, a.k_row, a.keys - key, KEYS, a.size);
        load_rows(t.v, t, v + key * a.v_row, a.v_row, a.keys - key, KEYS, a.size);
        __syncthreads();
        tile_scores(a, t, mask, key, score);
        add_tile<each>(a, t, score, p);
        __syncthreads();
    }
    if (mine >= a.queries)
        return;
    float *y = a.y + ((batch * (int64_t)a.queries + mine) * a.heads + head) * a.size;
    for (int i = 0; i < each; i++)
        if (lane + LANES * i < a.size)
            y[lane + LANES * i] = p.y[i] / p.sum;
}

/* ---- hooks ---- */

static const struct shape *shape_or_null(const struct kernel_query *q, int input)
{
    return input_given(q, input) ? &q->in[input].shape : NULL;
}

static enum status shape_from(const struct kernel_query *q, struct attention_shape *s,
                              struct error *why)
{
    return cuda_host->attention_shape(q->node, &q->in[0].shape, shape_or_null(q, 1),
                                      shape_or_null(q, 2), s, why);
}

static enum status supports(const struct kernel_query *q, struct error *why)
{
    struct attention_shape s;
    TRY(plain_supported(q, why));
    for (int k = 0; k < q->in_count; k++)
        if (q->in[k].dtype != DTYPE_NONE && q->in[k].dtype != DTYPE_F32)
            return REFUSE(why, "only f32");
    TRY(shape_from(q, &s, why));
    if (s.head_size > HEAD_MAX)
        return REFUSE(why, "heads of more than %d elements", HEAD_MAX);
    if (s.batch * s.heads > GRID_YZ || s.keys == 0)
        return REFUSE(why, "no keys, or more heads than a grid has");
    return STATUS_OK;
}

/* Strides of a mask that broadcasts to [batch, heads, queries, keys]. */
static void mask_strides(const struct shape *mask, struct attention *a)
{
    int64_t *stride[] = {&a->mask_key, &a->mask_query, &a->mask_head, &a->mask_batch}, step = 1;
    for (int d = 0; d < mask->rank && d < ARRAY_COUNT(stride); d++) {
        int64_t dim = mask->dim[mask->rank - 1 - d];
        *stride[d] = dim > 1 ? step : 0;
        step *= dim;
    }
}

static void launch(const struct kernel_state *state, const struct kernel_query *q,
                   const struct kernel_args *args)
{
    (void)state;
    struct attention_shape s;
    struct attention a = {};
    if (shape_from(q, &s, NULL) != STATUS_OK || s.batch * s.queries == 0)
        return;
    a.q = (const float *)args->in[0] + s.q_start;
    a.k = (const float *)args->in[s.packed ? 0 : 1] + s.k_start;
    a.v = (const float *)args->in[s.packed ? 0 : 2] + s.v_start;
    a.y = (float *)args->out[0];
    a.queries = (int)s.queries;
    a.keys = (int)s.keys;
    a.heads = (int)s.heads;
    a.size = (int)s.head_size;
    a.q_row = s.q_row;
    a.k_row = s.k_row;
    a.v_row = s.v_row;
    a.scale = (float)s.scale;
    if (input_given(q, 3)) {
        a.mask = (const float *)args->in[3];
        mask_strides(&q->in[3].shape, &a);
    }
    size_t rows = QUERIES + 2 * KEYS, scores = (size_t)QUERIES * (KEYS + 1);
    size_t bytes = (rows * (size_t)(a.size + 1) + scores) * sizeof(float);
    struct cuda_grid grid =
        cuda_size((unsigned)div_up(s.queries, QUERIES), (unsigned)(s.batch * s.heads));
    if (a.size <= 64)
        LAUNCH(attention_tiles<8>, grid, cuda_size(THREADS), bytes, &a, args);
    else
        LAUNCH(attention_tiles<16>, grid, cuda_size(THREADS), bytes, &a, args);
}

static const char *const ops[] = {"Attention", NULL};

CUDA_KERNEL(attention) = {CUDA_NAME(attention), .ops = ops, .supports = supports, .launch = launch};
