/* SPDX-License-Identifier: Apache-2.0
 *
 * Softmax and LogSoftmax along contiguous lines: maximum, exponentials and their sum, scaling;
 * a line of usual length stays in the first cache between the three sweeps.
 */
#include <string.h>

#include "base/numbers/integers.h"
#include "engine/graph/kernel.h"
#include "engine/kernels/lib/simd_math.h"
#include "engine/kernels/lib/tiles.h"
#include "engine/ops/lib/axis.h"

enum { TILE_ELEMENTS = 8192, PIECE = 4096 };

/* The plan; a launch completes a copy of it with its addresses. */
struct kernel_state {
    const float *x;
    float *y;
    int64_t rows, size, rows_per_tile;
    bool log;
};

static enum status plan(const struct kernel_query *q, int variant, struct kernel_state *s,
                        struct error *why)
{
    (void)variant;
    struct axis axis;
    TRY(query_plain_f32(q, why));
    TRY(axis_of_softmax(q->node, &q->in[0].shape, &axis, why));
    if (axis.inner != 1)
        return UNSUPPORTED(why, "the axis is not the last one");
    s->rows = axis.size ? axis.outer : 0;
    s->size = axis.size;
    s->rows_per_tile = rows_of_tile(s->rows, s->size, TILE_ELEMENTS, q->threads);
    s->log = strcmp(q->node->op->name, "LogSoftmax") == 0;
    return STATUS_OK;
}

static float line_max(const float *x, int64_t n)
{
    vf low = vf_set1(-INFINITY), m0 = low, m1 = low, m2 = low, m3 = low;
    int64_t i = 0;
    for (; i + 4 * VL <= n; i += 4 * VL) {
        m0 = vf_max(m0, vf_load(x + i));
        m1 = vf_max(m1, vf_load(x + i + VL));
        m2 = vf_max(m2, vf_load(x + i + 2 * VL));
        m3 = vf_max(m3, vf_load(x + i + 3 * VL));
    }
    for (; i + VL <= n; i += VL)
        m0 = vf_max(m0, vf_load(x + i));
    if (i < n) {
        vm rest = vm_first(n - i);
        m1 = vf_max(m1, vf_select(rest, vf_load_m(x + i, rest), low));
    }
    return vf_max_of(vf_max(vf_max(m0, m1), vf_max(m2, m3)));
}

/* y = e^(x - largest) unless y is NULL; returns the sum. */
SIMD_INLINE float piece_exp(const float *x, float *y, int64_t n, float largest)
{
    vf shift = vf_set1(largest), s0 = vf_zero(), s1 = vf_zero();
    int64_t i = 0;
    for (; i + 2 * VL <= n; i += 2 * VL) {
        vf e0 = vf_exp_fast(vf_sub(vf_load(x + i), shift));
        vf e1 = vf_exp_fast(vf_sub(vf_load(x + i + VL), shift));
        s0 = vf_add(s0, e0);
        s1 = vf_add(s1, e1);
        if (y) {
            vf_store(y + i, e0);
            vf_store(y + i + VL, e1);
        }
    }
    for (; i < n; i += VL) {
        vm rest = vm_first(n - i);
        vf e = vf_exp_fast(vf_sub(vf_load_m(x + i, rest), shift));
        s0 = vf_add(s0, vf_select(rest, e, vf_zero()));
        if (y)
            vf_store_m(y + i, rest, e);
    }
    return vf_sum(vf_add(s0, s1));
}

/* By pieces: the error of one running sum over a whole vocabulary is seen in the results. */
SIMD_INLINE float line_exp(const float *x, float *y, int64_t n, float largest)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i += PIECE)
        sum += (double)piece_exp(x + i, y ? y + i : NULL, n - i < PIECE ? n - i : PIECE, largest);
    return (float)sum;
}

/* y = x factor + shift */
static void line_affine(const float *x, float *y, int64_t n, float factor, float shift)
{
    vf f = vf_set1(factor), s = vf_set1(shift);
    int64_t i = 0;
    for (; i + VL <= n; i += VL)
        vf_store(y + i, vf_fma(vf_load(x + i), f, s));
    if (i < n) {
        vm rest = vm_first(n - i);
        vf_store_m(y + i, rest, vf_fma(vf_load_m(x + i, rest), f, s));
    }
}

static void softmax_line(const float *x, float *y, int64_t n)
{
    float sum = line_exp(x, y, n, line_max(x, n));
    line_affine(y, y, n, 1.0f / sum, 0.0f);
}

static void log_softmax_line(const float *x, float *y, int64_t n)
{
    float largest = line_max(x, n), sum = line_exp(x, NULL, n, largest);
    line_affine(x, y, n, 1.0f, -(largest + logf(sum)));
}

static void run_tile(void *context, int64_t tile, int thread)
{
    (void)thread;
    const struct kernel_state *job = context;
    int64_t first = tile * job->rows_per_tile, last = first + job->rows_per_tile;
    last = smaller(last, job->rows);
    for (int64_t row = first; row < last; row++) {
        const float *x = job->x + row * job->size;
        float *y = job->y + row * job->size;
        if (job->log)
            log_softmax_line(x, y, job->size);
        else
            softmax_line(x, y, job->size);
    }
}

static void launch(const struct kernel_state *plan, const struct kernel_args *args)
{
    struct kernel_state job = *plan;
    job.x = args->in[0];
    job.y = args->out[0];
    pool_run(args->pool, divide_up(job.rows, job.rows_per_tile), run_tile, &job);
}

REGISTER_KERNEL(softmax_rows) = {
    NATIVE(softmax_rows),
    .ops = OPS("Softmax", "LogSoftmax"),
    .state_size = sizeof(struct kernel_state),
    .plan = plan,
    .launch = launch,
};
