/* SPDX-License-Identifier: Apache-2.0
 * Compress: the slices along an axis (or, without one, the elements) whose condition is true. The
 * result is padded with zeros to all that could be taken; output 1 says how many were. */
#include "engine/ops/lib/axis.h"
#include "engine/ops/lib/move.h"

static const char *const attrs[] = {"axis", NULL};

/* Axis that is compressed in a tensor seen as [outer, size, inner], and its place in the result. */
static enum status find(const struct op_args *args, struct axis *axis, int *place,
                        struct error *err)
{
    const struct shape *x = args_in(args, 0);
    *axis = (struct axis){.outer = 1, .size = shape_count(x), .inner = 1};
    *place = 0;
    if (!node_attr(args->node, "axis"))
        return STATUS_OK;
    TRY(args_axis(args, x, 0, place, err));
    *axis = axis_at(x, *place);
    return STATUS_OK;
}

static int64_t most_taken(const struct shape *condition, const struct axis *axis)
{
    int64_t length = shape_count(condition);
    return length < axis->size ? length : axis->size;
}

static enum status infer(const struct infer *c, struct error *err)
{
    struct op_args args = args_of_infer(c);
    struct axis axis;
    int place;
    TRY(find(&args, &axis, &place, err));
    int64_t limit = most_taken(&c->in[1]->shape, &axis);
    struct shape y = c->in[0]->shape, scalar = shape_scalar();
    if (node_attr(c->node, "axis"))
        y.dim[place] = limit;
    else
        y = shape_of(limit);
    infer_set(c, 0, c->in[0]->dtype, &y);
    infer_set(c, 1, DTYPE_I64, &scalar);
    return STATUS_OK;
}

static int count_axis(const struct infer *c, int output)
{
    struct op_args args = args_of_infer(c);
    struct axis axis;
    int place;
    return output == 0 && find(&args, &axis, &place, NULL) == STATUS_OK ? place : -1;
}

static enum status reference(const struct ref_call *call, struct error *err)
{
    struct op_args args = args_of_ref(call);
    struct axis axis;
    int place;
    const struct ref_tensor *condition = call->in[1], *y = call->out[0];
    TRY(find(&args, &axis, &place, err));
    int64_t limit = most_taken(&condition->shape, &axis), taken = 0;
    for (int64_t k = 0; k < limit; k++) {
        if (!condition->i[k])
            continue;
        for (int64_t n = 0; y && n < axis.outer * axis.inner; n++) {
            int64_t outer = n / axis.inner, inner = n % axis.inner;
            ref_copy(y, (outer * limit + taken) * axis.inner + inner, call->in[0],
                     (outer * axis.size + k) * axis.inner + inner);
        }
        taken++;
    }
    if (call->out_count > 1 && call->out[1])
        call->out[1]->i[0] = taken;
    return STATUS_OK;
}

static const struct op_case cases[] = {
    {.name = "rows", .inputs = "f32[4,3] bool[4]", .attrs = "axis=0", .outputs = 2},
    {.name = "columns", .inputs = "i64[2,5,3] bool[3]=1,0,1", .attrs = "axis=-2", .outputs = 2},
    {.name = "flat", .inputs = "f32[3,2] bool[5]", .outputs = 2},
};

REGISTER(op, compress) = {
    .name = "Compress",
    .inputs_min = 2,
    .int_inputs = 1u << 1,
    .outputs_max = 2,
    .attrs = attrs,
    .infer = infer,
    .reference = reference,
    .no_gradient = "only foreign files use it",
    OP_CASES(cases),
    .count_output = 1,
    .count_axis = count_axis,
};
