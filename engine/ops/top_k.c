/* SPDX-License-Identifier: Apache-2.0
 * TopK: the k largest (or smallest) elements along an axis and their places, in order; of equal
 * ones the lowest place comes first. k is an attribute before opset 10, then an input. */
#include <stdlib.h>

#include "engine/ops/family/arg_extreme.h"
#include "engine/ops/lib/axis.h"
#include "engine/ops/lib/move.h"

static const char *const attrs[] = {"axis", "largest", "sorted", "k", NULL};
static const struct attr_input attr_inputs[] = {{"k", 1, 10}, {NULL, 0, 0}};

static enum status infer(const struct infer *c, struct error *err)
{
    struct op_args args = args_of_infer(c);
    struct int_list k;
    int axis;
    struct shape y = c->in[0]->shape;
    TRY(args_axis(&args, &y, -1, &axis, err));
    TRY(args_ints(&args, 1, "k", &k, err));
    if (k.count != 1 || k.at[0] < 0 || k.at[0] > y.dim[axis])
        return FAIL(err, STATUS_FAILED, "TopK of %lld from an axis of size %lld",
                    (long long)(k.count == 1 ? k.at[0] : -1), (long long)y.dim[axis]);
    y.dim[axis] = k.at[0];
    infer_set(c, 0, c->in[0]->dtype, &y);
    infer_set(c, 1, DTYPE_I64, &y);
    return STATUS_OK;
}

struct line {
    const struct ref_tensor *x;
    int64_t base, stride, size;
    bool largest;
};

static bool before(const struct line *line, int64_t a, int64_t b)
{
    int64_t at = line->base + a * line->stride, other = line->base + b * line->stride;
    return line->largest ? ref_less(line->x, other, at) : ref_less(line->x, at, other);
}

/* Places of the first k of the line in best, by insertion. */
static void select_top(const struct line *line, int64_t k, int64_t *best)
{
    int64_t held = 0;
    for (int64_t at = 0; at < line->size; at++) {
        if (held == k && (!k || !before(line, at, best[k - 1])))
            continue;
        int64_t slot = held < k ? held++ : k - 1;
        for (; slot > 0 && before(line, at, best[slot - 1]); slot--)
            best[slot] = best[slot - 1];
        best[slot] = at;
    }
}

static enum status reference(const struct ref_call *call, struct error *err)
{
    struct op_args args = args_of_ref(call);
    int which = 0;
    const struct ref_tensor *x = call->in[0], *y = call->out[0];
    const struct ref_tensor *place = call->out_count > 1 ? call->out[1] : NULL;
    TRY(args_axis(&args, &x->shape, -1, &which, err));
    struct axis axis = axis_at(&x->shape, which);
    if (!y && !place)
        return STATUS_OK;
    const struct shape *shape = y ? &y->shape : &place->shape;
    int64_t k = shape->dim[which];
    int64_t *best = calloc((size_t)k + 1, sizeof(*best));
    if (!best)
        return FAIL_NO_MEMORY(err);
    struct line line = {.x = x,
                        .stride = axis.inner,
                        .size = axis.size,
                        .largest = node_int(call->node, "largest", 1) != 0};
    for (int64_t n = 0; n < axis.outer * axis.inner; n++) {
        int64_t outer = n / axis.inner, inner = n % axis.inner;
        line.base = outer * axis.size * axis.inner + inner;
        select_top(&line, k, best);
        for (int64_t j = 0; j < k; j++) {
            int64_t to = (outer * k + j) * axis.inner + inner;
            if (y)
                ref_copy(y, to, x, line.base + best[j] * axis.inner);
            if (place)
                place->i[to] = best[j];
        }
    }
    free(best);
    return STATUS_OK;
}

/* One comparison per element; the ordering of the k is not counted. */
static void cost(const struct infer *c, struct cost *cost)
{
    if (dtype_is_float(c->in[0]->dtype))
        cost->elementwise += (double)shape_count(&c->in[0]->shape);
}

static const struct op_case cases[] = {
    {.name = "last", .inputs = "f32[3,50] i64[1]=7", .outputs = 2},
    {.name = "axis", .inputs = "f32[2,9,4] i64[1]=3", .attrs = "axis=1", .outputs = 2},
    {.name = "smallest", .inputs = "i32[4,20] i64[1]=5", .attrs = "largest=0", .outputs = 2},
    {.name = "ties", .inputs = "f32[8]=1,3,3,2,3,1,2,0 i64[1]=6", .outputs = 2},
    {.name = "all", .inputs = "f32[2,17] i64[1]=17", .outputs = 2},
    {.name = "attribute", .inputs = "f32[2,6]", .attrs = "k=1 axis=-1", .outputs = 2},
    {.name = "unsorted", .inputs = "i64[30] i64[1]=4", .attrs = "sorted=0", .outputs = 2},
    {.name = "long", .inputs = "f32[2,3000] i64[1]=100", .outputs = 2},
    /* Of the values a few, in place order at the limit; one value alone; all, of several runs. */
    {.name = "few_of_20000", .inputs = "f32[1,20000] i64[1]=300", .outputs = 2},
    {.name = "few_values_of_20000", .inputs = "i32[2,17000]{0:5} i64[1]=5000", .outputs = 2},
    {.name = "one_value_of_20000",
     .inputs = "f32[20000]{0.5:0.5} i64[1]=2500",
     .attrs = "largest=0",
     .outputs = 2},
    {.name = "columns_of_17000",
     .inputs = "f32[2,17000,3] i64[1]=100",
     .attrs = "axis=1",
     .outputs = 2},
    {.name = "all_of_18000", .inputs = "f32[18000] i64[1]=18000", .outputs = 2},
    {.name = "most_of_a_long_line", .inputs = "f32[1,5000] i64[1]=3000", .outputs = 2},
};

REGISTER(op, top_k) = {
    .name = "TopK",
    .inputs_min = 1,
    .inputs_max = 2,
    .outputs_max = 2,
    .attrs = attrs,
    .const_inputs = 1u << 1,
    .attr_inputs = attr_inputs,
    .infer = infer,
    .cost = cost,
    .reference = reference,
    .no_gradient = "it decides what is kept; gather what it chose to learn through it",
    OP_CASES(cases),
};
