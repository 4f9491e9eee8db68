/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/ops/lib/op_unary.h"

#include <math.h>

enum { TILE = 1 << 14 }; /* elements that a thread takes at a time */

static bool types_allow(enum op_types types, enum dtype dtype)
{
    switch (types) {
    case OP_FLOAT:
        return dtype_is_float(dtype);
    case OP_SIGNED:
        return !dtype_is_unsigned(dtype);
    case OP_NUMBER:
        return dtype != DTYPE_BOOL;
    case OP_UNSIGNED:
        return dtype_is_unsigned(dtype) && dtype != DTYPE_BOOL;
    case OP_BOOL:
        return dtype == DTYPE_BOOL;
    case OP_ANY:
        return true;
    }
    return false;
}

enum status op_check_type(const struct infer *c, int k, enum op_types types, struct error *err)
{
    static const char *const words[] = {
        "floats", "floats or signed integers", "numbers", "unsigned integers", "bool", "any type"};
    if (!infer_has(c, k) || types_allow(types, c->in[k]->dtype))
        return STATUS_OK;
    return FAIL(err, STATUS_FAILED, "input %d of %s (\"%s\") is %s; it takes %s only", k,
                c->node->op->name, c->in[k]->name, dtype_name(c->in[k]->dtype), words[types]);
}

void op_cost_each(const struct infer *c, double elementwise, double transcendentals,
                  struct cost *cost)
{
    if (!c->out[0] || !dtype_is_float(c->out[0]->dtype))
        return;
    double count = (double)shape_count(&c->out[0]->shape);
    cost->elementwise += elementwise * count;
    cost->transcendentals += transcendentals * count;
}

enum status unary_infer(const struct infer *c, const struct unary *unary, struct error *err)
{
    TRY(op_check_type(c, 0, unary->types, err));
    return infer_same(c, err);
}

void unary_cost(const struct infer *c, const struct unary *unary, struct cost *cost)
{
    const struct function_info *info = function_info(c->node->op->function);
    if (unary->value)
        op_cost_each(c, unary->elementwise, unary->transcendentals, cost);
    else
        op_cost_each(c, info->flops, info->calls, cost);
}

struct job {
    const struct ref_call *call;
    const struct unary *unary;
    double p[2]; /* of the operator's function */
};

static double value_of(const struct job *job, double x)
{
    const struct node *node = job->call->node;
    return job->unary->value ? job->unary->value(x)
                             : function_value(node->op->function, job->p[0], job->p[1], x, 0);
}

static void run_tile(void *context, int64_t tile, int thread)
{
    (void)thread;
    const struct job *job = context;
    const struct ref_tensor *x = job->call->in[0], *y = job->call->out[0];
    int64_t last = (tile + 1) * TILE < x->count ? (tile + 1) * TILE : x->count;
    for (int64_t k = tile * TILE; k < last; k++) {
        if (x->f)
            y->f[k] = value_of(job, x->f[k]);
        else
            y->i[k] = job->unary->integer(x->i[k], x->dtype);
    }
}

enum status unary_reference(const struct ref_call *call, const struct unary *unary)
{
    struct job job = {.call = call, .unary = unary};
    node_parameters(call->node, job.p);
    pool_run(call->pool, (call->in[0]->count + TILE - 1) / TILE, run_tile, &job);
    return STATUS_OK;
}

/* ---- conversions ---- */

/* Rounds at once: the value is what the narrow type can hold, also inside a run in double. */
static double cast_to_float(double x, enum dtype dtype)
{
    if (dtype == DTYPE_F16)
        return (double)half_to_float(half_from_float((float)x));
    if (dtype == DTYPE_BF16)
        return (double)bfloat_to_float(bfloat_from_float((float)x));
    if (dtype == DTYPE_F8E4M3)
        return (double)f8_to_float(f8_from_float((float)x));
    return dtype == DTYPE_F32 ? (double)(float)x : x;
}

void cast_reference(const struct ref_tensor *x, const struct ref_tensor *y)
{
    for (int64_t k = 0; k < x->count; k++) {
        if (y->f)
            y->f[k] = cast_to_float(ref_get(x, k), y->dtype);
        else if (x->f)
            y->i[k] = cast_to_integer(x->f[k], y->dtype);
        else
            y->i[k] = y->dtype == DTYPE_BOOL ? x->i[k] != 0 : x->i[k]; /* wraps later */
    }
}
