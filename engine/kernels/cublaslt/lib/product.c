/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/kernels/cublaslt/lib/product.h"

#include <string.h>

/* ---- operands ---- */

struct view {
    int64_t rows, cols, row, col; /* sizes and strides of a matrix of ours */
    const int64_t *batch;         /* strides of the batch dimensions */
};

/* Strides of dimensions of size 1 can be anything. */
static enum status operand_from(struct view v, const char *name, struct operand *o,
                                struct error *why)
{
    if (v.cols == 1)
        v.col = 1;
    if (v.rows == 1)
        v.row = v.col == 1 ? v.cols : 1;
    bool by_rows = v.col == 1 && v.row >= v.cols, by_cols = v.row == 1 && v.col >= v.rows;
    if (!by_rows && !by_cols)
        return REFUSE(why, "%s has gaps in rows and columns", name);
    *o = (struct operand){.rows = by_rows ? v.cols : v.rows,
                          .cols = by_rows ? v.rows : v.cols,
                          .ld = by_rows ? v.row : v.col,
                          .transposed = !by_rows};
    return STATUS_OK;
}

static bool goes_on(const struct matmul_shape *s, const int64_t *stride, int outer)
{
    return stride[outer] == stride[outer + 1] * s->batch_dim[outer + 1];
}

/* As many of the innermost batch dimensions as one stride can walk become one call. */
static void split_batch(struct product *p)
{
    const struct matmul_shape *s = &p->shape;
    int first = s->batch_rank - 1;
    while (first > 0 && goes_on(s, s->a_batch, first - 1) && goes_on(s, s->b_batch, first - 1) &&
           goes_on(s, s->c_batch, first - 1))
        first--;
    p->batch = 1;
    for (int k = first < 0 ? 0 : first; k < s->batch_rank; k++)
        p->batch *= s->batch_dim[k];
    p->calls = s->batch / p->batch;
    if (!s->batch_rank)
        return;
    p->operand[LEFT].batch_stride = s->b_batch[s->batch_rank - 1];
    p->operand[RIGHT].batch_stride = s->a_batch[s->batch_rank - 1];
    p->operand[ADDEND].batch_stride = p->operand[RESULT].batch_stride =
        s->c_batch[s->batch_rank - 1];
}

static enum status operands(const struct kernel_query *q, struct product *p, struct error *why)
{
    p->shape = cublaslt_host->matmul_shape(q->node, &q->in[0], &q->in[1], &q->out[0]);
    const struct matmul_shape *s = &p->shape;
    struct view a = {s->m, s->k, s->a_row, s->a_col, s->a_batch};
    struct view b = {s->k, s->n, s->b_row, s->b_col, s->b_batch};
    struct view c = {s->m, s->n, s->c_row, s->c_col, s->c_batch};
    if (s->batch < 1 || s->m < 1 || s->n < 1 || s->k < 1)
        return REFUSE(why, "empty product");
    TRY(operand_from(b, "the right operand", &p->operand[LEFT], why));
    TRY(operand_from(a, "the left operand", &p->operand[RIGHT], why));
    TRY(operand_from(c, "the result", &p->operand[RESULT], why));
    if (p->operand[RESULT].transposed)
        return REFUSE(why, "the result is stored by columns");
    p->operand[ADDEND] = p->operand[RESULT];
    p->m = s->n;
    p->n = s->m;
    p->k = s->k;
    split_batch(p);
    return STATUS_OK;
}

/* ---- the epilogue ---- */

static int64_t count_of(const struct shape *shape)
{
    int64_t count = 1;
    for (int k = 0; k < shape->rank; k++)
        count *= shape->dim[k];
    return count;
}

static bool is_row(const struct desc *desc, int64_t columns)
{
    const struct shape *s = &desc->shape;
    return cublaslt_host->desc_is_plain(desc) && s->rank > 0 && s->dim[s->rank - 1] == columns &&
           count_of(s) == columns;
}

/* A sum that is added before any activation: a row, or a tensor like the result. A row counts for
 * one when both fit, except where the node's result has no columns. */
static enum status add(const struct kernel_query *q, struct product *p, int input, float factor,
                       struct error *why)
{
    const struct desc *desc = query_in(q, input);
    if (!desc || desc->dtype != q->out[0].dtype)
        return REFUSE(why, "operand of the epilogue has another type");
    bool row = is_row(desc, p->m) && q->in[1].shape.rank > 1;
    if (row && factor == 1 && p->bias == NONE) {
        p->bias = input;
        return STATUS_OK;
    }
    bool whole = count_of(&desc->shape) == count_of(&q->out[0].shape) &&
                 cublaslt_host->desc_is_plain(desc) && cublaslt_host->desc_is_plain(&q->out[0]);
    if (!whole || p->addend != NONE)
        return REFUSE(why, "it adds one row and one tensor of the result's size, no more");
    p->addend = input;
    p->beta = factor;
    return STATUS_OK;
}

static enum status activate(const struct post *post, struct product *p, struct error *why)
{
    if (post->act == ACT_RELU)
        p->epilogue = CUBLASLT_EPILOGUE_RELU;
    else if (post->act == ACT_GELU_TANH)
        p->epilogue = CUBLASLT_EPILOGUE_GELU; /* the library's is the form by tanh */
    else
        return REFUSE(why, "its only activations are relu and gelu by tanh");
    return STATUS_OK;
}

static enum status epilogue(const struct kernel_query *q, struct product *p, struct error *why)
{
    const struct node *node = q->node;
    bool gemm = strcmp(cublaslt_host->node_op(node), "Gemm") == 0;
    float beta = gemm ? (float)cublaslt_host->node_float(node, "beta", 1) : 1;
    p->alpha = gemm ? (float)cublaslt_host->node_float(node, "alpha", 1) : 1;
    p->epilogue = CUBLASLT_EPILOGUE_DEFAULT;
    if (node->op_inputs > 2 && query_in(q, 2) && beta != 0)
        TRY(add(q, p, 2, beta, why));
    for (int k = 0; k < node->post_count; k++) {
        const struct post *post = &node->posts[k];
        if (p->epilogue != CUBLASLT_EPILOGUE_DEFAULT)
            return REFUSE(why, "nothing can follow the activation");
        if (post->kind == POST_MUL)
            return REFUSE(why, "no product in the epilogue");
        TRY(post->kind == POST_ADD ? add(q, p, post->input, 1, why) : activate(post, p, why));
    }
    if (p->bias != NONE)
        p->epilogue = p->epilogue == CUBLASLT_EPILOGUE_RELU   ? CUBLASLT_EPILOGUE_RELU_BIAS
                      : p->epilogue == CUBLASLT_EPILOGUE_GELU ? CUBLASLT_EPILOGUE_GELU_BIAS
                                                              : CUBLASLT_EPILOGUE_BIAS;
    return STATUS_OK;
}

static enum status type_of(const struct kernel_query *q, struct product *p, struct error *why)
{
    enum dtype dtype = q->in[0].dtype;
    if (dtype != q->in[1].dtype || dtype != q->out[0].dtype)
        return REFUSE(why, "operands of different types");
    if (dtype != DTYPE_F32 && dtype != DTYPE_F16 && dtype != DTYPE_BF16)
        return REFUSE(why, "only f32, f16 and bf16");
    p->type = dtype == DTYPE_F32 ? CUDA_R_32F : dtype == DTYPE_F16 ? CUDA_R_16F : CUDA_R_16BF;
    p->tf32 = dtype == DTYPE_F32 && q->tf32;
    return STATUS_OK;
}

enum status product_from(const struct kernel_query *q, struct product *product, struct error *why)
{
    *product = (struct product){.addend = NONE, .bias = NONE};
    TRY(type_of(q, product, why));
    TRY(operands(q, product, why));
    return epilogue(q, product, why);
}

/* ---- descriptors ---- */

static enum status layout(const struct product *p, int which, struct matmul *matmul,
                          struct error *why)
{
    const struct operand *o = &p->operand[which];
    cublasLtMatrixLayout_t *made = &matmul->layout[which];
    int32_t batch = (int32_t)p->batch;
    CUBLASLT_TRY(cublaslt.layout_new(made, p->type, (uint64_t)o->rows, (uint64_t)o->cols, o->ld),
                 why);
    if (batch == 1)
        return STATUS_OK;
    CUBLASLT_TRY(
        cublaslt.layout_set(*made, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &batch, sizeof(batch)), why);
    CUBLASLT_TRY(cublaslt.layout_set(*made, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET,
                                     &o->batch_stride, sizeof(o->batch_stride)),
                 why);
    return STATUS_OK;
}

enum status matmul_make(const struct kernel_query *q, const struct product *p,
                        struct matmul *matmul, struct error *why)
{
    cublasComputeType_t compute = p->tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
    cublasOperation_t left = p->operand[LEFT].transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
    cublasOperation_t right = p->operand[RIGHT].transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
    (void)q;
    *matmul = (struct matmul){.desc = NULL};
    if (p->batch > INT32_MAX)
        return REFUSE(why, "more than 2^31 products");
    CUBLASLT_TRY(cublaslt.desc_new(&matmul->desc, compute, CUDA_R_32F), why);
    CUBLASLT_TRY(cublaslt.desc_set(matmul->desc, CUBLASLT_MATMUL_DESC_TRANSA, &left, sizeof(left)),
                 why);
    CUBLASLT_TRY(
        cublaslt.desc_set(matmul->desc, CUBLASLT_MATMUL_DESC_TRANSB, &right, sizeof(right)), why);
    CUBLASLT_TRY(cublaslt.desc_set(matmul->desc, CUBLASLT_MATMUL_DESC_EPILOGUE, &p->epilogue,
                                   sizeof(p->epilogue)),
                 why);
    if (p->bias != NONE)
        CUBLASLT_TRY(cublaslt.desc_set(matmul->desc, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, &p->type,
                                       sizeof(p->type)),
                     why);
    for (int k = 0; k < OPERANDS; k++)
        TRY(layout(p, k, matmul, why));
    return STATUS_OK;
}

void matmul_free(struct matmul *matmul)
{
    for (int k = 0; k < OPERANDS; k++)
        if (matmul->layout[k])
            cublaslt.layout_free(matmul->layout[k]);
    if (matmul->desc)
        cublaslt.desc_free(matmul->desc);
    *matmul = (struct matmul){.desc = NULL};
}
