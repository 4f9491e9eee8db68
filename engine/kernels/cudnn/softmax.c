/* SPDX-License-Identifier: Apache-2.0
 *
 * Softmax and LogSoftmax along one axis of plain data, by cudnnSoftmaxForward: the graph API takes
 * neither. */
#include "engine/kernels/cudnn/lib/work.h"
#include "engine/ops/lib/axis.h"

struct kernel_state {
    const struct device *device;
    struct tensor shape; /* [before the axis, axis, behind it, 1] */
    cudnnSoftmaxAlgorithm_t algorithm;
    cudnnTensorDescriptor_t tensor; /* prepare: of that shape */
};

static enum status shape_of_query(const struct kernel_query *q, struct tensor *t, struct error *why)
{
    struct axis axis;
    const struct desc *x = &q->in[0];
    if (q->node->post_count)
        return REFUSE(why, "no fused epilogue");
    if (!cudnn_host->desc_is_plain(x) || !cudnn_host->desc_is_plain(&q->out[0]))
        return REFUSE(why, "only plain data");
    TRY(tensor_from(x, t, why));
    TRY(axis_of_softmax(q->node, &x->shape, &axis, why));
    if (axis.outer > INT32_MAX || axis.size * axis.inner > INT32_MAX)
        return REFUSE(why, "more than 2^31 rows, or elements of one");
    *t = (struct tensor){.type = t->type,
                         .rank = 4,
                         .dim = {axis.outer, axis.size, axis.inner, 1},
                         .stride = {axis.size * axis.inner, axis.inner, 1, 1}};
    return STATUS_OK;
}

static enum status plan(const struct kernel_query *q, int variant, struct kernel_state *state,
                        struct error *why)
{
    (void)variant;
    state->device = q->device;
    state->algorithm = is_op(q, "Softmax") ? CUDNN_SOFTMAX_ACCURATE : CUDNN_SOFTMAX_LOG;
    return shape_of_query(q, &state->shape, why);
}

static enum status prepare(const struct kernel_query *q, struct kernel_state *state,
                           size_t *packed_bytes, struct error *err)
{
    int dims[4], strides[4];
    cudnnHandle_t handle;
    (void)packed_bytes;
    for (int k = 0; k < 4; k++) {
        dims[k] = (int)state->shape.dim[k];
        strides[k] = (int)state->shape.stride[k];
    }
    TRY(device_handle(q->device, &handle, err)); /* rather here than in the first launch */
    CUDNN_TRY(cudnn.tensor_new(&state->tensor), err);
    CUDNN_TRY(cudnn.tensor_set(state->tensor, state->shape.type, 4, dims, strides), err);
    return STATUS_OK;
}

static void release(struct kernel_state *state)
{
    if (!state->tensor)
        return;
    device_handle_rest(state->device);
    cudnn.tensor_free(state->tensor);
}

static enum status enqueue(const struct kernel_state *state, const struct kernel_args *args,
                           struct error *err)
{
    const float one = 1, zero = 0;
    cudnnHandle_t handle;
    TRY(device_handle(state->device, &handle, err));
    CUDNN_TRY(cudnn.set_stream(handle, args->stream), err);
    CUDNN_TRY(cudnn.softmax(handle, state->algorithm, CUDNN_SOFTMAX_MODE_CHANNEL, &one,
                            state->tensor, args->in[0], &zero, state->tensor, args->out[0]),
              err);
    return STATUS_OK;
}

static void launch(const struct kernel_state *state, const struct kernel_args *args)
{
    struct error *err = args->err;
    enqueue(state, args, err && err->code == STATUS_OK ? err : NULL);
}

REGISTER(kernel, cudnn_softmax) = {.name = "cudnn_softmax",
                                   .provider = "cudnn",
                                   .device = "cuda",
                                   .ops = OPS("Softmax", "LogSoftmax"),
                                   .state_size = sizeof(struct kernel_state),
                                   .plan = plan,
                                   .prepare = prepare,
                                   .launch = launch,
                                   .release = release};
