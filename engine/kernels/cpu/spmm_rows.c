/* SPDX-License-Identifier: Apache-2.0
 *
 * SpMM, row by row: the sums of up to four vectors of a row stay in registers while its entries go
 * by. Rows differ in length by two orders of magnitude, so tiles are cut by entries, not by rows;
 * the first row of a tile is found by bisection in the offsets.
 */
#include "engine/graph/kernel.h"
#include "engine/kernels/lib/simd.h"

enum { VALUES, COLUMNS, OFFSETS, DENSE };
enum {
    TILE_WORK = 1 << 15, /* multiply-adds that are worth a task */
    VECTORS = 4,
};

/* The plan; a launch completes a copy of it with its addresses. */
struct kernel_state {
    const float *values, *dense;
    const void *columns, *offsets;
    bool wide_columns, wide_offsets; /* i64 */
    float *y;
    int64_t rows, entries, width, inner, tiles; /* inner: rows of dense */
};

static enum status plan(const struct kernel_query *q, int variant, struct kernel_state *s,
                        struct error *why)
{
    (void)variant;
    for (int k = 0; k < 4; k++)
        if (!desc_is_plain(&q->in[k]))
            return UNSUPPORTED(why, "input %d is not plain", k);
    for (int k = COLUMNS; k <= OFFSETS; k++)
        if (q->in[k].dtype != DTYPE_I32 && q->in[k].dtype != DTYPE_I64)
            return UNSUPPORTED(why, "input %d is %s", k, dtype_name(q->in[k].dtype));
    if (q->in[VALUES].dtype != DTYPE_F32 || q->in[DENSE].dtype != DTYPE_F32)
        return UNSUPPORTED(why, "only f32");
    if (!desc_is_plain(&q->out[0]))
        return UNSUPPORTED(why, "the output is not plain");
    if (q->node->post_count)
        return UNSUPPORTED(why, "no fused epilogue");
    s->wide_columns = q->in[COLUMNS].dtype == DTYPE_I64;
    s->wide_offsets = q->in[OFFSETS].dtype == DTYPE_I64;
    s->rows = q->out[0].shape.dim[0];
    s->entries = q->in[VALUES].shape.dim[0];
    s->width = q->in[DENSE].shape.dim[1];
    s->inner = q->in[DENSE].shape.dim[0];
    s->tiles = s->entries * s->width / TILE_WORK + 1;
    return STATUS_OK;
}

SIMD_INLINE int64_t index_at(const void *list, bool wide, int64_t i)
{
    return wide ? ((const int64_t *)list)[i] : ((const int32_t *)list)[i];
}

/* Offsets and columns out of range read what is there: the reference has refused such a matrix. */
static int64_t offset_at(const struct kernel_state *job, int64_t row)
{
    int64_t at = index_at(job->offsets, job->wide_offsets, row);
    return at < 0 ? 0 : at > job->entries ? job->entries : at;
}

/* `count` vectors of one row from column `part` on, the last with only the lanes of `rest`. */
SIMD_INLINE void sum_part(const struct kernel_state *job, int64_t row, int64_t part, int count,
                          vm rest)
{
    int64_t first = offset_at(job, row), last = offset_at(job, row + 1);
    vf sum[VECTORS];
    for (int v = 0; v < count; v++)
        sum[v] = vf_zero();
    for (int64_t z = first; z < last; z++) {
        int64_t column = index_at(job->columns, job->wide_columns, z);
        column = column >= 0 && column < job->inner ? column : 0;
        const float *from = job->dense + column * job->width + part;
        vf value = vf_set1(job->values[z]);
        for (int v = 0; v < count - 1; v++)
            sum[v] = vf_fma(value, vf_load(from + v * VL), sum[v]);
        sum[count - 1] = vf_fma(value, vf_load_m(from + (count - 1) * VL, rest), sum[count - 1]);
    }
    float *to = job->y + row * job->width + part;
    for (int v = 0; v < count - 1; v++)
        vf_store(to + v * VL, sum[v]);
    vf_store_m(to + (count - 1) * VL, rest, sum[count - 1]);
}

static void sum_row(const struct kernel_state *job, int64_t row)
{
    int64_t part = 0;
    for (; part + VECTORS * VL <= job->width; part += VECTORS * VL)
        sum_part(job, row, part, VECTORS, vm_first(VL));
    for (; part < job->width; part += VL)
        sum_part(job, row, part, 1, vm_first(job->width - part));
}

/* The first row that begins at or after the entry. */
static int64_t row_from(const struct kernel_state *job, int64_t entry)
{
    int64_t low = 0, high = job->rows;
    while (low < high) {
        int64_t middle = (low + high) / 2;
        if (offset_at(job, middle) < entry)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void run_tile(void *context, int64_t tile, int thread)
{
    (void)thread;
    const struct kernel_state *job = context;
    int64_t first = tile ? row_from(job, job->entries * tile / job->tiles) : 0;
    int64_t last =
        tile + 1 < job->tiles ? row_from(job, job->entries * (tile + 1) / job->tiles) : job->rows;
    for (int64_t row = first; row < last; row++)
        sum_row(job, row);
}

static void launch(const struct kernel_state *plan, const struct kernel_args *args)
{
    struct kernel_state job = *plan;
    job.values = args->in[VALUES];
    job.columns = args->in[COLUMNS];
    job.offsets = args->in[OFFSETS];
    job.dense = args->in[DENSE];
    job.y = args->out[0];
    pool_run(args->pool, job.tiles, run_tile, &job);
}

REGISTER_KERNEL(spmm_rows) = {
    NATIVE(spmm_rows), .ops = OPS("SpMM"), .state_size = sizeof(struct kernel_state),
    .plan = plan,      .launch = launch,
};
