/* SPDX-License-Identifier: Apache-2.0
 *
 * What a kernel of MatMul, Gemm and MatMulF8 computes: `batch` products of strided matrices with
 * an epilogue, from the query (engine/ops/lib/matmul_shape.h). */
#ifndef ENGINE_KERNELS_CUDA_LIB_PRODUCT_H
#define ENGINE_KERNELS_CUDA_LIB_PRODUCT_H

#include "engine/kernels/cuda/lib/epilogue.h"
#include "engine/kernels/cuda/lib/query.h"

struct product {
    const void *a, *b;
    void *c;
    unsigned m, n, k;
    int64_t a_row, a_col, b_row, b_col, c_row, c_col;
    unsigned batch;
    int batch_rank;
    unsigned batch_dim[RANK_MAX];
    int64_t a_batch[RANK_MAX], b_batch[RANK_MAX], c_batch[RANK_MAX];
    float alpha;
    struct epilogue epilogue;
};

struct product_offsets {
    int64_t a, b, c;
};

static __device__ __forceinline__ struct product_offsets product_at(const struct product &p,
                                                                    unsigned batch)
{
    struct product_offsets at = {0, 0, 0};
#pragma unroll 1
    for (int d = p.batch_rank - 1; d >= 0; d--) {
        unsigned index = batch % p.batch_dim[d];
        batch /= p.batch_dim[d];
        at.a += index * p.a_batch[d];
        at.b += index * p.b_batch[d];
        at.c += index * p.c_batch[d];
    }
    return at;
}

/* ---- host ---- */

/* Both factors; the result is of a float type. */
static inline bool product_is_f8(const struct kernel_query *q)
{
    return q->in[0].dtype == DTYPE_F8E4M3;
}

static inline enum status product_add_gemm(const struct kernel_query *q, struct product *p,
                                           struct error *why)
{
    float beta = (float)cuda_host->node_float(q->node, "beta", 1);
    if (q->node->op_inputs < 3 || q->in[2].dtype == DTYPE_NONE || beta == 0)
        return STATUS_OK;
    struct epilogue_op c = {POST_ADD, 0, 0, 2, beta, 0, NULL};
    return epilogue_add(q, c, 1, 0, &p->epilogue, why);
}

static inline void product_fill(const struct matmul_shape *s, struct product *p)
{
    p->m = (unsigned)s->m;
    p->n = (unsigned)s->n;
    p->k = (unsigned)s->k;
    p->a_row = s->a_row;
    p->a_col = s->a_col;
    p->b_row = s->b_row;
    p->b_col = s->b_col;
    p->c_row = s->c_row;
    p->c_col = s->c_col;
    p->batch = (unsigned)s->batch;
    p->batch_rank = s->batch_rank;
    for (int d = 0; d < s->batch_rank; d++) {
        p->batch_dim[d] = (unsigned)s->batch_dim[d];
        p->a_batch[d] = s->a_batch[d];
        p->b_batch[d] = s->b_batch[d];
        p->c_batch[d] = s->c_batch[d];
    }
}

static inline enum status product_depth_fits(const struct matmul_shape *s, struct error *why)
{
    return s->k < INT32_MAX ? STATUS_OK : REFUSE(why, "more than 2^31 terms of a sum");
}

/* rows: of the smallest tile. Rows that the epilogue counts are those of one batch product: with a
 * folded batch the operand of a column is still right, for columns are counted by n; a vector
 * result has its rows there. */
static inline enum status product_plan(const struct kernel_query *q, int64_t rows,
                                       struct product *p, struct error *why)
{
    if (!product_is_f8(q))
        TRY(floats_supported(q, 0, 2, why));
    if (!fits_index(&q->out[0]))
        return REFUSE(why, "more than 2^31 elements");
    struct matmul_shape shape = matmul_shape_from(q->node, &q->in[0], &q->in[1], &q->out[0]);
    TRY(product_depth_fits(&shape, why));
    p->alpha = (float)cuda_host->node_float(q->node, "alpha", 1); /* MatMul has none */
    product_fill(&shape, p);
    if (shape.batch > GRID_YZ || shape.m > (int64_t)GRID_YZ * rows)
        return REFUSE(why, "more batches or rows than a grid has");
    if (strcmp(cuda_host->node_op(q->node), "Gemm") == 0)
        TRY(product_add_gemm(q, p, why));
    /* A vector times a matrix has no column dimension to speak of: operands must fit as a whole. */
    TRY(epilogue_add_posts(q, q->out[0].shape.rank - 1, &p->epilogue, why));
    if (q->node->post_count && q->out[0].shape.rank > 0 &&
        q->out[0].shape.dim[q->out[0].shape.rank - 1] != shape.n)
        return REFUSE(why, "an epilogue on a matrix times a vector");
    return STATUS_OK;
}

/* By tiles of so many results a side. */
static inline struct cuda_grid product_grid(const struct product *p, int side)
{
    return cuda_size((unsigned)div_up(p->n, side), (unsigned)div_up(p->m, side), p->batch);
}

static inline void product_resolve(struct product *p, const struct kernel_args *args)
{
    p->a = args->in[0];
    p->b = args->in[1];
    p->c = args->out[0];
    epilogue_resolve(&p->epilogue, args);
}

#endif
