/* SPDX-License-Identifier: Apache-2.0
 * MaxUnpool: puts each element back where MaxPool took it from; the rest is zero. The indices count
 * in the shape that kernel, strides and pads give; a larger output_shape (a constant input) shows
 * that image in its first corner, as ONNX's own tests have it. */
#include "engine/ops/lib/op_args.h"

static const char *const attrs[] = {"kernel_shape", "strides", "pads", NULL};

/* The shape that the pooled image had. */
static enum status pooled_shape(const struct op_args *args, struct shape *shape, struct error *err)
{
    struct int_list kernel, strides, pads;
    *shape = *args_in(args, 0);
    int spatial = shape->rank - 2;
    TRY(args_ints(args, NONE, "kernel_shape", &kernel, err));
    TRY(args_ints(args, NONE, "strides", &strides, err));
    TRY(args_ints(args, NONE, "pads", &pads, err));
    if (spatial < 1 || kernel.count != spatial ||
        (strides.count >= 0 && strides.count != spatial) ||
        (pads.count >= 0 && pads.count != 2 * spatial))
        return FAIL(err, STATUS_FAILED,
                    "MaxUnpool of rank %d with %d kernel sizes, %d strides and %d pads",
                    shape->rank, kernel.count, strides.count, pads.count);
    for (int k = 0; k < spatial; k++) {
        int64_t cut = pads.count < 0 ? 0 : pads.at[k] + pads.at[spatial + k];
        int64_t stride = strides.count < 0 ? 1 : strides.at[k];
        shape->dim[2 + k] = (shape->dim[2 + k] - 1) * stride + kernel.at[k] - cut;
    }
    return STATUS_OK;
}

static enum status infer(const struct infer *c, struct error *err)
{
    struct op_args args = args_of_infer(c);
    struct int_list wanted;
    struct shape y;
    TRY(pooled_shape(&args, &y, err));
    TRY(args_ints(&args, 2, NULL, &wanted, err));
    if (!shape_equal(&c->in[0]->shape, &c->in[1]->shape))
        return FAIL(err, STATUS_FAILED, "the indices of MaxUnpool have another shape than X");
    for (int k = 0; k < wanted.count; k++)
        if (wanted.count != y.rank || wanted.at[k] < y.dim[k])
            return FAIL(err, STATUS_FAILED, "output_shape of MaxUnpool is smaller than the image");
    if (wanted.count >= 0)
        y = shape_from(wanted.count, wanted.at);
    infer_set(c, 0, c->in[0]->dtype, &y);
    return STATUS_OK;
}

static enum status reference(const struct ref_call *call, struct error *err)
{
    struct op_args args = args_of_ref(call);
    struct shape pooled;
    const struct ref_tensor *x = call->in[0], *y = call->out[0];
    TRY(pooled_shape(&args, &pooled, err));
    int64_t count = shape_count(&pooled);
    for (int64_t k = 0; k < x->count; k++) {
        int64_t rest = call->in[1]->i[k], to = 0, stride = 1;
        if (rest < 0 || rest >= count)
            return FAIL(err, STATUS_FAILED, "index %lld of MaxUnpool is outside %lld elements",
                        (long long)rest, (long long)count);
        for (int d = pooled.rank - 1; d >= 0; d--) {
            to += rest % pooled.dim[d] * stride;
            stride *= y->shape.dim[d];
            rest /= pooled.dim[d];
        }
        y->f[to] = x->f[k];
    }
    return STATUS_OK;
}

static const struct op_case cases[] = {
    {.name = "image",
     .inputs = "f32[1,1,2,2] i64[1,1,2,2]=5,7,13,15",
     .attrs = "kernel_shape=[2,2] strides=[2,2]"},
    {.name = "larger",
     .inputs = "f32[1,1,2,2] i64[1,1,2,2]=5,7,13,15 i64[4]=1,1,5,5",
     .attrs = "kernel_shape=[2,2] strides=[2,2]"},
    {.name = "line",
     .inputs = "f32[1,2,3] i64[1,2,3]=0,3,4,6,9,11",
     .attrs = "kernel_shape=[3] strides=[2] pads=[1,0]"},
};

REGISTER(op, max_unpool) = {
    .name = "MaxUnpool",
    .inputs_min = 2,
    .inputs_max = 3,
    .int_inputs = 1u << 1,
    .attrs = attrs,
    .const_inputs = 1u << 2,
    .infer = infer,
    .reference = reference,
    .no_gradient = "only foreign files use it",
    OP_CASES(cases),
};
