/* SPDX-License-Identifier: Apache-2.0
 *
 * A test case of an operator (struct op_case of engine/graph/op.h) as a graph of one node. The
 * notation:
 *
 *   inputs  TYPE[DIMS] parts separated by blanks, each followed by nothing or
 *             =1,2,3     literal contents, row-major (one literal fills all): a constant
 *             {low:high} random contents: floats in [low, high), integers from low to high - 1;
 *                        without it {-1:1}, integers {0:10}, bool {0:2}
 *             !          random contents of a constant weight instead of a run-time input
 *           and "-" for an absent input. Literals may be nan, inf, -inf, true, false.
 *   attrs   NAME=VALUE parts: 3 (int), 0.5 or 1e-5 (float), "text", [1,2] (ints), [0.5,1] (floats),
 *           ["a","b"] (strings), f32[2]=1,2 (tensor)
 */
#ifndef TESTS_LIB_OP_CASE_H
#define TESTS_LIB_OP_CASE_H

#include "engine/graph/op.h"

/* NULL, with the place in the notation or what the operator said, when there is no such graph.
 * Inputs are named in0, in1 ...; all wanted outputs are outputs of the graph. */
struct graph *op_case_graph(const struct op *op, const struct op_case *c, struct error *err);
/* The same in 16 bits: f32 inputs that become narrow (engine/ops/family/narrow.h) are of `floats`,
 * f16 or bf16, which DTYPE_F32 leaves alone. */
struct graph *op_case_graph_in(const struct op *op, const struct op_case *c, enum dtype floats,
                               struct error *err);

#endif
