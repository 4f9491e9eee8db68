/* SPDX-License-Identifier: Apache-2.0
 * NonZero: the indices of all elements that are not zero, one column each, in row-major order. The
 * result is padded with zeros to the number of all elements; output 1 says how many are real. */
#include "engine/graph/op.h"

static enum status infer(const struct infer *c, struct error *err)
{
    (void)err;
    const struct shape *x = &c->in[0]->shape;
    struct shape y = shape_of(x->rank, shape_count(x)), scalar = shape_scalar();
    infer_set(c, 0, DTYPE_I64, &y);
    infer_set(c, 1, DTYPE_I64, &scalar);
    return STATUS_OK;
}

static int count_axis(const struct infer *c, int output)
{
    (void)c;
    return output == 0 ? 1 : -1;
}

static enum status reference(const struct ref_call *call, struct error *err)
{
    (void)err;
    const struct ref_tensor *x = call->in[0], *y = call->out[0];
    int64_t found = 0;
    for (int64_t k = 0; k < x->count; k++) {
        if (ref_get(x, k) == 0)
            continue;
        int64_t rest = k;
        for (int d = x->shape.rank - 1; y && d >= 0; d--) {
            y->i[d * x->count + found] = rest % x->shape.dim[d];
            rest /= x->shape.dim[d];
        }
        found++;
    }
    if (call->out_count > 1 && call->out[1])
        call->out[1]->i[0] = found;
    return STATUS_OK;
}

static const struct op_case cases[] = {
    {.name = "matrix", .inputs = "f32[2,3]=1,0,0,-2,nan,0", .outputs = 2},
    {.name = "bool", .inputs = "bool[3,4,5]", .outputs = 2},
    {.name = "integers", .inputs = "i64[9]{-1:2}", .outputs = 2},
    {.name = "none", .inputs = "i32[2,2]=0", .outputs = 2},
    {.name = "all", .inputs = "u8[3,1,5]=7", .outputs = 2},
    {.name = "vector", .inputs = "f32[7]=0,-0.0,1e-45,-1,0,inf,2"},
    {.name = "blocks", .inputs = "bool[3,67,101]", .outputs = 2},
    {.name = "long", .inputs = "f32[3,5003]", .outputs = 2},
    {.name = "narrow", .inputs = "i32[2000,2,3]{0:2}", .outputs = 2},
    {.name = "ones", .inputs = "bool[9000,1]", .outputs = 2},
    {.name = "empty", .inputs = "f32[0,3]", .outputs = 2},
    {.name = "scalar", .inputs = "i64[]=3", .outputs = 2},
};

REGISTER(op, non_zero) = {
    .name = "NonZero",
    .inputs_min = 1,
    .outputs_max = 2,
    .infer = infer,
    .reference = reference,
    .no_gradient = "its result is an index",
    OP_CASES(cases),
    .count_output = 1,
    .count_axis = count_axis,
};
