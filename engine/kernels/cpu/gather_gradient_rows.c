/* SPDX-License-Identifier: Apache-2.0
 *
 * GatherGradient: the indices are sorted by the row that they name, then each row of the result is
 * summed in registers and written once, zeros included. A row's terms keep the order of their
 * indices and are summed in pieces, so the result is the same on any number of threads and a row
 * that is named ten thousand times loses no more than one that is named fifty times.
 *
 * The sort has two passes. Chunks of the indices are dealt into buckets of neighbouring rows, each
 * chunk to places of its own; then each bucket is sorted by row. The results' rows of a bucket fit
 * into the second cache.
 */
#include <string.h>

#include "base/numbers/integers.h"
#include "engine/graph/kernel.h"
#include "engine/kernels/lib/simd.h"

enum {
    BUCKET_BYTES = 1 << 16,  /* of the result */
    BUCKETS_MAX = 1 << 13,   /* counted by each chunk */
    CHUNK_INDICES = 1 << 12, /* no chunk has less, save the only one */
    PART_FLOATS = 128,       /* columns that are split off where there are few rows */
    PIECE = 64,              /* terms of a sum before it joins the total */
    AHEAD = 16,              /* rows that are prefetched */
    LINE_FLOATS = 16
};

/* An index, on the way to its place. */
struct entry {
    int32_t row, source; /* of the result, of dy */
};

/* The plan; a launch completes a copy of it with its addresses. */
struct kernel_state {
    const float *dy;
    const void *indices;
    float *dx;
    struct entry *entries; /* [count], by bucket */
    int32_t *sources;      /* [count], by row */
    int32_t *ends;         /* per row: where its sources end; those of the next begin there */
    int32_t *places;       /* [chunks, buckets]: where the next entry goes */
    bool wide;             /* i64 indices */
    int64_t outer, rows, inner, count, bag;
    int64_t chunk, chunks, buckets, parts, part_floats;
    int shift; /* a bucket has 2^shift rows */
    float factor;
};

static void plan_split(struct kernel_state *s, int threads)
{
    int64_t chunks = s->count / CHUNK_INDICES;
    chunks = chunks > threads ? threads : chunks > 0 ? chunks : 1;
    s->chunk = divide_up(s->count, chunks);
    s->chunks = chunks;
    while (s->shift < 30 &&
           ((s->inner * (int64_t)sizeof(float)) << (s->shift + 1) <= BUCKET_BYTES ||
            s->rows >> s->shift >= BUCKETS_MAX))
        s->shift++;
    s->buckets = ((s->rows - 1) >> s->shift) + 1;
    s->part_floats = s->inner;
    if (s->buckets * s->outer < threads * 4)
        s->part_floats = s->inner < PART_FLOATS ? s->inner : PART_FLOATS;
    s->parts = s->inner ? divide_up(s->inner, s->part_floats) : 0;
}

static enum status plan(const struct kernel_query *q, int variant, struct kernel_state *s,
                        struct error *why)
{
    (void)variant;
    if (q->in[0].dtype != DTYPE_F32 || (q->in[1].dtype != DTYPE_I32 && q->in[1].dtype != DTYPE_I64))
        return UNSUPPORTED(why, "only f32 and indices of i32 or i64");
    if (q->node->post_count)
        return UNSUPPORTED(why, "no fused epilogue");
    if (!desc_is_plain(&q->in[0]) || !desc_is_plain(&q->in[1]) || !desc_is_plain(&q->out[0]))
        return UNSUPPORTED(why, "only plain tensors");
    const struct shape *index = &q->in[1].shape, *dx = &q->out[0].shape;
    const char *mode = node_string(q->node, "mode", "rows");
    int axis = (int)node_int(q->node, "axis", 0);
    s->wide = q->in[1].dtype == DTYPE_I64;
    s->outer = shape_span(dx, 0, axis);
    s->rows = dx->dim[axis];
    s->inner = shape_span(dx, axis + 1, dx->rank);
    s->count = shape_count(index);
    s->bag = strcmp(mode, "rows") == 0 ? 1 : index->dim[index->rank - 1];
    s->factor = strcmp(mode, "mean") == 0 && s->bag ? 1.0f / (float)s->bag : 1.0f;
    if (s->rows > INT32_MAX || s->count > INT32_MAX)
        return UNSUPPORTED(why, "more than 2^31 rows or indices");
    if (s->rows > 0)
        plan_split(s, q->threads);
    return STATUS_OK;
}

static size_t workspace(const struct kernel_state *s)
{
    return (size_t)s->count * (sizeof(struct entry) + sizeof(int32_t)) +
           (size_t)(s->rows + s->chunks * s->buckets) * sizeof(int32_t);
}

/* ---- the sort ---- */

/* Outside of the table: -1, as if it were not there. The reference reports it as an error. */
SIMD_INLINE int64_t row_of(const struct kernel_state *job, int64_t i)
{
    int64_t row =
        job->wide ? ((const int64_t *)job->indices)[i] : ((const int32_t *)job->indices)[i];
    row += row < 0 ? job->rows : 0;
    return row >= 0 && row < job->rows ? row : -1;
}

static int64_t chunk_end(const struct kernel_state *job, int64_t chunk)
{
    int64_t last = (chunk + 1) * job->chunk;
    return last < job->count ? last : job->count;
}

static void count_chunk(void *context, int64_t chunk, int thread)
{
    (void)thread;
    const struct kernel_state *job = context;
    int32_t *places = job->places + chunk * job->buckets;
    memset(places, 0, (size_t)job->buckets * sizeof(*places));
    for (int64_t i = chunk * job->chunk; i < chunk_end(job, chunk); i++) {
        int64_t row = row_of(job, i);
        if (row >= 0)
            places[row >> job->shift]++;
    }
}

/* Counts become places: within a bucket those of the first chunk come first. */
static void find_places(const struct kernel_state *job)
{
    int32_t next = 0;
    for (int64_t b = 0; b < job->buckets; b++) {
        for (int64_t c = 0; c < job->chunks; c++) {
            int32_t count = job->places[c * job->buckets + b];
            job->places[c * job->buckets + b] = next;
            next += count;
        }
    }
}

static void deal_chunk(void *context, int64_t chunk, int thread)
{
    (void)thread;
    const struct kernel_state *job = context;
    int32_t *places = job->places + chunk * job->buckets;
    int64_t bag = job->bag;
    for (int64_t i = chunk * job->chunk; i < chunk_end(job, chunk); i++) {
        int64_t row = row_of(job, i);
        if (row >= 0)
            job->entries[places[row >> job->shift]++] =
                (struct entry){(int32_t)row, (int32_t)(bag == 1 ? i : i / bag)};
    }
}

/* The places of the last chunk stand after its entries by now: where buckets end. */
static void sort_bucket(void *context, int64_t bucket, int thread)
{
    (void)thread;
    const struct kernel_state *job = context;
    const int32_t *bucket_ends = job->places + (job->chunks - 1) * job->buckets;
    int32_t from = bucket ? bucket_ends[bucket - 1] : 0, to = bucket_ends[bucket], next = from;
    int64_t first = bucket << job->shift, last = first + ((int64_t)1 << job->shift);
    last = smaller(last, job->rows);
    memset(job->ends + first, 0, (size_t)(last - first) * sizeof(*job->ends));
    for (int32_t e = from; e < to; e++)
        job->ends[job->entries[e].row]++;
    for (int64_t row = first; row < last; row++) {
        int32_t count = job->ends[row];
        job->ends[row] = next;
        next += count;
    }
    for (int32_t e = from; e < to; e++)
        job->sources[job->ends[job->entries[e].row]++] = job->entries[e].source;
}

/* ---- the sums ---- */

struct part {
    const float *dy; /* from the part's first column on */
    float *dx;
    int64_t width, inner;
    const int32_t *sources, *stop; /* stop: after the last of the bucket */
};

/* At most VECTORS_MAX vectors, of this many floats. */
SIMD_INLINE void sum_columns(const struct part *p, const int32_t *source, int64_t count,
                             int64_t column, int64_t width, float factor)
{
    enum { VECTORS_MAX = 128 / VL > 8 ? 8 : 128 / VL };
    vf total[VECTORS_MAX], sum[VECTORS_MAX];
    for (int v = 0; v < VECTORS_MAX; v++)
        total[v] = vf_zero();
    for (int64_t first = 0; first < count; first += PIECE) {
        int64_t last = first + PIECE < count ? first + PIECE : count;
        for (int v = 0; v < VECTORS_MAX; v++)
            sum[v] = vf_zero();
        for (int64_t e = first; e < last; e++) {
            const float *dy = p->dy + source[e] * p->inner + column;
            if (source + e + AHEAD < p->stop) {
                const float *next = p->dy + source[e + AHEAD] * p->inner + column;
                for (int64_t k = 0; k < width && k < VECTORS_MAX * VL; k += LINE_FLOATS)
                    simd_prefetch(next + k);
            }
            for (int v = 0; v < VECTORS_MAX && v * VL < width; v++)
                sum[v] = vf_add(sum[v], vf_load_m(dy + v * VL, vm_first(width - v * VL)));
        }
        for (int v = 0; v < VECTORS_MAX && v * VL < width; v++)
            total[v] = vf_add(total[v], sum[v]);
    }
    for (int v = 0; v < VECTORS_MAX && v * VL < width; v++)
        vf_store_m(p->dx + column + v * VL, vm_first(width - v * VL),
                   vf_mul(total[v], vf_set1(factor)));
}

SIMD_INLINE void sum_row(const struct part *p, int64_t count, int64_t width, float factor)
{
    enum { STEP = (128 / VL > 8 ? 8 : 128 / VL) * VL };
    if (count == 0) {
        memset(p->dx, 0, (size_t)width * sizeof(float));
        return;
    }
    for (int64_t column = 0; column < width; column += STEP)
        sum_columns(p, p->sources, count, column, width - column, factor);
}

/* Widths that are usual get loops of constant length, with the sums in registers. */
static void sum_tile(void *context, int64_t tile, int thread)
{
    (void)thread;
    const struct kernel_state *job = context;
    int64_t part = tile % job->parts, bucket = tile / job->parts % job->buckets;
    int64_t outer = tile / job->parts / job->buckets, column = part * job->part_floats;
    int64_t first = bucket << job->shift, last = first + ((int64_t)1 << job->shift);
    int64_t per_outer = job->bag ? job->count / job->bag : 0;
    last = smaller(last, job->rows);
    struct part p = {.dy = job->dy + outer * per_outer * job->inner + column,
                     .width = job->inner - column < job->part_floats ? job->inner - column
                                                                     : job->part_floats,
                     .inner = job->inner,
                     .stop = job->sources + job->ends[last - 1]};
    for (int64_t row = first; row < last; row++) {
        int32_t from = row ? job->ends[row - 1] : 0;
        int64_t count = job->ends[row] - from;
        p.dx = job->dx + (outer * job->rows + row) * job->inner + column;
        p.sources = job->sources + from;
        switch (p.width) {
        case 1:
            sum_row(&p, count, 1, job->factor);
            break;
        case 16:
            sum_row(&p, count, 16, job->factor);
            break;
        case 32:
            sum_row(&p, count, 32, job->factor);
            break;
        case 64:
            sum_row(&p, count, 64, job->factor);
            break;
        case 128:
            sum_row(&p, count, 128, job->factor);
            break;
        default:
            sum_row(&p, count, p.width, job->factor);
        }
    }
}

static void launch(const struct kernel_state *plan, const struct kernel_args *args)
{
    struct kernel_state job = *plan;
    if (job.rows * job.inner * job.outer == 0)
        return;
    job.dy = args->in[0];
    job.indices = args->in[1];
    job.dx = args->out[0];
    job.entries = args->workspace;
    job.sources = (int32_t *)(job.entries + job.count);
    job.ends = job.sources + job.count;
    job.places = job.ends + job.rows;
    pool_run(args->pool, job.chunks, count_chunk, &job);
    find_places(&job);
    pool_run(args->pool, job.chunks, deal_chunk, &job);
    pool_run(args->pool, job.buckets, sort_bucket, &job);
    pool_run(args->pool, job.outer * job.buckets * job.parts, sum_tile, &job);
}

REGISTER_KERNEL(gather_gradient_rows) = {
    NATIVE(gather_gradient_rows),
    .ops = OPS("GatherGradient"),
    .state_size = sizeof(struct kernel_state),
    .plan = plan,
    .workspace = workspace,
    .launch = launch,
};
