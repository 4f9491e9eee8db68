/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/kernels/lib/nms.h"

enum { RADIX_BITS = 11, RADIX = 1 << RADIX_BITS, PASSES = 3 };

struct nms_scratch nms_scratch_at(char *memory, int64_t candidates, int64_t kept)
{
    size_t list = nms_padded(candidates, sizeof(int32_t));
    size_t corner = nms_padded(kept + VL, sizeof(float));
    struct nms_scratch r;
    for (int k = 0; k < 2; k++, memory += 2 * list) {
        r.key[k] = (uint32_t *)(void *)memory;
        r.place[k] = (int32_t *)(void *)(memory + list);
    }
    for (int k = 0; k < 4; k++, memory += corner)
        r.side[k] = (float *)(void *)memory;
    r.area = (float *)(void *)memory;
    return r;
}

const int32_t *nms_sort(struct nms_scratch *r, int64_t count)
{
    int from = 0;
    for (int pass = 0; pass < PASSES; pass++, from ^= 1) {
        uint32_t starts[RADIX] = {0}, sum = 0;
        int shift = pass * RADIX_BITS;
        for (int64_t k = 0; k < count; k++)
            starts[r->key[from][k] >> shift & (RADIX - 1)]++;
        for (int k = 0; k < RADIX; k++) {
            uint32_t here = starts[k];
            starts[k] = sum;
            sum += here;
        }
        for (int64_t k = 0; k < count; k++) {
            uint32_t to = starts[r->key[from][k] >> shift & (RADIX - 1)]++;
            r->key[from ^ 1][to] = r->key[from][k];
            r->place[from ^ 1][to] = r->place[from][k];
        }
    }
    return r->place[from];
}

/* both / all > iou, written both - iou all > 0. */
static bool is_covered(const struct nms_scratch *r, int64_t kept, const float box[4], float area,
                       float iou)
{
    vf worst = vf_set1(-1.0f), zero = vf_zero();
    for (int64_t k = 0; k < kept; k += VL) {
        vm m = vm_first(kept - k);
        vf height = vf_sub(vf_min(vf_load_m(r->side[2] + k, m), vf_set1(box[2])),
                           vf_max(vf_load_m(r->side[0] + k, m), vf_set1(box[0])));
        vf width = vf_sub(vf_min(vf_load_m(r->side[3] + k, m), vf_set1(box[3])),
                          vf_max(vf_load_m(r->side[1] + k, m), vf_set1(box[1])));
        vf both = vf_mul(vf_max(height, zero), vf_max(width, zero));
        vf all = vf_sub(vf_add(vf_load_m(r->area + k, m), vf_set1(area)), both);
        vf over = vf_fnma(vf_set1(iou), all, both);
        /* Boxes that do not touch cover nothing, whatever rounding says; nor do absent lanes. */
        over = vf_select(vf_lt(zero, both), over, vf_set1(-1.0f));
        worst = vf_max(worst, vf_select(m, over, vf_set1(-1.0f)));
    }
    return vf_max_of(worst) > 0;
}

bool nms_try(struct nms_scratch *r, int64_t kept, const float box[4], float iou)
{
    float area = (box[2] - box[0]) * (box[3] - box[1]);
    if (is_covered(r, kept, box, area, iou))
        return false;
    for (int k = 0; k < 4; k++)
        r->side[k][kept] = box[k];
    r->area[kept] = area;
    return true;
}
