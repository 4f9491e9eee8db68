/* SPDX-License-Identifier: Apache-2.0
 *
 * A tensor seen as [outer, size, inner] round the axis that an operator works along: element k of
 * line (o, i) is at (o * size + k) * inner + i.
 */
#ifndef ENGINE_OPS_LIB_AXIS_H
#define ENGINE_OPS_LIB_AXIS_H

#include "engine/graph/op.h"

struct axis {
    int64_t outer, size, inner;
};

struct axis axis_at(const struct shape *shape, int axis);
/* Softmax and LogSoftmax: the attribute `axis`, default -1; with flatten = 1 (set for opsets
 * before 13) everything from the axis on is one line and the default is 1. */
enum status axis_of_softmax(const struct node *node, const struct shape *shape, struct axis *axis,
                            struct error *err);

/* The offset of element 0 of line l, 0 <= l < outer * inner. */
int64_t axis_line(const struct axis *axis, int64_t l);
/* y = x - log sum exp x along one line. */
void axis_log_softmax(const struct axis *axis, const double *x, double *y);

#endif
