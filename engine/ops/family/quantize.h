/* SPDX-License-Identifier: Apache-2.0
 *
 * Linear quantisation: q = saturate(round(x / scale) + zero_point), rounding to nearest even.
 */
#ifndef ENGINE_OPS_FAMILY_QUANTIZE_H
#define ENGINE_OPS_FAMILY_QUANTIZE_H

#include "engine/graph/op.h"

/* Whether the operator makes integers (or codes of f8) of floats, or of sums of products, by
 * rounding: near a tie the last digit of what is rounded decides. */
bool quantize_is_rounding(const struct op *op);

/* Rounds and cuts to the range of an 8 or 16 bit type. */
int64_t quantize_saturate(enum dtype dtype, double value);
/* What QuantizeLinear makes of x: the quotient is rounded to f32 first, since a tie decides the
 * result. f8: the nearest of its codes, the zero point is 0. */
double quantize_number(enum dtype dtype, double x, double scale, double zero_point);
/* Scale and zero point of u8 for the range of x, widened to hold 0. Computed in f32. */
void quantize_range(const struct ref_tensor *x, double *scale, double *zero_point);

/* Which element of a parameter (scale, zero point) belongs to element i of a tensor: one for all,
 * one per index of the axis (rank 1), or by broadcasting. axis may be negative. */
int64_t quantize_index(const struct shape *x, int64_t i, const struct shape *parameter, int axis);

/* FAILED unless input k, if it is there, has such an element for each of x; a scalar x: one. */
enum status quantize_check(const struct infer *c, const struct shape *x, int k, int axis,
                           struct error *err);

/* x - zero_point as doubles, exact; zero_point NULL: 0. free() it; NULL: out of memory. */
double *quantize_centred(const struct ref_tensor *x, const struct ref_tensor *zero_point, int axis);

/* Scales of QuantizeLinear and DequantizeLinear: per tensor, per axis, or per block of the axis. */
struct quantize_scales {
    struct shape x;
    int axis;      /* in [0, rank) */
    int64_t block; /* elements of the axis that share a scale; 0: not blocked */
    int64_t count;
};

enum status quantize_scales_from(const struct node *node, const struct shape *x,
                                 const struct shape *scale, struct quantize_scales *scales,
                                 struct error *err);
/* The same for input 0 and the scales and zero points of the two. */
enum status quantize_check_scales(const struct infer *c, struct error *err);
int64_t quantize_scales_index(const struct quantize_scales *scales, int64_t i);

#endif
