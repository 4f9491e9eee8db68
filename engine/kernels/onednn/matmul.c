/* SPDX-License-Identifier: Apache-2.0
 *
 * MatMul and Gemm on oneDNN's matmul primitive, B packed when it is a weight. */
#include "engine/kernels/onednn/lib/gemm.h"

static enum status build(const struct kernel_query *q, struct plan *plan, struct error *why)
{
    return gemm_build(q, &gemm_f32, plan, why);
}

ONEDNN_KERNEL(matmul, build, PLAN_VARIANTS, .ops = OPS("MatMul", "Gemm"), .packs = 1u << 1);
