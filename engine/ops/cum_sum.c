/* SPDX-License-Identifier: Apache-2.0
 * CumSum: running sums along an axis (a scalar input), without the element itself (exclusive)
 * or from the end (reverse). */
#include "engine/ops/lib/axis.h"

static const char *const attrs[] = {"exclusive", "reverse", NULL};

static enum status reference(const struct ref_call *call, struct error *err)
{
    const struct ref_tensor *x = call->in[0], *y = call->out[0];
    int which = shape_axis(&x->shape, call->in[1]->i[0]);
    if (which < 0)
        return FAIL(err, STATUS_FAILED, "axis %lld of CumSum is outside a tensor of rank %d",
                    (long long)call->in[1]->i[0], x->shape.rank);
    struct axis axis = axis_at(&x->shape, which);
    bool exclusive = node_int(call->node, "exclusive", 0) != 0;
    bool reverse = node_int(call->node, "reverse", 0) != 0;
    for (int64_t line = 0; line < axis.outer * axis.inner; line++) {
        int64_t base = line / axis.inner * axis.size * axis.inner + line % axis.inner;
        double sum = 0;
        uint64_t sum_int = 0;
        for (int64_t k = 0; k < axis.size; k++) {
            int64_t at = base + (reverse ? axis.size - 1 - k : k) * axis.inner;
            double before = sum;
            uint64_t before_int = sum_int;
            sum += x->f ? x->f[at] : 0;
            sum_int += x->i ? (uint64_t)x->i[at] : 0;
            if (y->f)
                y->f[at] = exclusive ? before : sum;
            else
                y->i[at] = (int64_t)(exclusive ? before_int : sum_int);
        }
    }
    return STATUS_OK;
}

static void cost(const struct infer *c, struct cost *cost)
{
    if (dtype_is_float(c->in[0]->dtype))
        cost->elementwise += (double)shape_count(&c->in[0]->shape);
}

static const struct op_case cases[] = {
    {.name = "vector", .inputs = "f32[20] i64[]=0"},
    {.name = "exclusive", .inputs = "f32[3,7] i32[]=1", .attrs = "exclusive=1"},
    {.name = "reverse", .inputs = "f32[2,5,4] i64[]=-2", .attrs = "reverse=1"},
    {.name = "both", .inputs = "i64[4,3] i64[]=0", .attrs = "reverse=1 exclusive=1"},
    {.name = "middle", .inputs = "f32[3,11,67] i64[]=1"},
    {.name = "first", .inputs = "f32[9,133] i64[]=0", .attrs = "exclusive=1"},
    {.name = "last", .inputs = "f32[7,2,129] i32[]=-1"},
    {.name = "last_both", .inputs = "f32[6,31] i64[1]=1", .attrs = "reverse=1 exclusive=1"},
    {.name = "narrow", .inputs = "i32[5,7,3] i64[]=1", .attrs = "reverse=1"},
    {.name = "wraps", .inputs = "i32[3]=2147483647,1,5 i64[]=0"},
    {.name = "not_numbers", .inputs = "f32[9]=1,2,inf,3,-inf,4,1,nan,2 i64[]=0"},
    {.name = "many", .inputs = "f32[130,200]{0:1} i64[]=1"},
    {.name = "long", .inputs = "f32[20011]{0:1} i64[]=0"},
    {.name = "last_of_few", .inputs = "f32[9,5] i64[]=1", .attrs = "exclusive=1"},
    {.name = "long_both", .inputs = "f32[2,9001]{0:1} i64[]=1", .attrs = "reverse=1 exclusive=1"},
    {.name = "long_reverse", .inputs = "i32[3,20000] i64[]=1", .attrs = "reverse=1"},
    {.name = "long_columns", .inputs = "f32[2,700,9]{0:1} i64[]=1", .attrs = "reverse=1"},
    {.name = "wide_integers", .inputs = "i64[2,8194] i64[]=1", .attrs = "exclusive=1"},
    {.name = "not_numbers_exclusive",
     .inputs = "f32[9]=1,2,inf,3,-inf,4,1,nan,2 i64[]=0",
     .attrs = "exclusive=1"},
    {.name = "one", .inputs = "i64[5,1,3] i64[]=1", .attrs = "exclusive=1"},
    {.name = "none", .inputs = "f32[4,0] i64[]=1"},
    {.name = "no_lines", .inputs = "f32[4,0] i64[]=0"},
};

REGISTER(op, cum_sum) = {
    .name = "CumSum",
    .inputs_min = 2,
    .attrs = attrs,
    .infer = infer_same,
    .cost = cost,
    .reference = reference,
    .no_gradient = "only foreign files use it",
    OP_CASES(cases),
};
