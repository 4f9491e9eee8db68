/* SPDX-License-Identifier: Apache-2.0
 *
 * MatMul and Gemm with a constant matrix as a convolution of single positions. cuDNN's engines for
 * products all round f32 to tf32; some of those for convolutions do not, and they take any
 * epilogue, which cuBLASLt does not. */
#include "engine/kernels/cudnn/lib/conv.h"
#include "engine/kernels/cudnn/lib/matmul.h"
#include "engine/kernels/cudnn/lib/state.h"
#include "engine/ops/lib/matmul_shape.h"

static enum status operand(const struct kernel_query *q, int input, const struct tensor *y,
                           struct tensor *made, struct error *why)
{
    return matmul_operand(q, input, y, 1, made, why);
}

static enum status check(const struct kernel_query *q, const struct matmul_shape *s,
                         struct error *why)
{
    if (!query_fixed(q, 1))
        return REFUSE(why, "the right matrix is not constant");
    if (s->batch != 1)
        return REFUSE(why, "more than one product");
    if ((s->k > 1 && s->a_col != 1) || (s->m > 1 && s->a_row != s->k) ||
        (s->n > 1 && s->c_col != 1) || (s->m > 1 && s->c_row != s->n))
        return REFUSE(why, "rows that are not dense");
    if (matmul_alpha(q) != 1)
        return REFUSE(why, "alpha %g", matmul_alpha(q));
    return STATUS_OK;
}

static enum status build(const struct kernel_query *q, struct work *work, struct error *why)
{
    struct tensor x;
    struct epilogue epilogue;
    struct conv_op op = {.spatial = 2, .stride = {1, 1}, .dilation = {1, 1}};
    struct matmul_shape s = matmul_shape_from(q->node, &q->in[0], &q->in[1], &q->out[0]);
    TRY(check(q, &s, why));
    TRY(tensor_from(&q->in[0], &x, why));
    TRY(matmul_epilogue(q, operand, &epilogue, why));
    struct packing columns = {.data = query_fixed(q, 1),
                              .element =
                                  x.type == CUDNN_DATA_FLOAT ? sizeof(float) : sizeof(uint16_t),
                              .rank = 2,
                              .dim = {s.n, s.k},
                              .stride = {s.b_col, s.b_row}};
    struct tensor rows = tensor_rows(x.type, s.m, s.k), y = tensor_rows(x.type, s.m, s.n);
    struct tensor weights = tensor_rows(x.type, s.n, s.k);
    op.x = work_in(work, 0, &rows);
    op.w = work_packed(work, &weights, &columns);
    op.y = epilogue_start(&epilogue, work, &y);
    opgraph_conv(&work->graph, &op);
    return epilogue_append(q, &epilogue, work, op.y, &y, why);
}

CUDNN_KERNEL(matmul_conv, build, .ops = OPS("MatMul", "Gemm"), .packs = 1u << 1);
