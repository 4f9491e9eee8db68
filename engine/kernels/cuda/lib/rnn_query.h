/* SPDX-License-Identifier: Apache-2.0
 *
 * What a query says of a recurrent network, and which of them the device's kernels compute. */
#ifndef ENGINE_KERNELS_CUDA_LIB_RNN_QUERY_H
#define ENGINE_KERNELS_CUDA_LIB_RNN_QUERY_H

#include "engine/kernels/cuda/lib/rnn.h"

static inline bool rnn_default_activations(const struct kernel_query *q)
{
    static const char *const usual[] = {"Sigmoid", "Tanh", "Tanh"};
    const char *op = cuda_host->node_op(q->node);
    bool is_plain = strcmp(op, "RNN") == 0;
    int each = is_plain ? 1 : strcmp(op, "LSTM") == 0 ? 3 : 2; /* of a direction */
    const struct attr *names = cuda_host->node_attr(q->node, "activations");
    for (int k = 0; names && names->kind == ATTR_STRINGS && k < names->count; k++)
        if (strcmp(names->strings[k], usual[k % each + is_plain]) != 0)
            return false;
    return true;
}

static inline enum status rnn_supported(const struct kernel_query *q, struct error *why)
{
    bool is_lstm = strcmp(cuda_host->node_op(q->node), "LSTM") == 0;
    TRY(plain_supported(q, why));
    for (int k = X; k <= PEEPHOLE; k++)
        if (k != LENGTHS && input_given(q, k) && q->in[k].dtype != q->in[X].dtype)
            return REFUSE(why, "input %d is of another type than the sequence", k);
    if (!is_float(q->in[X].dtype))
        return REFUSE(why, "only f32, f16 and bf16");
    if (!q->fixed[W] || !q->fixed[R] || (input_given(q, BIAS) && !q->fixed[BIAS]))
        return REFUSE(why, "weights come at run time");
    if (input_given(q, LENGTHS) && !is_index(q->in[LENGTHS].dtype))
        return REFUSE(why, "lengths are neither i32 nor i64");
    if (!rnn_default_activations(q) || cuda_host->node_attr(q->node, "clip") ||
        cuda_host->node_int(q->node, "input_forget", 0) || (is_lstm && input_given(q, PEEPHOLE)))
        return REFUSE(why, "clip, coupled gates, peepholes or other activations");
    const int64_t *x = q->in[X].shape.dim;
    if (x[0] * x[1] * x[2] == 0 || q->in[R].shape.dim[2] == 0)
        return REFUSE(why, "no elements");
    return STATUS_OK;
}

/* Pointers, and what single kernels have for themselves, stay open. */
static inline void rnn_read(const struct kernel_query *q, struct rnn *k)
{
    const char *op = cuda_host->node_op(q->node);
    const char *direction = cuda_host->node_string(q->node, "direction", "forward");
    const int64_t *x = q->in[X].shape.dim;
    k->type = q->in[X].dtype;
    k->batch_first = cuda_host->node_int(q->node, "layout", 0) != 0;
    k->steps = (unsigned)x[k->batch_first];
    k->batch = (unsigned)x[!k->batch_first];
    k->input = (unsigned)x[2];
    k->hidden = (unsigned)q->in[R].shape.dim[2];
    k->directions = (unsigned)q->in[R].shape.dim[0];
    k->backward = strcmp(direction, "reverse") == 0;
    k->cell = strcmp(op, "LSTM") == 0                                       ? CELL_LSTM
              : strcmp(op, "RNN") == 0                                      ? CELL_PLAIN
              : cuda_host->node_int(q->node, "linear_before_reset", 0) != 0 ? CELL_GRU_LINEAR
                                                                            : CELL_GRU_RESET;
    k->gates = k->cell == CELL_LSTM ? 4 : k->cell == CELL_PLAIN ? 1 : 3;
    k->wide_lengths = input_given(q, LENGTHS) && q->in[LENGTHS].dtype == DTYPE_I64;
}

/* The tensors of a launch that the node has. */
static inline void rnn_resolve(struct rnn *k, const struct kernel_args *args, unsigned given,
                               unsigned wanted)
{
    bool is_lstm = k->cell == CELL_LSTM;
    k->x = args->in[X];
    k->lengths = input_of(args, given, LENGTHS);
    k->initial_h = input_of(args, given, H);
    k->initial_c = is_lstm ? input_of(args, given, C) : NULL;
    k->attention = is_lstm ? NULL : input_of(args, given, ATTENTION);
    k->y = output_of(args, wanted, 0);
    k->last_h = output_of(args, wanted, 1);
    k->last_c = output_of(args, wanted, 2);
}

#endif
