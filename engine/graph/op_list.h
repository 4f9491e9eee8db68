/* SPDX-License-Identifier: Apache-2.0
 *
 * Every operator by its symbol (op_conv, op_mat_mul ...), for whoever looks for a pattern of
 * certain operators: `node->op == &op_conv`. An operator that goes is then an error of the
 * compiler. */
#ifndef ENGINE_GRAPH_OP_LIST_H
#define ENGINE_GRAPH_OP_LIST_H

#include "engine/graph/op.h"

#define X(name) extern const struct op op_##name;
#include "op_list.inc"
#undef X

#endif
