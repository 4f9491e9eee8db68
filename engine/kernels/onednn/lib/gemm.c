/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/kernels/onednn/lib/gemm.h"

const struct gemm_types gemm_f32 = {DTYPE_F32, DTYPE_F32, DTYPE_F32};

struct matrix {
    enum dtype dtype;
    int64_t rows, cols, row, col; /* sizes and strides */
    const int64_t *batch;         /* strides; 0: broadcast */
};

static void tidy(int64_t *stride, int64_t dim, int64_t fallback)
{
    if (dim == 1 || *stride == 0)
        *stride = fallback;
}

static dnnl_data_type_t type_of(enum dtype dtype)
{
    return dtype == DTYPE_BF16  ? dnnl_bf16
           : dtype == DTYPE_I8  ? dnnl_s8
           : dtype == DTYPE_U8  ? dnnl_u8
           : dtype == DTYPE_I32 ? dnnl_s32
                                : dnnl_f32;
}

static void set_matrix(struct plan *plan, const struct matmul_shape *s, struct matrix m,
                       struct memory_layout *layout, struct memory_layout *any)
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
    *layout = layout_of(&plan->layouts, type_of(m.dtype), rank + 2, dim, stride);
    if (any)
        *any = layout_of(&plan->layouts, type_of(m.dtype), rank + 2, dim, NULL);
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
    return q->node->op_inputs > 2 && query_in(q, 2) && gemm_attribute(q, "beta") != 0;
}

/* What is added to the product first, if that is a plain row of N elements. As a post-op oneDNN
 * would take a row for a whole tensor when M is 1, and have no fast kernel. */
static void find_bias(const struct kernel_query *q, struct plan *plan, struct gemm *gemm)
{
    const struct node *node = q->node;
    int input = has_c(q) ? 2 : NONE;
    if (input == NONE && node->post_count && node->posts[0].kind == POST_ADD)
        input = node->posts[0].input;
    const struct desc *row = input == NONE ? NULL : query_in(q, input);
    gemm->bias = NONE;
    if (!row || row->dtype != q->out[0].dtype || gemm_attribute(q, "alpha") != 1 ||
        gemm_attribute(q, "beta") != 1 || !onednn_host->desc_is_plain(row))
        return;
    int64_t count = 1, one = 1, last = row->shape.rank ? row->shape.dim[row->shape.rank - 1] : 0;
    for (int k = 0; k < row->shape.rank; k++)
        count *= row->shape.dim[k];
    if (count != last || count != gemm->shape.n || q->in[1].shape.rank < 2)
        return;
    gemm->bias = input;
    gemm->bias_row = layout_of(&plan->layouts, gemm->c.type, 1, &count, &one);
}

/* Sizes and strides do not depend on the type. */
static enum status check(struct plan *plan, const struct desc *desc, enum dtype wanted,
                         struct error *why)
{
    struct memory_layout checked;
    struct desc as_f32 = *desc;
    if (desc->dtype != wanted)
        return REFUSE(why, "other types than this kernel's");
    as_f32.dtype = DTYPE_F32;
    return layout_from_desc(plan, &as_f32, &checked, why);
}

enum status gemm_from_query(const struct kernel_query *q, const struct gemm_types *types,
                            struct plan *plan, struct gemm *gemm, struct error *why)
{
    TRY(check(plan, &q->in[0], types->a, why));
    TRY(check(plan, &q->in[1], types->b, why));
    TRY(check(plan, &q->out[0], types->c, why));
    struct matmul_shape s = matmul_shape_from(q->node, &q->in[0], &q->in[1], &q->out[0]);
    *gemm = (struct gemm){.shape = s, .b_data = query_fixed(q, 1), .grouping = group_output(q, &s)};
    struct matrix a = {types->a, s.m, s.k, s.a_row, s.a_col, s.a_batch};
    struct matrix b = {types->b, s.k, s.n, s.b_row, s.b_col, s.b_batch};
    struct matrix c = {types->c, s.m, s.n, s.c_row, s.c_col, s.c_batch};
    set_matrix(plan, &s, a, &gemm->a, NULL);
    set_matrix(plan, &s, b, &gemm->b, &gemm->b_any);
    set_matrix(plan, &s, c, &gemm->c, NULL);
    find_bias(q, plan, gemm);
    return STATUS_OK;
}

enum status gemm_posts(const struct kernel_query *q, const struct gemm *gemm, struct plan *plan,
                       struct error *why)
{
    struct step_attr *attr = &plan->attr;
    double alpha = gemm_attribute(q, "alpha"), beta = gemm_attribute(q, "beta");
    bool c_is_bias = gemm->bias == 2 && has_c(q);
    if (gemm->shape.batch_rank && q->node->post_count && !onednn_host->desc_is_plain(&q->out[0]))
        return REFUSE(why, "an epilogue over batches that lie apart"); /* 2.6 gets it wrong */
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

/* The bias row in as many dimensions as the result has. */
static struct memory_layout bias_of(struct plan *plan, const struct gemm *gemm)
{
    int64_t dims[RANK_MAX + 2], strides[RANK_MAX + 2];
    int last = gemm->c.rank - 1;
    for (int k = 0; k <= last; k++) {
        dims[k] = k < last ? 1 : gemm->shape.n;
        strides[k] = k < last ? gemm->shape.n : 1;
    }
    return layout_of(&plan->layouts, gemm->bias_row.type, gemm->c.rank, dims, strides);
}

enum status gemm_build(const struct kernel_query *q, const struct gemm_types *types,
                       struct plan *plan, struct error *why)
{
    struct gemm gemm;
    struct plan_step *step;
    TRY(gemm_from_query(q, types, plan, &gemm, why));
    struct memory_layout bias = {0};
    if (gemm.bias != NONE)
        bias = bias_of(plan, &gemm);
    struct operation operation = {OPERATION_MATMUL, .src = &gemm.a,
                                  .weights = gemm.b_data ? &gemm.b_any : &gemm.b,
                                  .bias = gemm.bias == NONE ? NULL : &bias, .dst = &gemm.c};
    TRY(plan_attr(plan, why));
    TRY(gemm_posts(q, &gemm, plan, why));
    TRY(plan_step(plan, &operation, &step, why));
    step_io(step, DNNL_ARG_SRC, SOURCE_IN, 0, &gemm.a);
    step_io(step, DNNL_ARG_DST, SOURCE_OUT, 0, &gemm.c);
    if (gemm.b_data)
        step_packed(step, DNNL_ARG_WEIGHTS, &gemm.b, gemm.b_data);
    else
        step_io(step, DNNL_ARG_WEIGHTS, SOURCE_IN, 1, &gemm.b);
    if (gemm.bias != NONE)
        step_io(step, DNNL_ARG_BIAS, SOURCE_IN, (size_t)gemm.bias, &bias);
    return STATUS_OK;
}
