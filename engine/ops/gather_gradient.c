/* SPDX-License-Identifier: Apache-2.0
 * GatherGradient (ridge): the gradient of Gather and of EmbeddingBag by their table. Inputs are dy
 * and the indices, `rows` is the size of the table's axis. Each row of dy is added to the row of
 * the result that its index names, in the order of the indices; rows that none names are zero.
 * mode "rows": a row of dy per index. "sum": one for all the indices along their last axis. "mean":
 * divided by the number of these. */
#include <string.h>

#include "engine/ops/family/op_index.h"

static const char *const attrs[] = {"axis", "rows", "mode", NULL};

/* How many axes of dy stand for indices. */
static int index_axes(const struct node *node, const struct shape *index)
{
    return strcmp(node_string(node, "mode", "rows"), "rows") == 0 ? index->rank : index->rank - 1;
}

static enum status check_dy(const struct infer *c, int axis, int taken, struct error *err)
{
    const struct shape *dy = &c->in[0]->shape, *index = &c->in[1]->shape;
    char text[96], text_index[96];
    bool fits = taken >= 0 && axis >= 0 && axis + taken <= dy->rank;
    for (int k = 0; fits && k < taken; k++)
        fits = dy->dim[axis + k] == index->dim[k];
    if (!fits)
        return FAIL(err, STATUS_FAILED,
                    "GatherGradient: indices of shape %s do not stand in dy of shape %s at axis %d",
                    shape_text(index, text_index), shape_text(dy, text), axis);
    return STATUS_OK;
}

static enum status infer(const struct infer *c, struct error *err)
{
    const struct shape *dy = &c->in[0]->shape;
    const char *mode = node_string(c->node, "mode", "rows");
    int axis = (int)node_int(c->node, "axis", 0), taken = index_axes(c->node, &c->in[1]->shape);
    struct shape dx = {0};
    if (strcmp(mode, "rows") != 0 && strcmp(mode, "sum") != 0 && strcmp(mode, "mean") != 0)
        return FAIL(err, STATUS_FAILED, "GatherGradient: mode \"%s\" is not rows, sum or mean",
                    mode);
    TRY(check_dy(c, axis, taken, err));
    if (dy->rank - taken + 1 > RANK_MAX)
        return UNSUPPORTED(err, "a result of more than %d axes", RANK_MAX);
    for (int k = 0; k < axis; k++)
        dx.dim[dx.rank++] = dy->dim[k];
    dx.dim[dx.rank++] = node_int(c->node, "rows", 0);
    for (int k = axis + taken; k < dy->rank; k++)
        dx.dim[dx.rank++] = dy->dim[k];
    infer_set(c, 0, c->in[0]->dtype, &dx);
    return STATUS_OK;
}

static void cost(const struct infer *c, struct cost *cost)
{
    const struct shape *dx = &c->out[0]->shape;
    int axis = (int)node_int(c->node, "axis", 0);
    double row = (double)(shape_span(dx, 0, axis) * shape_span(dx, axis + 1, dx->rank));
    bool mean = strcmp(node_string(c->node, "mode", "rows"), "mean") == 0;
    cost->elementwise = row * (double)shape_count(&c->in[1]->shape) +
                        (mean ? (double)shape_count(&c->in[0]->shape) : 0);
}

static enum status reference(const struct ref_call *call, struct error *err)
{
    const struct ref_tensor *dy = call->in[0], *index = call->in[1], *dx = call->out[0];
    const char *mode = node_string(call->node, "mode", "rows");
    int axis = (int)node_int(call->node, "axis", 0), rank = index->shape.rank;
    int64_t bag = strcmp(mode, "rows") == 0 ? 1 : index->shape.dim[rank - 1];
    double factor = strcmp(mode, "mean") == 0 ? 1 / (double)bag : 1;
    int64_t outer = shape_span(&dx->shape, 0, axis), rows = dx->shape.dim[axis];
    int64_t inner = shape_span(&dx->shape, axis + 1, dx->shape.rank);
    if (bag == 0) /* there is no index */
        return STATUS_OK;
    int64_t sources = index->count / bag;
    for (int64_t o = 0; o < outer; o++) {
        for (int64_t k = 0; k < index->count; k++) {
            int64_t at;
            TRY(index_wrap(call->node, index->i[k], rows, &at, err));
            for (int64_t e = 0; e < inner; e++)
                dx->f[(o * rows + at) * inner + e] +=
                    factor * dy->f[(o * sources + k / bag) * inner + e];
        }
    }
    return STATUS_OK;
}

static const struct op_case cases[] = {
    {.name = "rows", .inputs = "f32[2,30,33] i64[2,30]{0:10}", .attrs = "rows=10"},
    {.name = "table", .inputs = "f32[700,64] i32[700]{0:5000}", .attrs = "rows=5000"},
    {.name = "negative", .inputs = "f32[5,6] i64[5]=-1,0,-7,6,0", .attrs = "rows=7"},
    {.name = "columns", .inputs = "f32[3,50,4] i64[50]", .attrs = "rows=10 axis=1"},
    {.name = "last_axis", .inputs = "f32[3,5,4] i64[5,4]", .attrs = "rows=10 axis=1"},
    {.name = "scalar", .inputs = "f32[4,3] i64[]=2", .attrs = "rows=10 axis=1"},
    {.name = "two_wide_rows", .inputs = "f32[900,800]{0.5:1} i64[900]{0:2}", .attrs = "rows=2"},
    {.name = "one_column", .inputs = "f32[1500,1] i32[1500]{0:9000}", .attrs = "rows=9000"},
    {.name = "long_sums", .inputs = "f32[20000,5]{0.5:1} i32[20000]{0:3}", .attrs = "rows=3"},
    {.name = "bags", .inputs = "f32[7,16] i32[7,5]{0:50}", .attrs = "rows=50 mode=\"sum\""},
    {.name = "mean_of_bags",
     .inputs = "f32[60,33] i64[60,4]{0:50}",
     .attrs = "rows=50 mode=\"mean\""},
    {.name = "long_bags", .inputs = "f32[3,24] i32[3,2100]{0:40}", .attrs = "rows=40 mode=\"sum\""},
    {.name = "no_index", .inputs = "f32[0,6] i64[0]", .attrs = "rows=4"},
};

REGISTER(op, gather_gradient) = {
    .name = "GatherGradient",
    .domain = "ridge",
    .inputs_min = 2,
    .int_inputs = 1u << 1,
    .attrs = attrs,
    .infer = infer,
    .cost = cost,
    .reference = reference,
    .no_gradient = "nothing is trained through a gradient",
    OP_CASES(cases),
};
