/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/kernels/onednn/lib/conv.h"
#include "engine/ops/lib/window.h"

/* Weights [O, I / G, k...] as oneDNN wants them for groups: [G, O / G, I / G, k...]. */
static void set_weights(struct plan *plan, const struct desc *w, int64_t group, struct conv *conv)
{
    int64_t dim[RANK_MAX + 1], stride[RANK_MAX + 1];
    int rank = w->shape.rank, shift = group > 1;
    for (int k = 0; k < rank; k++) {
        dim[k + shift] = w->shape.dim[k];
        stride[k + shift] = w->stride[k];
    }
    if (shift) {
        dim[0] = group;
        dim[1] = w->shape.dim[0] / group;
        stride[0] = dim[1] * w->stride[0];
    }
    conv->weights = layout_strided(plan, rank + shift, dim, stride);
    conv->weights_any = layout_any(plan, rank + shift, dim);
}

/* Whether the window at a position of dimension k has no tap inside the input. */
static bool sees_nothing(const struct window *w, int k, int64_t position)
{
    int64_t at = position * w->stride[k] - w->pad_begin[k];
    for (int64_t tap = 0; tap < w->kernel[k]; tap++, at += w->dilation[k])
        if (at >= 0 && at < w->in[k])
            return false;
    return true;
}

static bool has_blind_windows(const struct window *w)
{
    for (int k = 0; k < w->rank; k++)
        for (int64_t position = 0; position < w->out[k]; position++)
            if (sees_nothing(w, k, position))
                return true;
    return false;
}

enum status conv_from_query(const struct kernel_query *q, struct plan *plan, struct conv *conv,
                            struct error *why)
{
    const struct desc *x = query_in(q, 0), *w = query_in(q, 1), *bias = query_in(q, 2);
    *conv = (struct conv){.spatial = x->shape.rank - 2,
                          .has_bias = q->node->op_inputs > 2 && bias,
                          .weights_data = query_fixed(q, 1)};
    if (conv->spatial < 1 || conv->spatial > SPATIAL_MAX)
        return REFUSE(why, "rank %d", x->shape.rank);
    struct window window;
    TRY(window_from_node(q->node, &x->shape, &w->shape.dim[2], &window, why));
    TRY(layout_from_desc(plan, x, &conv->src, why));
    TRY(layout_from_desc(plan, &q->out[0], &conv->dst, why));
    TRY(layout_from_desc(plan, w, &conv->weights, why));
    if (conv->has_bias)
        TRY(layout_from_desc(plan, bias, &conv->bias, why));
    set_weights(plan, w, window.group, conv);
    conv->blind = has_blind_windows(&window);
    for (int k = 0; k < conv->spatial; k++) {
        conv->stride[k] = window.stride[k];
        conv->dilation[k] = window.dilation[k] - 1;
        conv->pad_begin[k] = window.pad_begin[k];
        conv->pad_end[k] = window.pad_end[k];
    }
    return STATUS_OK;
}

struct operation conv_operation(const struct conv *conv, dnnl_alg_kind_t alg)
{
    return (struct operation){OPERATION_CONV,
                              alg,
                              .src = &conv->src,
                              .weights = &conv->weights_any,
                              .bias = conv->has_bias ? &conv->bias : NULL,
                              .dst = &conv->dst,
                              .stride = conv->stride,
                              .dilation = conv->dilation,
                              .pad_begin = conv->pad_begin,
                              .pad_end = conv->pad_end};
}

enum status conv_posts_in_place(const struct kernel_query *q, struct plan *plan, int *residual,
                                struct error *why)
{
    *residual = NONE;
    for (int k = 0; k < q->node->post_count; k++) {
        const struct post *post = &q->node->posts[k];
        if (post->kind == POST_ACT) {
            TRY(post_append(q, NULL, post, &plan->attr, why));
            continue;
        }
        const struct desc *operand = query_in(q, post->input);
        if (post->kind != POST_ADD || *residual != NONE || !operand ||
            !shape_equal(&operand->shape, &q->out[0].shape))
            return REFUSE(why, "it can add one tensor of the output's size, no more");
        DNNL_TRY(post_append_sum(plan->attr.ops), why);
        *residual = post->input;
    }
    return STATUS_OK;
}

enum status conv_weights(const struct conv *conv, struct plan *plan, struct plan_step *step,
                         struct error *why)
{
    if (conv->has_bias)
        step_io(step, DNNL_ARG_BIAS, SOURCE_IN, 2, &conv->bias);
    return step_weights(plan, step, DNNL_ARG_WEIGHTS, 1, &conv->weights, conv->weights_data, why);
}
