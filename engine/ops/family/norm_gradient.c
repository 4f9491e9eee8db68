/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/ops/family/norm_gradient.h"

#include "engine/graph/op_list.h"

/* Whether scale has an element per element of a row, the same for all rows. */
static bool is_row(const struct shape *x, int axis, const struct shape *scale)
{
    int off = x->rank - scale->rank;
    for (int k = 0; k < x->rank; k++) {
        int64_t size = k < off ? 1 : scale->dim[k - off];
        if (size != (k < axis ? 1 : x->dim[k]))
            return false;
    }
    return true;
}

static int row_gradient(struct graph *g, const struct row_norm *n, int dy, int scale,
                        int gradient[NORM_INPUTS])
{
    graph_node_many(g, op_layer_normalization_gradient.name, NULL, INPUTS(dy, n->x, scale),
                    ATTRS(attr_int("axis", n->axis), attr_float("epsilon", n->epsilon),
                          attr_int("centred", n->centred)),
                    NORM_INPUTS, gradient);
    return gradient[NORM_X];
}

/* x normalised, with a scale of ones. */
static int normalised(struct graph *g, const struct row_norm *n, int ones)
{
    const struct op *op = n->centred ? &op_layer_normalization : &op_rms_normalization;
    return graph_node(g, op->name, NULL, INPUTS(n->x, ones),
                      ATTRS(attr_int("axis", n->axis), attr_float("epsilon", n->epsilon)));
}

void norm_gradient(struct graph *g, const struct row_norm *n, int dy, int gradient[NORM_INPUTS])
{
    struct shape x = gradient_shape(g, n->x), scale = gradient_shape(g, n->scale);
    if (n->scale != NONE && is_row(&x, n->axis, &scale)) {
        row_gradient(g, n, dy, n->scale, gradient);
        if (n->bias != NONE)
            gradient[NORM_BIAS] = is_row(&x, n->axis, &g->values[n->bias].shape)
                                      ? make_reshaped_as(g, gradient[NORM_BIAS], n->bias)
                                      : make_sum_to(g, dy, n->bias);
        return;
    }
    struct shape row = {.rank = x.rank - n->axis};
    for (int k = 0; k < row.rank; k++)
        row.dim[k] = x.dim[n->axis + k];
    int unused[NORM_INPUTS];
    int ones = make_expanded(g, make_number(g, DTYPE_F32, 1), &row);
    int dz = n->scale == NONE ? dy : make_mul(g, dy, n->scale);
    gradient[NORM_X] = row_gradient(g, n, dz, ones, unused);
    if (n->scale != NONE)
        gradient[NORM_SCALE] = make_sum_to(g, make_mul(g, dy, normalised(g, n, ones)), n->scale);
    if (n->bias != NONE)
        gradient[NORM_BIAS] = make_sum_to(g, dy, n->bias);
}

/* A vector of channels or groups as the image, cut into groups of so many channels, is broadcast
 * with. */
static int per_group(struct graph *g, int vector, int64_t groups, int64_t channels)
{
    int64_t count = gradient_shape(g, vector).dim[0];
    struct shape shape = shape_of(1, groups, count == groups ? 1 : channels, 1);
    return make_reshaped(g, vector, &shape);
}

void norm_gradient_of_groups(const struct gradient_call *c, int64_t groups)
{
    struct graph *g = c->g;
    int x = gradient_in(c, 0), scale = gradient_in(c, 1), bias = gradient_in(c, 2);
    double epsilon = node_float(gradient_node(c), "epsilon", 1e-5);
    struct shape image = gradient_shape(g, x);
    int64_t channels = groups ? image.dim[1] / groups : 0;
    struct shape cut = shape_of(image.dim[0], groups, channels, shape_span(&image, 2, image.rank));
    struct row_norm norm = {.x = make_reshaped(g, x, &cut),
                            .scale = per_group(g, scale, groups, channels),
                            .bias = per_group(g, bias, groups, channels),
                            .axis = 2,
                            .epsilon = epsilon,
                            .centred = true};
    int gradient[NORM_INPUTS] = {NONE, NONE, NONE};
    norm_gradient(g, &norm, make_reshaped(g, c->dy[0], &cut), gradient);
    c->dx[0] = make_reshaped_as(g, gradient[NORM_X], x);
    c->dx[1] = make_reshaped_as(g, gradient[NORM_SCALE], scale);
    c->dx[2] = make_reshaped_as(g, gradient[NORM_BIAS], bias);
}
