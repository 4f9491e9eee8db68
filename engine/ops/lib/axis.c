/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/ops/lib/axis.h"

#include <math.h>

struct axis axis_at(const struct shape *shape, int axis)
{
    return (struct axis){.outer = shape_span(shape, 0, axis),
                         .size = shape->dim[axis],
                         .inner = shape_span(shape, axis + 1, shape->rank)};
}

enum status axis_of_softmax(const struct node *node, const struct shape *shape, struct axis *axis,
                            struct error *err)
{
    bool flatten = node_int(node, "flatten", 0) != 0;
    int64_t wanted = node_int(node, "axis", flatten ? 1 : -1);
    if (flatten && wanted == shape->rank) { /* lines of one element */
        *axis = (struct axis){.outer = shape_count(shape), .size = 1, .inner = 1};
        return STATUS_OK;
    }
    int at = shape_axis(shape, wanted);
    if (at < 0)
        return FAIL(err, STATUS_FAILED, "%s: axis %lld is outside a tensor of rank %d",
                    node->op->name, (long long)wanted, shape->rank);
    *axis = axis_at(shape, at);
    if (flatten) {
        axis->size *= axis->inner;
        axis->inner = 1;
    }
    return STATUS_OK;
}

int64_t axis_line(const struct axis *axis, int64_t l)
{
    return l / axis->inner * axis->size * axis->inner + l % axis->inner;
}

void axis_log_softmax(const struct axis *axis, const double *x, double *y)
{
    int64_t end = axis->size * axis->inner;
    double largest = (double)-INFINITY, sum = 0;
    for (int64_t k = 0; k < end; k += axis->inner)
        largest = fmax(largest, x[k]);
    for (int64_t k = 0; k < end; k += axis->inner)
        sum += exp(x[k] - largest);
    for (int64_t k = 0; k < end; k += axis->inner)
        y[k] = x[k] - largest - log(sum);
}
