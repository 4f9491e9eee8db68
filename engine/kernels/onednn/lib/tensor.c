/* SPDX-License-Identifier: Apache-2.0
 *
 * Ridge's tensors and epilogues in oneDNN's terms. */
#include <string.h>

#include "engine/kernels/onednn/lib/adapter.h"

bool is_op(const struct kernel_query *q, const char *name)
{
    return strcmp(onednn_host->node_op(q->node), name) == 0;
}

/* ---- layouts ---- */

static dnnl_data_type_t floats_of(const struct plan *plan)
{
    return plan->bf16 ? dnnl_bf16 : dnnl_f32;
}

static bool is_floats(const struct plan *plan, const struct desc *desc)
{
    return desc->dtype == (plan->bf16 ? DTYPE_BF16 : DTYPE_F32);
}

struct memory_layout layout_strided(struct plan *plan, int rank, const int64_t *dims,
                                    const int64_t *strides)
{
    return layout_of(&plan->layouts, floats_of(plan), rank, dims, strides);
}

struct memory_layout layout_any(struct plan *plan, int rank, const int64_t *dims)
{
    return layout_of(&plan->layouts, floats_of(plan), rank, dims, NULL);
}

enum status layout_from_desc(struct plan *plan, const struct desc *desc,
                             struct memory_layout *layout, struct error *why)
{
    if (!is_floats(plan, desc))
        return REFUSE(why, "only %s", plan->bf16 ? "bf16" : "f32");
    for (int k = 0; k < desc->shape.rank; k++)
        if (desc->shape.dim[k] == 0)
            return REFUSE(why, "empty tensor");
    static const int64_t one[] = {1};
    if (desc->shape.rank == 0)
        *layout = layout_strided(plan, 1, one, one);
    else
        *layout = layout_strided(plan, desc->shape.rank, desc->shape.dim, desc->stride);
    return layout->rank ? STATUS_OK : REFUSE(why, "strides that oneDNN does not know");
}

/* ---- epilogues ---- */

struct eltwise eltwise_of(enum function function, float p, float q)
{
    double a = (double)p, b = (double)q;
    /* Its softplus of -11 is 3 % off, that of -15 is 0 and that of -29 negative. */
    if (DNNL_VERSION_MAJOR >= 3 && (function == FN_MISH || function == FN_SOFTPLUS))
        return (struct eltwise){0};
    switch (function) {
    case FN_ABS:
        return (struct eltwise){dnnl_eltwise_abs, 0, 0};
    case FN_CLIP:
        return (struct eltwise){dnnl_eltwise_clip, a, b};
    case FN_ELU:
        return (struct eltwise){dnnl_eltwise_elu, a, 0};
    case FN_GELU_ERF:
        return (struct eltwise){dnnl_eltwise_gelu_erf, 0, 0};
    case FN_GELU_TANH:
        return (struct eltwise){dnnl_eltwise_gelu_tanh, 0, 0};
    case FN_HARD_SWISH: /* version 2 knows the usual line without being told */
        return (struct eltwise){dnnl_eltwise_hardswish, 1.0 / 6, 0.5};
    case FN_LEAKY_RELU:
        return (struct eltwise){dnnl_eltwise_relu, a, 0};
    case FN_MISH:
        return (struct eltwise){dnnl_eltwise_mish, 0, 0};
    case FN_RELU:
        return (struct eltwise){dnnl_eltwise_relu, 0, 0};
    case FN_SIGMOID:
        return (struct eltwise){dnnl_eltwise_logistic, 0, 0};
    case FN_SILU:
        return (struct eltwise){dnnl_eltwise_swish, 1, 0};
    case FN_SOFTPLUS:
        return (struct eltwise){dnnl_eltwise_soft_relu, 1, 0};
    case FN_SQRT:
        return (struct eltwise){dnnl_eltwise_sqrt, 0, 0};
    case FN_TANH:
        return (struct eltwise){dnnl_eltwise_tanh, 0, 0};
    default:
        return (struct eltwise){0};
    }
}

/* Two generated epilogues of one kind share their table of constants: both would take the
 * parameters of one of them (seen with two dnnl_eltwise_linear). */
static bool has_eltwise(const struct step_attr *attr, dnnl_alg_kind_t kind)
{
    for (int k = 0; k < dnnl_post_ops_len(attr->ops); k++) {
        if (dnnl_post_ops_get_kind(attr->ops, k) == dnnl_eltwise && post_alg(attr->ops, k) == kind)
            return true;
    }
    return false;
}

enum status post_eltwise(struct step_attr *attr, dnnl_alg_kind_t kind, double alpha, double beta,
                         struct error *why)
{
    if (has_eltwise(attr, kind))
        return REFUSE(why, "oneDNN 2.6 mixes up two epilogues of one kind");
    DNNL_TRY(post_append_eltwise(attr->ops, kind, (float)alpha, (float)beta), why);
    return STATUS_OK;
}

static enum status append_act(const struct post *post, struct step_attr *attr, struct error *why)
{
    struct eltwise e = eltwise_of(post->act, post->a, post->b);
    /* hard sigmoid: the line a x + b, then the clip to [0, 1] */
    if (post->act == FN_HARD_SIGMOID) {
        TRY(post_eltwise(attr, dnnl_eltwise_linear, (double)post->a, (double)post->b, why));
        return post_eltwise(attr, dnnl_eltwise_clip, 0, 1, why);
    }
    if (post->act == FN_COPY)
        return STATUS_OK;
    if (!e.kind)
        return REFUSE(why, "no such activation in the epilogue");
    return post_eltwise(attr, e.kind, e.alpha, e.beta, why);
}

struct grouping grouping_identity(int rank)
{
    struct grouping grouping = {.rank = rank > 0 ? rank : 1};
    for (int k = 0; k <= rank; k++)
        grouping.first[k] = k;
    return grouping;
}

/* One dimension of the result seen in the operand: its size and stride over the output's
 * dimensions first .. end - 1, which must be all broadcast or run on without a gap. */
static enum status group_operand(const struct kernel_query *q, const struct desc *operand,
                                 int first, int end, int64_t *dim, int64_t *stride,
                                 struct error *why)
{
    const struct shape *out = &q->out[0].shape;
    int shift = operand->shape.rank - out->rank;
    *dim = 1;
    *stride = end > first && end - 1 + shift >= 0 ? operand->stride[end - 1 + shift] : 1;
    bool begun = false, broadcast = false;
    for (int k = end - 1; k >= first; k--) {
        bool full = k + shift >= 0 && operand->shape.dim[k + shift] != 1;
        if (out->dim[k] == 1)
            continue;
        if (begun && (full == broadcast || (full && operand->stride[k + shift] != *dim * *stride)))
            return REFUSE(why, "operand of the epilogue is broadcast inside a folded dimension");
        if (!begun && full)
            *stride = operand->stride[k + shift];
        begun = true;
        broadcast = !full;
        if (full)
            *dim *= out->dim[k];
    }
    return STATUS_OK;
}

/* One binary post-op whose operand is input `input`, laid out as that. */
static enum status post_binary(struct step_attr *attr, dnnl_alg_kind_t kind, int input,
                               const struct memory_layout *layout, struct error *why)
{
    if (attr->arg_count == POST_MAX)
        return REFUSE(why, "epilogue with more than %d operands", POST_MAX);
    int place = dnnl_post_ops_len(attr->ops);
    DNNL_TRY(dnnl_post_ops_append_binary(attr->ops, kind, layout_md(layout)), why);
    attr->args[attr->arg_count++] =
        (struct step_arg){.arg = DNNL_ARG_ATTR_MULTIPLE_POST_OP(place) | DNNL_ARG_SRC_1,
                          .source = SOURCE_IN,
                          .index = (size_t)input,
                          .layout = *layout};
    return STATUS_OK;
}

static enum status append_binary(const struct kernel_query *q, const struct grouping *grouping,
                                 const struct post *post, struct step_attr *attr, struct error *why)
{
    const struct desc *operand = query_in(q, post->input);
    if (!operand || !is_floats(attr->plan, operand))
        return REFUSE(why, "operand of the epilogue is not of the node's type");
    if (operand->shape.rank > q->out[0].shape.rank)
        return REFUSE(why, "operand of the epilogue has a larger rank than the output");
    int64_t dim[RANK_MAX + 2], stride[RANK_MAX + 2];
    for (int k = 0; k < grouping->rank; k++)
        TRY(group_operand(q, operand, grouping->first[k], grouping->first[k + 1], &dim[k],
                          &stride[k], why));
    struct memory_layout layout = layout_strided(attr->plan, grouping->rank, dim, stride);
    return post_binary(attr, post->kind == POST_ADD ? dnnl_binary_add : dnnl_binary_mul,
                       post->input, &layout, why);
}

enum status post_append(const struct kernel_query *q, const struct grouping *grouping,
                        const struct post *post, struct step_attr *attr, struct error *why)
{
    return post->kind == POST_ACT ? append_act(post, attr, why)
                                  : append_binary(q, grouping, post, attr, why);
}

enum status posts_keep_nan(const struct kernel_query *q, struct error *why)
{
    for (int k = 0; k < q->node->post_count; k++) {
        const struct post *post = &q->node->posts[k];
        if (post->kind == POST_ACT &&
            (post->act == FN_RELU || post->act == FN_CLIP || post->act == FN_HARD_SIGMOID))
            return REFUSE(why, "its relu and clip turn NaN into a number");
    }
    return STATUS_OK;
}

enum status posts_append(const struct kernel_query *q, const struct grouping *grouping,
                         struct step_attr *attr, struct error *why)
{
    for (int k = 0; k < q->node->post_count; k++)
        TRY(post_append(q, grouping, &q->node->posts[k], attr, why));
    return STATUS_OK;
}
