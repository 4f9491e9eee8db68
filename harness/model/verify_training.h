/* SPDX-License-Identifier: Apache-2.0
 *
 * A compiled step of training against the float64 reference of the same step: its loss, the other
 * results of its forward phase, and the gradient with respect to every weight.
 *
 * A tensor's error is the L2 norm of its difference from the reference's, relative to the
 * reference's norm; a gradient's relative to a tenth of the largest gradient's norm at least, so
 * that nothing is demanded of one that is zero but for roundings. Gradients of some networks, those
 * with batch normalisation above all, answer to the smallest change of what they are computed from.
 * Where the usual bound is missed, the reference runs again on weights and inputs that are off by
 * as much as rounding them to f32 may be, times the root of the number of roundings in sequence:
 * twice the change that this makes is the bound then (docs/method.md). The disturbance is scaled,
 * not its effect, since decisions (the largest of a window, a ReLU) turn only where it is as large
 * as the errors of f32 are; and up to eight disturbances are tried, since each turns other
 * decisions.
 *
 * The executable is gone before the reference runs; where memory is short all the same, the
 * reference recomputes activations, and after that the batch is halved, with a note. */
#ifndef HARNESS_MODEL_VERIFY_TRAINING_H
#define HARNESS_MODEL_VERIFY_TRAINING_H

#include "harness/model/model_options.h"
#include "harness/model/verify.h"

/* pool: whose threads compute; NULL: its own of model->threads. */
enum status verify_training(const char *spec, const struct model_options *model, struct pool *pool,
                            struct verification *out, struct error *err);

#endif
