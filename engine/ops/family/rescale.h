/* SPDX-License-Identifier: Apache-2.0
 *
 * Products of bytes whose sums become floats or bytes again (ConvBytes, MatMulBytes). Inputs: x,
 * weights, and per output channel scale and offset, f32. Attributes: x_zero, w_zero, to, low, high,
 * zero. y = clamp(sum * scale + offset, low, high) in f32, each operation rounded by itself; then,
 * where `to` is a type of bytes, saturate(round(y) + zero).
 */
#ifndef ENGINE_OPS_FAMILY_RESCALE_H
#define ENGINE_OPS_FAMILY_RESCALE_H

#include "engine/graph/op.h"

struct rescale {
    float low, high; /* of bytes, such that whatever lies between them is one */
    int32_t zero, x_zero, w_zero;
    enum dtype to;
};
struct rescale rescale_of(const struct node *node);

enum dtype rescale_type(const struct node *node);
/* FAILED unless types, and the lists of `channels` floats where these are not 0, are as above. */
enum status rescale_check(const struct infer *c, int64_t channels, struct error *err);

/* For references: input 0 or 1 less its zero point, to be freed; NULL: out of memory. */
double *rescale_centred(const struct ref_call *call, int input);
/* Sums to results; `inner` neighbouring elements are of one channel. */
void rescale_sums(const struct ref_call *call, const double *sums, int64_t inner);
/* Element i of y: clamped, and rounded where it is a byte. */
void rescale_put(const struct rescale *r, float value, const struct ref_tensor *y, int64_t i);

#endif
