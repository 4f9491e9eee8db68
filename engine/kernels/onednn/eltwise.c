/* SPDX-License-Identifier: Apache-2.0
 *
 * Elementwise operators of one input. Left out: Relu, Clip and Exp, because oneDNN's give a
 * number for NaN, and Log, whose log(1) is 1e-6. */
#include "engine/kernels/onednn/lib/adapter.h"

static enum status build(const struct kernel_query *q, struct plan *plan, struct error *why)
{
    struct chain chain;
    struct memory_layout layout;
    struct plan_step *step;
    struct grouping grouping = grouping_identity(q->out[0].shape.rank);
    if (!onednn_host->desc_same_memory(&q->in[0], &q->out[0]))
        return REFUSE(why, "input and output differ in layout");
    TRY(chain_from_node(q->node, NULL, &chain, why));
    if (DNNL_VERSION_MAJOR >= 3 && is_op(q, "Gelu"))
        return REFUSE(why, "oneDNN 3 turns an infinity into NaN");
    struct eltwise e = eltwise_of(chain.steps[0].code, chain.steps[0].p, chain.steps[0].q);
    if (e.kind == dnnl_alg_kind_undef)
        return REFUSE(why, "oneDNN 3 loses this function's small results");
    TRY(layout_from_desc(plan, &q->in[0], &layout, why));
    TRY(posts_keep_nan(q, why));
    struct operation operation = {OPERATION_ELTWISE, e.kind,           .src = &layout,
                                  .dst = &layout,    .alpha = e.alpha, .beta = e.beta};
    TRY(plan_attr(plan, why));
    TRY(posts_append(q, &grouping, &plan->attr, why));
    TRY(plan_step(plan, &operation, &step, why));
    step_io(step, DNNL_ARG_SRC, SOURCE_IN, 0, &layout);
    step_io(step, DNNL_ARG_DST, SOURCE_OUT, 0, &layout);
    return STATUS_OK;
}

ONEDNN_KERNEL(eltwise, build, 1,
              .ops = OPS("LeakyRelu", "Elu", "Sigmoid", "Tanh", "Sqrt", "Abs", "HardSwish",
                         "Softplus", "Mish", "Gelu"));
