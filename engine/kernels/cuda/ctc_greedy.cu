/* SPDX-License-Identifier: Apache-2.0
 *
 * CTCGreedyDecoder: a block per sequence. Its warps find the best class of a step each; then the
 * first warp drops repeats and blanks, 32 steps at a time. */
#include "engine/kernels/cuda/lib/ranking.h"

struct ctc {
    const float *x;
    int64_t *labels, *lengths; /* may be NULL */
    unsigned *best;            /* [sequences, steps] */
    unsigned steps, sequences, classes, blank;
    bool merge;
};

static __device__ __forceinline__ unsigned compact(const struct ctc &k, const unsigned *best,
                                                   int64_t *labels)
{
    unsigned lane = threadIdx.x, count = 0;
    for (unsigned from = 0; from < k.steps; from += WARP) {
        unsigned t = from + lane, now = t < k.steps ? best[t] : k.blank;
        bool again = k.merge && t > 0 && t < k.steps && best[t - 1] == now;
        bool kept = t < k.steps && now != k.blank && !again;
        unsigned bits = __ballot_sync(all_lanes, kept), before = bits & ((1u << lane) - 1);
        if (kept && labels)
            labels[count + (unsigned)__popc(before)] = now;
        count += (unsigned)__popc(bits);
    }
    for (unsigned t = count + lane; labels && t < k.steps; t += WARP)
        labels[t] = -1;
    return count;
}

__global__ void __launch_bounds__(BLOCK) ctc_sequences(const __grid_constant__ struct ctc k)
{
    KERNEL_BEGIN();
    unsigned i = blockIdx.x;
    unsigned *best = k.best + (size_t)i * k.steps;
    for (unsigned t = threadIdx.x / WARP; t < k.steps; t += BLOCK / WARP) {
        const float *x = k.x + ((size_t)t * k.sequences + i) * k.classes;
        struct candidates c = {x, DTYPE_F32, 1, k.classes, true, false, false, 0.0f};
        unsigned place = place_of_key(c, rank_first(c));
        if (threadIdx.x % WARP == 0)
            best[t] = place;
    }
    __syncthreads();
    if (threadIdx.x >= WARP)
        return;
    unsigned count = compact(k, best, k.labels ? k.labels + (size_t)i * k.steps : NULL);
    if (k.lengths && threadIdx.x == 0)
        k.lengths[i] = count;
}

/* ---- hooks ---- */

struct kernel_state {
    struct ctc k; /* pointers are left open */
    unsigned wanted;
};

static enum status plan(const struct kernel_query *q, int, struct kernel_state *s,
                        struct error *why)
{
    TRY(plain_supported(q, why));
    if (q->in[0].dtype != DTYPE_F32)
        return REFUSE(why, "only f32");
    const int64_t *x = q->in[0].shape.dim, blank = cuda_host->node_int(q->node, "blank", -1);
    s->wanted = outputs_wanted(q);
    s->k.steps = (unsigned)x[0];
    s->k.sequences = (unsigned)x[1];
    s->k.classes = (unsigned)x[2];
    s->k.blank = (unsigned)(blank < 0 ? x[2] - 1 : blank);
    s->k.merge = cuda_host->node_int(q->node, "merge_repeated", 1) != 0;
    return STATUS_OK;
}

static size_t workspace(const struct kernel_state *state)
{
    return (size_t)state->k.steps * state->k.sequences * sizeof(unsigned);
}

static void launch(const struct kernel_state *state, const struct kernel_args *args)
{
    struct ctc k = state->k;
    k.x = (const float *)args->in[0];
    k.labels = (int64_t *)output_of(args, state->wanted, 0);
    k.lengths = (int64_t *)output_of(args, state->wanted, 1);
    k.best = (unsigned *)args->workspace;
    LAUNCH(ctc_sequences, cuda_size(k.sequences), cuda_size(BLOCK), 0, &k, args);
}

static const char *const ops[] = {"CTCGreedyDecoder", NULL};

CUDA_KERNEL(ctc_greedy) = {CUDA_NAME(ctc_greedy), .ops = ops, CUDA_PLAN, CUDA_HOOK(workspace),
                           CUDA_HOOK(launch)};
