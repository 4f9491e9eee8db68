/* SPDX-License-Identifier: Apache-2.0
 *
 * ArgMax and ArgMin. Elements and their places are put into keys that differ all (lib/ranking.h),
 * so that the smallest key is the answer whatever the order of comparing. Along the last axis a
 * warp or a block does a line; else neighbouring threads have neighbouring lines and a block's rows
 * of threads share the elements. Where few lines are long they are split over blocks; a second
 * launch compares the keys that the parts found. */
#include "engine/kernels/cuda/lib/ranking.h"

enum { AHEAD = 4 }; /* elements that a thread has at least if a line is split */

struct arg_extreme {
    struct candidates from; /* of line 0 */
    int64_t *y;
    rank_key *keys; /* [line][split]; NULL: places go to y */
    unsigned lines, inner, bytes;
    unsigned lanes; /* last axis: threads per line; else lines beside each other in a block */
    unsigned chunk; /* elements per split */
    unsigned tasks; /* lines, or tiles of `lanes` of them; each times splits */
    struct divisor splits;
};

static __device__ __forceinline__ struct candidates line_of(const struct arg_extreme &k,
                                                            unsigned line)
{
    struct candidates c = k.from;
    unsigned outer = line / k.inner;
    size_t at = (size_t)outer * c.count * k.inner + (line - outer * k.inner);
    c.x = (const char *)c.x + at * k.bytes;
    return c;
}

static __device__ __forceinline__ rank_key smaller(rank_key a, rank_key b)
{
    return a < b ? a : b;
}

/* The smallest key of elements first, first + step ... of a line. */
static __device__ __forceinline__ rank_key best_of(const struct candidates &c, unsigned first,
                                                   unsigned end, unsigned step)
{
    rank_key best = rank_absent;
#pragma unroll 4
    for (unsigned i = first; i < end; i += step)
        best = smaller(best, key_of(c, i));
    return best;
}

/* Over a warp, or over the block; its first thread gets it. part: memory for a key per warp. */
static __device__ __forceinline__ rank_key best_of_team(rank_key best, unsigned lanes,
                                                        rank_key *part)
{
    for (int with = WARP / 2; with > 0; with /= 2)
        best = smaller(best, __shfl_xor_sync(all_lanes, best, with));
    if (lanes == WARP)
        return best;
    __syncthreads();
    if (threadIdx.x % WARP == 0)
        part[threadIdx.x / WARP] = best;
    __syncthreads();
    for (unsigned w = 1; threadIdx.x == 0 && w < BLOCK / WARP; w++)
        best = smaller(best, part[w]);
    return best;
}

static __device__ __forceinline__ void put(const struct arg_extreme &k, unsigned line,
                                           unsigned split, rank_key best)
{
    if (k.keys)
        k.keys[line * k.splits.d + split] = best;
    else
        k.y[line] = place_of_key(k.from, best);
}

__global__ void __launch_bounds__(BLOCK)
    arg_extreme_lines(const __grid_constant__ struct arg_extreme k)
{
    KERNEL_BEGIN();
    __shared__ rank_key part[BLOCK / WARP];
    unsigned each = BLOCK / k.lanes, lane = threadIdx.x % k.lanes, own = threadIdx.x / k.lanes;
    for (unsigned task = blockIdx.x * each + own; task < k.tasks; task += gridDim.x * each) {
        unsigned line = divide(task, k.splits), split = task - line * k.splits.d;
        unsigned first = split * k.chunk, end = min(first + k.chunk, k.from.count);
        rank_key best = best_of(line_of(k, line), first + lane, end, k.lanes);
        best = best_of_team(best, k.lanes, part);
        if (lane == 0)
            put(k, line, split, best);
    }
}

__global__ void __launch_bounds__(BLOCK)
    arg_extreme_columns(const __grid_constant__ struct arg_extreme k)
{
    KERNEL_BEGIN();
    __shared__ rank_key part[BLOCK];
    unsigned column = threadIdx.x % k.lanes, row = threadIdx.x / k.lanes, rows = BLOCK / k.lanes;
    for (unsigned task = blockIdx.x; task < k.tasks; task += gridDim.x) {
        unsigned tile = divide(task, k.splits), split = task - tile * k.splits.d;
        unsigned line = tile * k.lanes + column, first = split * k.chunk;
        unsigned end = line < k.lines ? min(first + k.chunk, k.from.count) : 0;
        part[threadIdx.x] = best_of(line_of(k, line), first + row, end, rows);
        for (unsigned half = rows / 2; half > 0; half /= 2) {
            __syncthreads();
            if (row < half)
                part[threadIdx.x] = smaller(part[threadIdx.x], part[threadIdx.x + half * k.lanes]);
        }
        if (row == 0 && line < k.lines)
            put(k, line, split, part[threadIdx.x]);
        __syncthreads();
    }
}

__global__ void __launch_bounds__(BLOCK)
    arg_extreme_join(const __grid_constant__ struct arg_extreme k)
{
    KERNEL_BEGIN();
    unsigned lane = threadIdx.x % WARP, step = gridDim.x * (BLOCK / WARP);
    for (unsigned line = blockIdx.x * (BLOCK / WARP) + threadIdx.x / WARP; line < k.lines;
         line += step) {
        rank_key best = rank_absent;
        for (unsigned s = lane; s < k.splits.d; s += WARP)
            best = smaller(best, k.keys[line * k.splits.d + s]);
        best = best_of_team(best, WARP, NULL);
        if (lane == 0)
            k.y[line] = place_of_key(k.from, best);
    }
}

/* ---- hooks ---- */

struct kernel_state {
    struct arg_extreme k; /* pointers are left open */
    struct cuda_grid grid, join;
};

/* Who does what. */
static void share(const struct kernel_query *q, const struct axis *axis, struct arg_extreme *k)
{
    unsigned splits = 1;
    if (k->inner == 1) {
        k->lanes = axis->size > 32 * WARP ? (unsigned)BLOCK : (unsigned)WARP;
        k->tasks = k->lines;
        if (k->lanes == BLOCK)
            splits = splits_for(q, k->tasks, axis->size / ((int64_t)BLOCK * AHEAD));
    } else {
        k->lanes = k->lines < WARP ? power_of_two_from(k->lines) : (unsigned)WARP;
        while (k->lanes < BLOCK && k->lanes < k->lines &&
               axis->size * k->lanes < (int64_t)BLOCK * AHEAD)
            k->lanes *= 2;
        k->tasks = (unsigned)div_up(k->lines, k->lanes);
        splits = splits_for(q, k->tasks, axis->size * k->lanes / ((int64_t)BLOCK * AHEAD));
    }
    k->chunk = (unsigned)div_up(axis->size, splits);
    k->splits = divisor_of(div_up(axis->size, k->chunk));
    k->tasks *= k->splits.d;
}

static enum status plan(const struct kernel_query *q, int, struct kernel_state *s,
                        struct error *why)
{
    TRY(plain_supported(q, why));
    if (!can_rank(q->in[0].dtype))
        return REFUSE(why, "only f32, i32 and u8");
    const struct shape *x = &q->in[0].shape;
    struct axis axis = axis_of(x, axis_from(q, "axis", x->rank, 0));
    struct arg_extreme *k = &s->k;
    k->from.dtype = q->in[0].dtype;
    k->from.step = k->inner = (unsigned)axis.inner;
    k->from.count = (unsigned)axis.size;
    k->from.largest = strcmp(cuda_host->node_op(q->node), "ArgMax") == 0;
    k->from.last = cuda_host->node_int(q->node, "select_last_index", 0) != 0;
    k->lines = (unsigned)(axis.outer * axis.inner);
    k->bytes = (unsigned)element_bytes(q->in[0].dtype);
    if (k->lines == 0)
        return STATUS_OK;
    share(q, &axis, k);
    s->grid = grid_for(q, (int64_t)k->tasks * (k->inner == 1 ? k->lanes : (unsigned)BLOCK));
    s->join = grid_for(q, k->splits.d > 1 ? (int64_t)k->lines * WARP : 0);
    return STATUS_OK;
}

static size_t workspace(const struct kernel_state *state)
{
    const struct arg_extreme *k = &state->k;
    return k->splits.d > 1 ? padded_bytes((int64_t)k->lines * k->splits.d, sizeof(rank_key)) : 0;
}

static void launch(const struct kernel_state *state, const struct kernel_args *args)
{
    struct arg_extreme k = state->k;
    k.from.x = args->in[0];
    k.y = (int64_t *)args->out[0];
    k.keys = k.splits.d > 1 ? (rank_key *)args->workspace : NULL;
    if (k.inner == 1)
        LAUNCH(arg_extreme_lines, state->grid, cuda_size(BLOCK), 0, &k, args);
    else
        LAUNCH(arg_extreme_columns, state->grid, cuda_size(BLOCK), 0, &k, args);
    LAUNCH(arg_extreme_join, state->join, cuda_size(BLOCK), 0, &k, args);
}

static const char *const ops[] = {"ArgMax", "ArgMin", NULL};

CUDA_KERNEL(arg_extreme) = {CUDA_NAME(arg_extreme), .ops = ops, CUDA_PLAN, CUDA_HOOK(workspace),
                            CUDA_HOOK(launch)};
