/* SPDX-License-Identifier: Apache-2.0
 *
 * LayerNormalizationGradient: row by row, which stays in the first cache: mean and deviation, then
 * the means of g and g z beside the columns' sums, then dx. Sums over rows go up in tiles, which do
 * not depend on how many threads there are, and join in double; so the result does not, either.
 */
#include "base/numbers/integers.h"
#include "engine/graph/kernel.h"
#include "engine/graph/op.h"
#include "engine/kernels/lib/row_moments.h"

enum {
    TILE_ELEMENTS = 16384,
    TILE_ROWS_MIN = 16, /* so that the tiles' sums stay small beside x */
    TILE_ROWS_MAX = 256,
    COLUMN_BLOCK = 64 /* columns that are joined at a time */
};

enum { DSCALE, DBIAS, SUMS };

/* The plan; a launch completes a copy of it with its addresses. */
struct kernel_state {
    const float *dy, *x, *scale;
    float *dx, *dscale, *dbias; /* may be NULL */
    float *parts;               /* [tiles, SUMS, size] */
    int64_t rows, size, tile_rows, tiles;
    float epsilon;
    bool centred, wants[3];
};

static enum status plan(const struct kernel_query *q, int variant, struct kernel_state *s,
                        struct error *why)
{
    (void)variant;
    TRY(query_plain_f32(q, why));
    const struct shape *x = &q->in[1].shape;
    int axis = shape_axis(x, node_int(q->node, "axis", -1));
    s->rows = shape_span(x, 0, axis);
    s->size = shape_span(x, axis, x->rank);
    if (s->size == 0)
        return UNSUPPORTED(why, "rows without elements");
    s->tile_rows = TILE_ELEMENTS / s->size;
    s->tile_rows = larger(s->tile_rows, TILE_ROWS_MIN);
    s->tile_rows = smaller(s->tile_rows, TILE_ROWS_MAX);
    s->tiles = divide_up(s->rows, s->tile_rows);
    s->epsilon = (float)node_float(q->node, "epsilon", 1e-5);
    s->centred = node_int(q->node, "centred", 1) != 0;
    for (int k = 0; k < 3; k++)
        s->wants[k] = k < q->out_count && q->out[k].dtype != DTYPE_NONE;
    return STATUS_OK;
}

static size_t workspace(const struct kernel_state *s)
{
    return (size_t)(s->tiles * SUMS * s->size) * sizeof(float);
}

struct row {
    const float *dy, *x;
    float *dx, *dscale, *dbias; /* dx may be NULL */
    float mean, inverse;
};

/* Of one piece of a row: the sums of g and g z; and its terms onto the columns' sums. */
SIMD_INLINE void sum_piece(const struct kernel_state *job, const struct row *row, int64_t first,
                           int64_t last, double *g_sum, double *gz_sum)
{
    vf mean = vf_set1(row->mean), inverse = vf_set1(row->inverse);
    vf sum = vf_zero(), sum_z = vf_zero();
    for (int64_t i = first; i < last; i += VL) {
        vm lanes = vm_first(last - i);
        vf dy = vf_load_m(row->dy + i, lanes);
        vf z = vf_mul(vf_sub(vf_load_m(row->x + i, lanes), mean), inverse);
        vf g = vf_mul(dy, vf_load_m(job->scale + i, lanes));
        sum = vf_add(sum, g);
        sum_z = vf_fma(g, z, sum_z);
        vf_store_m(row->dscale + i, lanes, vf_fma(dy, z, vf_load_m(row->dscale + i, lanes)));
        vf_store_m(row->dbias + i, lanes, vf_add(dy, vf_load_m(row->dbias + i, lanes)));
    }
    *g_sum += (double)vf_sum(sum);
    *gz_sum += (double)vf_sum(sum_z);
}

static void run_row(const struct kernel_state *job, const struct row *row)
{
    double g = 0, gz = 0, share = 1 / (double)job->size;
    int64_t n = job->size;
    for (int64_t i = 0; i < n; i += MOMENT_PIECE)
        sum_piece(job, row, i, n - i < MOMENT_PIECE ? n : i + MOMENT_PIECE, &g, &gz);
    if (!row->dx)
        return;
    vf mean = vf_set1(row->mean), inverse = vf_set1(row->inverse);
    vf mean_g = vf_set1(job->centred ? (float)(g * share) : 0);
    vf mean_gz = vf_set1((float)(gz * share));
    for (int64_t i = 0; i < n; i += VL) {
        vm lanes = vm_first(n - i);
        vf z = vf_mul(vf_sub(vf_load_m(row->x + i, lanes), mean), inverse);
        vf term = vf_mul(vf_load_m(row->dy + i, lanes), vf_load_m(job->scale + i, lanes));
        vf dx = vf_fnma(z, mean_gz, vf_sub(term, mean_g));
        vf_store_m(row->dx + i, lanes, vf_mul(dx, inverse));
    }
}

static void run_tile(void *context, int64_t tile, int thread)
{
    (void)thread;
    const struct kernel_state *job = context;
    int64_t n = job->size, first = tile * job->tile_rows, last = first + job->tile_rows;
    struct row row = {.dscale = job->parts + (tile * SUMS + DSCALE) * n,
                      .dbias = job->parts + (tile * SUMS + DBIAS) * n};
    memset(row.dscale, 0, (size_t)(SUMS * n) * sizeof(float));
    for (int64_t r = first; r < last && r < job->rows; r++) {
        row.dy = job->dy + r * n;
        row.x = job->x + r * n;
        row.dx = job->dx ? job->dx + r * n : NULL;
        row.mean = job->centred ? row_moment(row.x, n, 0, 1) : 0;
        row.inverse = 1.0f / sqrtf(row_moment(row.x, n, row.mean, 2) + job->epsilon);
        run_row(job, &row);
    }
}

static void join_columns(const struct kernel_state *job, int64_t from, int kind, float *result)
{
    double sums[COLUMN_BLOCK] = {0};
    int64_t count = job->size - from < COLUMN_BLOCK ? job->size - from : COLUMN_BLOCK;
    for (int64_t t = 0; t < job->tiles; t++)
        for (int64_t c = 0; c < count; c++)
            sums[c] += (double)job->parts[(t * SUMS + kind) * job->size + from + c];
    for (int64_t c = 0; c < count; c++)
        result[from + c] = (float)sums[c];
}

static void join_block(void *context, int64_t block, int thread)
{
    (void)thread;
    const struct kernel_state *job = context;
    if (job->dscale)
        join_columns(job, block * COLUMN_BLOCK, DSCALE, job->dscale);
    if (job->dbias)
        join_columns(job, block * COLUMN_BLOCK, DBIAS, job->dbias);
}

static void launch(const struct kernel_state *plan, const struct kernel_args *args)
{
    struct kernel_state job = *plan;
    job.dy = args->in[0];
    job.x = args->in[1];
    job.scale = args->in[2];
    job.dx = job.wants[0] ? args->out[0] : NULL;
    job.dscale = job.wants[1] ? args->out[1] : NULL;
    job.dbias = job.wants[2] ? args->out[2] : NULL;
    job.parts = args->workspace;
    pool_run(args->pool, job.tiles, run_tile, &job);
    if (job.dscale || job.dbias)
        pool_run(args->pool, divide_up(job.size, COLUMN_BLOCK), join_block, &job);
}

REGISTER_KERNEL(layernorm_gradient) = {
    NATIVE(layernorm_gradient),
    .ops = OPS("LayerNormalizationGradient"),
    .state_size = sizeof(struct kernel_state),
    .plan = plan,
    .workspace = workspace,
    .launch = launch,
};
