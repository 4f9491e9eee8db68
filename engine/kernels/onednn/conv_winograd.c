/* SPDX-License-Identifier: Apache-2.0
 *
 * Winograd convolution, F(2x2, 3x3) and F(4x4, 3x3), AVX-512 only. "auto" never picks it although
 * it is 1.4 to 3 times faster than direct on many 3x3 layers, so it is asked for by name. It works
 * on images in blocks of 16 channels: source, residual and result are converted on the way, two or
 * three passes over the images that the saved multiplications have to pay for.
 * Error against float64 on He-initialised weights: up to 9e-7 of the output's RMS. */
#include "engine/kernels/onednn/lib/conv.h"

struct blocked {
    struct memory_layout src, dst; /* as the implementation wants them */
    enum source src_source, dst_source;
    size_t src_index, dst_index;
};

/* Where source and result of the convolution live: in place when the layouts agree. */
static struct blocked place(const struct conv *conv, const struct plan_step *step,
                            struct plan *plan)
{
    struct blocked b = {.src = step_layout(step, DNNL_ARG_SRC),
                        .dst = step_layout(step, DNNL_ARG_DST)};
    b.src_source = layout_equal(&b.src, &conv->src) ? SOURCE_IN : SOURCE_WORK;
    b.dst_source = layout_equal(&b.dst, &conv->dst) ? SOURCE_OUT : SOURCE_WORK;
    if (b.src_source == SOURCE_WORK)
        b.src_index = plan_work(plan, layout_size(&b.src));
    if (b.dst_source == SOURCE_WORK)
        b.dst_index = plan_work(plan, layout_size(&b.dst));
    return b;
}

static enum status convert_before(struct plan *plan, int input, const struct memory_layout *from,
                                  enum source to_source, size_t to_index,
                                  const struct memory_layout *to, struct error *why)
{
    struct plan_step *step;
    TRY(plan_reorder(plan, from, to, &step, why));
    step_io(step, DNNL_ARG_FROM, SOURCE_IN, (size_t)input, from);
    step_io(step, DNNL_ARG_TO, to_source, to_index, to);
    plan_last_first(plan);
    return STATUS_OK;
}

static enum status build(const struct kernel_query *q, struct plan *plan, struct error *why)
{
    struct conv conv;
    struct plan_step *step;
    int residual;
    TRY(conv_from_query(q, plan, &conv, why));
    struct memory_layout src = layout_any(plan, conv.src.rank, conv.src.dims);
    struct memory_layout dst = layout_any(plan, conv.dst.rank, conv.dst.dims);
    struct operation operation = conv_operation(&conv, dnnl_convolution_winograd);
    operation.src = &src;
    operation.dst = &dst;
    TRY(plan_attr(plan, why));
    TRY(conv_posts_in_place(q, plan, &residual, why));
    TRY(plan_step(plan, &operation, &step, why));
    struct blocked b = place(&conv, step, plan);
    step_io(step, DNNL_ARG_SRC, b.src_source, b.src_index, &b.src);
    step_io(step, DNNL_ARG_DST, b.dst_source, b.dst_index, &b.dst);
    TRY(conv_weights(&conv, plan, step, why));
    if (b.dst_source == SOURCE_WORK) {
        TRY(plan_reorder(plan, &b.dst, &conv.dst, &step, why));
        step_io(step, DNNL_ARG_FROM, SOURCE_WORK, b.dst_index, &b.dst);
        step_io(step, DNNL_ARG_TO, SOURCE_OUT, 0, &conv.dst);
    }
    if (b.src_source == SOURCE_WORK)
        TRY(convert_before(plan, 0, &conv.src, b.src_source, b.src_index, &b.src, why));
    if (residual == NONE)
        return STATUS_OK;
    struct memory_layout operand;
    TRY(layout_from_desc(plan, query_in(q, residual), &operand, why));
    return convert_before(plan, residual, &operand, b.dst_source, b.dst_index, &b.dst, why);
}

ONEDNN_KERNEL(conv_winograd, build, 2, .ops = OPS("Conv"), .packs = 1u << 1, .rel_error = 1e-4);
