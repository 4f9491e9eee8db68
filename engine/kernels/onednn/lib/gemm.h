/* SPDX-License-Identifier: Apache-2.0
 *
 * A MatMul or Gemm node in oneDNN's terms: C = A B per batch, then alpha and beta C, then posts. */
#ifndef ENGINE_KERNELS_ONEDNN_LIB_GEMM_H
#define ENGINE_KERNELS_ONEDNN_LIB_GEMM_H

#include "engine/kernels/onednn/lib/adapter.h"
#include "engine/ops/lib/matmul_shape.h"

/* Of the elements of A, B and C. */
struct gemm_types {
    enum dtype a, b, c;
};

extern const struct gemm_types gemm_f32;

struct gemm {
    struct matmul_shape shape;
    struct memory_layout a, b, c; /* [batch..., M, K], [batch..., K, N], [batch..., M, N] */
    struct memory_layout b_any;
    const void *b_data; /* NULL: B comes with each launch */
    struct grouping grouping;
    int bias; /* input that is added as a row first of all, by the primitive itself; or NONE */
    struct memory_layout bias_row; /* [N], of C's type */
};

enum status gemm_from_query(const struct kernel_query *q, const struct gemm_types *types,
                            struct plan *plan, struct gemm *gemm, struct error *why);
/* Gemm's alpha and C, and the node's posts, as post-ops of the step; but not the bias. */
enum status gemm_posts(const struct kernel_query *q, const struct gemm *gemm, struct plan *plan,
                       struct error *why);
/* All of it, on oneDNN's matmul. */
enum status gemm_build(const struct kernel_query *q, const struct gemm_types *types,
                       struct plan *plan, struct error *why);

#endif
