/* SPDX-License-Identifier: Apache-2.0
 *
 * An LSTM or GRU node in the terms of cudnnRNNForward, which the graph API does not have. Variant v
 * is one of its four algorithms. cuDNN wants all weights in one buffer whose layout it reports. */
#ifndef ENGINE_KERNELS_CUDNN_LIB_RNN_H
#define ENGINE_KERNELS_CUDNN_LIB_RNN_H

#include "engine/kernels/cudnn/lib/device.h"

enum { RNN_GATES_MAX = 4, RNN_RESULTS = 3 };

struct rnn_form {
    bool lstm;
    int gates;
    int order[RNN_GATES_MAX]; /* cuDNN's gate k is the node's order[k] */
    bool bidirectional, biased;
    int steps, batch, inputs, hidden; /* T, B, I, H */
    cudnnDataType_t type;
    size_t element;
    bool exact;              /* f32 without tensor cores */
    bool starts;             /* with given states */
    bool wants[RNN_RESULTS]; /* outputs */
};

struct rnn_plan {
    struct rnn_form form;
    cudnnDropoutDescriptor_t dropout;
    cudnnRNNDescriptor_t rnn;
    cudnnRNNDataDescriptor_t x, y;
    cudnnTensorDescriptor_t state;    /* [D, B, H] */
    cudnnTensorDescriptor_t from, to; /* Y as cuDNN and as the node has it; NULL: the same */
    size_t work_bytes, weight_bytes;
    size_t y_bytes; /* a copy of Y in the workspace, after work_bytes; 0: none */
};

/* Inputs of the node. */
enum { RNN_X, RNN_W, RNN_R, RNN_B, RNN_LENGTHS, RNN_H, RNN_C, RNN_PEEPHOLES };

enum status rnn_form_from(const struct kernel_query *q, struct rnn_form *form, struct error *why);
/* plan: cleared, but for its form. rnn_plan_free it whatever the status. */
enum status rnn_plan_make(struct rnn_plan *plan, cudnnRNNAlgo_t algorithm, cudnnHandle_t handle,
                          struct error *why);
void rnn_plan_free(struct rnn_plan *plan);
/* The node's weights as cuDNN wants them, into device memory of plan->weight_bytes. */
enum status rnn_pack(const struct kernel_query *q, const struct rnn_plan *plan,
                     cudnnHandle_t handle, void *weights, struct error *why);

#endif
