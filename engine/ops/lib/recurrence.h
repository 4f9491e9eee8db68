/* SPDX-License-Identifier: Apache-2.0
 *
 * What the backward pass through time is given, one direction of LSTM, GRU, AUGRU or RNN at a time
 * (operator RecurrentGradient, domain ridge). What forward computed from x and from the states
 * before is computed again by two products over all steps; what is left to do step by step is said
 * here. T steps, B sequences, H units, G gates in the order of the cell's operator.
 *
 * Inputs; those in brackets may be absent, which is zero where it is a gradient or a state:
 *   A [T, B, G H]    x W' + bias; of LSTM and RNN with h R' of the state before and its bias
 *   R [G H, H]       recurrent weights
 *   U [T, B, G H]    (GRU and AUGRU alone: h R' + bias, of reset h in the last gate where the
 *                    reset comes before the product)
 *   DY [T, B, H]     (gradient by each step's state)
 *   DH, DC [B, H]    (gradients by the last state, and by LSTM's last memory)
 *   H [T, B, H]      (GRU and AUGRU alone: the state before each step)
 *   C [B, H]         (LSTM alone: the first memory)
 *   LENGTHS [B]      (steps of each sequence, i32; absent: all T)
 *   ATTENTION [T, B] (AUGRU alone)
 * Outputs: the gradients by A, by the first state, by the first memory, by U and by attention; zero
 * where the cell has none.
 */
#ifndef ENGINE_OPS_LIB_RECURRENCE_H
#define ENGINE_OPS_LIB_RECURRENCE_H

#include "engine/graph/op.h"

enum {
    RECURRENCE_A,
    RECURRENCE_R,
    RECURRENCE_U,
    RECURRENCE_DY,
    RECURRENCE_DH,
    RECURRENCE_DC,
    RECURRENCE_H,
    RECURRENCE_C,
    RECURRENCE_LENGTHS,
    RECURRENCE_ATTENTION,
    RECURRENCE_INPUTS
};

enum {
    RECURRENCE_OF_A,
    RECURRENCE_OF_FIRST,
    RECURRENCE_OF_MEMORY,
    RECURRENCE_OF_U,
    RECURRENCE_OF_ATTENTION,
    RECURRENCE_OUTPUTS
};

/* In the attribute "cell" the names in small letters. */
enum cell { CELL_RNN, CELL_LSTM, CELL_GRU, CELL_AUGRU, CELL_COUNT };

struct recurrence {
    enum cell cell;
    int64_t steps, batch, hidden, width; /* width: G H */
    bool reverse;                        /* from the last moment to the first */
    bool linear;                         /* GRU: linear_before_reset */
    bool relu;                           /* RNN: instead of tanh */
};

const char *cell_name(enum cell cell);
int cell_gates(enum cell cell);
static inline bool cell_resets(enum cell cell)
{
    return cell == CELL_GRU || cell == CELL_AUGRU;
}

enum status recurrence_from(const struct node *node, const struct shape *a,
                            struct recurrence *recurrence, struct error *err);
/* The moment of a step of a sequence of some length; -1: it has ended. */
static inline int64_t recurrence_time(const struct recurrence *r, int64_t length, int64_t step)
{
    length = length > r->steps ? r->steps : length;
    return step >= length ? -1 : r->reverse ? length - 1 - step : step;
}

#endif
