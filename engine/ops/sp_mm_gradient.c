/* SPDX-License-Identifier: Apache-2.0
 * SpMMGradient (ridge): the gradients of SpMM. Inputs are those of SpMM, values [Z], columns [Z],
 * offsets [R + 1], dense [K, N], and dy [R, N]. Output 0 [K, N] is the gradient by dense: the
 * matrix turned round times dy; output 1 [Z], where it is wanted, that by values. */
#include "engine/graph/op.h"

enum { VALUES, COLUMNS, OFFSETS, DENSE, DY };

static enum status infer(const struct infer *c, struct error *err)
{
    const struct shape *offsets = &c->in[OFFSETS]->shape, *dense = &c->in[DENSE]->shape;
    const struct shape *dy = &c->in[DY]->shape;
    char text[96], text_dense[96];
    if (offsets->rank != 1 || dense->rank != 2 || dy->rank != 2 ||
        dy->dim[0] != offsets->dim[0] - 1 || dy->dim[1] != dense->dim[1])
        return FAIL(err, STATUS_FAILED, "SpMMGradient: dy %s of a product with dense %s",
                    shape_text(dy, text), shape_text(dense, text_dense));
    infer_set(c, 0, c->in[DENSE]->dtype, dense);
    infer_set(c, 1, c->in[VALUES]->dtype, &c->in[VALUES]->shape);
    return STATUS_OK;
}

static void cost(const struct infer *c, struct cost *cost)
{
    bool both = c->out_count > 1 && c->out[1];
    double entries = (double)shape_count(&c->in[VALUES]->shape);
    cost->macs = (both ? 2 : 1) * entries * (double)c->in[DENSE]->shape.dim[1];
}

static enum status check_entry(const struct ref_call *call, int64_t z, struct error *err)
{
    int64_t column = call->in[COLUMNS]->i[z], rows = call->in[DENSE]->shape.dim[0];
    if (column < 0 || column >= rows)
        return FAIL(err, STATUS_FAILED, "SpMMGradient: entry %lld is in column %lld of %lld",
                    (long long)z, (long long)column, (long long)rows);
    return STATUS_OK;
}

static enum status add_row(const struct ref_call *call, int64_t row, struct error *err)
{
    const struct ref_tensor *values = call->in[VALUES], *dense = call->in[DENSE];
    const struct ref_tensor *by_values = call->out_count > 1 ? call->out[1] : NULL;
    const int64_t *offsets = call->in[OFFSETS]->i;
    int64_t width = dense->shape.dim[1];
    const double *dy = call->in[DY]->f + row * width;
    if (offsets[row] < 0 || offsets[row] > offsets[row + 1] || offsets[row + 1] > values->count)
        return FAIL(err, STATUS_FAILED, "SpMMGradient: row %lld has the entries %lld to %lld",
                    (long long)row, (long long)offsets[row], (long long)offsets[row + 1]);
    for (int64_t z = offsets[row]; z < offsets[row + 1]; z++) {
        TRY(check_entry(call, z, err));
        int64_t first = call->in[COLUMNS]->i[z] * width;
        for (int64_t k = 0; k < width; k++)
            call->out[0]->f[first + k] += values->f[z] * dy[k];
        for (int64_t k = 0; by_values && k < width; k++)
            by_values->f[z] += dense->f[first + k] * dy[k];
    }
    return STATUS_OK;
}

static enum status reference(const struct ref_call *call, struct error *err)
{
    for (int64_t row = 0; row < call->in[DY]->shape.dim[0]; row++)
        TRY(add_row(call, row, err));
    return STATUS_OK;
}

static const struct op_case cases[] = {
    {.name = "small",
     .inputs = "f32[5] i64[5]=0,2,1,0,2 i64[4]=0,2,2,5 f32[3,7] f32[3,7]",
     .outputs = 2},
    {.name = "dense_alone", .inputs = "f32[5] i64[5]=0,2,1,0,2 i64[4]=0,2,2,5 f32[3,7] f32[3,7]"},
    {.name = "repeated", .inputs = "f32[4] i32[4]=1,1,1,0 i32[3]=0,3,4 f32[2,33] f32[2,33]"},
    {.name = "one_row", .inputs = "f32[300] i64[300]{0:40} i64[2]=0,300 f32[40,16] f32[1,16]"},
    {.name = "wide", .inputs = "f32[6] i32[6]=3,0,2,1,3,3 i64[3]=0,4,6 f32[4,200] f32[2,200]"},
    {.name = "no_entries", .inputs = "f32[0] i64[0] i64[3]=0,0,0 f32[4,5] f32[2,5]"},
};

REGISTER(op, sp_mm_gradient) = {
    .name = "SpMMGradient",
    .domain = "ridge",
    .inputs_min = 5,
    .int_inputs = 1u << COLUMNS | 1u << OFFSETS,
    .outputs_max = 2,
    .infer = infer,
    .cost = cost,
    .reference = reference,
    .no_gradient = "nothing is trained through a gradient",
    OP_CASES(cases),
};
