/* SPDX-License-Identifier: Apache-2.0
 *
 * For unit tests that compile graphs and look at what became of them. */
#ifndef TESTS_LIB_UNIT_GRAPHS_H
#define TESTS_LIB_UNIT_GRAPHS_H

#include "engine/compile/compile.h"
#include "engine/compile/passes/rewrite.h"
#include "engine/run/exe.h"

/* How many nodes of an operator a graph has. */
int count_ops(const struct graph *g, const char *op);
/* The first of them, or the test fails. */
const struct node *node_of(const struct graph *g, const char *op);
/* Runs a pass over a graph of one output; the test fails where its shape changes, or its elements
 * by more than the bound (ref_rel_error). */
void pass_keeps_result(struct graph *g, graph_pass *pass, double bound);
/* Places of an input in a graph, and its contents in an executable; or the test fails. */
int input_named(const struct graph *g, const char *name);
float *exe_input_named(struct exe *exe, const char *name);
/* Or the test fails. exe_free it. */
struct exe *compiled(const struct graph *g, const struct exe_options *options);
/* The same, and frees the graph. */
struct exe *compiled_owned(struct graph *g, const struct exe_options *options);
/* Frees an executable and its graph. */
void exe_graph_free(struct exe *exe, struct graph *g);
/* Runs it once; the largest error of an output of g, by the reference with the same inputs. */
double run_error(struct exe *exe, const struct graph *g);
/* Of graphs of f32: runs both on the same inputs; the test fails where any bit of their outputs
 * differs. */
void assert_same_outputs(struct exe *exe, struct exe *other);

#endif
