/* SPDX-License-Identifier: Apache-2.0
 *
 * MatMul and Gemm of bf16 with sums in f32, rounded once at the end: with AVX512-BF16 two products
 * an instruction and lane, without it on floats. */
#include "engine/kernels/lib/matmul_product.h"
#include "engine/kernels/lib/matmul_words.h"

static enum status from(const struct kernel_query *q, struct matmul_words *w, struct error *why)
{
    struct matmul_posts posts;
    float alpha = (float)node_float(q->node, "alpha", 1);
    *w = (struct matmul_words){.element = 2, .zero_a = NONE, .zero_b = NONE};
    if (!query_all_dtype(q, DTYPE_BF16))
        return UNSUPPORTED(why, "only bf16");
    if (alpha != 1.0f)
        return UNSUPPORTED(why, "alpha is %g, not 1", (double)alpha);
    w->shape = matmul_shape_from(q->node, &q->in[0], &q->in[1], &q->out[0]);
    TRY(matmul_words_check(w, why));
    TRY(matmul_posts_from(q, &w->shape, &posts, why));
    w->post = posts.post;
    return STATUS_OK;
}

MATMUL_WORDS_KERNEL(matmul_bf16, from, .ops = OPS("MatMul", "Gemm"));
