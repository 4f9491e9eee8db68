/* SPDX-License-Identifier: Apache-2.0
 *
 * What a tensor of a checkpoint holds, and how far two are from each other. */
#ifndef ENGINE_TRAIN_CHECKPOINT_COMPARE_H
#define ENGINE_TRAIN_CHECKPOINT_COMPARE_H

#include "engine/train/checkpoint.h"

struct tensor_summary {
    int64_t elements, odd;           /* odd: NaN and infinities, which the rest leaves out */
    double mean, deviation, largest; /* largest: in magnitude */
};

enum status tensor_summarise(const struct safetensor *tensor, struct tensor_summary *summary,
                             struct error *err);

struct tensor_difference {
    int64_t elements, different; /* different: in any bit */
    double largest;              /* |a - b| */
    double relative;  /* largest / largest |b|; infinite where one side alone is no number, or b is
                         zero everywhere and a is not */
    double off, norm; /* roots of the sums of (a - b)^2 and of b^2 */
};

/* Both of the same type and shape, which the caller has looked at. */
enum status tensor_compare(const struct safetensor *a, const struct safetensor *b,
                           struct tensor_difference *difference, struct error *err);
bool tensors_are_alike(const struct safetensor *a, const struct safetensor *b);

#endif
