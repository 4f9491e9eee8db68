/* SPDX-License-Identifier: Apache-2.0
 *
 * An LSTM or GRU node in oneDNN's terms. Both directions are one primitive; weights and biases are
 * constants, kept with their gates in oneDNN's order. */
#ifndef ENGINE_KERNELS_ONEDNN_LIB_RNN_H
#define ENGINE_KERNELS_ONEDNN_LIB_RNN_H

#include "engine/kernels/onednn/lib/adapter.h"

enum { RNN_GATES = 4 };

struct rnn {
    int gates;
    int order[RNN_GATES]; /* ONNX's gate for each of oneDNN's */
    int biases;           /* rows of oneDNN's bias: the gates, or one more */
    int64_t steps, batch, inputs, hidden, directions;
    bool batch_first;
    dnnl_rnn_direction_t direction;
    bool has_state;                        /* initial states are inputs */
    dnnl_memory_desc_t x, y, state;        /* [T, N, I], [T, N, D H], [1, D, N, H] */
    dnnl_memory_desc_t weights, recurrent; /* any */
    dnnl_memory_desc_t bias;               /* [1, D, biases, H] */
};

/* gates, order and biases are set by the caller. */
enum status rnn_from_query(const struct kernel_query *q, struct rnn *rnn, struct error *why);
/* Source, weights, recurrent weights, bias and the layer's result. */
enum status rnn_arguments(const struct kernel_query *q, const struct rnn *rnn, struct plan *plan,
                          struct plan_step *step, struct error *why);
/* A final state: output `output`, or scratch when it is not wanted. */
void rnn_final_state(const struct kernel_query *q, const struct rnn *rnn, struct plan *plan,
                     struct plan_step *step, int arg, int output);

#endif
