/* SPDX-License-Identifier: Apache-2.0
 *
 * Direct convolution with a residual: the residual is copied to the destination first and added to
 * there. The copy costs a pass over the output, but oneDNN 2.6's best kernels (brgconv) can add
 * nothing else; reading the residual from where it is (onednn_conv) gets an older kernel. */
#include "engine/kernels/onednn/lib/conv.h"

static enum status build(const struct kernel_query *q, struct plan *plan, struct error *why)
{
    struct conv conv;
    struct memory_layout operand;
    struct plan_step *step;
    int residual;
    plan->bf16 = q->in[0].dtype == DTYPE_BF16;
    TRY(conv_from_query(q, plan, &conv, why));
    struct operation operation = conv_operation(&conv, dnnl_convolution_direct);
    TRY(plan_attr(plan, why));
    TRY(conv_posts_in_place(q, plan, &residual, why));
    if (residual == NONE)
        return REFUSE(why, "no residual to add");
    if (conv.blind)
        return REFUSE(why, "oneDNN 2.6 loses it, or crashes, where there is only padding");
    TRY(plan_step(plan, &operation, &step, why));
    step_io(step, DNNL_ARG_SRC, SOURCE_IN, 0, &conv.src);
    step_io(step, DNNL_ARG_DST, SOURCE_OUT, 0, &conv.dst);
    TRY(conv_weights(&conv, plan, step, why));
    TRY(layout_from_desc(plan, &q->in[residual], &operand, why));
    TRY(plan_reorder(plan, &operand, &conv.dst, &step, why));
    step_io(step, DNNL_ARG_FROM, SOURCE_IN, (size_t)residual, &operand);
    step_io(step, DNNL_ARG_TO, SOURCE_OUT, 0, &conv.dst);
    plan_last_first(plan);
    return STATUS_OK;
}

ONEDNN_KERNEL(conv_sum, build, 1, .ops = OPS("Conv"), .packs = 1u << 1);
