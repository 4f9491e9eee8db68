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
 *             c->dx[0] =
 *                 make_sum_to(g, make_mul(g, c->dy[0], gradient_in(c, 1)), gradient_in(c, 0));
 *         ...
 *         return STATUS_OK;
 *     }
 *
 * An operator has one output with a gradient unless its rule says otherwise: where dy[0] is NONE
 * the rule is not called. Integers never have one.
 */
#ifndef ENGINE_OPS_FAMILY_GRADIENT_H
#define ENGINE_OPS_FAMILY_GRADIENT_H

#include "engine/ops/lib/op_args.h"

/* Values of the node; NONE: absent. */
int gradient_in(const struct gradient_call *c, int input);
int gradient_out(const struct gradient_call *c, int output);
/* The node itself, until the next one is added. */
const struct node *gradient_node(const struct gradient_call *c);
/* The shape of a value, copied. */
struct shape gradient_shape(const struct graph *g, int value);

/* What the node is given, for the rules of engine/ops/lib/ that ask op_args: its inputs, at most
 * GRADIENT_INPUTS, until the next node is added. */
enum { GRADIENT_INPUTS = 8 };
struct gradient_inputs {
    struct infer infer;
    const struct value *in[GRADIENT_INPUTS];
};
struct op_args gradient_args(const struct gradient_call *c, struct gradient_inputs *inputs);

/* ---- rules that several operators share ---- */

/* Output 0 shows the elements of input 0 in the same order, in another shape or layout. */
enum status gradient_of_alias(const struct gradient_call *c, struct error *err);
/* Of a reduction (engine/ops/lib/reduce.h): *dy is the gradient of the result with all axes, the
 * reduced ones of one element; NONE where no axis is reduced, and then the rule has done its work.
 */
enum status gradient_kept(const struct gradient_call *c, int *dy, struct error *err);
/* Of a maximum or a minimum over axes: those who reach it share its gradient. */
enum status gradient_of_extreme(const struct gradient_call *c, struct error *err);
/* Of the greater or the less of any number of inputs, taken together from the left; what is equal
 * goes to the left. */
enum status gradient_of_choice(const struct gradient_call *c, bool greater);

/* ---- nodes of one operator ---- */

int make_unary(struct graph *g, const struct op *op, int x);
int make_binary(struct graph *g, const struct op *op, int x, int y);
/* A function of the vocabulary with its parameters p and q; y is read if it has two operands. */
int make_function(struct graph *g, enum function function, int x, int y, double p, double q);
int make_cast(struct graph *g, int x, enum dtype dtype);
int make_add(struct graph *g, int x, int y);
int make_sub(struct graph *g, int x, int y);
int make_mul(struct graph *g, int x, int y);
int make_div(struct graph *g, int x, int y);
int make_neg(struct graph *g, int x);
/* x times, and plus, a number. */
int make_scaled(struct graph *g, int x, double factor);
int make_plus(struct graph *g, int x, double term);
/* x by a whole number, which is exact in f32 where its reciprocal is not. */
int make_share(struct graph *g, int x, int64_t count);
/* A product of matrices as MatMul has it. */
int make_mat_mul(struct graph *g, int x, int y);
/* The last two axes exchanged. */
int make_transposed(struct graph *g, int x);
int make_permuted(struct graph *g, int x, int rank, const int64_t *perm);
int make_reshaped(struct graph *g, int x, const struct shape *shape);
/* As like is. */
int make_reshaped_as(struct graph *g, int x, int like);
/* A vector of channels as x is broadcast with. */
int make_per_channel(struct graph *g, int vector, int x);
/* The mean of each channel's elements, as like is. */
int make_channel_mean(struct graph *g, int x, int like);
/* Sums over axes; keep: they stay, with one element. count 0: nothing is summed. */
int make_sum(struct graph *g, int x, int count, const int64_t *axes, bool keep);
/* The sum, kept, over the axis of Softmax and its like, which may be several. */
int make_sum_of_lines(struct graph *g, int x, int first_axis, int end_axis);
/* x summed over what was broadcast on the way from the shape of `like` to its own. */
int make_sum_to(struct graph *g, int x, int like);
/* x repeated to a shape that it can be broadcast to. */
int make_expanded(struct graph *g, int x, const struct shape *shape);
/* Elements [start, start + size of shape) of x along each axis. */
int make_slice(struct graph *g, int x, const int64_t *start, const struct shape *shape);
/* Zeros before and after along each axis. */
int make_padded(struct graph *g, int x, const int64_t *before, const int64_t *after);
/* A constant scalar of a type of floats. */
int make_number(struct graph *g, enum dtype dtype, double number);
/* Zeros of a type and shape. */
int make_zeros(struct graph *g, enum dtype dtype, const struct shape *shape);

#endif
