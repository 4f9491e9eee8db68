/* SPDX-License-Identifier: Apache-2.0
 *
 * MatMulInteger and MatMulBytes: with AVX512-VNNI four products an instruction and lane, without it
 * on 16 bits. */
#include <string.h>

#include "engine/kernels/lib/matmul_product.h"
#include "engine/kernels/lib/matmul_words.h"

/* A zero point: one number, or one for each of `count` rows or columns. */
static enum status read_zero(const struct kernel_query *q, int input, int64_t count, int *zero,
                             struct error *why)
{
    const struct desc *desc = query_in(q, input);
    if (!desc)
        return STATUS_OK;
    int64_t numbers = shape_count(&desc->shape);
    if (numbers != 1 && (desc->shape.rank != 1 || numbers != count || !desc_is_plain(desc)))
        return UNSUPPORTED(why, "zero points that are not one per row or column");
    *zero = input;
    return STATUS_OK;
}

static enum status read_integer(const struct kernel_query *q, struct matmul_words *w,
                                struct error *why)
{
    TRY(read_zero(q, 2, w->shape.m, &w->zero_a, why));
    return read_zero(q, 3, w->shape.n, &w->zero_b, why);
}

static enum status read_rescale(const struct kernel_query *q, struct matmul_words *w,
                                struct error *why)
{
    struct matmul_posts posts;
    w->rescales = true;
    w->rescale = rescale_of(q->node);
    if (!q->fixed[1] || !q->fixed[2] || !q->fixed[3])
        return UNSUPPORTED(why, "weights and factors are not known beforehand");
    if (w->rescale.w_zero != (w->signed_b ? 0 : 128))
        return UNSUPPORTED(why, "weights with a zero point of %d", w->rescale.w_zero);
    if (w->rescale.to != DTYPE_F32 && q->node->post_count)
        return UNSUPPORTED(why, "steps after the rounding");
    TRY(matmul_posts_from(q, &w->shape, &posts, why));
    w->post = posts.post;
    return STATUS_OK;
}

static enum status from(const struct kernel_query *q, struct matmul_words *w, struct error *why)
{
    *w = (struct matmul_words){.element = 1,
                               .signed_a = q->in[0].dtype == DTYPE_I8,
                               .signed_b = q->in[1].dtype == DTYPE_I8,
                               .zero_a = NONE,
                               .zero_b = NONE};
    w->shape = matmul_shape_from(q->node, &q->in[0], &q->in[1], &q->out[0]);
    TRY(matmul_words_check(w, why));
    if (strcmp(q->node->op->name, "MatMulBytes") == 0)
        return read_rescale(q, w, why);
    return read_integer(q, w, why);
}

MATMUL_WORDS_KERNEL(matmul_bytes, from, .ops = OPS("MatMulInteger", "MatMulBytes"));
