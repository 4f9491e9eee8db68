/* SPDX-License-Identifier: Apache-2.0
 *
 * Elementwise operators of one input. */
#include <string.h>

#include "engine/kernels/onednn/lib/adapter.h"

struct eltwise {
    const char *op;
    dnnl_alg_kind_t kind;
    const char *alpha_attr, *beta_attr; /* NULL: the constant beside */
    double alpha, beta;
};

static const struct eltwise table[] = {
    {.op = "Relu", .kind = dnnl_eltwise_relu},
    {.op = "LeakyRelu", .kind = dnnl_eltwise_relu, .alpha_attr = "alpha", .alpha = 0.01},
    {.op = "Elu", .kind = dnnl_eltwise_elu, .alpha_attr = "alpha", .alpha = 1},
    {.op = "Sigmoid", .kind = dnnl_eltwise_logistic},
    {.op = "Tanh", .kind = dnnl_eltwise_tanh},
    {.op = "Exp", .kind = dnnl_eltwise_exp},
    {.op = "Log", .kind = dnnl_eltwise_log},
    {.op = "Sqrt", .kind = dnnl_eltwise_sqrt},
    {.op = "Abs", .kind = dnnl_eltwise_abs},
    {.op = "HardSwish", .kind = dnnl_eltwise_hardswish},
    {.op = "Softplus", .kind = dnnl_eltwise_soft_relu},
    {.op = "Mish", .kind = dnnl_eltwise_mish},
};

static enum status clip_bound(const struct kernel_query *q, int input, double fallback,
                              double *bound, struct error *why)
{
    const float *data = in_fixed(q, input);
    *bound = data ? (double)*data : fallback;
    return data || !in_desc(q, input) ? STATUS_OK : REFUSE(why, "bounds change from run to run");
}

static enum status describe(const struct kernel_query *q, struct eltwise *e, struct error *why)
{
    const struct node *node = q->node;
    if (is_op(q, "Gelu")) {
        bool tanh = strcmp(onednn_host->node_string(node, "approximate", "none"), "tanh") == 0;
        *e = (struct eltwise){.kind = tanh ? dnnl_eltwise_gelu_tanh : dnnl_eltwise_gelu_erf};
        return STATUS_OK;
    }
    if (is_op(q, "Clip")) {
        *e = (struct eltwise){.kind = dnnl_eltwise_clip};
        TRY(clip_bound(q, 1, -3.4028234663852886e38, &e->alpha, why));
        return clip_bound(q, 2, 3.4028234663852886e38, &e->beta, why);
    }
    for (int k = 0; k < ARRAY_COUNT(table); k++)
        if (is_op(q, table[k].op))
            *e = table[k];
    if (e->alpha_attr)
        e->alpha = onednn_host->node_float(node, e->alpha_attr, e->alpha);
    return STATUS_OK;
}

static enum status build(const struct kernel_query *q, struct plan *plan, struct error *why)
{
    struct eltwise e = {0};
    dnnl_memory_desc_t md;
    dnnl_eltwise_desc_t desc;
    struct plan_step *step;
    struct grouping grouping = grouping_identity(q->out[0].shape.rank);
    if (!onednn_host->desc_same_memory(&q->in[0], &q->out[0]))
        return REFUSE(why, "input and output differ in layout");
    TRY(md_from_desc(&q->in[0], &md, why));
    TRY(describe(q, &e, why));
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
              .ops = OPS("Relu", "LeakyRelu", "Elu", "Sigmoid", "Tanh", "Exp", "Log", "Sqrt", "Abs",
                         "HardSwish", "Softplus", "Mish", "Gelu", "Clip"));
