/* SPDX-License-Identifier: Apache-2.0
 *
 * Which operators compute with floats of 16 bits when a graph is narrowed
 * (engine/compile/passes/narrow.c), and which of their inputs keep 32 all the same: what the
 * operators say of themselves, completed. Sums are always in f32; what is narrow is memory.
 */
#ifndef ENGINE_OPS_FAMILY_NARROW_H
#define ENGINE_OPS_FAMILY_NARROW_H

#include "engine/graph/op.h"

enum narrow_class narrow_class_of(const struct op *op);
/* Whether a f32 input k of the operator's own becomes narrow with the node. */
bool narrow_takes(const struct op *op, int k);
/* From 1 to the next number of the type; 0 but for f16 and bf16. */
double narrow_unit(enum dtype dtype);
/* What roundings to the type of its output may add to a kernel's relative error; 0 for f32. */
double narrow_tolerance(const struct op *op, enum dtype out);

#endif
