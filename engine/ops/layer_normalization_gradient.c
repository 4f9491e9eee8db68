/* SPDX-License-Identifier: Apache-2.0
 * LayerNormalizationGradient (ridge): dy, x, scale -> dx, d scale, d bias of LayerNormalization
 * over the axes from `axis` on, or with centred = 0 of RMSNormalization, which takes no mean off.
 * scale has an element per element of a row. With z = (x - mean) / deviation and g = dy scale
 * (Ba et al. 2016), means over a row and sums over rows:
 *     dx = (g - mean g - z mean(g z)) / deviation, d scale = sum dy z, d bias = sum dy
 * and without mean g where centred is 0. Mean and deviation are computed again: x has to be read
 * anyway. */
#include <math.h>

#include "engine/graph/op.h"
#include "engine/ops/compute/moments.h"

static const char *const attrs[] = {"axis", "epsilon", "centred", NULL};

static enum status infer(const struct infer *c, struct error *err)
{
    const struct shape *x = &c->in[1]->shape, *scale = &c->in[2]->shape;
    char text[96], text_x[96];
    int axis = shape_axis(x, node_int(c->node, "axis", -1));
    if (axis < 0 || !shape_equal(&c->in[0]->shape, x))
        return FAIL(err, STATUS_FAILED, "LayerNormalizationGradient: dy of shape %s, x of shape %s",
                    shape_text(&c->in[0]->shape, text), shape_text(x, text_x));
    if (shape_count(scale) != shape_span(x, axis, x->rank))
        return FAIL(err, STATUS_FAILED,
                    "LayerNormalizationGradient: scale of shape %s, x of shape %s: a row begins at "
                    "axis %d",
                    shape_text(scale, text), shape_text(x, text_x), axis);
    infer_set(c, 0, c->in[1]->dtype, x);
    infer_set(c, 1, c->in[2]->dtype, scale);
    infer_set(c, 2, c->in[2]->dtype, scale);
    return STATUS_OK;
}

static void cost(const struct infer *c, struct cost *cost)
{
    const struct shape *x = &c->in[1]->shape;
    int axis = shape_axis(x, node_int(c->node, "axis", -1));
    cost->elementwise = 17 * (double)shape_count(x);
    cost->transcendentals = (double)shape_span(x, 0, axis);
}

struct row {
    const double *dy, *x, *scale;
    int64_t count;
    double mean, inverse;
};

static struct row row_of(const struct ref_call *call, int64_t index, int64_t count)
{
    struct row row = {.dy = call->in[0]->f + index * count,
                      .x = call->in[1]->f + index * count,
                      .scale = call->in[2]->f,
                      .count = count};
    double epsilon = node_float(call->node, "epsilon", 1e-5), squares = 0;
    if (node_int(call->node, "centred", 1)) {
        struct moments m = moments_of(row.x, count);
        row.mean = m.mean;
        row.inverse = 1 / sqrt(m.variance + epsilon);
        return row;
    }
    for (int64_t k = 0; k < count; k++)
        squares += row.x[k] * row.x[k];
    row.inverse = 1 / sqrt(squares / (double)count + epsilon);
    return row;
}

/* To the sums of the columns; NULL: not wanted. */
static void add_row(const struct row *row, double *dscale, double *dbias)
{
    for (int64_t k = 0; k < row->count; k++) {
        if (dscale)
            dscale[k] += row->dy[k] * (row->x[k] - row->mean) * row->inverse;
        if (dbias)
            dbias[k] += row->dy[k];
    }
}

static void find_dx(const struct row *row, bool centred, double *dx)
{
    double mean = 0, mean_z = 0;
    for (int64_t k = 0; k < row->count; k++) {
        double g = row->dy[k] * row->scale[k] / (double)row->count;
        mean += centred ? g : 0;
        mean_z += g * (row->x[k] - row->mean) * row->inverse;
    }
    for (int64_t k = 0; k < row->count; k++) {
        double z = (row->x[k] - row->mean) * row->inverse;
        dx[k] = (row->dy[k] * row->scale[k] - mean - z * mean_z) * row->inverse;
    }
}

static double *result(const struct ref_call *call, int output)
{
    return output < call->out_count && call->out[output] ? call->out[output]->f : NULL;
}

static enum status reference(const struct ref_call *call, struct error *err)
{
    const struct shape *x = &call->in[1]->shape;
    int axis = shape_axis(x, node_int(call->node, "axis", -1));
    int64_t count = shape_span(x, axis, x->rank);
    double *dx = result(call, 0);
    (void)err;
    for (int64_t k = 0; k < shape_span(x, 0, axis); k++) {
        struct row row = row_of(call, k, count);
        add_row(&row, result(call, 1), result(call, 2));
        if (dx)
            find_dx(&row, node_int(call->node, "centred", 1) != 0, dx + k * count);
    }
    return STATUS_OK;
}

static const struct op_case cases[] = {
    {.name = "last_axis", .inputs = "f32[2,9,67] f32[2,9,67] f32[67]", .outputs = 3},
    {.name = "hidden_size",
     .inputs = "f32[50,768] f32[50,768] f32[768]",
     .attrs = "epsilon=1.0e-12",
     .outputs = 3},
    {.name = "axis_1",
     .inputs = "f32[3,4,5,2] f32[3,4,5,2] f32[4,5,2]",
     .attrs = "axis=1",
     .outputs = 3},
    {.name = "axis_0", .inputs = "f32[6,5] f32[6,5] f32[6,5]", .attrs = "axis=0", .outputs = 3},
    {.name = "not_centred",
     .inputs = "f32[7,33] f32[7,33] f32[33]",
     .attrs = "centred=0",
     .outputs = 3},
    {.name = "one_output", .inputs = "f32[7,33] f32[7,33] f32[33]"},
    {.name = "short_rows", .inputs = "f32[3000,5] f32[3000,5] f32[5]", .outputs = 3},
    {.name = "off_centre",
     .inputs = "f32[4,128] f32[4,128]{99:101} f32[128]",
     .outputs = 3,
     .tolerance = 1e-3},
    {.name = "longest_row", .inputs = "f32[1,66000] f32[1,66000] f32[66000]", .outputs = 3},
};

REGISTER(op, layer_normalization_gradient) = {
    .name = "LayerNormalizationGradient",
    .domain = "ridge",
    .inputs_min = 3,
    .outputs_max = 3,
    .attrs = attrs,
    .infer = infer,
    .cost = cost,
    .reference = reference,
    .no_gradient = "nothing is trained through a gradient",
    OP_CASES(cases),
};
