/* SPDX-License-Identifier: Apache-2.0
 *
 * What greedy suppression of overlapping boxes is made of: candidates sorted by three counting
 * passes over the bits of their scores, and a comparison with all boxes kept so far, a vector of
 * them at a time. */
#ifndef ENGINE_KERNELS_LIB_NMS_H
#define ENGINE_KERNELS_LIB_NMS_H

#include <stdbool.h>

#include "engine/kernels/lib/simd.h"

struct nms_scratch {
    uint32_t *key[2];
    int32_t *place[2];
    float *side[4], *area; /* of kept boxes: corners low, low, high, high */
};

SIMD_INLINE size_t nms_padded(int64_t count, size_t size)
{
    return ((size_t)count * size + 63) / 64 * 64;
}

/* Room for so many candidates and kept boxes. */
SIMD_INLINE size_t nms_scratch_bytes(int64_t candidates, int64_t kept)
{
    return 4 * nms_padded(candidates, sizeof(int32_t)) + 5 * nms_padded(kept + VL, sizeof(float));
}

/* Unsigned numbers in the order opposite to that of the floats. */
SIMD_INLINE uint32_t nms_key(float score)
{
    uint32_t bits;
    score += 0.0f; /* -0 is 0 */
    memcpy(&bits, &score, sizeof(bits));
    return bits & 0x80000000u ? bits : ~bits & 0x7fffffffu;
}

#define nms_scratch_at SIMD_FN(nms_scratch_at)
struct nms_scratch nms_scratch_at(char *memory, int64_t candidates, int64_t kept);

/* Candidates are in key[0] and place[0]. Returns the places, best first, equal ones in order. */
#define nms_sort SIMD_FN(nms_sort)
const int32_t *nms_sort(struct nms_scratch *scratch, int64_t count);

/* Keeps the box as number `kept` and returns true, unless it overlaps one kept before by more than
 * the threshold (intersection over union). */
#define nms_try SIMD_FN(nms_try)
bool nms_try(struct nms_scratch *scratch, int64_t kept, const float box[4], float iou);

#endif
