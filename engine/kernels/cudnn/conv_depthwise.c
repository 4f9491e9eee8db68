/* SPDX-License-Identifier: Apache-2.0
 *
 * A depthwise convolution and its epilogue as two plans. The engines that cuDNN has for such
 * convolutions (9.26: 5 and 57) take no epilogue; with one, only general engines are offered. What
 * is convolved waits in the workspace, in the type of the output. */
#include <stdlib.h>
#include <string.h>

#include "engine/kernels/cudnn/lib/conv.h"

enum { INPUTS_MAX = 8 };

/* What the hooks call a kernel_state: two of lib/state.c. */
struct pair {
    struct kernel_state *product, *posts;
    size_t middle; /* bytes from the start of the workspace to what is convolved */
};

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

static enum status supports(const struct kernel_query *q, struct error *why)
{
    TRY(check(q, why));
    TRY(work_supports(build_product, q, why));
    return work_supports(build_posts, q, why);
}

static int variants(const struct kernel_query *q)
{
    return work_variants(build_product, q);
}

static void describe(const struct kernel_query *q, int variant, char *text, size_t size)
{
    work_describe(build_product, q, variant, text, size);
}

static size_t middle_of(const struct kernel_query *q, int variant)
{
    size_t product = work_workspace(build_product, q, variant);
    size_t posts = work_workspace(build_posts, q, 0);
    size_t most = product > posts ? product : posts;
    return (most + ALIGN_DEVICE - 1) / ALIGN_DEVICE * ALIGN_DEVICE;
}

static size_t workspace(const struct kernel_query *q, int variant)
{
    size_t element = q->out[0].dtype == DTYPE_F32 ? sizeof(float) : sizeof(uint16_t);
    return middle_of(q, variant) + (size_t)shape_count(&q->out[0].shape) * element;
}

static void release(struct kernel_state *state)
{
    struct pair *pair = (struct pair *)state;
    if (!pair)
        return;
    work_release(pair->product);
    work_release(pair->posts);
    free(pair);
}

static enum status prepare(const struct kernel_query *q, int variant, struct kernel_state **state,
                           size_t *state_bytes, struct error *err)
{
    size_t product = 0, posts = 0;
    struct pair *pair = calloc(1, sizeof(*pair));
    *state = NULL;
    if (!pair)
        return cudnn_host->refuse(err, STATUS_NO_MEMORY, "out of memory");
    pair->middle = middle_of(q, variant);
    enum status status = work_prepare(build_product, q, variant, &pair->product, &product, err);
    if (status == STATUS_OK)
        status = work_prepare(build_posts, q, 0, &pair->posts, &posts, err);
    if (status == STATUS_OK)
        *state = (struct kernel_state *)pair;
    else
        release((struct kernel_state *)pair);
    *state_bytes = product + posts;
    return status;
}

static void launch(const struct kernel_state *state, const struct kernel_query *q,
                   const struct kernel_args *args)
{
    const struct pair *pair = (const struct pair *)state;
    struct kernel_args product = *args, posts = *args;
    void *middle = (char *)args->workspace + pair->middle;
    const void *in[INPUTS_MAX];
    memcpy(in, args->in, (size_t)q->in_count * sizeof(*in));
    in[q->in_count] = middle;
    product.out = &middle;
    posts.in = in;
    work_launch(pair->product, q, &product);
    work_launch(pair->posts, q, &posts);
}

REGISTER(kernel, cudnn_conv_depthwise) = {.name = "cudnn_conv_depthwise",
                                          .provider = "cudnn",
                                          .device = "cuda",
                                          .ops = OPS("Conv"),
                                          .packs = 1u << 1,
                                          .supports = supports,
                                          .old_variants = variants,
                                          .old_describe = describe,
                                          .old_workspace = workspace,
                                          .old_prepare = prepare,
                                          .old_launch = launch,
                                          .release = release,
                                          .ranked_variants = true};
