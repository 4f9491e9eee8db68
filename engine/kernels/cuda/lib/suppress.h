/* SPDX-License-Identifier: Apache-2.0
 *
 * Greedy suppression of overlapping boxes by one block. Candidates come in order, a thread each: a
 * batch of them is compared with what was kept before; then the first that is left is kept and
 * crosses out others of the batch, until none is left. There are as many barriers as boxes that are
 * kept, not as candidates. */
#ifndef ENGINE_KERNELS_CUDA_LIB_SUPPRESS_H
#define ENGINE_KERNELS_CUDA_LIB_SUPPRESS_H

#include "engine/kernels/cuda/lib/ranking.h"

/* Boxes are two corners: low x, low y, high z, high w (which axis comes first does not matter). */
struct suppression {
    const rank_key *keys; /* candidates, best first; the low half is the box */
    unsigned count, most; /* most: boxes to keep */
    const float4 *boxes;
    float iou;      /* what overlaps by more is crossed out (intersection over union) */
    unsigned *kept; /* room for `most`: the boxes */
};

struct suppress_memory {
    unsigned left[RANK_WARPS]; /* a bit per thread whose candidate is left */
    float4 box;
};

static __device__ __forceinline__ float box_area(const float4 &a)
{
    return (a.z - a.x) * (a.w - a.y);
}

/* both / all > iou, written both - iou all > 0. Boxes that do not touch cover nothing, whatever
 * rounding says. */
static __device__ __forceinline__ bool boxes_overlap(const float4 &a, const float4 &b, float iou)
{
    float height = fmaxf(fminf(a.z, b.z) - fmaxf(a.x, b.x), 0);
    float width = fmaxf(fminf(a.w, b.w) - fmaxf(a.y, b.y), 0);
    float both = height * width, all = box_area(a) + box_area(b) - both;
    return both > 0 && fmaf(-iou, all, both) > 0;
}

/* The thread whose candidate is the first that is left; the size of the block: none. */
static __device__ __forceinline__ unsigned first_left(bool left, struct suppress_memory *m)
{
    unsigned bits = __ballot_sync(all_lanes, left), first = blockDim.x;
    if (threadIdx.x % WARP == 0)
        m->left[threadIdx.x / WARP] = bits;
    __syncthreads();
    for (int w = (int)(blockDim.x / WARP) - 1; w >= 0; w--)
        if (m->left[w])
            first = (unsigned)w * WARP + (unsigned)__ffs((int)m->left[w]) - 1;
    __syncthreads();
    return first;
}

/* Keeps what is left of a batch; returns how many are kept then. */
static __device__ __forceinline__ unsigned suppress_batch(const struct suppression &s,
                                                          unsigned kept, unsigned place, bool left,
                                                          struct suppress_memory *m)
{
    float4 box = left ? s.boxes[place] : make_float4(0, 0, 0, 0);
    for (unsigned k = 0; left && k < kept; k++)
        left = !boxes_overlap(s.boxes[s.kept[k]], box, s.iou);
    while (kept < s.most) {
        unsigned first = first_left(left, m);
        if (first == blockDim.x)
            break;
        if (threadIdx.x == first) {
            s.kept[kept] = place;
            m->box = box;
            left = false;
        }
        kept++;
        __syncthreads();
        left = left && !boxes_overlap(m->box, box, s.iou);
    }
    __syncthreads();
    return kept;
}

/* All threads of the block call it and get the number of boxes in s.kept. */
static __device__ __forceinline__ unsigned suppress(const struct suppression &s,
                                                    struct suppress_memory *m)
{
    unsigned kept = 0;
    for (unsigned first = 0; first < s.count && kept < s.most; first += blockDim.x) {
        unsigned i = first + threadIdx.x;
        bool is = i < s.count;
        kept = suppress_batch(s, kept, is ? (unsigned)s.keys[i] : 0, is, m);
    }
    return kept;
}

#endif
