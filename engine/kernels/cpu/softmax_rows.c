/* SPDX-License-Identifier: Apache-2.0
 *
 * Softmax and LogSoftmax along contiguous lines: maximum, exponentials and their sum, scaling;
 * a line of usual length stays in the first cache between the three sweeps.
 */
#include <string.h>

#include "base/numbers/integers.h"
#include "engine/graph/kernel.h"
#include "engine/kernels/lib/plain_floats.h"
#include "engine/kernels/lib/simd_math.h"
#include "engine/kernels/lib/tiles.h"
#include "engine/ops/lib/axis.h"

enum { TILE_ELEMENTS = 8192, PIECE = 4096 };

/* The plan; a launch completes a copy of it with its addresses. */
struct kernel_state {
    const void *x;
    void *y;
    float *lines; /* bf16: the exponentials of a line, for each thread */
    int64_t rows, size, rows_per_tile, line_size;
    bool log, bf16;
    int threads;
};

static enum status plan(const struct kernel_query *q, int variant, struct kernel_state *s,
                        struct error *why)
{
    (void)variant;
    struct axis axis;
    TRY(query_plain_floats(q, &s->bf16, why));
    TRY(axis_of_softmax(q->node, &q->in[0].shape, &axis, why));
    if (axis.inner != 1)
        return UNSUPPORTED(why, "the axis is not the last one");
    s->rows = axis.size ? axis.outer : 0;
    s->size = axis.size;
    s->rows_per_tile = rows_of_tile(s->rows, s->size, TILE_ELEMENTS, q->threads);
    s->log = strcmp(q->node->op->name, "LogSoftmax") == 0;
    s->threads = q->threads;
    s->line_size = s->bf16 && !s->log ? round_up(s->size, 16) : 0; /* whole cache lines */
    return STATUS_OK;
}

static size_t workspace(const struct kernel_state *s)
{
    return (size_t)(s->threads * s->line_size) * sizeof(float);
}

SIMD_INLINE float line_max(const void *x, int64_t n, bool bf16)
{
    vf low = vf_set1(-INFINITY), m0 = low, m1 = low, m2 = low, m3 = low;
    int64_t i = 0;
    for (; i + 4 * VL <= n; i += 4 * VL) {
        m0 = vf_max(m0, vf_read(x, i, bf16));
        m1 = vf_max(m1, vf_read(x, i + VL, bf16));
        m2 = vf_max(m2, vf_read(x, i + 2 * VL, bf16));
        m3 = vf_max(m3, vf_read(x, i + 3 * VL, bf16));
    }
    for (; i + VL <= n; i += VL)
        m0 = vf_max(m0, vf_read(x, i, bf16));
    if (i < n) {
        vm rest = vm_first(n - i);
        m1 = vf_max(m1, vf_select(rest, vf_read_m(x, i, rest, bf16), low));
    }
    return vf_max_of(vf_max(vf_max(m0, m1), vf_max(m2, m3)));
}

/* y = e^(x - largest) unless y is NULL; returns the sum. */
SIMD_INLINE float piece_exp(const void *x, float *y, int64_t n, float largest, bool bf16)
{
    vf shift = vf_set1(largest), s0 = vf_zero(), s1 = vf_zero();
    int64_t i = 0;
    for (; i + 2 * VL <= n; i += 2 * VL) {
        vf e0 = vf_exp_fast(vf_sub(vf_read(x, i, bf16), shift));
        vf e1 = vf_exp_fast(vf_sub(vf_read(x, i + VL, bf16), shift));
        s0 = vf_add(s0, e0);
        s1 = vf_add(s1, e1);
        if (y) {
            vf_store(y + i, e0);
            vf_store(y + i + VL, e1);
        }
    }
    for (; i < n; i += VL) {
        vm rest = vm_first(n - i);
        vf e = vf_exp_fast(vf_sub(vf_read_m(x, i, rest, bf16), shift));
        s0 = vf_add(s0, vf_select(rest, e, vf_zero()));
        if (y)
            vf_store_m(y + i, rest, e);
    }
    return vf_sum(vf_add(s0, s1));
}

/* By pieces: the error of one running sum over a whole vocabulary is seen in the results. */
SIMD_INLINE float line_exp(const void *x, float *y, int64_t n, float largest, bool bf16)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i += PIECE)
        sum += (double)piece_exp(float_at(x, i, bf16), y ? y + i : NULL, smaller(n - i, PIECE),
                                 largest, bf16);
    return (float)sum;
}

/* y = x factor + shift */
SIMD_INLINE void line_affine(const void *x, bool x_bf16, void *y, bool y_bf16, int64_t n,
                             float factor, float shift)
{
    vf f = vf_set1(factor), s = vf_set1(shift);
    int64_t i = 0;
    for (; i + VL <= n; i += VL)
        vf_write(y, i, vf_fma(vf_read(x, i, x_bf16), f, s), y_bf16);
    if (i < n) {
        vm rest = vm_first(n - i);
        vf_write_m(y, i, rest, vf_fma(vf_read_m(x, i, rest, x_bf16), f, s), y_bf16);
    }
}

SIMD_INLINE void softmax_line(const void *x, float *exps, void *y, int64_t n, bool bf16)
{
    float sum = line_exp(x, exps, n, line_max(x, n, bf16), bf16);
    line_affine(exps, false, y, bf16, n, 1.0f / sum, 0.0f);
}

SIMD_INLINE void log_softmax_line(const void *x, void *y, int64_t n, bool bf16)
{
    float largest = line_max(x, n, bf16), sum = line_exp(x, NULL, n, largest, bf16);
    line_affine(x, bf16, y, bf16, n, 1.0f, -(largest + logf(sum)));
}

SIMD_INLINE void run_rows(const struct kernel_state *job, int64_t tile, int thread, bool bf16)
{
    int64_t first = tile * job->rows_per_tile, last = first + job->rows_per_tile;
    int64_t at = first * job->size;
    last = smaller(last, job->rows);
    for (int64_t row = first; row < last; row++, at += job->size) {
        const void *x = float_at(job->x, at, bf16);
        void *y = out_at(job->y, at, bf16);
        if (job->log)
            log_softmax_line(x, y, job->size, bf16);
        else
            softmax_line(x, bf16 ? job->lines + thread * job->line_size : y, y, job->size, bf16);
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
    job.x = args->in[0];
    job.y = args->out[0];
    job.lines = args->workspace;
    pool_run(args->pool, divide_up(job.rows, job.rows_per_tile), run_tile, &job);
}

REGISTER_KERNEL(softmax_rows) = {
    NATIVE(softmax_rows),
    .ops = OPS("Softmax", "LogSoftmax"),
    .state_size = sizeof(struct kernel_state),
    .plan = plan,
    .workspace = workspace,
    .launch = launch,
};
