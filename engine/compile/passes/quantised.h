/* SPDX-License-Identifier: Apache-2.0
 *
 * What passes read of quantised networks: tensors of bytes between QuantizeLinear and
 * DequantizeLinear, whose scales and zero points are fixed. */
#ifndef ENGINE_COMPILE_PASSES_QUANTISED_H
#define ENGINE_COMPILE_PASSES_QUANTISED_H

#include "engine/compile/passes/rewrite.h"

/* A tensor of bytes with one scale and zero point for all of it. */
struct quantised {
    int value;
    double scale;
    int64_t zero;
};

bool quantised_is_byte(const struct graph *g, int v);
/* Whether both stand for the same numbers where their bytes are the same. */
bool quantised_alike(const struct graph *g, const struct quantised *a, const struct quantised *b);

/* Contents of a fixed tensor as doubles, malloc'd; NULL: they are not known, or no memory. */
double *quantised_numbers(const struct graph *g, int v);
/* The one number of all zero points of Quantize- or DequantizeLinear; an absent input: 0. */
bool quantised_zero(const struct graph *g, const struct node *node, int64_t *zero);

/* Whether the value is a whole tensor of bytes, dequantised to f32; which. */
bool quantised_source(const struct graph *g, int v, struct quantised *q);
/* Whether the node makes a whole tensor of bytes of its first input; which. */
bool quantised_result(const struct graph *g, const struct node *node, struct quantised *q);

/* Follows a value through Relu or Clip to the QuantizeLinear that is all that happens to it. */
struct quantised_end {
    struct quantised y;
    double low, high; /* between which the value is kept before it is rounded */
};
bool quantised_end(const struct graph *g, int v, struct quantised_end *end);

#endif
