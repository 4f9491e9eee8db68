/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/kernels/cudnn/lib/conv.h"

void conv_window(const struct window *window, struct conv_op *op)
{
    int shift = window->rank == 1;
    op->spatial = window->rank + shift;
    for (int k = 0; k < op->spatial; k++) {
        bool real = k >= shift;
        op->stride[k] = real ? window->stride[k - shift] : 1;
        op->dilation[k] = real ? window->dilation[k - shift] : 1;
        op->pad_begin[k] = real ? window->pad_begin[k - shift] : 0;
        op->pad_end[k] = real ? window->pad_end[k - shift] : 0;
    }
}

/* The dimensions of dense channels-last memory, outermost first. */
static void channels_last(const struct tensor *from, size_t element, const void *data,
                          struct packing *packing)
{
    *packing = (struct packing){.data = data, .element = element, .rank = from->rank};
    for (int k = 0; k < from->rank; k++) {
        int dim = k == 0 ? 0 : k == from->rank - 1 ? 1 : k + 1;
        packing->dim[k] = from->dim[dim];
        packing->stride[k] = from->stride[dim];
    }
}

enum status conv_weights(const struct kernel_query *q, struct work *work, struct conv_op *op,
                         struct error *why)
{
    const struct desc *desc = query_in(q, 1);
    const void *data = query_fixed(q, 1);
    struct tensor tensor;
    TRY(tensor_from(desc, &tensor, why));
    if (!data) {
        op->w = work_in(work, 1, &tensor);
        return STATUS_OK;
    }
    struct packing packing;
    size_t element = desc->dtype == DTYPE_F32 ? sizeof(float) : sizeof(uint16_t);
    channels_last(&tensor, element, data, &packing);
    int64_t step = 1;
    for (int k = packing.rank - 1; k >= 0; k--) {
        int dim = k == 0 ? 0 : k == packing.rank - 1 ? 1 : k + 1;
        tensor.stride[dim] = step;
        step *= packing.dim[k];
    }
    op->w = work_packed(work, &tensor, &packing);
    return STATUS_OK;
}

enum status conv_from(const struct kernel_query *q, struct work *work, struct conv_op *op,
                      struct tensor *y, struct error *why)
{
    struct window window;
    struct tensor x;
    *op = (struct conv_op){.x = NULL};
    TRY(window_from_node(q->node, &q->in[0].shape, &q->in[1].shape.dim[2], &window, why));
    TRY(tensor_from(&q->in[0], &x, why));
    TRY(tensor_from(&q->out[0], y, why));
    conv_window(&window, op);
    op->x = work_in(work, 0, &x);
    return conv_weights(q, work, op, why);
}

void conv_epilogue(const struct kernel_query *q, struct epilogue *epilogue)
{
    epilogue_from(q, q->node->op_inputs > 2 && query_in(q, 2) ? 2 : NONE, epilogue);
}
