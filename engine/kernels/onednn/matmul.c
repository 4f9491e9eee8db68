/* SPDX-License-Identifier: Apache-2.0
 *
 * MatMul and Gemm on oneDNN's matmul primitive, B packed when it is a weight. */
#include "engine/kernels/onednn/lib/gemm.h"

static enum status build(const struct kernel_query *q, struct plan *plan, struct error *why)
{
    struct gemm gemm;
    dnnl_matmul_desc_t desc;
    struct plan_step *step;
    TRY(gemm_from_query(q, &gemm, why));
    DNNL_TRY(
        dnnl_matmul_desc_init(&desc, &gemm.a, gemm.b_data ? &gemm.b_any : &gemm.b, NULL, &gemm.c),
        why);
    TRY(plan_attr(plan, why));
    TRY(gemm_posts(q, &gemm, plan, why));
    TRY(plan_step(plan, &desc, &step, why));
    step_io(step, DNNL_ARG_SRC, SOURCE_IN, 0, &gemm.a);
    step_io(step, DNNL_ARG_DST, SOURCE_OUT, 0, &gemm.c);
    if (gemm.b_data)
        step_packed(step, DNNL_ARG_WEIGHTS, &gemm.b, gemm.b_data);
    else
        step_io(step, DNNL_ARG_WEIGHTS, SOURCE_IN, 1, &gemm.b);
    return STATUS_OK;
}

ONEDNN_KERNEL(matmul, build, PLAN_VARIANTS, .ops = OPS("MatMul", "Gemm"), .packs = 1u << 1);
