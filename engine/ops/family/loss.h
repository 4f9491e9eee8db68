/* SPDX-License-Identifier: Apache-2.0
 *
 * What NegativeLogLikelihoodLoss and SoftmaxCrossEntropyLoss share: the label of a position picks
 * one of the classes [N, C, positions], weighted per class, then summed, averaged or kept.
 */
#ifndef ENGINE_OPS_FAMILY_LOSS_H
#define ENGINE_OPS_FAMILY_LOSS_H

#include "engine/graph/op.h"

/* Input 0 [N, C, ...], input 1 labels [N, ...], input 2 weights [C]: the shape of output 0. */
enum status loss_infer(const struct infer *c, struct error *err);
/* log_prob: [N, C, positions], like input 0. Labels out of range fail. */
enum status loss_reference(const struct ref_call *call, const double *log_prob, struct error *err);
/* The gradient of the loss by input 0 of its node. The call is of CrossEntropyGradient: dy stands
 * before the inputs of the loss. softmax: input 0 are scores, else logarithms of probabilities. */
enum status loss_gradient_reference(const struct ref_call *call, bool softmax, struct error *err);
/* Adds the node of a loss's gradient; the value. */
int loss_gradient(const struct gradient_call *c, const char *of);

#endif
