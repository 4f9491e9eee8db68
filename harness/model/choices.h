/* SPDX-License-Identifier: Apache-2.0
 *
 * Tokens that choose experts. Where the last one chosen and the first one not are nearly equal,
 * sums that differ in their last digits choose otherwise, and all that follows is another
 * network's. So the reference takes over whom the executable chose, once it is clear that these
 * are the largest of the numbers that the executable chose by, and these numbers are compared with
 * the reference's own: what follows is computed by the same experts, with weights of its own. */
#ifndef HARNESS_MODEL_CHOICES_H
#define HARNESS_MODEL_CHOICES_H

#include "harness/model/roundings.h"

/* Whether the node is a TopK along the last axis whose places are a choice of experts (op.h,
 * exact_inputs). It chooses by its input 0; what it chooses is its output 1. */
bool choice_is_followed(const struct graph *g, const struct node *node);
/* Checks whom `made` chose and takes it over, values are those of the reference after the node. */
enum status choice_follow(struct roundings *r, const struct graph *g, const struct node *node,
                          const struct ref_tensor *values, struct error *err);

#endif
