/* SPDX-License-Identifier: Apache-2.0
 *
 * MatMul and Gemm on oneDNN's matmul primitive, B packed when it is a weight. */
#include "engine/kernels/onednn/lib/gemm.h"

/* The bias row in as many dimensions as the result has. */
static dnnl_memory_desc_t bias_md(const struct gemm *gemm)
{
    int64_t dims[RANK_MAX + 2], strides[RANK_MAX + 2];
    int last = gemm->c.ndims - 1;
    for (int k = 0; k <= last; k++) {
        dims[k] = k < last ? 1 : gemm->shape.n;
        strides[k] = k < last ? gemm->shape.n : 1;
    }
    return md_strided(gemm->c.ndims, dims, strides);
}

static enum status build(const struct kernel_query *q, struct plan *plan, struct error *why)
{
    struct gemm gemm;
    dnnl_matmul_desc_t desc;
    struct plan_step *step;
    TRY(gemm_from_query(q, &gemm, why));
    dnnl_memory_desc_t bias = bias_md(&gemm);
    DNNL_TRY(dnnl_matmul_desc_init(&desc, &gemm.a, gemm.b_data ? &gemm.b_any : &gemm.b,
                                   gemm.bias == NONE ? NULL : &bias, &gemm.c),
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
    if (gemm.bias != NONE)
        step_io(step, DNNL_ARG_BIAS, SOURCE_IN, (size_t)gemm.bias, &bias);
    return STATUS_OK;
}

ONEDNN_KERNEL(matmul, build, PLAN_VARIANTS, .ops = OPS("MatMul", "Gemm"), .packs = 1u << 1);
