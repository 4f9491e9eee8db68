/* SPDX-License-Identifier: Apache-2.0
 *
 * MatMulInteger: with AVX512-VNNI four products an instruction and lane, without it on 16 bits. */
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

static enum status from(const struct kernel_query *q, struct matmul_words *w, struct error *why)
{
    *w = (struct matmul_words){.element = 1,
                               .signed_a = q->in[0].dtype == DTYPE_I8,
                               .signed_b = q->in[1].dtype == DTYPE_I8,
                               .zero_a = NONE,
                               .zero_b = NONE,
                               .bias = NONE};
    w->shape = matmul_shape_from(q->node, &q->in[0], &q->in[1], &q->out[0]);
    TRY(matmul_words_check(w, why));
    TRY(read_zero(q, 2, w->shape.m, &w->zero_a, why));
    return read_zero(q, 3, w->shape.n, &w->zero_b, why);
}

MATMUL_WORDS_KERNEL(matmul_bytes, from, .ops = OPS("MatMulInteger"));
