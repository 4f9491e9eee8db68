/* SPDX-License-Identifier: Apache-2.0
 *
 * ConvInteger, whose result is the sums: of networks that are quantised while they run, with a zero
 * point of x that comes with each image. */
#include "engine/kernels/lib/conv_words.h"

enum { WEIGHTS = 1, X_ZERO, W_ZERO };

/* The one number of all zero points of the weights. */
static enum status read_zero(const struct kernel_query *q, int32_t *zero, struct error *why)
{
    const struct desc *desc = query_in(q, W_ZERO);
    const unsigned char *given = query_fixed(q, W_ZERO);
    *zero = 0;
    if (!desc)
        return STATUS_OK;
    if (!given)
        return UNSUPPORTED(why, "zero points of the weights are not known beforehand");
    for (int64_t k = 1; k < shape_count(&desc->shape); k++)
        if (given[k] != given[0])
            return UNSUPPORTED(why, "zero points of the weights differ");
    *zero = desc->dtype == DTYPE_I8 ? (int8_t)given[0] : given[0];
    return STATUS_OK;
}

static enum status from(const struct kernel_query *q, struct conv_words *w, struct error *why)
{
    const struct desc *zero = query_in(q, X_ZERO);
    *w = (struct conv_words){.element = 1, .rescale.to = DTYPE_F32, .x_zero = zero ? X_ZERO : NONE};
    if (zero && shape_count(&zero->shape) != 1)
        return UNSUPPORTED(why, "several zero points of x");
    if (q->node->post_count)
        return UNSUPPORTED(why, "no fused epilogue");
    return read_zero(q, &w->rescale.w_zero, why);
}

CONV_WORDS_KERNEL(conv_integer, from, .ops = OPS("ConvInteger"),
                  .packs = 1u << WEIGHTS | 1u << W_ZERO);
