/* SPDX-License-Identifier: Apache-2.0
 *
 * A convolution of images with few channels (the first of a network: three colours) on tensor
 * cores, whose layouts want a multiple of 16 bytes per position: the image is copied into the
 * workspace with channels of zeros behind its own, so many are appended to the weights, and what
 * follows is any other convolution. Whether that pays is for the tuner to find. */
#include <string.h>

#include "base/numbers/integers.h"
#include "engine/kernels/cudnn/lib/conv.h"
#include "engine/kernels/cudnn/lib/state.h"

enum { INPUTS_MAX = 8, POSITION_BYTES = 16, RANK = 4 };

/* What the hooks call a kernel_state: one of lib/state.h, which has the variants, and the copy
 * before it. */
struct padded {
    struct kernel_state conv;
    const struct device *device;
    struct tensor from, to; /* of the image's own channels */
    int inputs;
    size_t image, image_bytes; /* in the workspace */
    cudnnTensorDescriptor_t given, copied;
};

static const struct padded *padded_of(const struct kernel_state *state)
{
    return (const struct padded *)state;
}

/* Channels last, without gaps. */
static void lie_channels_last(struct tensor *t)
{
    t->stride[1] = 1;
    t->stride[3] = t->dim[1];
    t->stride[2] = t->stride[3] * t->dim[3];
    t->stride[0] = t->stride[2] * t->dim[2];
}

static size_t element_of(const struct desc *desc)
{
    return desc->dtype == DTYPE_F32 ? sizeof(float) : sizeof(uint16_t);
}

static enum status check(const struct kernel_query *q, struct error *why)
{
    const struct desc *x = &q->in[0], *w = query_in(q, 1);
    int64_t most = POSITION_BYTES / (int64_t)element_of(x);
    if (x->dtype == DTYPE_F32 && !q->tf32)
        return REFUSE(why, "exact f32 is not for tensor cores");
    if (x->shape.rank != RANK || x->shape.dim[1] >= most || w->shape.dim[1] != x->shape.dim[1])
        return REFUSE(why, "no image of fewer than %d channels", (int)most);
    if (!query_fixed(q, 1) || q->in_count > INPUTS_MAX)
        return REFUSE(why, "the weights are not known, or more than %d inputs", INPUTS_MAX);
    return STATUS_OK;
}

/* [K, C, H, W] as [K, H, W, padded C] in memory of the work; zeros while nothing is read. */
static enum status pad_weights(const struct kernel_query *q, struct work *work,
                               struct tensor *weights, struct packing *packing, struct error *why)
{
    const struct desc *desc = query_in(q, 1);
    struct tensor own;
    size_t element = element_of(desc);
    TRY(tensor_from(desc, &own, why));
    *weights = own;
    weights->dim[1] = POSITION_BYTES / (int64_t)element;
    lie_channels_last(weights);
    int64_t count = weights->dim[0] * weights->stride[0];
    char *data = work_temporary(work, (size_t)count * element);
    if (!data)
        return cudnn_host->refuse(why, STATUS_NO_MEMORY, "out of memory");
    *packing = (struct packing){
        .data = data, .element = element, .rank = 1, .dim = {count}, .stride = {1}};
    const char *from = query_fixed(q, 1);
    for (int64_t at = 0; work->packing && at < own.dim[0] * own.dim[1] * own.dim[2] * own.dim[3];
         at++) {
        int64_t left = at, to = 0, place = 0;
        for (int k = RANK - 1; k >= 0; k--) {
            to += left % own.dim[k] * weights->stride[k];
            place += left % own.dim[k] * own.stride[k];
            left /= own.dim[k];
        }
        memcpy(data + (size_t)to * element, from + (size_t)place * element, element);
    }
    return STATUS_OK;
}

static enum status build(const struct kernel_query *q, struct work *work, struct error *why)
{
    struct window window;
    struct conv_op op = {.x = NULL};
    struct epilogue epilogue;
    struct tensor x, y, w;
    struct packing packing;
    TRY(window_from_node(q->node, &q->in[0].shape, &q->in[1].shape.dim[2], &window, why));
    TRY(tensor_from(&q->in[0], &x, why));
    TRY(tensor_from(&q->out[0], &y, why));
    TRY(pad_weights(q, work, &w, &packing, why));
    x.dim[1] = w.dim[1];
    lie_channels_last(&x);
    conv_window(&window, &op);
    op.x = work_in(work, 0, &x);
    op.w = work_packed(work, &w, &packing);
    conv_epilogue(q, &epilogue);
    op.y = epilogue_start(&epilogue, work, &y);
    opgraph_conv(&work->graph, &op);
    return epilogue_append(q, &epilogue, work, op.y, &y, why);
}

static enum status plan(const struct kernel_query *q, int variant, struct kernel_state *state,
                        struct error *why)
{
    struct padded *p = (struct padded *)state;
    TRY(check(q, why));
    TRY(work_plan(build, q, variant, &p->conv, why));
    TRY(tensor_from(&q->in[0], &p->from, why));
    size_t element = element_of(&q->in[0]), bytes = work_workspace(&p->conv);
    p->device = q->device;
    p->inputs = q->in_count;
    p->to = p->from;
    p->to.dim[1] = POSITION_BYTES / (int64_t)element;
    lie_channels_last(&p->to);
    p->image = round_up(bytes, ALIGN_DEVICE);
    p->image_bytes = (size_t)(p->to.dim[0] * p->to.stride[0]) * element;
    p->to.dim[1] = p->from.dim[1];
    return STATUS_OK;
}

static size_t workspace(const struct kernel_state *state)
{
    return padded_of(state)->image + padded_of(state)->image_bytes;
}

static enum status describe_image(const struct tensor *t, cudnnTensorDescriptor_t *made,
                                  struct error *err)
{
    int dims[RANK], strides[RANK];
    for (int k = 0; k < RANK; k++) {
        dims[k] = (int)t->dim[k];
        strides[k] = (int)t->stride[k];
    }
    CUDNN_TRY(cudnn.tensor_new(made), err);
    CUDNN_TRY(cudnn.tensor_set(*made, t->type, RANK, dims, strides), err);
    return STATUS_OK;
}

static enum status prepare(const struct kernel_query *q, struct kernel_state *state,
                           size_t *packed_bytes, struct error *err)
{
    struct padded *p = (struct padded *)state;
    TRY(work_prepare(q, &p->conv, packed_bytes, err));
    TRY(describe_image(&p->from, &p->given, err));
    return describe_image(&p->to, &p->copied, err);
}

static void release(struct kernel_state *state)
{
    struct padded *p = (struct padded *)state;
    if (p->given)
        cudnn.tensor_free(p->given);
    if (p->copied)
        cudnn.tensor_free(p->copied);
    work_release(&p->conv);
}

/* The workspace is everybody's, so that the zeros are not there from the run before. */
static enum status copy_image(const struct padded *p, const struct kernel_args *args, void *image,
                              struct error *err)
{
    const float one = 1, zero = 0;
    cudnnHandle_t handle;
    TRY(p->device->kind->fill(p->device, image, 0, p->image_bytes, args->stream, err));
    TRY(device_handle(p->device, &handle, err));
    CUDNN_TRY(cudnn.set_stream(handle, args->stream), err);
    CUDNN_TRY(cudnn.transform(handle, &one, p->given, args->in[0], &zero, p->copied, image), err);
    return STATUS_OK;
}

static void launch(const struct kernel_state *state, const struct kernel_args *args)
{
    const struct padded *p = padded_of(state);
    struct error *err = args->err && args->err->code == STATUS_OK ? args->err : NULL;
    struct kernel_args conv = *args;
    void *image = (char *)args->workspace + p->image;
    const void *in[INPUTS_MAX];
    memcpy(in, args->in, (size_t)p->inputs * sizeof(*in));
    in[0] = image;
    conv.in = in;
    if (copy_image(p, args, image, err) == STATUS_OK)
        work_launch(&p->conv, &conv);
}

CUDNN_KERNEL_AROUND(conv_padded, struct padded, .ops = OPS("Conv"), .packs = 1u << 1);
