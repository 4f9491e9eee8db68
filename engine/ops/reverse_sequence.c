/* SPDX-License-Identifier: Apache-2.0
 * ReverseSequence: the first length[b] steps of every sequence b backwards, the rest as it is. */
#include "engine/ops/lib/move.h"

static const char *const attrs[] = {"batch_axis", "time_axis", NULL};

struct axes {
    int batch, time;
};

static enum status axes_of(const struct node *node, const struct shape *x, struct axes *axes,
                           struct error *err)
{
    axes->batch = shape_axis(x, node_int(node, "batch_axis", 1));
    axes->time = shape_axis(x, node_int(node, "time_axis", 0));
    if (axes->batch < 0 || axes->time < 0 || axes->batch == axes->time)
        return FAIL(err, STATUS_FAILED, "batch and time axis of ReverseSequence do not fit rank %d",
                    x->rank);
    return STATUS_OK;
}

static enum status infer(const struct infer *c, struct error *err)
{
    struct axes axes;
    TRY(axes_of(c->node, &c->in[0]->shape, &axes, err));
    if (shape_count(&c->in[1]->shape) != c->in[0]->shape.dim[axes.batch])
        return FAIL(err, STATUS_FAILED, "%lld lengths for %lld sequences",
                    (long long)shape_count(&c->in[1]->shape),
                    (long long)c->in[0]->shape.dim[axes.batch]);
    return infer_same(c, err);
}

static enum status reference(const struct ref_call *call, struct error *err)
{
    struct axes axes;
    const struct ref_tensor *x = call->in[0];
    TRY(axes_of(call->node, &x->shape, &axes, err));
    int64_t steps = x->shape.dim[axes.time], batch = x->shape.dim[axes.batch];
    int64_t time_stride = shape_span(&x->shape, axes.time + 1, x->shape.rank);
    int64_t batch_stride = shape_span(&x->shape, axes.batch + 1, x->shape.rank);
    for (int64_t k = 0; k < x->count; k++) {
        int64_t t = k / time_stride % steps, length = call->in[1]->i[k / batch_stride % batch];
        if (length > steps || length < 0)
            return FAIL(err, STATUS_FAILED, "a sequence of length %lld; there are %lld steps",
                        (long long)length, (long long)steps);
        int64_t from = t < length ? length - 1 - t : t;
        ref_copy(call->out[0], k, x, k + (from - t) * time_stride);
    }
    return STATUS_OK;
}

static const struct op_case cases[] = {
    {.name = "time", .inputs = "f32[5,3,2] i64[3]=5,0,3"},
    {.name = "batch", .inputs = "f32[4,6] i64[4]{0:7}", .attrs = "batch_axis=0 time_axis=1"},
    {.name = "inner", .inputs = "i32[2,3,4] i64[3]=1,4,2", .attrs = "batch_axis=1 time_axis=2"},
    {.name = "apart", .inputs = "f32[7,3,5,2] i32[5]=7,1,0,2,6", .attrs = "batch_axis=2"},
    {.name = "behind",
     .inputs = "f64[3,2,6,5] i64[3]=6,0,3",
     .attrs = "batch_axis=-4 time_axis=-2"},
    {.name = "bytes", .inputs = "bool[9,4] i64[4]=9,8,1,0"},
    {.name = "large", .inputs = "f32[61,7,37] i64[7]{0:62}"},
    {.name = "steps",
     .inputs = "i64[3,4001] i64[3]=4001,17,1",
     .attrs = "batch_axis=0 time_axis=1"},
    {.name = "one", .inputs = "f32[1,1] i64[1]=1"},
    {.name = "none", .inputs = "f32[5,3,0] i64[3]=5,0,3"},
    {.name = "no_steps", .inputs = "f32[0,3] i64[3]=0"},
};

REGISTER(op, reverse_sequence) = {
    .name = "ReverseSequence",
    .inputs_min = 2,
    .int_inputs = 1u << 1,
    .attrs = attrs,
    .infer = infer,
    .reference = reference,
    .no_gradient = "only foreign files use it",
    OP_CASES(cases),
};
