/* SPDX-License-Identifier: Apache-2.0
 *
 * Elementwise operators of two inputs, the second broadcast to the first. Max and Min are left out:
 * oneDNN's give the other operand for NaN. */
#include <string.h>

#include "engine/kernels/onednn/lib/adapter.h"

struct binary {
    const char *op;
    dnnl_alg_kind_t kind;
    bool commutes;
};

static const struct binary table[] = {
    {"Add", dnnl_binary_add, true},  {"Mul", dnnl_binary_mul, true},
    {"Sub", dnnl_binary_sub, false}, {"Div", dnnl_binary_div, false},
    {"Max", dnnl_binary_max, true},  {"Min", dnnl_binary_min, true},
};

static const struct binary *find(const struct kernel_query *q)
{
    for (int k = 0; k < ARRAY_COUNT(table); k++)
        if (is_op(q, table[k].op))
            return &table[k];
    return NULL;
}

/* An operand of smaller rank, with leading dimensions of size 1. */
static enum status widened(struct plan *plan, const struct desc *desc, int rank,
                           struct memory_layout *layout, struct error *why)
{
    struct desc wide = {.dtype = desc->dtype, .shape.rank = rank};
    int shift = rank - desc->shape.rank;
    int64_t past = 1;
    for (int k = rank - 1; k >= 0; k--) {
        wide.shape.dim[k] = k < shift ? 1 : desc->shape.dim[k - shift];
        wide.stride[k] = k < shift ? past : desc->stride[k - shift];
        past =
            wide.stride[k] * wide.shape.dim[k] > past ? wide.stride[k] * wide.shape.dim[k] : past;
    }
    return layout_from_desc(plan, &wide, layout, why);
}

static enum status build(const struct kernel_query *q, struct plan *plan, struct error *why)
{
    const struct binary *binary = find(q);
    struct memory_layout src[2], dst;
    struct plan_step *step;
    const struct desc *out = &q->out[0];
    struct grouping grouping = grouping_identity(out->shape.rank);
    if (q->node->op_inputs != 2)
        return REFUSE(why, "%d operands", q->node->op_inputs);
    size_t first = !shape_equal(&q->in[0].shape, &out->shape);
    if (!shape_equal(&q->in[first].shape, &out->shape) || (first && !binary->commutes))
        return REFUSE(why, "the first operand is broadcast");
    TRY(posts_keep_nan(q, why));
    TRY(widened(plan, &q->in[first], out->shape.rank, &src[0], why));
    TRY(widened(plan, &q->in[!first], out->shape.rank, &src[1], why));
    TRY(layout_from_desc(plan, out, &dst, why));
    struct operation operation = {OPERATION_BINARY, binary->kind, .src = &src[0], .src1 = &src[1],
                                  .dst = &dst};
    TRY(plan_attr(plan, why));
    TRY(posts_append(q, &grouping, &plan->attr, why));
    TRY(plan_step(plan, &operation, &step, why));
    step_io(step, DNNL_ARG_SRC_0, SOURCE_IN, first, &src[0]);
    step_io(step, DNNL_ARG_SRC_1, SOURCE_IN, !first, &src[1]);
    step_io(step, DNNL_ARG_DST, SOURCE_OUT, 0, &dst);
    return STATUS_OK;
}

ONEDNN_KERNEL(binary, build, 1, .ops = OPS("Add", "Sub", "Mul", "Div"));
