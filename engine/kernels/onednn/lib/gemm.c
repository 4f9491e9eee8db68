/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/kernels/onednn/lib/gemm.h"

struct matrix {
    int64_t rows, cols, row, col; /* sizes and strides */
    const int64_t *batch;         /* strides; 0: broadcast */
};

static void tidy(int64_t *stride, int64_t dim, int64_t fallback)
{
    if (dim == 1 || *stride == 0)
        *stride = fallback;
}

static void matrix_md(const struct matmul_shape *s, struct matrix m, dnnl_memory_desc_t *md,
                      dnnl_memory_desc_t *any)
{
    int64_t dim[RANK_MAX + 2], stride[RANK_MAX + 2];
    int rank = s->batch_rank;
    for (int k = 0; k < rank; k++) {
        dim[k] = m.batch[k] ? s->batch_dim[k] : 1;
        stride[k] = m.batch[k];
        tidy(&stride[k], dim[k], m.rows * m.cols);
    }
    tidy(&m.col, m.cols, m.rows > 1 && m.row == 1 ? m.rows : 1);
    tidy(&m.row, m.rows, m.cols);
    dim[rank] = m.rows;
    dim[rank + 1] = m.cols;
    stride[rank] = m.row;
    stride[rank + 1] = m.col;
    *md = md_strided(rank + 2, dim, stride);
    if (any)
        *any = md_any(rank + 2, dim);
}

/* matmul_shape folds trailing batch dimensions into the rows: so does the result's shape. */
static struct grouping group_output(const struct kernel_query *q, const struct matmul_shape *s)
{
    struct grouping grouping = {.rank = s->batch_rank + 2};
    int rank = q->out[0].shape.rank, columns = q->in[1].shape.rank > 1;
    for (int k = 0; k <= s->batch_rank; k++)
        grouping.first[k] = k;
    grouping.first[s->batch_rank + 1] = rank - columns;
    grouping.first[s->batch_rank + 2] = rank;
    return grouping;
}

static double gemm_attribute(const struct kernel_query *q, const char *name)
{
    return is_op(q, "Gemm") ? onednn_host->node_float(q->node, name, 1) : 1;
}

static bool has_c(const struct kernel_query *q)
{
    return q->node->op_inputs > 2 && in_desc(q, 2) && gemm_attribute(q, "beta") != 0;
}

/* What is added to the product first, if that is a plain row of N elements. As a post-op oneDNN
 * would take a row for a whole tensor when M is 1, and have no fast kernel. */
static void find_bias(const struct kernel_query *q, struct gemm *gemm)
{
    const struct node *node = q->node;
    int input = has_c(q) ? 2 : NONE;
    if (input == NONE && node->post_count && node->posts[0].kind == POST_ADD)
        input = node->posts[0].input;
    const struct desc *row = input == NONE ? NULL : in_desc(q, input);
    gemm->bias = NONE;
    if (!row || row->dtype != DTYPE_F32 || gemm_attribute(q, "alpha") != 1 ||
        gemm_attribute(q, "beta") != 1 || !onednn_host->desc_is_plain(row))
        return;
    int64_t count = 1, one = 1, last = row->shape.rank ? row->shape.dim[row->shape.rank - 1] : 0;
    for (int k = 0; k < row->shape.rank; k++)
        count *= row->shape.dim[k];
    if (count != last || count != gemm->shape.n || q->in[1].shape.rank < 2)
        return;
    gemm->bias = input;
    gemm->bias_row = md_strided(1, &count, &one);
}

enum status gemm_from_query(const struct kernel_query *q, struct gemm *gemm, struct error *why)
{
    dnnl_memory_desc_t checked;
    TRY(md_from_desc(&q->in[0], &checked, why));
    TRY(md_from_desc(&q->in[1], &checked, why));
    TRY(md_from_desc(&q->out[0], &checked, why));
    struct matmul_shape s = onednn_host->matmul_shape(q->node, &q->in[0], &q->in[1], &q->out[0]);
    *gemm = (struct gemm){.shape = s, .b_data = in_fixed(q, 1), .grouping = group_output(q, &s)};
    struct matrix a = {s.m, s.k, s.a_row, s.a_col, s.a_batch};
    struct matrix b = {s.k, s.n, s.b_row, s.b_col, s.b_batch};
    struct matrix c = {s.m, s.n, s.c_row, s.c_col, s.c_batch};
    matrix_md(&s, a, &gemm->a, NULL);
    matrix_md(&s, b, &gemm->b, &gemm->b_any);
    matrix_md(&s, c, &gemm->c, NULL);
    find_bias(q, gemm);
    return STATUS_OK;
}

enum status gemm_posts(const struct kernel_query *q, const struct gemm *gemm, struct plan *plan,
                       struct error *why)
{
    struct step_attr *attr = &plan->attr;
    double alpha = gemm_attribute(q, "alpha"), beta = gemm_attribute(q, "beta");
    bool c_is_bias = gemm->bias == 2 && has_c(q);
    if (has_c(q) && beta != 1)
        return REFUSE(why, "beta %g", beta); /* post-ops have no factor for their operand */
    if (alpha != 1)
        TRY(post_eltwise(attr, dnnl_eltwise_linear, alpha, 0, why));
    struct post add = {.kind = POST_ADD, .input = 2};
    if (has_c(q) && !c_is_bias)
        TRY(post_append(q, &gemm->grouping, &add, attr, why));
    for (int k = gemm->bias != NONE && !c_is_bias; k < q->node->post_count; k++)
        TRY(post_append(q, &gemm->grouping, &q->node->posts[k], attr, why));
    return STATUS_OK;
}
