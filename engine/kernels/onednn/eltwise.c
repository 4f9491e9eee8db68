/* SPDX-License-Identifier: Apache-2.0
 *
 * Elementwise operators of one input. Left out: Relu, Clip and Exp, because oneDNN's give a
 * number for NaN, and Log, whose log(1) is 1e-6. */
#include <string.h>

#include "engine/kernels/onednn/lib/adapter.h"

struct eltwise {
    const char *op;
    dnnl_alg_kind_t kind;
    const char *alpha_attr; /* NULL: alpha is fixed */
    double alpha;
};

static const struct eltwise table[] = {
    {.op = "LeakyRelu", .kind = dnnl_eltwise_relu, .alpha_attr = "alpha", .alpha = 0.01},
    {.op = "Elu", .kind = dnnl_eltwise_elu, .alpha_attr = "alpha", .alpha = 1},
    {.op = "Sigmoid", .kind = dnnl_eltwise_logistic},
    {.op = "Tanh", .kind = dnnl_eltwise_tanh},
    {.op = "Sqrt", .kind = dnnl_eltwise_sqrt},
    {.op = "Abs", .kind = dnnl_eltwise_abs},
    {.op = "HardSwish", .kind = dnnl_eltwise_hardswish},
    {.op = "Softplus", .kind = dnnl_eltwise_soft_relu},
    {.op = "Mish", .kind = dnnl_eltwise_mish},
};

static struct eltwise eltwise_of(const struct kernel_query *q)
{
    const struct node *node = q->node;
    struct eltwise e = {.kind = dnnl_eltwise_gelu_erf};
    if (strcmp(onednn_host->node_string(node, "approximate", "none"), "tanh") == 0)
        e.kind = dnnl_eltwise_gelu_tanh;
    for (int k = 0; k < ARRAY_COUNT(table); k++)
        if (is_op(q, table[k].op))
            e = table[k];
    if (e.alpha_attr)
        e.alpha = onednn_host->node_float(node, e.alpha_attr, e.alpha);
    return e;
}

static enum status build(const struct kernel_query *q, struct plan *plan, struct error *why)
{
    struct eltwise e = eltwise_of(q);
    dnnl_memory_desc_t md;
    dnnl_eltwise_desc_t desc;
    struct plan_step *step;
    struct grouping grouping = grouping_identity(q->out[0].shape.rank);
    if (!onednn_host->desc_same_memory(&q->in[0], &q->out[0]))
        return REFUSE(why, "input and output differ in layout");
    TRY(md_from_desc(&q->in[0], &md, why));
    TRY(posts_keep_nan(q, why));
    DNNL_TRY(dnnl_eltwise_forward_desc_init(&desc, dnnl_forward_inference, e.kind, &md,
                                            (float)e.alpha, 0.0f),
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
