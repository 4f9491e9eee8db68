/* SPDX-License-Identifier: Apache-2.0
 *
 * MatMul and Gemm with one right matrix, on oneDNN's inner product: the same mathematics as its
 * matmul by other code with other blocking, better for some small row counts. */
#include "engine/kernels/onednn/lib/gemm.h"

static enum status build(const struct kernel_query *q, struct plan *plan, struct error *why)
{
    struct gemm gemm;
    struct plan_step *step;
    TRY(gemm_from_query(q, &gemm_f32, plan, &gemm, why));
    if (gemm.c.rank != 2)
        return REFUSE(why, "inner product needs one matrix for all");
    /* Its weights are [N, K]: B transposed by its strides. */
    int64_t dims[2] = {gemm.shape.n, gemm.shape.k};
    int64_t strides[2] = {gemm.shape.b_col ? gemm.shape.b_col : 1, gemm.shape.b_row};
    struct memory_layout weights = layout_strided(plan, 2, dims, strides),
                         any = layout_any(plan, 2, dims);
    struct operation operation = {OPERATION_INNER_PRODUCT, .src = &gemm.a, .weights = &any,
                                  .bias = gemm.bias == NONE ? NULL : &gemm.bias_row,
                                  .dst = &gemm.c};
    TRY(plan_attr(plan, why));
    TRY(gemm_posts(q, &gemm, plan, why));
    TRY(plan_step(plan, &operation, &step, why));
    step_io(step, DNNL_ARG_SRC, SOURCE_IN, 0, &gemm.a);
    step_io(step, DNNL_ARG_DST, SOURCE_OUT, 0, &gemm.c);
    if (gemm.bias != NONE)
        step_io(step, DNNL_ARG_BIAS, SOURCE_IN, (size_t)gemm.bias, &gemm.bias_row);
    return step_weights(plan, step, DNNL_ARG_WEIGHTS, 1, &weights, gemm.b_data, why);
}

ONEDNN_KERNEL(inner_product, build, 2, .ops = OPS("MatMul", "Gemm"), .packs = 1u << 1);
