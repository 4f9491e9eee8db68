/* SPDX-License-Identifier: Apache-2.0
 *
 * SpMM, row by row: the sums of up to four vectors of a row stay in registers while its entries go
 * by. Rows differ in length by two orders of magnitude, so tiles are cut by entries, not by rows;
 * the first row of a tile is found by bisection in the offsets. Values and both dense matrices may
 * be of bf16, sums are of f32.
 */
#include "engine/kernels/lib/simd_floats.h"
#include "engine/kernels/lib/sparse_rows.h"

enum { DENSE = 3 };
enum {
    TILE_WORK = 1 << 15, /* multiply-adds that are worth a task */
    VECTORS = 4,
};

/* The plan; a launch completes a copy of it with its addresses. */
struct kernel_state {
    struct sparse_rows matrix;
    const void *dense;
    void *y;
    int64_t width, inner, tiles; /* inner: rows of dense */
};

static enum status plan(const struct kernel_query *q, int variant, struct kernel_state *s,
                        struct error *why)
{
    (void)variant;
    TRY(sparse_rows_from(q, true, &s->matrix, why));
    s->width = q->in[DENSE].shape.dim[1];
    s->inner = q->in[DENSE].shape.dim[0];
    s->tiles = s->matrix.entries * s->width / TILE_WORK + 1;
    return STATUS_OK;
}

/* `count` vectors of one row from column `part` on, the last with only the lanes of `rest`. */
SIMD_INLINE void sum_part(const struct kernel_state *job, int64_t row, int64_t part, int count,
                          vm rest, bool bf16)
{
    const struct sparse_rows *m = &job->matrix;
    int64_t first = sparse_offset(m, row), last = sparse_offset(m, row + 1);
    vf sum[VECTORS];
    for (int v = 0; v < count; v++)
        sum[v] = vf_zero();
    for (int64_t z = first; z < last; z++) {
        int64_t column = sparse_column(m, z);
        column = column >= 0 && column < job->inner ? column : 0;
        const void *from = float_at(job->dense, column * job->width + part, bf16);
        vf value = vf_set1(float_read(m->values, z, bf16));
        for (int v = 0; v < count - 1; v++)
            sum[v] = vf_fma(value, vf_read(from, v * VL, bf16), sum[v]);
        vf end = vf_read_m(from, (count - 1) * VL, rest, bf16);
        sum[count - 1] = vf_fma(value, end, sum[count - 1]);
    }
    int64_t to = row * job->width + part;
    for (int v = 0; v < count - 1; v++)
        vf_write(job->y, to + v * VL, sum[v], bf16);
    vf_write_m(job->y, to + (count - 1) * VL, rest, sum[count - 1], bf16);
}

SIMD_INLINE void sum_row(const struct kernel_state *job, int64_t row, bool bf16)
{
    int64_t part = 0;
    for (; part + VECTORS * VL <= job->width; part += VECTORS * VL)
        sum_part(job, row, part, VECTORS, vm_first(VL), bf16);
    for (; part < job->width; part += VL)
        sum_part(job, row, part, 1, vm_first(job->width - part), bf16);
}

/* The first row that begins at or after the entry. */
static int64_t row_from(const struct sparse_rows *m, int64_t entry)
{
    int64_t low = 0, high = m->rows;
    while (low < high) {
        int64_t middle = (low + high) / 2;
        if (sparse_offset(m, middle) < entry)
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
    const struct sparse_rows *m = &job->matrix;
    int64_t first = tile ? row_from(m, m->entries * tile / job->tiles) : 0;
    int64_t last =
        tile + 1 < job->tiles ? row_from(m, m->entries * (tile + 1) / job->tiles) : m->rows;
    for (int64_t row = first; row < last; row++)
        if (m->bf16)
            sum_row(job, row, true);
        else
            sum_row(job, row, false);
}

static void launch(const struct kernel_state *plan, const struct kernel_args *args)
{
    struct kernel_state job = *plan;
    sparse_rows_take(&job.matrix, args);
    job.dense = args->in[DENSE];
    job.y = args->out[0];
    pool_run(args->pool, job.tiles, run_tile, &job);
}

REGISTER_KERNEL(spmm_rows) = {
    NATIVE(spmm_rows), .ops = OPS("SpMM"), .state_size = sizeof(struct kernel_state),
    .plan = plan,      .launch = launch,
};
