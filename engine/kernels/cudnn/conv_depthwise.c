/* SPDX-License-Identifier: Apache-2.0
 *
 * A depthwise convolution and its epilogue as two plans. The engines that cuDNN has for such
 * convolutions (9.26: 5 and 57) take no epilogue; with one, only general engines are offered. What
 * is convolved waits in the workspace, in the type of the output. */
#include <string.h>

#include "base/numbers/integers.h"
#include "engine/kernels/cudnn/lib/conv.h"
#include "engine/kernels/cudnn/lib/state.h"

enum { INPUTS_MAX = 8 };

/* What the hooks call a kernel_state: two of lib/state.h, of which the first has the variants. */
struct pair {
    struct kernel_state product, posts;
    int inputs;
    size_t middle; /* bytes from the start of the workspace to what is convolved */
    size_t workspace;
};

static const struct pair *pair_of(const struct kernel_state *state)
{
    return (const struct pair *)state;
}

static enum status build_product(const struct kernel_query *q, struct work *work, struct error *why)
{
    struct conv_op op;
    struct tensor y;
    TRY(conv_from(q, work, &op, &y, why));
    op.y = work_out(work, 0, &y);
    opgraph_conv(&work->graph, &op);
    return STATUS_OK;
}

/* What is convolved comes as one more input. */
static enum status build_posts(const struct kernel_query *q, struct work *work, struct error *why)
{
    struct epilogue epilogue;
    struct tensor y;
    TRY(tensor_from(&q->out[0], &y, why));
    conv_epilogue(q, &epilogue);
    return epilogue_append(q, &epilogue, work, work_in(work, q->in_count, &y), &y, why);
}

static enum status check(const struct kernel_query *q, struct error *why)
{
    struct epilogue epilogue;
    int64_t channels = q->in[0].shape.dim[1];
    conv_epilogue(q, &epilogue);
    if (channels < 2 || cudnn_host->node_int(q->node, "group", 1) != channels)
        return REFUSE(why, "not depthwise");
    if (!epilogue.count)
        return REFUSE(why, "without an epilogue it is one plan");
    if (q->in_count >= INPUTS_MAX || !cudnn_host->desc_is_dense(&q->out[0]))
        return REFUSE(why, "more than %d inputs, or gaps in the output", INPUTS_MAX - 1);
    return STATUS_OK;
}

static enum status plan(const struct kernel_query *q, int variant, struct kernel_state *state,
                        struct error *why)
{
    struct pair *pair = (struct pair *)state;
    TRY(check(q, why));
    TRY(work_plan(build_product, q, variant, &pair->product, why));
    TRY(work_plan(build_posts, q, 0, &pair->posts, why));
    size_t product = work_workspace(&pair->product), posts = work_workspace(&pair->posts);
    size_t largest = product > posts ? product : posts;
    size_t element = q->out[0].dtype == DTYPE_F32 ? sizeof(float) : sizeof(uint16_t);
    pair->inputs = q->in_count;
    pair->middle = round_up(largest, ALIGN_DEVICE);
    pair->workspace = pair->middle + (size_t)shape_count(&q->out[0].shape) * element;
    return STATUS_OK;
}

static size_t workspace(const struct kernel_state *state)
{
    return pair_of(state)->workspace;
}

static enum status prepare(const struct kernel_query *q, struct kernel_state *state,
                           size_t *packed_bytes, struct error *err)
{
    struct pair *pair = (struct pair *)state;
    TRY(work_prepare(q, &pair->product, packed_bytes, err));
    return work_prepare(q, &pair->posts, packed_bytes, err);
}

static void release(struct kernel_state *state)
{
    struct pair *pair = (struct pair *)state;
    work_release(&pair->product);
    work_release(&pair->posts);
}

static void launch(const struct kernel_state *state, const struct kernel_args *args)
{
    const struct pair *pair = pair_of(state);
    struct kernel_args product = *args, posts = *args;
    void *middle = (char *)args->workspace + pair->middle;
    const void *in[INPUTS_MAX];
    memcpy(in, args->in, (size_t)pair->inputs * sizeof(*in));
    in[pair->inputs] = middle;
    product.out = &middle;
    posts.in = in;
    work_launch(&pair->product, &product);
    work_launch(&pair->posts, &posts);
}

CUDNN_KERNEL_AROUND(conv_depthwise, struct pair, .ops = OPS("Conv"), .packs = 1u << 1);
