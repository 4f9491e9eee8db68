/* SPDX-License-Identifier: Apache-2.0
 *
 * SpMMGradient by the dense matrix: entry by entry a row of dy is added to the row of the result
 * that the entry's column names. Each thread owns a range of rows and passes over all entries, so
 * that sums have one order, whatever the threads.
 */
#include <string.h>

#include "engine/kernels/lib/simd.h"
#include "engine/kernels/lib/sparse_rows.h"

enum { DY = 4 };

/* The plan; a launch completes a copy of it with its addresses. */
struct kernel_state {
    struct sparse_rows matrix;
    const float *dy;
    float *dx;
    int64_t width, inner, tiles; /* inner: rows of the result */
};

static enum status plan(const struct kernel_query *q, int variant, struct kernel_state *s,
                        struct error *why)
{
    (void)variant;
    TRY(sparse_rows_from(q, false, &s->matrix, why));
    if (q->out_count > 1 && q->out[1].dtype != DTYPE_NONE)
        return UNSUPPORTED(why, "the gradient by the values is wanted");
    s->width = q->in[DY].shape.dim[1];
    s->inner = q->out[0].shape.dim[0];
    return STATUS_OK;
}

SIMD_INLINE void add_row(float *to, const float *from, float value, int64_t n)
{
    vf factor = vf_set1(value);
    int64_t i = 0;
    for (; i + VL <= n; i += VL)
        vf_store(to + i, vf_fma(factor, vf_load(from + i), vf_load(to + i)));
    if (i < n) {
        vm rest = vm_first(n - i);
        vf_store_m(to + i, rest,
                   vf_fma(factor, vf_load_m(from + i, rest), vf_load_m(to + i, rest)));
    }
}

static void run_tile(void *context, int64_t tile, int thread)
{
    (void)thread;
    const struct kernel_state *job = context;
    int64_t low = job->inner * tile / job->tiles, high = job->inner * (tile + 1) / job->tiles;
    memset(job->dx + low * job->width, 0, (size_t)((high - low) * job->width) * sizeof(float));
    const struct sparse_rows *m = &job->matrix;
    const float *values = m->values;
    for (int64_t row = 0; row < m->rows; row++) {
        const float *dy = job->dy + row * job->width;
        int64_t last = sparse_offset(m, row + 1);
        for (int64_t z = sparse_offset(m, row); z < last; z++) {
            int64_t column = sparse_column(m, z);
            if (column >= low && column < high)
                add_row(job->dx + column * job->width, dy, values[z], job->width);
        }
    }
}

static void launch(const struct kernel_state *plan, const struct kernel_args *args)
{
    struct kernel_state job = *plan;
    sparse_rows_take(&job.matrix, args);
    job.dy = args->in[DY];
    job.dx = args->out[0];
    job.tiles = pool_threads(args->pool);
    pool_run(args->pool, job.tiles, run_tile, &job);
}

REGISTER_KERNEL(spmm_gradient_rows) = {
    NATIVE(spmm_gradient_rows),
    .ops = OPS("SpMMGradient"),
    .state_size = sizeof(struct kernel_state),
    .plan = plan,
    .launch = launch,
};
