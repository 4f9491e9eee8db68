/* SPDX-License-Identifier: Apache-2.0
 *
 * LpNormalization. Along an axis that lies together in memory (the last one, or the channels of an
 * image that is channels-last) a warp or a block does a line; along another one a block does 32
 * lines that lie beside each other, each of its eight warps an eighth of them. */
#include "engine/kernels/cuda/lib/lines.h"

enum { WARPS = BLOCK / WARP, AHEAD = 8 /* elements that a thread reads before it stores one */ };

struct lp_norm {
    const void *x;
    void *y;
    unsigned lines, size, lanes;
    struct divisor by_inner; /* lines that lie beside each other, and the step along one */
    bool squares;            /* p is 2 */
};

static __device__ __forceinline__ float term(const struct lp_norm &k, float x)
{
    return k.squares ? x * x : fabsf(x);
}

/* What the line is divided by; NaN stays. */
static __device__ __forceinline__ float length_of(const struct lp_norm &k, float sum)
{
    float length = k.squares ? sqrtf(sum) : sum;
    return length == 0 ? 1.0f : length;
}

template <class element>
__global__ void __launch_bounds__(BLOCK) lp_norm_lines(const __grid_constant__ struct lp_norm k)
{
    KERNEL_BEGIN();
    __shared__ float part[WARP];
    struct line_team t = {threadIdx.x % k.lanes, k.lanes, part};
    struct line_range lines = team_lines(k.lanes);
    for (unsigned l = lines.first; l < k.lines; l += lines.step) {
        const element *x = (const element *)k.x + (size_t)l * k.size;
        element *y = (element *)k.y + (size_t)l * k.size;
        float sum = 0;
        for (unsigned i = t.lane; i < k.size; i += t.lanes)
            sum += term(k, to_float(x[i]));
        float length = length_of(k, team_sum(t, sum));
        for (unsigned i = t.lane; i < k.size; i += t.lanes)
            float_put(&y[i], to_float(x[i]) / length);
    }
}

/* A thread's elements `first`, `first + WARPS` ... of a line, AHEAD of them; 0 beyond the end. */
template <class element>
static __device__ __forceinline__ void read_column(const element *x, unsigned first, unsigned end,
                                                   unsigned inner, float (&v)[AHEAD])
{
#pragma unroll
    for (int a = 0; a < AHEAD; a++) {
        unsigned i = first + a * WARPS;
        v[a] = i < end ? to_float(x[(size_t)i * inner]) : 0;
    }
}

template <class element>
__global__ void __launch_bounds__(BLOCK) lp_norm_columns(const __grid_constant__ struct lp_norm k)
{
    KERNEL_BEGIN();
    __shared__ float part[WARPS][WARP];
    unsigned lane = threadIdx.x % WARP, warp = threadIdx.x / WARP, inner = k.by_inner.d;
    for (unsigned base = blockIdx.x * WARP; base < k.lines; base += gridDim.x * WARP) {
        unsigned l = min(base + lane, k.lines - 1), outer = divide(l, k.by_inner);
        unsigned end = base + lane < k.lines ? k.size : 0;
        size_t at = (size_t)outer * k.size * inner + (l - outer * inner);
        const element *x = (const element *)k.x + at;
        element *y = (element *)k.y + at;
        float v[AHEAD], sum = 0;
        for (unsigned i = warp; i < end; i += AHEAD * WARPS) {
            read_column(x, i, end, inner, v);
#pragma unroll
            for (int a = 0; a < AHEAD; a++)
                sum += term(k, v[a]);
        }
        part[warp][lane] = sum;
        __syncthreads();
        sum = 0;
        for (int w = 0; w < WARPS; w++)
            sum += part[w][lane];
        __syncthreads();
        float length = length_of(k, sum);
        for (unsigned i = warp; i < end; i += AHEAD * WARPS) {
            read_column(x, i, end, inner, v);
#pragma unroll
            for (int a = 0; a < AHEAD; a++)
                if (i + a * WARPS < end)
                    float_put(&y[(size_t)(i + a * WARPS) * inner], v[a] / length);
        }
    }
}

/* ---- hooks ---- */

struct kernel_state {
    struct lp_norm k; /* pointers are left open */
    enum dtype type;
    struct cuda_grid grid;
};

static enum status plan(const struct kernel_query *q, int, struct kernel_state *s,
                        struct error *why)
{
    const struct desc *x = &q->in[0];
    int along = axis_from(q, "axis", x->shape.rank, -1);
    if (q->node->post_count)
        return REFUSE(why, "no fused epilogue");
    TRY(floats_supported(q, 0, 1, why));
    if (!fits_index(x))
        return REFUSE(why, "more than 2^31 elements");
    if (!cuda_host->desc_is_dense(x) || !cuda_host->desc_same_memory(x, &q->out[0]))
        return REFUSE(why, "input and output differ in layout");
    bool plain = cuda_host->desc_is_plain(x);
    if (!plain && x->stride[along] != 1)
        return REFUSE(why, "the axis is neither contiguous nor of plain memory");
    struct axis axis = axis_of(&x->shape, along);
    struct lp_norm *k = &s->k;
    k->lines = (unsigned)(axis.outer * axis.inner);
    k->size = (unsigned)axis.size;
    k->lanes = lanes_for(axis.size);
    k->by_inner = divisor_of(plain ? axis.inner : 1);
    k->squares = cuda_host->node_int(q->node, "p", 2) == 2;
    s->type = x->dtype;
    s->grid = grid_for(q, (int64_t)k->lines * (k->by_inner.d == 1 ? k->lanes : (unsigned)WARPS));
    return STATUS_OK;
}

static void launch(const struct kernel_state *state, const struct kernel_args *args)
{
    struct lp_norm k = state->k;
    k.x = args->in[0];
    k.y = args->out[0];
    if (k.by_inner.d == 1)
        LAUNCH_FLOATS(state->type, lp_norm_lines<element>, state->grid, cuda_size(BLOCK), 0, &k,
                      args);
    else
        LAUNCH_FLOATS(state->type, lp_norm_columns<element>, state->grid, cuda_size(BLOCK), 0, &k,
                      args);
}

static const char *const ops[] = {"LpNormalization", NULL};

CUDA_KERNEL(lp_norm) = {CUDA_NAME(lp_norm), .ops = ops, CUDA_PLAN, CUDA_HOOK(launch)};
