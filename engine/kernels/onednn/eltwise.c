/* SPDX-License-Identifier: Apache-2.0
 *
 * Elementwise operators of one input. Left out: Relu, Clip and Exp, because oneDNN's give a
 * number for NaN, and Log, whose log(1) is 1e-6. */
#include "engine/kernels/onednn/lib/adapter.h"

static enum status build(const struct kernel_query *q, struct plan *plan, struct error *why)
{
    struct chain chain;
    dnnl_memory_desc_t md;
    dnnl_eltwise_desc_t desc;
    struct plan_step *step;
    struct grouping grouping = grouping_identity(q->out[0].shape.rank);
    if (!onednn_host->desc_same_memory(&q->in[0], &q->out[0]))
        return REFUSE(why, "input and output differ in layout");
    TRY(chain_from_node(q->node, NULL, &chain, why));
    struct eltwise e = eltwise_of(chain.steps[0].code, chain.steps[0].p, chain.steps[0].q);
    TRY(md_from_desc(&q->in[0], &md, why));
    TRY(posts_keep_nan(q, why));
    DNNL_TRY(dnnl_eltwise_forward_desc_init(&desc, dnnl_forward_inference, e.kind, &md,
                                            (float)e.alpha, (float)e.beta),
             why);
    TRY(plan_attr(plan, why));
    TRY(posts_append(q, &grouping, &plan->attr, why));
    TRY(plan_step(plan, &desc, &step, why));
    step_io(step, DNNL_ARG_SRC, SOURCE_IN, 0, &md);
    step_io(step, DNNL_ARG_DST, SOURCE_OUT, 0, &md);
    return STATUS_OK;
}

ONEDNN_KERNEL(eltwise, build, 1,
              .ops = OPS("LeakyRelu", "Elu", "Sigmoid", "Tanh", "Sqrt", "Abs", "HardSwish",
                         "Softplus", "Mish", "Gelu"));
