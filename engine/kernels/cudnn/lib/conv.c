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

/* Which dimension of dense memory is the k-th from outside. */
static int dimension(const struct tensor *t, int k)
{
    if (t->order == ORDER_PLAIN || k == 0)
        return k;
    return k == t->rank - 1 ? 1 : k + 1;
}

static cudnn_desc pack_weights(struct work *work, size_t element, const void *data,
                               const struct tensor *given, enum order order)
{
    struct tensor packed = *given;
    struct packing packing = {.data = data, .element = element, .rank = given->rank};
    packed.order = order;
    int64_t step = 1;
    for (int k = packing.rank - 1; k >= 0; k--) {
        int dim = dimension(&packed, k);
        packing.dim[k] = given->dim[dim];
        packing.stride[k] = given->stride[dim];
        packed.stride[dim] = step;
        step *= given->dim[dim];
    }
    return work_packed(work, &packed, &packing);
}

static bool is_exact(const struct kernel_query *q)
{
    return q->in[0].dtype == DTYPE_F32 && !q->tf32;
}

/* Only the engines of exact f32 convolve rightly where orders are mixed; others are offered for
 * that and read one of the tensors as if it lay like the others (cuDNN 9.19 on an H200). */
static enum status agree(const struct kernel_query *q, struct tensor *a, struct tensor *b,
                         const char *what, struct error *why)
{
    if (tensors_agree(a, b) || is_exact(q))
        return STATUS_OK;
    return REFUSE(why, "the image and %s lie in different orders", what);
}

enum status conv_tensors(const struct kernel_query *q, struct work *work, struct conv_op *op,
                         struct conv_images *images, struct error *why)
{
    const struct desc *desc = query_in(q, 1);
    const void *data = query_fixed(q, 1);
    struct tensor weights;
    TRY(tensor_from(&q->in[0], &images->in, why));
    TRY(tensor_from(&q->out[0], &images->out, why));
    TRY(tensor_from(desc, &weights, why));
    TRY(agree(q, &images->in, &images->out, "the result", why));
    if (images->in.order == ORDER_PLAIN && !is_exact(q)) /* some give other numbers each time */
        return REFUSE(why, "a plain image, which is not for tensor cores");
    if (!data) {
        TRY(agree(q, &images->in, &weights, "the weights", why));
        tensors_agree(&images->out, &images->in);
    }
    size_t element = desc->dtype == DTYPE_F32 ? sizeof(float) : sizeof(uint16_t);
    images->image = work_in(work, 0, &images->in);
    op->w = data ? pack_weights(work, element, data, &weights, images->out.order)
                 : work_in(work, 1, &weights);
    return STATUS_OK;
}

enum status conv_from(const struct kernel_query *q, struct work *work, struct conv_op *op,
                      struct tensor *y, struct error *why)
{
    struct window window;
    struct conv_images images;
    *op = (struct conv_op){.x = NULL};
    TRY(window_from_node(q->node, &q->in[0].shape, &q->in[1].shape.dim[2], &window, why));
    conv_window(&window, op);
    TRY(conv_tensors(q, work, op, &images, why));
    op->x = images.image;
    *y = images.out;
    return STATUS_OK;
}

void conv_epilogue(const struct kernel_query *q, struct epilogue *epilogue)
{
    epilogue_from(q, q->node->op_inputs > 2 && query_in(q, 2) ? 2 : NONE, epilogue);
}
