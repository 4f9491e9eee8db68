/* SPDX-License-Identifier: Apache-2.0
 *
 * LayerNormalization: mean, then the sum of squared deviations, then the result. Two sweeps for
 * the variance are as exact as Welford's recurrence and cost less, for a row stays in the first
 * cache. RMSNormalization is the same round a mean of zero. The output may be the input's memory.
 */
#include <string.h>

#include "base/numbers/integers.h"
#include "engine/graph/kernel.h"
#include "engine/graph/op.h"
#include "engine/kernels/lib/row_moments.h"
#include "engine/kernels/lib/tiles.h"

enum { TILE_ELEMENTS = 8192 };

/* The plan; a launch completes a copy of it with its addresses. */
struct kernel_state {
    const float *x, *scale, *bias; /* bias may be NULL */
    float *y, *mean, *inverse;     /* mean and inverse deviation may be NULL */
    int64_t rows, size, rows_per_tile;
    float epsilon;
    bool centred; /* the mean is taken off */
    bool biased, wants_mean, wants_inverse;
};

/* scale and bias must have one element per element of a row. */
static enum status plan(const struct kernel_query *q, int variant, struct kernel_state *s,
                        struct error *why)
{
    (void)variant;
    TRY(query_plain_f32(q, why));
    const struct shape *x = &q->in[0].shape;
    int axis = shape_axis(x, node_int(q->node, "axis", -1));
    for (int k = 1; k < q->in_count; k++) {
        const struct desc *in = query_in(q, k);
        if (in && (shape_count(&in->shape) != shape_span(x, axis, x->rank) ||
                   in->shape.rank > x->rank - axis))
            return UNSUPPORTED(why, "input %d is broadcast within a row, or differs by row", k);
    }
    s->rows = shape_span(x, 0, axis);
    s->size = shape_span(x, axis, x->rank);
    if (s->size == 0)
        return UNSUPPORTED(why, "rows without elements, whose mean is not a number");
    s->rows_per_tile = rows_of_tile(s->rows, s->size, TILE_ELEMENTS, q->threads);
    s->epsilon = (float)node_float(q->node, "epsilon", 1e-5);
    s->centred = strcmp(q->node->op->name, "LayerNormalization") == 0;
    s->biased = query_in(q, 2);
    s->wants_mean = q->out_count > 1;
    s->wants_inverse = q->out_count > 2;
    return STATUS_OK;
}

static void row_scale(const struct kernel_state *job, const float *x, float *y, float mean,
                      float inverse)
{
    vf m = vf_set1(mean), f = vf_set1(inverse);
    int64_t n = job->size, i = 0;
    for (; i + VL <= n; i += VL) {
        vf z = vf_mul(vf_sub(vf_load(x + i), m), f);
        vf shift = job->bias ? vf_load(job->bias + i) : vf_zero();
        vf_store(y + i, vf_fma(z, vf_load(job->scale + i), shift));
    }
    if (i < n) {
        vm rest = vm_first(n - i);
        vf z = vf_mul(vf_sub(vf_load_m(x + i, rest), m), f);
        vf shift = job->bias ? vf_load_m(job->bias + i, rest) : vf_zero();
        vf_store_m(y + i, rest, vf_fma(z, vf_load_m(job->scale + i, rest), shift));
    }
}

static void run_tile(void *context, int64_t tile, int thread)
{
    (void)thread;
    const struct kernel_state *job = context;
    int64_t first = tile * job->rows_per_tile, last = first + job->rows_per_tile;
    last = smaller(last, job->rows);
    for (int64_t row = first; row < last; row++) {
        const float *x = job->x + row * job->size;
        float mean = job->centred ? row_moment(x, job->size, 0, 1) : 0;
        float inverse = 1.0f / sqrtf(row_moment(x, job->size, mean, 2) + job->epsilon);
        row_scale(job, x, job->y + row * job->size, mean, inverse);
        if (job->mean)
            job->mean[row] = mean;
        if (job->inverse)
            job->inverse[row] = inverse;
    }
}

static void launch(const struct kernel_state *plan, const struct kernel_args *args)
{
    struct kernel_state job = *plan;
    if (job.size == 0)
        return;
    job.x = args->in[0];
    job.scale = args->in[1];
    job.bias = job.biased ? args->in[2] : NULL;
    job.y = args->out[0];
    job.mean = job.wants_mean ? args->out[1] : NULL;
    job.inverse = job.wants_inverse ? args->out[2] : NULL;
    pool_run(args->pool, divide_up(job.rows, job.rows_per_tile), run_tile, &job);
}

REGISTER_KERNEL(layernorm_rows) = {
    NATIVE(layernorm_rows),
    .ops = OPS("LayerNormalization", "RMSNormalization"),
    .state_size = sizeof(struct kernel_state),
    .plan = plan,
    .launch = launch,
};
