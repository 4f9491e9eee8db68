/* SPDX-License-Identifier: Apache-2.0
 *
 * MatMul and Gemm with an epilogue of any length, by engines that are compiled at run time.
 * cuBLASLt (engine/kernels/cublaslt/) is the better home of plain products, and of the epilogues it
 * has. Seen on an H200 with 9.19: these engines round f32 to tf32, also those that do not say so,
 * and take no notice of a ReLU's upper bound. */
#include <float.h>

#include "engine/kernels/cudnn/lib/matmul.h"
#include "engine/kernels/cudnn/lib/state.h"
#include "engine/ops/lib/matmul_shape.h"

struct matrix {
    int64_t rows, cols, row, col; /* sizes and strides */
    const int64_t *batch;         /* strides; 0: broadcast */
};

/* [batch..., rows, cols], of rank 3 at least. Strides of dimensions of size 1 are made up. */
static struct tensor tensor_of(const struct matmul_shape *s, const struct matrix *m,
                               cudnnDataType_t type)
{
    int shift = s->batch_rank ? 0 : 1, rank = s->batch_rank + shift + 2;
    struct tensor t = {.type = type, .rank = rank};
    t.dim[rank - 2] = m->rows;
    t.dim[rank - 1] = m->cols;
    t.stride[rank - 1] = m->cols > 1 ? m->col : m->rows > 1 && m->row == 1 ? m->rows : 1;
    t.stride[rank - 2] = m->rows > 1 ? m->row : m->cols;
    t.dim[0] = 1;
    t.stride[0] = m->rows * m->cols;
    for (int k = 0; k < s->batch_rank; k++) {
        t.dim[k] = m->batch[k] ? s->batch_dim[k] : 1;
        t.stride[k] = m->batch[k] ? m->batch[k] : m->rows * m->cols;
    }
    return t;
}

static enum status operand(const struct kernel_query *q, int input, const struct tensor *y,
                           struct tensor *made, struct error *why)
{
    return matmul_operand(q, input, y, y->rank - 1, made, why);
}

static enum status check(const struct kernel_query *q, const struct tensor *a, struct error *why)
{
    if (a->type == CUDNN_DATA_FLOAT && !q->tf32)
        return REFUSE(why, "cuDNN's products round f32 to tf32");
    for (int k = 0; k < q->node->post_count; k++) {
        const struct post *post = &q->node->posts[k];
        if (post->kind == POST_ACT && post->act == FN_CLIP && (double)post->b < DBL_MAX)
            return REFUSE(why, "an upper bound in the epilogue");
    }
    return STATUS_OK;
}

static enum status build(const struct kernel_query *q, struct work *work, struct error *why)
{
    struct tensor checked;
    struct epilogue epilogue;
    TRY(tensor_from(&q->in[0], &checked, why));
    TRY(check(q, &checked, why));
    TRY(matmul_epilogue(q, operand, &epilogue, why));
    struct matmul_shape s = matmul_shape_from(q->node, &q->in[0], &q->in[1], &q->out[0]);
    struct tensor a =
        tensor_of(&s, &(struct matrix){s.m, s.k, s.a_row, s.a_col, s.a_batch}, checked.type);
    struct tensor b =
        tensor_of(&s, &(struct matrix){s.k, s.n, s.b_row, s.b_col, s.b_batch}, checked.type);
    struct tensor c =
        tensor_of(&s, &(struct matrix){s.m, s.n, s.c_row, s.c_col, s.c_batch}, checked.type);
    double alpha = matmul_alpha(q);
    cudnn_desc left = work_in(work, 0, &a), right = work_in(work, 1, &b);
    if (alpha == 1) {
        cudnn_desc product = epilogue_start(&epilogue, work, &c);
        opgraph_matmul(&work->graph, left, right, product);
        return epilogue_append(q, &epilogue, work, product, &c, why);
    }
    cudnn_desc product = opgraph_between(&work->graph, &c);
    opgraph_matmul(&work->graph, left, right, product);
    cudnn_desc scaled = epilogue_start(&epilogue, work, &c);
    opgraph_binary(&work->graph, CUDNN_POINTWISE_MUL, product,
                   work_value(work, c.rank, (float)alpha), scaled);
    return epilogue_append(q, &epilogue, work, scaled, &c, why);
}

CUDNN_KERNEL(matmul, build, .ops = OPS("MatMul", "Gemm"));
