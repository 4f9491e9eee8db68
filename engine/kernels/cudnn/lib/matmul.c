/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/kernels/cudnn/lib/matmul.h"

double matmul_alpha(const struct kernel_query *q)
{
    return is_op(q, "Gemm") ? cudnn_host->node_float(q->node, "alpha", 1) : 1;
}

enum status matmul_operand(const struct kernel_query *q, int input, const struct tensor *y,
                           int columns, struct tensor *operand, struct error *why)
{
    const struct desc *desc = query_in(q, input);
    const struct shape *shape = &desc->shape;
    int64_t count = shape_count(shape), width = y->dim[columns];
    struct tensor checked;
    TRY(tensor_from(desc, &checked, why));
    if (!cudnn_host->desc_is_plain(desc))
        return REFUSE(why, "operand of the epilogue is not plain");
    *operand = *y;
    operand->type = checked.type;
    if (count == shape_count(&q->out[0].shape))
        return STATUS_OK;
    bool row = count == width && shape->rank && shape->dim[shape->rank - 1] == width &&
               q->in[1].shape.rank > 1;
    if (!row && count != 1)
        return REFUSE(why, "operand of the epilogue is neither a row nor of the result's size");
    for (int k = 0; k < operand->rank; k++) {
        bool along = row && k == columns;
        operand->dim[k] = along ? width : 1;
        operand->stride[k] = along ? 1 : count;
    }
    operand->stride[columns] = 1;
    return STATUS_OK;
}

enum status matmul_epilogue(const struct kernel_query *q, operand_from *operand,
                            struct epilogue *epilogue, struct error *why)
{
    double beta = is_op(q, "Gemm") ? cudnn_host->node_float(q->node, "beta", 1) : 1;
    bool bias = q->node->op_inputs > 2 && query_in(q, 2) && beta != 0;
    if (bias && beta != 1)
        return REFUSE(why, "beta %g", beta);
    if (q->in[1].dtype != q->in[0].dtype || q->out[0].dtype != q->in[0].dtype)
        return REFUSE(why, "operands of different types");
    epilogue_from(q, bias ? 2 : NONE, epilogue);
    epilogue->operand = operand;
    for (int k = 0; k < epilogue->count; k++) {
        struct link *link = &epilogue->links[k];
        const struct desc *desc = link->kind == POST_ACT ? NULL : query_in(q, link->input);
        link->channels = desc && shape_count(&desc->shape) != shape_count(&q->out[0].shape);
    }
    epilogue_order(epilogue);
    return STATUS_OK;
}
