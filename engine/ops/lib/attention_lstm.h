/* SPDX-License-Identifier: Apache-2.0
 *
 * What AttentionLSTM, its gradient and their kernels share: inputs, outputs and sizes. */
#ifndef ENGINE_OPS_LIB_ATTENTION_LSTM_H
#define ENGINE_OPS_LIB_ATTENTION_LSTM_H

#include "engine/graph/op.h"

/* Of both operators. Those from KEYS on are all there or all absent: then it is a plain LSTM, and
 * a context has C = 0 elements. */
enum attention_lstm_input {
    ALSTM_X,       /* [T, B, 4 H]: what is known of the gates' sums before; gates i, g, f, o. The
                      gradient: the sums */
    ALSTM_W,       /* [C + H, 4 H]: rows context, state */
    ALSTM_H,       /* [B, H]: initial state; not of the gradient */
    ALSTM_C,       /* [B, H]: initial memory */
    ALSTM_KEYS,    /* [B, S, A] */
    ALSTM_MEMORY,  /* [B, S, C] */
    ALSTM_LENGTHS, /* i32 [B] */
    ALSTM_QUERY,   /* [H, A] */
    ALSTM_SCORE,   /* [A] */
    ALSTM_INPUTS,
    /* of the gradient alone */
    ALSTM_CELLS = ALSTM_INPUTS, /* [T, B, H]: the memory after each step */
    ALSTM_DY,                   /* [T, B, H] */
    ALSTM_DCONTEXT,             /* [T, B, C]; absent: zero, as DY may be */
    ALSTM_ASKED,                /* [T, B, A]: states times QUERY */
    ALSTM_SHARES,               /* [T, B, S]: how much attention each word got */
    ALSTM_GRADIENT_INPUTS
};

enum attention_lstm_output {
    ALSTM_OUT_Y, /* [T, B, H] */
    ALSTM_OUT_CELLS,
    ALSTM_OUT_CONTEXT, /* [T, B, C] */
    ALSTM_OUT_SHARES,
    ALSTM_OUTPUTS
};

/* Gradients by ... */
enum attention_lstm_gradient {
    ALSTM_BY_X,       /* the sums */
    ALSTM_BY_H,       /* the initial state */
    ALSTM_BY_C,       /* the initial memory */
    ALSTM_BY_CONTEXT, /* each step's context, [T, B, C] */
    ALSTM_BY_ASKED,
    ALSTM_BY_KEYS,
    ALSTM_BY_SCORE,
    ALSTM_BYS
};

struct attention_lstm {
    int64_t steps, batch, hidden;  /* T, B, H */
    int64_t source, keys, context; /* S, A, C; 0 without an attention */
    bool attends;
};

/* in: shapes of the ALSTM_INPUTS; NULL: absent. */
enum status attention_lstm_from(const struct shape *const *in, struct attention_lstm *s,
                                struct error *err);
/* The same of an operator's shape rule, and of its reference. */
enum status attention_lstm_infer(const struct infer *c, struct attention_lstm *s,
                                 struct error *err);
enum status attention_lstm_call(const struct ref_call *call, struct attention_lstm *s,
                                struct error *err);
/* Words of a source sentence that are real: 1 to S. */
int64_t attention_lstm_length(const struct attention_lstm *s, int64_t length);

/* Of the gradient's output `by`. */
struct shape attention_lstm_shape_by(const struct attention_lstm *s, int by);

#endif
