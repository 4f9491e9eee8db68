/* SPDX-License-Identifier: Apache-2.0
 *
 * LayerNormalization: mean, then the sum of squared deviations, then the result. Two sweeps for
 * the variance are as exact as Welford's recurrence and cost less, for a row stays in the first
 * cache. RMSNormalization is the same round a mean of zero. The output may be the input's memory.
 * A row of bf16 becomes floats there first, which all three sweeps then read.
 */
#include <string.h>

#include "base/numbers/integers.h"
#include "engine/graph/kernel.h"
#include "engine/graph/op.h"
#include "engine/kernels/lib/plain_floats.h"
#include "engine/kernels/lib/row_moments.h"
#include "engine/kernels/lib/tiles.h"

enum { TILE_ELEMENTS = 8192 };

/* The plan; a launch completes a copy of it with its addresses. */
struct kernel_state {
    const void *x, *scale, *bias; /* bias may be NULL */
    void *y;
    float *mean, *inverse; /* mean and inverse deviation, of f32 in any case; may be NULL */
    float *lines;          /* bf16: a row as floats, for each thread */
    int64_t rows, size, rows_per_tile, line_size;
    float epsilon;
    bool centred; /* the mean is taken off */
    bool biased, wants_mean, wants_inverse, bf16;
    int threads;
};

static enum status check_types(const struct kernel_query *q, bool *bf16, struct error *why)
{
    struct kernel_query main = *q, moments = *q;
    main.out_count = 1;
    TRY(query_plain_floats(&main, bf16, why));
    moments.in_count = 0;
    moments.out++;
    moments.out_count--;
    return q->out_count > 1 ? query_plain_f32(&moments, why) : STATUS_OK;
}

/* scale and bias must have one element per element of a row. */
static enum status plan(const struct kernel_query *q, int variant, struct kernel_state *s,
                        struct error *why)
{
    (void)variant;
    TRY(check_types(q, &s->bf16, why));
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
    s->threads = q->threads;
    s->line_size = s->bf16 ? round_up(s->size, 16) : 0; /* whole cache lines */
    return STATUS_OK;
}

static size_t workspace(const struct kernel_state *s)
{
    return (size_t)(s->threads * s->line_size) * sizeof(float);
}

SIMD_INLINE void row_scale(const struct kernel_state *job, const float *x, void *y, float mean,
                           float inverse, bool bf16)
{
    vf m = vf_set1(mean), f = vf_set1(inverse);
    int64_t n = job->size, i = 0;
    for (; i + VL <= n; i += VL) {
        vf z = vf_mul(vf_sub(vf_load(x + i), m), f);
        vf shift = job->bias ? vf_read(job->bias, i, bf16) : vf_zero();
        vf_write(y, i, vf_fma(z, vf_read(job->scale, i, bf16), shift), bf16);
    }
    if (i < n) {
        vm rest = vm_first(n - i);
        vf z = vf_mul(vf_sub(vf_load_m(x + i, rest), m), f);
        vf shift = job->bias ? vf_read_m(job->bias, i, rest, bf16) : vf_zero();
        vf_write_m(y, i, rest, vf_fma(z, vf_read_m(job->scale, i, rest, bf16), shift), bf16);
    }
}

SIMD_INLINE void run_rows(const struct kernel_state *job, int64_t tile, int thread, bool bf16)
{
    int64_t first = tile * job->rows_per_tile, last = first + job->rows_per_tile;
    last = smaller(last, job->rows);
    for (int64_t row = first; row < last; row++) {
        int64_t at = row * job->size;
        const float *x = float_at(job->x, at, bf16);
        if (bf16) {
            float *line = job->lines + thread * job->line_size;
            floats_widen((const uint16_t *)job->x + at, line, job->size);
            x = line;
        }
        float mean = job->centred ? row_moment(x, job->size, 0, 1) : 0;
        float inverse = 1.0f / sqrtf(row_moment(x, job->size, mean, 2) + job->epsilon);
        row_scale(job, x, out_at(job->y, at, bf16), mean, inverse, bf16);
        if (job->mean)
            job->mean[row] = mean;
        if (job->inverse)
            job->inverse[row] = inverse;
    }
}

static void run_tile(void *context, int64_t tile, int thread)
{
    const struct kernel_state *job = context;
    if (job->bf16)
        run_rows(job, tile, thread, true);
    else
        run_rows(job, tile, thread, false);
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
    job.lines = args->workspace;
    pool_run(args->pool, divide_up(job.rows, job.rows_per_tile), run_tile, &job);
}

REGISTER_KERNEL(layernorm_rows) = {
    NATIVE(layernorm_rows),
    .ops = OPS("LayerNormalization", "RMSNormalization"),
    .state_size = sizeof(struct kernel_state),
    .plan = plan,
    .workspace = workspace,
    .launch = launch,
};
