/* SPDX-License-Identifier: Apache-2.0
 *
 * MatMulInteger of any bytes times signed ones, without zero points. */
#include "engine/kernels/onednn/lib/gemm.h"

static enum status build(const struct kernel_query *q, struct plan *plan, struct error *why)
{
    struct gemm_types types = {q->in[0].dtype, DTYPE_I8, DTYPE_I32};
    if (query_in(q, 2) || query_in(q, 3))
        return REFUSE(why, "zero points");
    return gemm_build(q, &types, plan, why);
}

ONEDNN_KERNEL(matmul_bytes, build, PLAN_VARIANTS, .ops = OPS("MatMulInteger"), .packs = 1u << 1);
