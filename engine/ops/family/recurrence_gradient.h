/* SPDX-License-Identifier: Apache-2.0
 *
 * The gradient rule of LSTM, GRU, AUGRU and RNN. What a step was given is known from the results of
 * all steps, so the sums of the gates are computed again by products over all steps at once; only
 * RecurrentGradient (engine/ops/lib/recurrence.h) goes step by step. The gradients by the weights
 * are products over all steps again. */
#ifndef ENGINE_OPS_FAMILY_RECURRENCE_GRADIENT_H
#define ENGINE_OPS_FAMILY_RECURRENCE_GRADIENT_H

#include "engine/ops/family/gradient.h"
#include "engine/ops/lib/recurrence.h"

/* activations: the operator's defaults, NULL-terminated; with others there is no gradient, nor with
 * peepholes, coupled gates or a clip. */
enum status gradient_of_recurrence(const struct gradient_call *c, enum cell cell,
                                   const char *const *activations, struct error *err);

#endif
