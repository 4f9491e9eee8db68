/* SPDX-License-Identifier: Apache-2.0
 *
 * Elementwise float expressions: a straight line of steps over broadcast inputs. One instruction
 * set serves the single elementwise operators (Add, Relu, Clip ...), fused epilogues and the
 * operator Chain (domain ridge), which a pass makes from neighbouring elementwise nodes.
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

enum chain_code {
    /* of operand a and parameters p, q */
    CHAIN_COPY,
    CHAIN_ABS,
    CHAIN_CEIL,
    CHAIN_CELU, /* alpha p */
    CHAIN_CLIP, /* to [p, q] */
    CHAIN_COS,
    CHAIN_CUBE,
    CHAIN_ELU, /* alpha p */
    CHAIN_ERF,
    CHAIN_EXP,
    CHAIN_FLOOR,
    CHAIN_GELU_ERF,
    CHAIN_GELU_TANH,
    CHAIN_HARD_SIGMOID, /* p a + q, clipped to [0, 1] */
    CHAIN_HARD_SWISH,
    CHAIN_LEAKY_RELU, /* alpha p */
    CHAIN_LOG,
    CHAIN_MISH,
    CHAIN_NEG,
    CHAIN_RECIPROCAL,
    CHAIN_RELU,
    CHAIN_ROUND,
    CHAIN_SCALE,  /* p a */
    CHAIN_SELU,   /* alpha p, gamma q */
    CHAIN_SHRINK, /* bias p, limit q */
    CHAIN_SIGMOID,
    CHAIN_SIGN,
    CHAIN_SILU,
    CHAIN_SIN,
    CHAIN_SOFTPLUS,
    CHAIN_SOFTSIGN,
    CHAIN_SQRT,
    CHAIN_SQUARE,
    CHAIN_TANH,
    CHAIN_THRESHOLD, /* a > p ? a : 0 */
    /* of operands a and b */
    CHAIN_ADD,
    CHAIN_DIV,
    CHAIN_MAX,
    CHAIN_MIN,
    CHAIN_MUL,
    CHAIN_POW,
    CHAIN_PRELU, /* a < 0 ? a b : a */
    CHAIN_SUB,
    CHAIN_CODE_COUNT
};

struct chain_step {
    enum chain_code code;
    int a, b; /* operands; b: 0 where it is not used */
    float p, q;
};

struct chain {
    int inputs, count;
    struct chain_step steps[CHAIN_STEPS];
};

/* Of one operator: the stated convention's FLOPs and calls per element. */
struct chain_info {
    const char *name; /* for text: "sigmoid" */
    int operands;
    double elementwise, transcendentals;
};

const struct chain_info *chain_info(enum chain_code code);
double chain_value(const struct chain_step *step, double a, double b);

/* The expression of an elementwise node or a Chain with its posts; operand k < node->input_count
 * is the node's input k. scalars[k]: the value of input k where it is a single float known now,
 * else NULL (scalars may be NULL); such bounds of Clip and exponents of Pow become parameters. */
enum status chain_from_node(const struct node *node, const float *const *scalars,
                            struct chain *chain, struct error *err);
/* Whether an operator's float form is an expression. */
bool chain_knows(const char *op);
/* Whether a step reads operand k. */
bool chain_reads(const struct chain *chain, int k);

#endif
