/* SPDX-License-Identifier: Apache-2.0
 *
 * RotaryEmbedding: a thread turns a few pairs that lie beside each other, up to 16 bytes of either
 * half of a head, or copies as many elements of what is not turned. Caches may be f32 where x is
 * narrower. A position outside of them gives zeros; the reference reports it as an error. */
#include "engine/kernels/cuda/lib/query.h"
#include "engine/ops/lib/rotary.h"

struct rotary_rows {
    const void *x, *cosines, *sines, *positions; /* positions: NULL, i32 or i64 */
    void *y;
    unsigned work, size, half; /* work: groups; size, half: elements */
    unsigned cache_rows, cache_width;
    struct divisor by_groups; /* groups of a row: pairs, then the rest */
    struct divisor by_heads, by_tokens;
    int type, cache_type;
    bool interleaved, tokens_inside, wide;
};

static __device__ __forceinline__ unsigned token_of(const struct rotary_rows &k, unsigned row)
{
    if (!k.tokens_inside)
        return divide(row, k.by_heads);
    unsigned line = divide(row, k.by_tokens), batch = divide(line, k.by_heads);
    return batch * k.by_tokens.d + (row - line * k.by_tokens.d);
}

/* Into which of `first` and `second` each element of the pairs from the i-th on goes. */
template <int width> struct pair_group {
    struct group<width> first, second;
};

template <int width>
static __device__ __forceinline__ struct pair_group<width> pairs_at(const struct rotary_rows &k,
                                                                    size_t row, unsigned i) {
    struct pair_group<width> p;
    if (!k.interleaved) {
        p.first = group_as<width>(k.type, k.x, row + i);
        p.second = group_as<width>(k.type, k.x, row + k.half + i);
        return p;
    }
    struct group<width> low = group_as<width>(k.type, k.x, row + 2 * i);
    struct group<width> high = group_as<width>(k.type, k.x, row + 2 * i + width);
#pragma unroll
    for (int e = 0; e < width; e++) {
        p.first.v[e] = 2 * e < width ? low.v[2 * e % width] : high.v[2 * e % width];
        p.second.v[e] =
            2 * e + 1 < width ? low.v[(2 * e + 1) % width] : high.v[(2 * e + 1) % width];
    }
    return p;
}

template <int width>
static __device__ __forceinline__ void pairs_store(const struct rotary_rows &k, size_t row,
                                                   unsigned i, const struct pair_group<width> &p)
{
    if (!k.interleaved) {
        group_store_as(k.type, k.y, row + i, p.first);
        group_store_as(k.type, k.y, row + k.half + i, p.second);
        return;
    }
    struct group<width> part[2];
#pragma unroll
    for (int e = 0; e < 2 * width; e++)
        part[e / width].v[e % width] = e % 2 ? p.second.v[e / 2] : p.first.v[e / 2];
    group_store_as(k.type, k.y, row + 2 * i, part[0]);
    group_store_as(k.type, k.y, row + 2 * i + width, part[1]);
}

template <int width>
static __device__ __forceinline__ void turn(const struct rotary_rows &k, unsigned row, unsigned i)
{
    unsigned token = token_of(k, row);
    int64_t at = k.positions ? index_at(k.positions, k.wide, token) : token;
    bool inside = at >= 0 && at < k.cache_rows;
    struct pair_group<width> p = {
    };
    if (inside) {
        size_t from = (size_t)at * k.cache_width + i;
        struct group<width> cosine = group_as<width>(k.cache_type, k.cosines, from);
        struct group<width> sine = group_as<width>(k.cache_type, k.sines, from);
        p = pairs_at<width>(k, (size_t)row * k.size, i);
#pragma unroll
        for (int e = 0; e < width; e++) {
            float a = p.first.v[e], b = p.second.v[e];
            p.first.v[e] = cosine.v[e] * a - sine.v[e] * b;
            p.second.v[e] = sine.v[e] * a + cosine.v[e] * b;
        }
    }
    pairs_store(k, (size_t)row * k.size, i, p);
}

template <int width>
__global__ void __launch_bounds__(BLOCK) rotary_turn(const __grid_constant__ struct rotary_rows k)
{
    KERNEL_BEGIN();
    unsigned pairs = k.half / width;
    for (unsigned w = blockIdx.x * BLOCK + threadIdx.x; w < k.work; w += gridDim.x * BLOCK) {
        unsigned row = divide(w, k.by_groups), part = w - row * k.by_groups.d;
        if (part < pairs) {
            turn<width>(k, row, part * width);
            continue;
        }
        size_t at = (size_t)row * k.size + 2 * k.half + (part - pairs) * width;
        group_store_as(k.type, k.y, at, group_as<width>(k.type, k.x, at));
    }
}

/* ---- hooks ---- */

struct kernel_state {
    struct rotary_rows k; /* pointers are left open */
    int width;            /* elements of a group */
    bool given;           /* positions */
    struct cuda_grid grid;
};

static enum status check_types(const struct kernel_query *q, struct error *why)
{
    enum dtype x = q->in[0].dtype, cache = q->in[1].dtype;
    TRY(plain_supported(q, why));
    if (!is_float(x) || q->out[0].dtype != x)
        return REFUSE(why, "only f32, f16 and bf16");
    if ((cache != x && cache != DTYPE_F32) || q->in[2].dtype != cache)
        return REFUSE(why, "caches that are neither f32 nor of the type of x");
    if (input_given(q, 3) && !is_index(q->in[3].dtype))
        return REFUSE(why, "positions are neither i32 nor i64");
    return STATUS_OK;
}

/* The widest groups that halves, what is not turned and rows of the caches consist of. */
static int width_of(const struct rotary &r, int64_t cache_width, enum dtype type)
{
    int64_t rest = r.size - 2 * r.half;
    int widest = 16 / element_bytes(type);
    for (int width = widest; width > 1; width = width > 4 ? 4 : 1)
        if (r.half % width == 0 && rest % width == 0 && cache_width % width == 0)
            return width;
    return 1;
}

static enum status plan(const struct kernel_query *q, int, struct kernel_state *s,
                        struct error *why)
{
    struct rotary_rows *k = &s->k;
    TRY(check_types(q, why));
    struct rotary r = rotary_of(&q->in[0].shape, cuda_host->node_int(q->node, "num_heads", 0),
                                cuda_host->node_int(q->node, "rotary_embedding_dim", 0));
    k->cache_width = (unsigned)q->in[1].shape.dim[q->in[1].shape.rank - 1];
    s->width = width_of(r, k->cache_width, q->in[0].dtype);
    s->given = input_given(q, 3);
    int64_t groups = (r.size - r.half) / s->width, rows = r.batches * r.heads * r.tokens;
    k->work = (unsigned)(groups * rows);
    k->size = (unsigned)r.size;
    k->half = (unsigned)r.half;
    k->by_groups = divisor_of(groups);
    k->by_heads = divisor_of(r.heads);
    k->by_tokens = divisor_of(r.tokens);
    k->cache_rows = (unsigned)(s->given ? q->in[1].shape.dim[0] : r.batches * r.tokens);
    k->type = q->in[0].dtype;
    k->cache_type = q->in[1].dtype;
    k->interleaved = cuda_host->node_int(q->node, "interleaved", 0) != 0;
    k->tokens_inside = r.tokens_inside;
    k->wide = s->given && q->in[3].dtype == DTYPE_I64;
    s->grid = grid_for(q, k->work);
    return STATUS_OK;
}

static void launch(const struct kernel_state *state, const struct kernel_args *args)
{
    struct rotary_rows k = state->k;
    k.x = args->in[0];
    k.cosines = args->in[1];
    k.sines = args->in[2];
    k.positions = state->given ? args->in[3] : NULL;
    k.y = args->out[0];
    LAUNCH_WIDTH(state->width, rotary_turn<width>, state->grid, cuda_size(BLOCK), 0, &k, args);
}

static const char *const ops[] = {"RotaryEmbedding", NULL};

CUDA_KERNEL(rotary) = {CUDA_NAME(rotary), .ops = ops, CUDA_PLAN, CUDA_HOOK(launch)};
