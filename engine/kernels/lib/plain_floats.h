/* SPDX-License-Identifier: Apache-2.0
 *
 * For kernels that take tensors of floats as they lie, all of f32 or all of bf16. */
#ifndef ENGINE_KERNELS_LIB_PLAIN_FLOATS_H
#define ENGINE_KERNELS_LIB_PLAIN_FLOATS_H

#include "engine/graph/kernel.h"
#include "engine/kernels/lib/simd_floats.h"

static inline bool descs_are_plain(const struct desc *descs, int count)
{
    for (int k = 0; k < count; k++)
        if (descs[k].dtype != DTYPE_NONE && !desc_is_plain(&descs[k]))
            return false;
    return true;
}

/* query_plain_f32, or the same of bf16. */
static inline enum status query_plain_floats(const struct kernel_query *q, bool *bf16,
                                             struct error *why)
{
    *bf16 = query_all_dtype(q, DTYPE_BF16);
    if (!*bf16)
        return query_plain_f32(q, why);
    if (q->node->post_count)
        return UNSUPPORTED(why, "no fused epilogue");
    if (!descs_are_plain(q->in, q->in_count) || !descs_are_plain(q->out, q->out_count))
        return UNSUPPORTED(why, "an input or output is not plain");
    return STATUS_OK;
}

SIMD_INLINE void floats_widen(const uint16_t *from, float *to, int64_t n)
{
    int64_t i = 0;
    for (; i + VL <= n; i += VL)
        vf_store(to + i, vf_load_bf16(from + i));
    if (i < n) {
        vm rest = vm_first(n - i);
        vf_store_m(to + i, rest, vf_load_bf16_m(from + i, rest));
    }
}

#endif
