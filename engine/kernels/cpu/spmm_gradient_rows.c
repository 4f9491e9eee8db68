/* SPDX-License-Identifier: Apache-2.0
 *
 * SpMMGradient by the dense matrix: entry by entry a row of dy is added to the row of the result
 * that the entry's column names. Each thread owns a range of rows and passes over all entries, so
 * that sums have one order, whatever the threads.
 */
#include <string.h>

#include "engine/graph/kernel.h"
#include "engine/kernels/lib/simd.h"

enum { VALUES, COLUMNS, OFFSETS, DENSE, DY };

/* The plan; a launch completes a copy of it with its addresses. */
struct kernel_state {
    const float *values, *dy;
    const void *columns, *offsets;
    bool wide_columns, wide_offsets; /* i64 */
    float *dx;
    int64_t rows, entries, width, inner, tiles; /* inner: rows of the result */
};

static enum status plan(const struct kernel_query *q, int variant, struct kernel_state *s,
                        struct error *why)
{
    (void)variant;
    for (int k = 0; k < q->in_count; k++)
        if (!desc_is_plain(&q->in[k]))
            return UNSUPPORTED(why, "input %d is not plain", k);
    for (int k = COLUMNS; k <= OFFSETS; k++)
        if (q->in[k].dtype != DTYPE_I32 && q->in[k].dtype != DTYPE_I64)
            return UNSUPPORTED(why, "input %d is %s", k, dtype_name(q->in[k].dtype));
    if (q->in[VALUES].dtype != DTYPE_F32 || q->in[DY].dtype != DTYPE_F32)
        return UNSUPPORTED(why, "only f32");
    if (!desc_is_plain(&q->out[0]))
        return UNSUPPORTED(why, "the output is not plain");
    if (q->out_count > 1 && q->out[1].dtype != DTYPE_NONE)
        return UNSUPPORTED(why, "the gradient by the values is wanted");
    if (q->node->post_count)
        return UNSUPPORTED(why, "no fused epilogue");
    s->wide_columns = q->in[COLUMNS].dtype == DTYPE_I64;
    s->wide_offsets = q->in[OFFSETS].dtype == DTYPE_I64;
    s->rows = q->in[DY].shape.dim[0];
    s->entries = q->in[VALUES].shape.dim[0];
    s->width = q->in[DY].shape.dim[1];
    s->inner = q->out[0].shape.dim[0];
    return STATUS_OK;
}

SIMD_INLINE int64_t index_at(const void *list, bool wide, int64_t i)
{
    return wide ? ((const int64_t *)list)[i] : ((const int32_t *)list)[i];
}

static int64_t offset_at(const struct kernel_state *job, int64_t row)
{
    int64_t at = index_at(job->offsets, job->wide_offsets, row);
    return at < 0 ? 0 : at > job->entries ? job->entries : at;
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
    for (int64_t row = 0; row < job->rows; row++) {
        const float *dy = job->dy + row * job->width;
        int64_t last = offset_at(job, row + 1);
        for (int64_t z = offset_at(job, row); z < last; z++) {
            int64_t column = index_at(job->columns, job->wide_columns, z);
            if (column >= low && column < high)
                add_row(job->dx + column * job->width, dy, job->values[z], job->width);
        }
    }
}

static void launch(const struct kernel_state *plan, const struct kernel_args *args)
{
    struct kernel_state job = *plan;
    job.values = args->in[VALUES];
    job.columns = args->in[COLUMNS];
    job.offsets = args->in[OFFSETS];
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
