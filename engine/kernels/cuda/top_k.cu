/* SPDX-License-Identifier: Apache-2.0
 *
 * TopK along any axis: a block per line selects, sorts and writes (lib/ranking.h); few long lines
 * are ranked by all blocks (lib/ranking_lists.h) and written then. Of a short line each thread has
 * an element and counts those before it, which is its place: selecting takes 20 barriers. */
#include "engine/kernels/cuda/lib/ranking_lists.h"

struct top_k {
    struct candidates from; /* of line 0 */
    void *value;            /* NULL: not wanted */
    int64_t *place;         /* the same */
    rank_key *keys;         /* capacity for each block's keys; NULL: shared memory is enough */
    unsigned lines, inner, k, capacity;
};

static __device__ __forceinline__ struct candidates line_of(const struct top_k &t, unsigned line)
{
    struct candidates c = t.from;
    unsigned outer = line / t.inner, at = line - outer * t.inner;
    c.x = (const unsigned *)t.from.x + (size_t)outer * c.count * t.inner + at;
    return c;
}

static __device__ __forceinline__ void write_best(const struct top_k &t, unsigned line, unsigned i,
                                                  rank_key key)
{
    struct candidates c = line_of(t, line);
    unsigned outer = line / t.inner, place = place_of_key(c, key);
    size_t to = ((size_t)outer * t.k + i) * t.inner + (line - outer * t.inner);
    if (t.value)
        ((unsigned *)t.value)[to] = ((const unsigned *)c.x)[(size_t)place * t.inner];
    if (t.place)
        t.place[to] = place;
}

__global__ void __launch_bounds__(RANK_THREADS) top_k_lines(const __grid_constant__ struct top_k t)
{
    KERNEL_BEGIN();
    __shared__ rank_key few[RANK_SHARED];
    __shared__ struct rank_memory memory;
    rank_key *keys = t.keys ? t.keys + (size_t)blockIdx.x * t.capacity : few;
    for (unsigned line = blockIdx.x; line < t.lines; line += gridDim.x) {
        unsigned found = rank_best(line_of(t, line), t.k, keys, t.capacity, &memory);
        for (unsigned i = threadIdx.x; i < found; i += blockDim.x)
            write_best(t, line, i, keys[i]);
        __syncthreads();
    }
}

enum { SHORT_MOST = 512, SHORT_LEAST = 64 };

__global__ void __launch_bounds__(SHORT_MOST) top_k_short(const __grid_constant__ struct top_k t)
{
    KERNEL_BEGIN();
    __shared__ rank_key keys[SHORT_MOST];
    for (unsigned line = blockIdx.x; line < t.lines; line += gridDim.x) {
        struct candidates c = line_of(t, line);
        rank_key own = threadIdx.x < c.count ? key_of(c, threadIdx.x) : rank_absent;
        unsigned before = 0;
        keys[threadIdx.x] = own;
        __syncthreads();
#pragma unroll 8
        for (unsigned i = 0; i < c.count; i++)
            before += keys[i] < own;
        if (threadIdx.x < c.count && before < t.k)
            write_best(t, line, before, own);
        __syncthreads();
    }
}

/* Lines are ranked in t.keys, each has at least k elements. */
__global__ void __launch_bounds__(BLOCK) top_k_write(const __grid_constant__ struct top_k t)
{
    KERNEL_BEGIN();
    for (unsigned i = blockIdx.x * BLOCK + threadIdx.x; i < t.k; i += gridDim.x * BLOCK)
        write_best(t, blockIdx.y, i, t.keys[(size_t)blockIdx.y * t.capacity + i]);
}

/* ---- hooks ---- */

struct kernel_state {
    struct top_k t;      /* pointers are left open, also in r */
    struct rank_lists r; /* parts 0: top_k_lines ranks, a block per line */
    unsigned wanted;
    struct cuda_grid grid;
};

static enum status plan(const struct kernel_query *q, int, struct kernel_state *s,
                        struct error *why)
{
    TRY(plain_supported(q, why));
    if (q->in[0].dtype != DTYPE_F32 && q->in[0].dtype != DTYPE_I32)
        return REFUSE(why, "only f32 and i32");
    const struct shape *x = &q->in[0].shape;
    int along = axis_from(q, "axis", x->rank, -1);
    struct axis axis = axis_of(x, along);
    struct top_k *t = &s->t;
    struct rank_lists *r = &s->r;
    t->from.dtype = q->in[0].dtype;
    t->from.step = t->inner = (unsigned)axis.inner;
    t->from.count = (unsigned)axis.size;
    t->from.largest = cuda_host->node_int(q->node, "largest", 1) != 0;
    t->lines = (unsigned)(axis.outer * axis.inner);
    t->k = (unsigned)q->out[!output_wanted(q, 0)].shape.dim[along];
    t->capacity = power_of_two_from(t->k);
    r->first = t->from;
    r->lists = t->lines;
    r->inner = t->inner;
    r->outer_step = t->from.count * t->inner;
    r->k = t->k;
    rank_plan(r, q);
    s->wanted = outputs_wanted(q);
    if (t->lines && t->k)
        s->grid = r->parts ? cuda_size(grid_for(q, t->k).x, t->lines)
                           : grid_for(q, (int64_t)t->lines * BLOCK);
    return STATUS_OK;
}

static size_t workspace(const struct kernel_state *state)
{
    const struct top_k *t = &state->t;
    struct rank_lists r = state->r;
    if (r.parts)
        return rank_lay_out(&r, NULL);
    return t->capacity <= RANK_SHARED ? 0 : (size_t)state->grid.x * t->capacity * sizeof(rank_key);
}

static void launch_spread(const struct kernel_state *s, struct top_k *t,
                          const struct kernel_args *args)
{
    struct rank_lists r = s->r;
    rank_lay_out(&r, (char *)args->workspace);
    r.first.x = args->in[0];
    rank_launch(&r, args);
    t->keys = r.keys;
    t->capacity = r.capacity;
    LAUNCH(top_k_write, s->grid, cuda_size(BLOCK), 0, t, args);
}

static void launch(const struct kernel_state *state, const struct kernel_args *args)
{
    struct top_k t = state->t;
    t.from.x = args->in[0];
    t.value = output_of(args, state->wanted, 0);
    t.place = (int64_t *)output_of(args, state->wanted, 1);
    t.keys = t.capacity <= RANK_SHARED ? NULL : (rank_key *)args->workspace;
    const int64_t least = SHORT_LEAST, count = t.from.count;
    if (state->r.parts)
        launch_spread(state, &t, args);
    else if (count <= SHORT_MOST)
        LAUNCH(top_k_short, state->grid,
               cuda_size(power_of_two_from(count < least ? least : count)), 0, &t, args);
    else
        LAUNCH(top_k_lines, state->grid, rank_threads(t.from.count), 0, &t, args);
}

static const char *const ops[] = {"TopK", NULL};

CUDA_KERNEL(top_k) = {CUDA_NAME(top_k), .ops = ops, CUDA_PLAN, CUDA_HOOK(workspace),
                      CUDA_HOOK(launch)};
