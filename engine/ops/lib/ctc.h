/* SPDX-License-Identifier: Apache-2.0
 * What CTCLoss, its gradient and their kernels share: sizes and the order of the inputs.
 *
 * The path of a sample has a symbol per step, spelled from 2 L + 1 states: its L labels with a
 * blank before, between and after them. A step stays in its state, goes to the next one, or leaps
 * over a blank that stands between two labels that differ. */
#ifndef ENGINE_OPS_LIB_CTC_H
#define ENGINE_OPS_LIB_CTC_H

#include "engine/graph/op.h"

/* In CTCLossGradient they stand after the gradient of the losses. */
enum { CTC_LOGITS, CTC_LABELS, CTC_LABEL_LENGTHS, CTC_INPUT_LENGTHS, CTC_INPUTS };

struct ctc {
    int64_t steps, samples, classes; /* T, N, C */
    int64_t labels;                  /* S, the most of a sample */
    int64_t blank;                   /* its class */
};

struct ctc ctc_of(const struct node *node, const struct shape *logits, const struct shape *labels);

static inline int64_t ctc_states(int64_t labels)
{
    return 2 * labels + 1;
}

#endif
