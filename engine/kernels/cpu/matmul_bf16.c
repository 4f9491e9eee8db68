/* SPDX-License-Identifier: Apache-2.0
 *
 * MatMul and Gemm of bf16 with sums in f32, rounded once at the end: with AVX512-BF16 two products
 * an instruction and lane, without it on floats. */
#include <string.h>

#include "engine/kernels/lib/matmul_words.h"

/* Activations that a micro-kernel does on its sums. */
static enum status read_posts(const struct kernel_query *q, struct matmul_words *w,
                              struct error *why)
{
    struct gemm_axes axes = {.column = NONE};
    for (int k = 0; k < q->node->post_count; k++)
        if (q->node->posts[k].kind != POST_ACT)
            return UNSUPPORTED(why, "an epilogue with operands");
    TRY(gemm_post_from(q, &axes, &w->post, why));
    if (w->post.light < w->post.count)
        return UNSUPPORTED(why, "an activation that needs an exponential");
    return STATUS_OK;
}

static enum status read_gemm(const struct kernel_query *q, struct matmul_words *w,
                             struct error *why)
{
    float alpha = (float)node_float(q->node, "alpha", 1),
          beta = (float)node_float(q->node, "beta", 1);
    if (alpha != 1.0f)
        return UNSUPPORTED(why, "alpha is %g, not 1", (double)alpha);
    if (q->node->op_inputs < 3 || !query_in(q, 2) || beta == 0.0f)
        return STATUS_OK;
    const struct desc *c = query_in(q, 2);
    int64_t last = c->shape.rank ? c->shape.dim[c->shape.rank - 1] : 0;
    if (beta != 1.0f || !desc_is_plain(c) || last != w->shape.n || shape_count(&c->shape) != last)
        return UNSUPPORTED(why, "C is not one row, or beta not 1");
    w->bias = 2;
    return STATUS_OK;
}

static enum status from(const struct kernel_query *q, struct matmul_words *w, struct error *why)
{
    *w = (struct matmul_words){.element = 2, .zero_a = NONE, .zero_b = NONE, .bias = NONE};
    if (!query_all_dtype(q, DTYPE_BF16))
        return UNSUPPORTED(why, "only bf16");
    w->shape = matmul_shape_from(q->node, &q->in[0], &q->in[1], &q->out[0]);
    TRY(matmul_words_check(w, why));
    if (strcmp(q->node->op->name, "Gemm") == 0)
        TRY(read_gemm(q, w, why));
    return read_posts(q, w, why);
}

/* The factors are exact, the result is rounded to 8 bits. */
MATMUL_WORDS_KERNEL(matmul_bf16, from, .ops = OPS("MatMul", "Gemm"), .rel_error = 8e-3);
