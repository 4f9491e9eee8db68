/* SPDX-License-Identifier: Apache-2.0
 *
 * Elementwise float expressions: a straight line of steps over broadcast inputs, each a function of
 * engine/graph/function.h. They are what the single elementwise operators (Add, Relu, Clip ...),
 * fused epilogues and the operator Chain (domain ridge) mean, which a pass makes from neighbouring
 * elementwise nodes.
 *
 * Operand k of a step is input k for k < inputs, else the result of step k - inputs. The last
 * step is the result. A node of Chain holds the steps in its attributes: code (ints, three per
 * step: code, a, b) and params (floats, two per step).
 */
#ifndef ENGINE_OPS_LIB_CHAIN_H
#define ENGINE_OPS_LIB_CHAIN_H

#include "base/error.h"
#include "engine/graph/graph.h"

enum { CHAIN_INPUTS = 14, CHAIN_STEPS = 48 };

struct chain_step {
    enum function code;
    int a, b;   /* operands; b: 0 where it is not used */
    float p, q; /* parameters of the function */
};

struct chain {
    int inputs, count;
    struct chain_step steps[CHAIN_STEPS];
};

/* The expression of an elementwise node or a Chain with its posts; operand k < node->input_count
 * is the node's input k. scalars[k]: the value of input k where it is a single float known now,
 * else NULL (scalars may be NULL); such bounds of Clip and exponents of Pow become parameters. */
enum status chain_from_node(const struct node *node, const float *const *scalars,
                            struct chain *chain, struct error *err);
/* Whether a step reads operand k. */
bool chain_reads(const struct chain *chain, int k);

/* ---- for operators that say themselves which expression they are (struct op, .expression) ---- */

/* Appends a step; returns the operand that its result is. A full chain keeps counting, so that
 * chain_from_node can refuse it. */
int chain_push(struct chain *chain, struct chain_step step);
/* The node's inputs taken together from the left; returns the operand. */
int chain_fold(const struct node *node, enum function function, struct chain *chain);

#endif
