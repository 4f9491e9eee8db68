/* SPDX-License-Identifier: Apache-2.0
 *
 * ArgMax and ArgMin. Elements and their places are put into keys that differ all (lib/ranking.h),
 * so that the smallest key is the answer whatever the order of comparing. A warp per line along the
 * last axis, else a thread per line, beside its neighbours. */
#include "engine/kernels/cuda/lib/ranking.h"

struct arg_extreme {
    struct candidates from; /* of line 0 */
    int64_t *y;
    unsigned lines, inner, bytes;
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

__global__ void __launch_bounds__(BLOCK)
    arg_extreme_warps(const __grid_constant__ struct arg_extreme k)
{
    unsigned lane = threadIdx.x % WARP, step = gridDim.x * (BLOCK / WARP);
    for (unsigned line = blockIdx.x * (BLOCK / WARP) + threadIdx.x / WARP; line < k.lines;
         line += step) {
        struct candidates c = line_of(k, line);
        rank_key best = rank_first(c);
        if (lane == 0)
            k.y[line] = place_of_key(c, best);
    }
}

__global__ void __launch_bounds__(BLOCK)
    arg_extreme_threads(const __grid_constant__ struct arg_extreme k)
{
    unsigned step = gridDim.x * BLOCK;
    for (unsigned line = blockIdx.x * BLOCK + threadIdx.x; line < k.lines; line += step) {
        struct candidates c = line_of(k, line);
        rank_key best = rank_absent;
        for (unsigned i = 0; i < c.count; i++) {
            rank_key key = key_of(c, i);
            best = key < best ? key : best;
        }
        k.y[line] = place_of_key(c, best);
    }
}

/* ---- hooks ---- */

static enum status supports(const struct kernel_query *q, struct error *why)
{
    TRY(plain_supported(q, why));
    return can_rank(q->in[0].dtype) ? STATUS_OK : REFUSE(why, "only f32, i32 and u8");
}

static void launch(const struct kernel_state *state, const struct kernel_query *q,
                   const struct kernel_args *args)
{
    (void)state;
    const struct shape *x = &q->in[0].shape;
    struct axis axis = axis_of(x, axis_from(q, "axis", x->rank, 0));
    struct arg_extreme k = {};
    k.from.x = args->in[0];
    k.from.dtype = q->in[0].dtype;
    k.from.step = k.inner = (unsigned)axis.inner;
    k.from.count = (unsigned)axis.size;
    k.from.largest = strcmp(cuda_host->node_op(q->node), "ArgMax") == 0;
    k.from.last = cuda_host->node_int(q->node, "select_last_index", 0) != 0;
    k.y = (int64_t *)args->out[0];
    k.lines = (unsigned)(axis.outer * axis.inner);
    k.bytes = (unsigned)element_bytes(q->in[0].dtype);
    if (k.lines == 0)
        return;
    if (k.inner == 1)
        LAUNCH(arg_extreme_warps, grid_for(q, (int64_t)k.lines * WARP), cuda_size(BLOCK), 0, &k,
               args);
    else
        LAUNCH(arg_extreme_threads, grid_for(q, k.lines), cuda_size(BLOCK), 0, &k, args);
}

static const char *const ops[] = {"ArgMax", "ArgMin", NULL};

CUDA_KERNEL(arg_extreme) = {CUDA_NAME(arg_extreme), .ops = ops, .supports = supports,
                            .launch = launch};
