/* SPDX-License-Identifier: Apache-2.0
 *
 * MatMulInteger of any bytes times signed ones, without zero points. */
#include "engine/kernels/onednn/lib/gemm.h"

/* Without dot products of bytes oneDNN adds pairs of products in 16 bits, which saturate. */
static bool saturates(void)
{
    dnnl_cpu_isa_t isa = dnnl_get_effective_cpu_isa();
    return isa == dnnl_cpu_isa_sse41 || isa == dnnl_cpu_isa_avx || isa == dnnl_cpu_isa_avx2 ||
           isa == dnnl_cpu_isa_avx512_core;
}

static enum status build(const struct kernel_query *q, struct plan *plan, struct error *why)
{
    struct gemm_types types = {q->in[0].dtype, DTYPE_I8, DTYPE_I32};
    if (query_in(q, 2) || query_in(q, 3))
        return REFUSE(why, "zero points");
    if (saturates())
        return REFUSE(why, "oneDNN's sums of two products saturate at 16 bits without VNNI");
    return gemm_build(q, &types, plan, why);
}

ONEDNN_KERNEL(matmul_bytes, build, PLAN_VARIANTS, .ops = OPS("MatMulInteger"), .packs = 1u << 1);
