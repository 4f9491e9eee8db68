/* SPDX-License-Identifier: Apache-2.0
 *
 * Fused epilogues for the operator tests: a fixed list of post sequences that is put on the only
 * node of any case with a float32 result, and what they compute, in double and written apart from
 * the engine's own.
 */
#ifndef TESTS_LIB_POSTS_H
#define TESTS_LIB_POSTS_H

#include "engine/graph/op.h"

int posts_count(void);
const char *posts_name(int index);
/* Whether it is one of the few that have every kind of operand between them: these alone are tried
 * on cases that take long, whose size is no concern of a function. */
bool posts_has_operands(int index);
/* Sets node->posts and adds the operands: run-time inputs and constant per-channel vectors.
 * UNSUPPORTED when output 0 is no float32 tensor of rank >= 1 or has no element. */
enum status posts_add(int index, struct graph *g, struct error *err);
/* Applies the posts of the node to `out`, the operator's own result. */
enum status posts_expect(const struct graph *g, const struct ref_tensor *out, struct error *err);
/* How much the posts can enlarge an error of the operator's own result. */
double posts_slope(const struct graph *g);

#endif
