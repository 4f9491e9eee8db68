/* SPDX-License-Identifier: Apache-2.0
 * EyeLike: ones on diagonal k of a matrix as large as the input; dtype changes the type. */
#include "engine/ops/lib/op_args.h"

static const char *const attrs[] = {"dtype", "k", NULL};

static enum status infer(const struct infer *c, struct error *err)
{
    int64_t wanted = node_int(c->node, "dtype", 0);
    enum dtype dtype = wanted ? dtype_from_onnx(wanted) : c->in[0]->dtype;
    if (c->in[0]->shape.rank != 2 || dtype == DTYPE_NONE)
        return UNSUPPORTED(err, "EyeLike of rank %d and type %lld", c->in[0]->shape.rank,
                           (long long)wanted);
    infer_set(c, 0, dtype, &c->in[0]->shape);
    return STATUS_OK;
}

static enum status reference(const struct ref_call *call, struct error *err)
{
    (void)err;
    const struct ref_tensor *y = call->out[0];
    int64_t k = node_int(call->node, "k", 0);
    for (int64_t row = 0; row < y->shape.dim[0]; row++)
        if (row + k >= 0 && row + k < y->shape.dim[1])
            ref_set(y, row * y->shape.dim[1] + row + k, 1);
    return STATUS_OK;
}

static const struct op_case cases[] = {
    {.name = "square", .inputs = "f32[4,4]"},
    {.name = "above", .inputs = "i32[3,5]", .attrs = "k=1"},
    {.name = "below", .inputs = "f32[5,3]", .attrs = "k=-2 dtype=7"},
};

REGISTER(op, eye_like) = {
    .name = "EyeLike",
    .inputs_min = 1,
    .attrs = attrs,
    .reads = READS_SHAPE,
    .infer = infer,
    .reference = reference,
    .no_gradient = "it reads a shape alone",
    OP_CASES(cases),
};
