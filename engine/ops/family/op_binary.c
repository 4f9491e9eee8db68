/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/ops/family/op_binary.h"

#include "base/numbers/integers.h"

enum { TILE = 1 << 14 }; /* elements that a thread takes at a time */

void walk_start(struct walk *walk, const struct shape *of, const struct shape *operand, int64_t k)
{
    *walk = (struct walk){.of = of};
    int64_t stride = 1;
    for (int d = of->rank - 1, o = operand->rank - 1; o >= 0; d--, o--) {
        walk->stride[d] = operand->dim[o] == 1 ? 0 : stride;
        stride *= operand->dim[o];
    }
    for (int d = of->rank - 1; d >= 0 && shape_count(of) > 0; d--) {
        walk->index[d] = k % of->dim[d];
        walk->at += walk->index[d] * walk->stride[d];
        k /= of->dim[d];
    }
}

void walk_next(struct walk *walk)
{
    for (int d = walk->of->rank - 1; d >= 0; d--) {
        walk->at += walk->stride[d];
        if (++walk->index[d] < walk->of->dim[d])
            return;
        walk->at -= walk->stride[d] * walk->of->dim[d];
        walk->index[d] = 0;
    }
}

bool integer_less(int64_t a, int64_t b, enum dtype dtype)
{
    return dtype == DTYPE_U64 ? (uint64_t)a < (uint64_t)b : a < b;
}

enum status binary_infer(const struct infer *c, const struct binary *binary, struct error *err)
{
    for (int k = 0; k < c->in_count; k++) {
        if (!infer_has(c, k))
            return FAIL(err, STATUS_FAILED, "input %d of %s is absent", k, c->node->op->name);
        TRY(op_check_type(c, k, binary->types, err));
    }
    return binary->predicate ? infer_compare(c, err) : infer_broadcast(c, err);
}

void binary_cost(const struct infer *c, const struct binary *binary, struct cost *cost)
{
    double pairs = c->in_count - 1;
    const struct function_info *info = function_info(binary->function);
    double flops = binary->value ? binary->elementwise : info->flops;
    double calls = binary->value ? binary->transcendentals : info->calls;
    op_cost_each(c, flops * pairs, calls * pairs, cost);
}

struct job {
    const struct binary *binary;
    const struct ref_tensor *a, *b, *out; /* b NULL: a is copied */
};

static double float_of(const struct job *job, int64_t a, int64_t b)
{
    const struct binary *binary = job->binary;
    double x = job->a->f[a];
    if (!job->b)
        return x;
    return binary->value ? binary->value(x, job->b->f[b])
                         : function_value(binary->function, 0, 0, x, job->b->f[b]);
}

static int64_t integer_of(const struct job *job, int64_t a, int64_t b)
{
    return job->b ? job->binary->integer(job->a->i[a], job->b->i[b], job->a->dtype) : job->a->i[a];
}

static void run_tile(void *context, int64_t tile, int thread)
{
    (void)thread;
    const struct job *job = context;
    const struct ref_tensor *out = job->out;
    int64_t first = tile * TILE, last = first + TILE < out->count ? first + TILE : out->count;
    struct walk a, b;
    walk_start(&a, &out->shape, &job->a->shape, first);
    walk_start(&b, &out->shape, job->b ? &job->b->shape : &job->a->shape, first);
    for (int64_t k = first; k < last; k++, walk_next(&a), walk_next(&b)) {
        if (out->f && job->a->f)
            out->f[k] = float_of(job, a.at, b.at);
        else if (job->a->f)
            out->i[k] = float_of(job, a.at, b.at) != 0;
        else
            out->i[k] = integer_of(job, a.at, b.at);
    }
}

enum status binary_reference(const struct ref_call *call, const struct binary *binary)
{
    const struct ref_tensor *out = call->out[0];
    for (int k = 1; k < call->in_count || k == 1; k++) {
        /* From the third input on the output so far is the left operand, in place. */
        struct job job = {.binary = binary,
                          .a = k == 1 ? call->in[0] : out,
                          .b = k < call->in_count ? call->in[k] : NULL,
                          .out = out};
        pool_run(call->pool, divide_up(out->count, TILE), run_tile, &job);
    }
    return STATUS_OK;
}
