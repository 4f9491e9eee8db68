/* SPDX-License-Identifier: Apache-2.0
 *
 * Computes a node before the run when everything it depends on is known: its fixed inputs, or only
 * the shape of its input (Shape, Size, EyeLike). Chains that exporters write to compute shapes
 * vanish this way. The work goes through the operator's reference.
 */
#ifndef ENGINE_REFERENCE_FOLD_H
#define ENGINE_REFERENCE_FOLD_H

#include "engine/graph/graph.h"

struct fold_limits {
    int64_t elements; /* of all outputs together */
    double flops;     /* that the node may cost */
};

/* What folding does without being asked: results that are cheap to make and to keep. */
#define FOLD_SMALL ((struct fold_limits){.elements = 64 * 1024, .flops = 4e6})
/* For contents that must be known, such as those that decide a shape. */
#define FOLD_LARGE ((struct fold_limits){.elements = (int64_t)1 << 24, .flops = 4e8})

/* Turns the outputs of node n into constants and marks the node dead. Results of data-dependent
 * size lose their padding. UNSUPPORTED, with the reason, when it cannot be folded: the graph is
 * then unchanged. */
enum status fold_node(struct graph *g, int n, const struct fold_limits *limits, struct error *err);

/* Folds all nodes that `value` depends on, it included; UNSUPPORTED when that is not possible. */
enum status fold_value(struct graph *g, int value, const struct fold_limits *limits,
                       struct error *err);

#endif
