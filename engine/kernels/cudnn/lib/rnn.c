/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/kernels/cudnn/lib/rnn.h"

#include <stdlib.h>
#include <string.h>

#include "base/numbers/integers.h"
#include "engine/kernels/cudnn/lib/work.h"

/* ---- what the node asks for ---- */

static enum status check_attributes(const struct kernel_query *q, struct error *why)
{
    const struct node *node = q->node;
    if (node->post_count) /* before any look at optional inputs: operands of posts follow them */
        return REFUSE(why, "no fused epilogue");
    if (cudnn_host->node_attr(node, "activations"))
        return REFUSE(why, "activations of the node's own");
    if (cudnn_host->node_attr(node, "clip"))
        return REFUSE(why, "clipped gates");
    if (cudnn_host->node_int(node, "input_forget", 0))
        return REFUSE(why, "coupled input and forget gates");
    if (is_op(q, "GRU") && !cudnn_host->node_int(node, "linear_before_reset", 0))
        return REFUSE(why, "cuDNN's GRU resets after the recurrent product only");
    if (strcmp(cudnn_host->node_string(node, "direction", "forward"), "reverse") == 0)
        return REFUSE(why, "backwards in time only");
    if (query_in(q, RNN_LENGTHS))
        return REFUSE(why, "sequences of different lengths");
    if (is_op(q, "LSTM") && query_in(q, RNN_PEEPHOLES))
        return REFUSE(why, "peepholes");
    if (!query_fixed(q, RNN_W) || !query_fixed(q, RNN_R) ||
        (query_in(q, RNN_B) && !query_fixed(q, RNN_B)))
        return REFUSE(why, "weights change from run to run");
    return STATUS_OK;
}

static enum status check_tensors(const struct kernel_query *q, struct error *why)
{
    for (int k = 0; k < q->in_count; k++) {
        if (!query_in(q, k))
            continue;
        if (!cudnn_host->desc_is_plain(&q->in[k]))
            return REFUSE(why, "input %d is not plain", k);
        if (q->in[k].dtype != q->in[0].dtype)
            return REFUSE(why, "inputs of different types");
    }
    for (int k = 0; k < q->out_count; k++)
        if (wants_output(q, k) && !cudnn_host->desc_is_plain(&q->out[k]))
            return REFUSE(why, "output %d is not plain", k);
    return STATUS_OK;
}

enum status rnn_form_from(const struct kernel_query *q, struct rnn_form *form, struct error *why)
{
    struct tensor x;
    TRY(check_attributes(q, why));
    TRY(check_tensors(q, why));
    TRY(tensor_from(&q->in[RNN_X], &x, why));
    const struct shape *shape = &q->in[RNN_X].shape, *r = &q->in[RNN_R].shape;
    bool batch_first = cudnn_host->node_int(q->node, "layout", 0) != 0;
    *form =
        (struct rnn_form){.lstm = is_op(q, "LSTM"),
                          .bidirectional = r->dim[0] == 2,
                          .biased = query_in(q, RNN_B) != NULL,
                          .steps = (int)shape->dim[batch_first],
                          .batch = (int)shape->dim[!batch_first],
                          .inputs = (int)shape->dim[2],
                          .hidden = (int)r->dim[2],
                          .type = x.type,
                          .element = x.type == CUDNN_DATA_FLOAT ? sizeof(float) : sizeof(uint16_t),
                          .exact = x.type == CUDNN_DATA_FLOAT && !q->tf32,
                          .starts = query_in(q, RNN_H) != NULL};
    /* ONNX orders the gates i, o, f, c and z, r, h; cuDNN i, f, c, o and r, z, h. */
    const int orders[2][RNN_GATES_MAX] = {{1, 0, 2}, {0, 2, 3, 1}};
    form->gates = form->lstm ? 4 : 3;
    memcpy(form->order, orders[form->lstm], sizeof(form->order));
    for (int k = 0; k < RNN_RESULTS; k++)
        form->wants[k] = wants_output(q, k);
    if (batch_first && form->batch > 1)
        return REFUSE(why, "batch-first states");
    if (form->lstm && (query_in(q, RNN_H) != NULL) != (query_in(q, RNN_C) != NULL))
        return REFUSE(why, "one of the two initial states is missing");
    return STATUS_OK;
}

/* ---- descriptors ---- */

static enum status set_tensor(cudnnTensorDescriptor_t *desc, cudnnDataType_t type, int rank,
                              const int *dims, const int *strides, struct error *why)
{
    CUDNN_TRY(cudnn.tensor_new(desc), why);
    CUDNN_TRY(cudnn.tensor_set(*desc, type, rank, dims, strides), why);
    return STATUS_OK;
}

/* Sequences of one length lie packed as they lie padded. */
static enum status set_data(cudnnRNNDataDescriptor_t *desc, const struct rnn_form *f, int width,
                            struct error *why)
{
    int *lengths = malloc((size_t)f->batch * sizeof(*lengths) + 1);
    if (!lengths)
        return cudnn_host->refuse(why, STATUS_NO_MEMORY, "out of memory");
    for (int k = 0; k < f->batch; k++)
        lengths[k] = f->steps;
    cudnnStatus_t status = cudnn.rnn_data_new(desc);
    if (status == CUDNN_STATUS_SUCCESS) {
        status = cudnn.rnn_data_set(*desc, f->type, CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_PACKED,
                                    f->steps, f->batch, width, lengths, NULL);
        free(lengths);
        CUDNN_TRY(status, why);
        return STATUS_OK;
    }
    free(lengths);
    return cudnn_refuse(why, status, "cudnn.rnn_data_new(");
}

static enum status set_rnn(struct rnn_plan *p, cudnnRNNAlgo_t algorithm, cudnnHandle_t handle,
                           struct error *why)
{
    const struct rnn_form *f = &p->form;
    cudnnMathType_t math = f->exact                      ? CUDNN_FMA_MATH
                           : f->type == CUDNN_DATA_FLOAT ? CUDNN_DEFAULT_MATH
                                                         : CUDNN_TENSOR_OP_MATH;
    CUDNN_TRY(cudnn.dropout_new(&p->dropout), why);
    CUDNN_TRY(cudnn.dropout_set(p->dropout, handle, 0, NULL, 0, 0), why);
    CUDNN_TRY(cudnn.rnn_new(&p->rnn), why);
    CUDNN_TRY(cudnn.rnn_set(p->rnn, algorithm, f->lstm ? CUDNN_LSTM : CUDNN_GRU,
                            f->biased ? CUDNN_RNN_DOUBLE_BIAS : CUDNN_RNN_NO_BIAS,
                            f->bidirectional ? CUDNN_BIDIRECTIONAL : CUDNN_UNIDIRECTIONAL,
                            CUDNN_LINEAR_INPUT, f->type, CUDNN_DATA_FLOAT, math, f->inputs,
                            f->hidden, f->hidden, 1, p->dropout, CUDNN_RNN_PADDED_IO_DISABLED),
              why);
    if (algorithm == CUDNN_RNN_ALGO_PERSIST_DYNAMIC)
        CUDNN_TRY(cudnn.rnn_build_dynamic(handle, p->rnn, f->batch), why);
    return STATUS_OK;
}

/* cuDNN's Y is [T, B, D H], the node's [T, D, B, H]: the same but for two directions of a batch. */
static enum status set_result(struct rnn_plan *p, struct error *why)
{
    const struct rnn_form *f = &p->form;
    int t = f->steps, b = f->batch, h = f->hidden, d = 1 + f->bidirectional;
    bool wanted = f->wants[0], same = d == 1 || b == 1;
    if (!wanted || !same)
        p->y_bytes = (size_t)t * (size_t)b * (size_t)d * (size_t)h * f->element;
    if (!wanted || same)
        return STATUS_OK;
    int dims[] = {t, b, d, h}, from[] = {b * d * h, d * h, h, 1}, to[] = {d * b * h, h, b * h, 1};
    TRY(set_tensor(&p->from, f->type, 4, dims, from, why));
    return set_tensor(&p->to, f->type, 4, dims, to, why);
}

enum status rnn_plan_make(struct rnn_plan *plan, cudnnRNNAlgo_t algorithm, cudnnHandle_t handle,
                          struct error *why)
{
    enum { UNIT = 256 };
    size_t reserve;
    const struct rnn_form *f = &plan->form;
    int directions = 1 + f->bidirectional;
    int dims[] = {directions, f->batch, f->hidden};
    int strides[] = {f->batch * f->hidden, f->hidden, 1};
    TRY(set_rnn(plan, algorithm, handle, why));
    TRY(set_data(&plan->x, f, f->inputs, why));
    TRY(set_data(&plan->y, f, directions * f->hidden, why));
    TRY(set_tensor(&plan->state, f->type, 3, dims, strides, why));
    TRY(set_result(plan, why));
    CUDNN_TRY(cudnn.rnn_weight_size(handle, plan->rnn, &plan->weight_bytes), why);
    CUDNN_TRY(cudnn.rnn_temp_sizes(handle, plan->rnn, CUDNN_FWD_MODE_INFERENCE, plan->x,
                                   &plan->work_bytes, &reserve),
              why);
    plan->work_bytes = round_up(plan->work_bytes, UNIT);
    return STATUS_OK;
}

void rnn_plan_free(struct rnn_plan *p)
{
    if (p->to)
        cudnn.tensor_free(p->to);
    if (p->from)
        cudnn.tensor_free(p->from);
    if (p->state)
        cudnn.tensor_free(p->state);
    if (p->y)
        cudnn.rnn_data_free(p->y);
    if (p->x)
        cudnn.rnn_data_free(p->x);
    if (p->rnn)
        cudnn.rnn_free(p->rnn);
    if (p->dropout)
        cudnn.dropout_free(p->dropout);
    *p = (struct rnn_plan){.work_bytes = 0};
}

/* ---- weights ---- */

struct packer {
    const struct kernel_query *q;
    const struct rnn_plan *plan;
    cudnnHandle_t handle;
    const char *base; /* the buffer on the device: only its address is used */
    char *data;       /* the same in the host's memory, to be filled */
    cudnnTensorDescriptor_t matrix, bias;
};

static enum status put(const struct packer *p, const char *place, const char *from, size_t bytes,
                       struct error *why)
{
    if (!place || place < p->base || place + bytes > p->base + p->plan->weight_bytes)
        return REFUSE(why, "cuDNN has another place for these weights than expected");
    memcpy(p->data + (place - p->base), from, bytes);
    return STATUS_OK;
}

/* The matrix and bias of one gate: of the input (recurrent false) or of the state. */
static enum status put_gate(const struct packer *p, int direction, int gate, bool recurrent,
                            struct error *why)
{
    const struct rnn_form *f = &p->plan->form;
    void *matrix = NULL, *bias = NULL;
    int layer = gate + (recurrent ? f->gates : 0);
    CUDNN_TRY(cudnn.rnn_weight_place(p->handle, p->plan->rnn, direction, p->plan->weight_bytes,
                                     p->base, layer, p->matrix, &matrix, p->bias, &bias),
              why);
    size_t width = (size_t)(recurrent ? f->hidden : f->inputs) * f->element;
    size_t rows = (size_t)f->hidden, row = (size_t)(direction * f->gates + f->order[gate]) * rows;
    const char *from = query_fixed(p->q, recurrent ? RNN_R : RNN_W);
    TRY(put(p, matrix, from + row * width, rows * width, why));
    if (!f->biased)
        return STATUS_OK;
    size_t half = (size_t)f->gates * rows * f->element;
    const char *biases = query_fixed(p->q, RNN_B);
    biases += (size_t)direction * 2 * half + (recurrent ? half : 0);
    return put(p, bias, biases + (size_t)f->order[gate] * rows * f->element, rows * f->element,
               why);
}

static enum status put_all(struct packer *p, struct error *why)
{
    CUDNN_TRY(cudnn.tensor_new(&p->matrix), why);
    CUDNN_TRY(cudnn.tensor_new(&p->bias), why);
    for (int d = 0; d < (p->plan->form.bidirectional ? 2 : 1); d++)
        for (int g = 0; g < p->plan->form.gates; g++) {
            TRY(put_gate(p, d, g, false, why));
            TRY(put_gate(p, d, g, true, why));
        }
    return STATUS_OK;
}

enum status rnn_pack(const struct kernel_query *q, const struct rnn_plan *plan,
                     cudnnHandle_t handle, void *weights, struct error *why)
{
    const struct device *device = q->device;
    struct packer p = {.q = q, .plan = plan, .handle = handle, .base = weights};
    p.data = calloc(1, plan->weight_bytes + 1);
    if (!p.data)
        return cudnn_host->refuse(why, STATUS_NO_MEMORY, "out of memory");
    enum status status = put_all(&p, why);
    if (p.bias)
        cudnn.tensor_free(p.bias);
    if (p.matrix)
        cudnn.tensor_free(p.matrix);
    if (status == STATUS_OK)
        status = device->kind->copy(device, weights, p.data, plan->weight_bytes, COPY_TO_DEVICE,
                                    NULL, why);
    if (status == STATUS_OK)
        status = device->kind->wait(device, NULL, why);
    free(p.data);
    return status;
}
