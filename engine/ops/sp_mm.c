/* SPDX-License-Identifier: Apache-2.0
 * SpMM (ridge): a sparse matrix in CSR form times a dense one. Inputs: values [Z], columns [Z],
 * offsets [R + 1] (row r has the entries from offsets[r] up to offsets[r + 1]), dense [K, N].
 * Output: [R, N]. Columns may repeat in a row: their values add up. */
#include "engine/graph/op_list.h"
#include "engine/ops/family/gradient.h"

enum { VALUES, COLUMNS, OFFSETS, DENSE };

static enum status infer(const struct infer *c, struct error *err)
{
    char text[4][96];
    const struct shape *s[4];
    for (int k = 0; k < 4; k++) {
        s[k] = &c->in[k]->shape;
        shape_text(s[k], text[k]);
    }
    if (s[VALUES]->rank != 1 || s[OFFSETS]->rank != 1 || s[DENSE]->rank != 2 ||
        !shape_equal(s[VALUES], s[COLUMNS]) || s[OFFSETS]->dim[0] < 1)
        return FAIL(err, STATUS_FAILED,
                    "SpMM: values %s, columns %s, offsets %s, dense %s do not make a product",
                    text[VALUES], text[COLUMNS], text[OFFSETS], text[DENSE]);
    struct shape y = shape_of(s[OFFSETS]->dim[0] - 1, s[DENSE]->dim[1]);
    infer_set(c, 0, c->in[VALUES]->dtype, &y);
    return STATUS_OK;
}

static void cost(const struct infer *c, struct cost *cost)
{
    cost->macs = (double)c->in[VALUES]->shape.dim[0] * (double)c->in[DENSE]->shape.dim[1];
}

static enum status add_row(const struct ref_call *call, int64_t row, struct error *err)
{
    const struct ref_tensor *values = call->in[VALUES], *dense = call->in[DENSE];
    const int64_t *offsets = call->in[OFFSETS]->i;
    int64_t width = dense->shape.dim[1], rows = dense->shape.dim[0];
    double *y = call->out[0]->f + row * width;
    if (offsets[row] < 0 || offsets[row] > offsets[row + 1] || offsets[row + 1] > values->count)
        return FAIL(err, STATUS_FAILED, "SpMM: row %lld has the entries %lld to %lld of %lld",
                    (long long)row, (long long)offsets[row], (long long)offsets[row + 1],
                    (long long)values->count);
    for (int64_t z = offsets[row]; z < offsets[row + 1]; z++) {
        int64_t column = call->in[COLUMNS]->i[z];
        if (column < 0 || column >= rows)
            return FAIL(err, STATUS_FAILED, "SpMM: entry %lld is in column %lld of %lld",
                        (long long)z, (long long)column, (long long)rows);
        for (int64_t k = 0; k < width; k++)
            y[k] += values->f[z] * dense->f[column * width + k];
    }
    return STATUS_OK;
}

static enum status reference(const struct ref_call *call, struct error *err)
{
    for (int64_t row = 0; row < call->out[0]->shape.dim[0]; row++)
        TRY(add_row(call, row, err));
    return STATUS_OK;
}

static enum status gradient(const struct gradient_call *c, struct error *err)
{
    (void)err;
    struct graph *g = c->g;
    int inputs[5], outputs[2];
    for (int k = 0; k < 4; k++)
        inputs[k] = gradient_in(c, k);
    inputs[4] = c->dy[0];
    TRY(graph_node_many(g, op_sp_mm_gradient.name, NULL, 5, inputs, NO_ATTRS, 1 + c->wanted[VALUES],
                        outputs));
    c->dx[DENSE] = outputs[0];
    if (c->wanted[VALUES])
        c->dx[VALUES] = outputs[1];
    return STATUS_OK;
}

static const struct op_case cases[] = {
    {.name = "small", .inputs = "f32[5] i32[5]=0,2,1,3,0 i32[4]=0,2,2,5 f32[4,3]"},
    {.name = "one_vector", .inputs = "f32[6] i32[6]=9,2,1,3,0,7 i32[5]=0,1,2,5,6 f32[10,16]"},
    {.name = "one_column", .inputs = "f32[4] i32[4]=2,0,1,1 i32[3]=0,3,4 f32[3,1]"},
    {.name = "wide", .inputs = "f32[7] i32[7]=1,4,0,2,3,3,1 i32[4]=0,4,5,7 f32[5,203]"},
    {.name = "same_column_twice", .inputs = "f32[3] i32[3]=1,1,0 i32[2]=0,3 f32[2,7]"},
    {.name = "empty_rows", .inputs = "f32[2] i32[2]=1,0 i32[7]=0,0,0,1,1,2,2 f32[2,33]"},
    {.name = "wide_indices", .inputs = "f32[3]! i64[3]=1,1,0 i64[3]=0,1,3 f32[2,64]"},
};

REGISTER(op, sp_mm) = {
    .name = "SpMM",
    .narrow = NARROW_WORK,
    .domain = "ridge",
    .inputs_min = 4,
    .int_inputs = 1u << COLUMNS | 1u << OFFSETS,
    .infer = infer,
    .cost = cost,
    .reference = reference,
    .gradient = gradient,
    OP_CASES(cases),
};
