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
    struct device_channels copy; /* pointers are left open */
    int inputs;
    size_t image, image_bytes; /* in the workspace */
};

static const struct padded *padded_of(const struct kernel_state *state)
{
    return (const struct padded *)state;
}

/* Channels last, without gaps. */
static void lie_channels_last(struct tensor *t)
{
    t->order = ORDER_LAST;
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
    if (!q->device->kind->pad_channels)
        return REFUSE(why, "the device appends no channels");
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
    if (!tensors_agree(&x, &y))
        return REFUSE(why, "the result's channels are not last");
    conv_window(&window, &op);
    op.x = work_in(work, 0, &x);
    op.w = work_packed(work, &w, &packing);
    conv_epilogue(q, &epilogue);
    op.y = epilogue_start(&epilogue, work, &y);
    opgraph_conv(&work->graph, &op);
    return epilogue_append(q, &epilogue, work, op.y, &y, why);
}

/* Whose positions follow each other, in either order. */
static enum status plan_copy(const struct kernel_query *q, struct device_channels *copy,
                             struct error *why)
{
    struct tensor x;
    TRY(tensor_from(&q->in[0], &x, why));
    if (x.order == ORDER_OTHER)
        return REFUSE(why, "an image with gaps");
    *copy = (struct device_channels){.images = x.dim[0],
                                     .positions = x.dim[2] * x.dim[3],
                                     .channels = x.dim[1],
                                     .image_at = x.dim[1] * x.dim[2] * x.dim[3],
                                     .position_at = x.order == ORDER_PLAIN ? 1 : x.dim[1],
                                     .channel_at = x.stride[1],
                                     .element = (int)element_of(&q->in[0])};
    return STATUS_OK;
}

static enum status plan(const struct kernel_query *q, int variant, struct kernel_state *state,
                        struct error *why)
{
    struct padded *p = (struct padded *)state;
    TRY(check(q, why));
    TRY(plan_copy(q, &p->copy, why));
    TRY(work_plan(build, q, variant, &p->conv, why));
    p->device = q->device;
    p->inputs = q->in_count;
    p->image = round_up(work_workspace(&p->conv), ALIGN_DEVICE);
    p->image_bytes = (size_t)(p->copy.images * p->copy.positions) * POSITION_BYTES;
    return STATUS_OK;
}

static size_t workspace(const struct kernel_state *state)
{
    return padded_of(state)->image + padded_of(state)->image_bytes;
}

static enum status prepare(const struct kernel_query *q, struct kernel_state *state,
                           size_t *packed_bytes, struct error *err)
{
    return work_prepare(q, &((struct padded *)state)->conv, packed_bytes, err);
}

static void release(struct kernel_state *state)
{
    work_release(&((struct padded *)state)->conv);
}

static void launch(const struct kernel_state *state, const struct kernel_args *args)
{
    const struct padded *p = padded_of(state);
    struct error *err = args->err && args->err->code == STATUS_OK ? args->err : NULL;
    struct device_channels copy = p->copy;
    struct kernel_args conv = *args;
    const void *in[INPUTS_MAX];
    copy.from = args->in[0];
    copy.to = (char *)args->workspace + p->image;
    memcpy(in, args->in, (size_t)p->inputs * sizeof(*in));
    in[0] = copy.to;
    conv.in = in;
    if (p->device->kind->pad_channels(p->device, &copy, args->stream, err) == STATUS_OK)
        work_launch(&p->conv, &conv);
}

CUDNN_KERNEL_AROUND(conv_padded, struct padded, .ops = OPS("Conv"), .packs = 1u << 1);
