/* SPDX-License-Identifier: Apache-2.0
 *
 * Direct convolution on the layouts of the graph, epilogue fused. On channels-last images oneDNN
 * 2.6 runs batch-reduce GEMM kernels ("brgconv"), at 86 to 98 % of the FMA peak on largest layers
 * of ResNet-50; depthwise and small groups reach a third of that. Of f32 or bf16. */
#include "engine/kernels/onednn/lib/conv.h"

static enum status build(const struct kernel_query *q, struct plan *plan, struct error *why)
{
    struct conv conv;
    struct plan_step *step;
    struct grouping grouping = grouping_identity(q->out[0].shape.rank);
    plan->bf16 = q->in[0].dtype == DTYPE_BF16;
    TRY(conv_from_query(q, plan, &conv, why));
    struct operation operation = conv_operation(&conv, dnnl_convolution_direct);
    TRY(plan_attr(plan, why));
    TRY(posts_append(q, &grouping, &plan->attr, why));
    TRY(plan_step(plan, &operation, &step, why));
    step_io(step, DNNL_ARG_SRC, SOURCE_IN, 0, &conv.src);
    step_io(step, DNNL_ARG_DST, SOURCE_OUT, 0, &conv.dst);
    return conv_weights(&conv, plan, step, why);
}

ONEDNN_KERNEL(conv, build, PLAN_VARIANTS, .ops = OPS("Conv"), .packs = 1u << 1);
