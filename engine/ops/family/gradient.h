/* SPDX-License-Identifier: Apache-2.0
 *
 * Words for gradient rules (struct op, .gradient): they add nodes to the graph and return the value
 * of the result, NONE after a failure, which sticks to the graph. Most rules are a line per input:
 *
 *     static enum status gradient(const struct gradient_call *c, struct error *err)
 *     {
 *         (void)err;
 *         struct graph *g = c->g;
 *         if (c->wanted[0])
 *             c->dx[0] = make_sum_to(g, make_mul(g, c->dy[0], gradient_in(c, 1)), gradient_in(c,
 * 0));
 *         ...
 *         return STATUS_OK;
 *     }
 *
 * An operator has one output with a gradient unless its rule says otherwise: where dy[0] is NONE
 * the rule is not called. Integers never have one.
 */
#ifndef ENGINE_OPS_LIB_GRADIENT_H
#define ENGINE_OPS_LIB_GRADIENT_H

#include "engine/graph/op.h"

/* Values of the node; NONE: absent. */
int gradient_in(const struct gradient_call *c, int input);
int gradient_out(const struct gradient_call *c, int output);
/* The node itself, until the next one is added. */
const struct node *gradient_node(const struct gradient_call *c);
/* The shape of a value, copied. */
struct shape gradient_shape(const struct graph *g, int value);

/* ---- nodes of one operator ---- */

int make_unary(struct graph *g, const struct op *op, int x);
int make_binary(struct graph *g, const struct op *op, int x, int y);
int make_add(struct graph *g, int x, int y);
int make_sub(struct graph *g, int x, int y);
int make_mul(struct graph *g, int x, int y);
int make_div(struct graph *g, int x, int y);
int make_neg(struct graph *g, int x);
/* x times, and plus, a number. */
int make_scaled(struct graph *g, int x, double factor);
int make_plus(struct graph *g, int x, double term);
/* A product of matrices as MatMul has it. */
int make_mat_mul(struct graph *g, int x, int y);
/* The last two axes exchanged. */
int make_transposed(struct graph *g, int x);
int make_permuted(struct graph *g, int x, int rank, const int64_t *perm);
int make_reshaped(struct graph *g, int x, const struct shape *shape);
/* As like is. */
int make_reshaped_as(struct graph *g, int x, int like);
/* Sums over axes; keep: they stay, with one element. count 0: nothing is summed. */
int make_sum(struct graph *g, int x, int count, const int64_t *axes, bool keep);
/* x summed over what was broadcast on the way from the shape of `like` to its own. */
int make_sum_to(struct graph *g, int x, int like);
/* x repeated to a shape that it can be broadcast to. */
int make_expanded(struct graph *g, int x, const struct shape *shape);
/* Elements [start, start + size of shape) of x along each axis. */
int make_slice(struct graph *g, int x, const int64_t *start, const struct shape *shape);
/* A constant scalar of a type of floats. */
int make_number(struct graph *g, enum dtype dtype, double number);
/* Zeros of a type and shape. */
int make_zeros(struct graph *g, enum dtype dtype, const struct shape *shape);

#endif
