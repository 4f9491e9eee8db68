/* SPDX-License-Identifier: Apache-2.0
 *
 * MatMul and Gemm of bf16, sums in f32. */
#include "engine/kernels/onednn/lib/gemm.h"

static enum status build(const struct kernel_query *q, struct plan *plan, struct error *why)
{
    static const struct gemm_types types = {DTYPE_BF16, DTYPE_BF16, DTYPE_BF16};
    return gemm_build(q, &types, plan, why);
}

ONEDNN_KERNEL(matmul_bf16, build, PLAN_VARIANTS, .ops = OPS("MatMul", "Gemm"), .packs = 1u << 1,
              .rel_error = 8e-3);
