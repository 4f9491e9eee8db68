/* SPDX-License-Identifier: Apache-2.0
 *
 * Maximum and average pooling, windowed or global. */
#include "engine/kernels/onednn/lib/adapter.h"
#include "engine/ops/lib/window.h"

struct pooling {
    dnnl_alg_kind_t kind;
    int spatial;
    dnnl_dims_t kernel, stride, dilation, pad_begin, pad_end;
};

static void whole_image(const struct desc *x, struct pooling *p)
{
    for (int k = 0; k < p->spatial; k++) {
        p->kernel[k] = x->shape.dim[k + 2];
        p->stride[k] = 1;
    }
}

/* A ceil_mode output may reach past the padding; oneDNN wants padding up to there. For the maximum
 * and for averages that leave padding out it makes no difference. */
static enum status windowed(const struct kernel_query *q, struct pooling *p, struct error *why)
{
    struct window w;
    TRY(window_from_node(q->node, &q->in[0].shape, NULL, &w, why));
    for (int k = 0; k < p->spatial; k++) {
        p->kernel[k] = w.kernel[k];
        p->stride[k] = w.stride[k];
        p->dilation[k] = w.dilation[k] - 1;
        p->pad_begin[k] = w.pad_begin[k];
        int64_t reach = (w.out[k] - 1) * w.stride[k] + (w.kernel[k] - 1) * w.dilation[k] + 1;
        int64_t past = reach - w.in[k] - w.pad_begin[k];
        p->pad_end[k] = past > w.pad_end[k] ? past : w.pad_end[k];
        if (p->pad_end[k] != w.pad_end[k] && p->kind == dnnl_pooling_avg_include_padding)
            return REFUSE(why, "average over padding that ceil_mode adds");
    }
    return STATUS_OK;
}

static enum status pooling_from_query(const struct kernel_query *q, struct pooling *p,
                                      struct error *why)
{
    *p = (struct pooling){.spatial = q->in[0].shape.rank - 2};
    if (p->spatial < 1 || p->spatial > SPATIAL_MAX)
        return REFUSE(why, "rank %d", q->in[0].shape.rank);
    if (q->out_count > 1 && q->out[1].dtype != DTYPE_NONE)
        return REFUSE(why, "indices are wanted as an output");
    bool max = is_op(q, "MaxPool") || is_op(q, "GlobalMaxPool");
    bool padding = onednn_host->node_int(q->node, "count_include_pad", 0) != 0;
    p->kind = max       ? dnnl_pooling_max
              : padding ? dnnl_pooling_avg_include_padding
                        : dnnl_pooling_avg_exclude_padding;
    if (is_op(q, "MaxPool") || is_op(q, "AveragePool"))
        return windowed(q, p, why);
    whole_image(&q->in[0], p);
    return STATUS_OK;
}

/* Version 3 takes the operands of an epilogue from the wrong places where the channels of an image
 * lie one after the other and several threads share the work (3.7.2). */
static enum status check_operands(const struct kernel_query *q, struct error *why)
{
    if (DNNL_VERSION_MAJOR < 3 || !onednn_host->desc_is_plain(&q->out[0]))
        return STATUS_OK;
    for (int k = 0; k < q->node->post_count; k++)
        if (q->node->posts[k].kind != POST_ACT)
            return REFUSE(why, "oneDNN 3 misreads operands of a pool's epilogue on planes");
    return STATUS_OK;
}

static enum status build(const struct kernel_query *q, struct plan *plan, struct error *why)
{
    struct pooling p;
    struct memory_layout src, dst;
    struct plan_step *step;
    struct grouping grouping = grouping_identity(q->out[0].shape.rank);
    TRY(layout_from_desc(plan, &q->in[0], &src, why));
    TRY(layout_from_desc(plan, &q->out[0], &dst, why));
    TRY(pooling_from_query(q, &p, why));
    TRY(check_operands(q, why));
    struct operation operation = {OPERATION_POOL,
                                  p.kind,
                                  .src = &src,
                                  .dst = &dst,
                                  .kernel = p.kernel,
                                  .stride = p.stride,
                                  .dilation = p.dilation,
                                  .pad_begin = p.pad_begin,
                                  .pad_end = p.pad_end};
    TRY(plan_attr(plan, why));
    TRY(posts_append(q, &grouping, &plan->attr, why));
    TRY(plan_step(plan, &operation, &step, why));
    step_io(step, DNNL_ARG_SRC, SOURCE_IN, 0, &src);
    step_io(step, DNNL_ARG_DST, SOURCE_OUT, 0, &dst);
    return STATUS_OK;
}

ONEDNN_KERNEL(pool, build, 1,
              .ops = OPS("MaxPool", "AveragePool", "GlobalMaxPool", "GlobalAveragePool"));
