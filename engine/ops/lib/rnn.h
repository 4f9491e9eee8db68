/* SPDX-License-Identifier: Apache-2.0
 *
 * What LSTM, GRU and RNN share: sizes, shape rule, activations and the walk of the references over
 * directions and time. A cell only says how one step turns pre-activations into a new state.
 *
 * Inputs: x [T, B, I], w [D, G H, I], r [D, G H, H], bias [D, 2 G H] (w's half, then r's),
 * sequence_lens [B], initial_h [D, B, H], LSTM: initial_c and peepholes [D, 3 H].
 * Outputs: y [T, D, B, H], y_h [D, B, H], LSTM: y_c. With layout = 1 the batch comes first.
 */
#ifndef ENGINE_OPS_LIB_RNN_H
#define ENGINE_OPS_LIB_RNN_H

#include "engine/graph/op.h"

enum { RNN_ACTIVATIONS_MAX = 3 };
enum { RNN_X, RNN_W, RNN_R, RNN_BIAS, RNN_LENGTHS, RNN_H, RNN_C, RNN_PEEPHOLE }; /* inputs */
enum { RNN_ATTENTION = RNN_C };                                                  /* AUGRU: [T, B] */

struct rnn_shape {
    int64_t steps, batch, input, hidden; /* T, B, I, H */
    int directions, gates;               /* D, G */
    bool batch_first;                    /* layout = 1 */
    bool backward;                       /* the first direction runs backwards in time */
};

enum status rnn_shape_from(const struct node *node, int gates, const struct shape *x,
                           const struct shape *r, struct rnn_shape *shape, struct error *err);
enum status rnn_infer(const struct infer *c, int gates, struct error *err);
/* per_unit FLOPs and calls for each unit of each step. */
void rnn_cost(const struct infer *c, int gates, double per_unit, double calls_per_unit,
              struct cost *cost);

struct rnn_activation {
    enum function function;
    double p, q; /* its parameters */
};

/* Activations of one direction; names NULL-terminated: the operator's defaults. */
enum status rnn_activations(const struct node *node, int direction, const char *const *defaults,
                            struct rnn_activation *activations, struct error *err);
double rnn_activate(const struct rnn_activation *activation, double x);

/* One direction at one point in time, for the sequences of the batch that have not ended. */
struct rnn_step {
    const struct rnn_shape *shape;
    const double *const *x; /* [B]: x W' + w's bias, [G H]; NULL: the sequence has ended */
    double *recurrent;      /* [B, G H]: r's bias + h R' after rnn_recur */
    double *h, *c; /* [B, H]: the state, to be updated; c is scratch for cells without memory */
    const double *weights;  /* r of this direction, [G H, H] */
    const double *bias;     /* r's half, [G H]; NULL: none */
    const double *peephole; /* [3 H] or NULL */
    double *attention;      /* AUGRU: [B], this step's weight of each sequence */
    const struct rnn_activation *activations;
    double clip; /* bound of what goes into activations; infinite: none */
    const struct node *node;
    struct pool *pool;
};

/* recurrent = bias + h R' for the gates [first, first + count). */
void rnn_recur(const struct rnn_step *step, const double *h, int first, int count);
double rnn_clip(const struct rnn_step *step, double x);

struct rnn_cell {
    int gates;
    bool memory;                 /* keeps c beside h */
    bool attention;              /* takes a weight per step and sequence */
    const char *const *defaults; /* names of the activations, NULL-terminated */
    void (*step)(const struct rnn_step *step);
};

enum status rnn_reference(const struct ref_call *call, const struct rnn_cell *cell,
                          struct error *err);

#endif
