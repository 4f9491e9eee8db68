/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/kernels/lib/matmul_product.h"

#include <string.h>

/* Dimensions of the output: `batches` leading ones count products, the rest are rows, then the
 * column if the right operand is a matrix. */
static struct gemm_axes axes_of(const struct kernel_query *q, int batches)
{
    int rank = q->out[0].shape.rank, columns = q->in[1].shape.rank > 1;
    struct gemm_axes axes = {.column = columns ? rank - 1 : NONE};
    for (int d = 0; d < rank - columns; d++) {
        if (d < batches)
            axes.batch[axes.batch_count++] = d;
        else
            axes.row[axes.row_count++] = d;
    }
    return axes;
}

/* How many dimensions of the output count products: all but the rows and, where the right operand
 * is no vector, the columns. The left operand is no vector. */
static int batches_of(const struct kernel_query *q)
{
    return q->out[0].shape.rank - (q->in[1].shape.rank > 1 ? 2 : 1);
}

/* matmul_shape_from took batches into the rows of one product; this takes them out again. */
static void unfold(const struct kernel_query *q, struct matmul_shape *s)
{
    int batches = batches_of(q);
    int64_t rows = q->out[0].shape.dim[batches];
    for (int d = batches - 1; d >= s->batch_rank; d--) {
        s->batch_dim[d] = q->out[0].shape.dim[d];
        s->a_batch[d] = rows * s->a_row;
        s->c_batch[d] = rows * s->c_row;
        rows *= s->batch_dim[d];
    }
    for (int d = s->batch_rank; d < batches; d++) {
        s->batch *= s->batch_dim[d];
        s->m /= s->batch_dim[d];
    }
    s->batch_rank = batches;
}

static enum status read_posts(const struct kernel_query *q, const struct matmul_shape *s,
                              struct matmul_posts *p, struct error *why)
{
    p->axes = axes_of(q, s->batch_rank);
    TRY(gemm_post_from(q, &p->axes, &p->post, why));
    float beta = (float)node_float(q->node, "beta", 1);
    if (strcmp(q->node->op->name, "Gemm") == 0 && q->node->op_inputs > 2 && query_in(q, 2) &&
        beta != 0.0f)
        TRY(gemm_post_bias(q, &p->axes, 2, beta, &p->post, why));
    return STATUS_OK;
}

enum status matmul_posts_from(const struct kernel_query *q, struct matmul_shape *s,
                              struct matmul_posts *posts, struct error *why)
{
    if (read_posts(q, s, posts, why) == STATUS_OK)
        return STATUS_OK;
    if (q->in[0].shape.rank < 3 || s->batch_rank == batches_of(q))
        return STATUS_UNSUPPORTED;
    unfold(q, s);
    return read_posts(q, s, posts, why);
}

enum status matmul_product_of(const struct kernel_query *q, enum dtype floats,
                              struct matmul_product *p, struct error *why)
{
    struct matmul_posts posts;
    if (!query_all_dtype(q, floats))
        return UNSUPPORTED(why, "only %s", dtype_name(floats));
    p->shape = matmul_shape_from(q->node, &q->in[0], &q->in[1], &q->out[0]);
    p->alpha = (float)node_float(q->node, "alpha", 1);
    const struct matmul_shape *s = &p->shape;
    if (s->m * s->n * s->k * s->batch == 0)
        return UNSUPPORTED(why, "an empty product");
    if (s->c_col != 1 && s->n > 1)
        return UNSUPPORTED(why, "rows of the result are not dense");
    TRY(matmul_posts_from(q, &p->shape, &posts, why));
    p->axes = posts.axes;
    p->post = posts.post;
    return STATUS_OK;
}

enum status matmul_product_from(const struct kernel_query *q, struct matmul_product *p,
                                struct error *why)
{
    return matmul_product_of(q, DTYPE_F32, p, why);
}

enum status matmul_turns(const struct matmul_shape *shape, bool *turn, struct error *why)
{
    *turn = shape->a_col != 1 && shape->k > 1;
    if (*turn && shape->a_row != 1 && shape->m > 1)
        return UNSUPPORTED(why, "elements of the left operand lie apart both ways");
    return STATUS_OK;
}

void matmul_rows(const struct gemm_rows *wanted, const float **to, int64_t step)
{
    const struct matmul_rows_source *from = wanted->source;
    const struct matmul_shape *s = from->shape;
    const float *a = from->a + wanted->row * s->a_row;
    (void)step;
    if (s->batch_rank)
        a += matmul_offset_of(s, wanted->batch).a;
    for (int64_t m = 0; m < wanted->count; m++)
        to[m] = a + m * s->a_row;
}
