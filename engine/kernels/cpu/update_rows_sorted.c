/* SPDX-License-Identifier: Apache-2.0
 *
 * UpdateRows: indices are sorted by the row that they name, byte by byte; then each row that is
 * named is summed, as gather_gradient_rows does it and in the same order, and moved on, as
 * update_tiles does it. So the result is the same, bit for bit, as that of these two, on any number
 * of threads, and rows that no index names are never touched. Results that do not lie in the memory
 * of what they follow are copied first.
 */
#include <string.h>

#include "base/numbers/integers.h"
#include "engine/graph/kernel.h"
#include "engine/graph/op.h"
#include "engine/graph/op_list.h"
#include "engine/kernels/lib/row_pitch.h"
#include "engine/kernels/lib/simd.h"
#include "engine/ops/family/update.h"

enum {
    READERS_MAX = 8,
    DIGIT_BITS = 8,
    DIGITS = 1 << DIGIT_BITS,
    TILE = 256, /* sorted indices; a row belongs to the tile that its first index is in */
    PIECE = 64, /* terms of a sum before it joins the total */
    VECTORS_MAX = 128 / VL > 8 ? 8 : 128 / VL /* vectors that are summed at a time */
};

struct entry {
    int32_t row, source; /* of the table; of dy, counted through all readers */
};

/* A GatherGradient. */
struct reader {
    const float *dy;
    const void *indices;
    int64_t count, bag, first; /* first: the number of its first row of dy */
    bool wide;                 /* i64 indices */
};

/* The plan; a launch completes a copy of it with its addresses. */
struct kernel_state {
    struct reader readers[READERS_MAX];
    const struct op *optimiser;
    struct update_step step;
    float *table, *slot;
    struct entry *entries, *other; /* sorted; while sorting */
    int64_t rows, inner, count;    /* count: of all indices; at launch, of those within the table */
    int reader_count, slots, digits;
    float factor, scale, rate, first_factor, epsilon;
    bool adagrad;
};

static enum status plan_readers(const struct kernel_query *q, struct kernel_state *s,
                                struct error *why)
{
    const char *mode = node_string(q->node, "mode", "rows");
    int first = UPDATE_WEIGHTS + 1 + s->slots;
    int64_t sources = 0;
    s->reader_count = (q->in_count - first) / 2;
    if (s->reader_count > READERS_MAX)
        return UNSUPPORTED(why, "%d readers of the table; at most %d", s->reader_count,
                           READERS_MAX);
    for (int k = 0; k < s->reader_count; k++) {
        const struct desc *dy = &q->in[first + 2 * k], *index = dy + 1;
        struct reader *r = &s->readers[k];
        if (index->dtype != DTYPE_I32 && index->dtype != DTYPE_I64)
            return UNSUPPORTED(why, "indices of type %s", dtype_name(index->dtype));
        r->count = shape_count(&index->shape);
        r->bag = strcmp(mode, "rows") == 0 ? 1 : index->shape.dim[index->shape.rank - 1];
        r->wide = index->dtype == DTYPE_I64;
        r->first = sources;
        sources += r->bag ? r->count / r->bag : 0;
        s->count += r->count;
        s->factor = strcmp(mode, "mean") == 0 && r->bag ? 1.0f / (float)r->bag : 1.0f;
        if (r->bag != s->readers[0].bag)
            return UNSUPPORTED(why, "bags of several sizes");
    }
    return s->count > INT32_MAX ? UNSUPPORTED(why, "more than 2^31 indices") : STATUS_OK;
}

static enum status plan(const struct kernel_query *q, int variant, struct kernel_state *s,
                        struct error *why)
{
    (void)variant;
    if (q->node->post_count)
        return UNSUPPORTED(why, "no fused epilogue");
    TRY(query_plain_results(q, why));
    for (int k = 0; k < q->in_count; k++)
        if (q->in[k].dtype != DTYPE_NONE && !desc_is_plain(&q->in[k]))
            return UNSUPPORTED(why, "input %d is not plain", k);
    s->adagrad = strcmp(node_string(q->node, "optimiser", ""), op_adagrad.update->name) == 0;
    s->optimiser = s->adagrad ? &op_adagrad : &op_sgd;
    s->slots = s->optimiser->update->slots;
    for (int k = 0; k < q->out_count; k++)
        if (q->out[k].dtype != DTYPE_F32)
            return UNSUPPORTED(why, "output %d is not wanted or not f32", k);
    const struct shape *table = &q->in[UPDATE_WEIGHTS].shape;
    s->rows = table->dim[0];
    s->inner = shape_span(table, 1, table->rank);
    if (s->rows > INT32_MAX)
        return UNSUPPORTED(why, "more than 2^31 rows");
    for (int64_t rest = s->rows - 1; rest > 0; rest >>= DIGIT_BITS)
        s->digits++;
    struct node node = *q->node;
    node.op = s->optimiser;
    s->step = update_step_of(&node);
    return plan_readers(q, s, why);
}

static size_t workspace(const struct kernel_state *s)
{
    return 2 * (size_t)s->count * sizeof(struct entry);
}

/* ---- the sort ---- */

/* Indices outside of the table are left out; the reference reports them. Returns how many remain.
 */
static int64_t list_entries(const struct kernel_state *job)
{
    int64_t count = 0;
    for (int k = 0; k < job->reader_count; k++) {
        const struct reader *r = &job->readers[k];
        for (int64_t i = 0; i < r->count; i++) {
            int64_t row =
                r->wide ? ((const int64_t *)r->indices)[i] : ((const int32_t *)r->indices)[i];
            row += row < 0 ? job->rows : 0;
            if (row >= 0 && row < job->rows)
                job->entries[count++] = (struct entry){
                    (int32_t)row, (int32_t)(r->first + (r->bag == 1 ? i : i / r->bag))};
        }
    }
    return count;
}

/* Equal rows keep their order. */
static void sort_by_digit(const struct entry *from, struct entry *to, int64_t count, int shift)
{
    int32_t places[DIGITS] = {0}, next = 0;
    for (int64_t i = 0; i < count; i++)
        places[from[i].row >> shift & (DIGITS - 1)]++;
    for (int d = 0; d < DIGITS; d++) {
        int32_t here = places[d];
        places[d] = next;
        next += here;
    }
    for (int64_t i = 0; i < count; i++)
        to[places[from[i].row >> shift & (DIGITS - 1)]++] = from[i];
}

static void sort_entries(struct kernel_state *job)
{
    for (int digit = 0; digit < job->digits; digit++) {
        struct entry *sorted = job->other;
        sort_by_digit(job->entries, sorted, job->count, digit * DIGIT_BITS);
        job->other = job->entries;
        job->entries = sorted;
    }
}

/* ---- rows ---- */

SIMD_INLINE const float *source_row(const struct kernel_state *job, int32_t source)
{
    const struct reader *r = &job->readers[job->reader_count - 1];
    while (source < r->first)
        r--;
    return r->dy + (source - r->first) * job->inner;
}

/* The sum over a run of entries of at most VECTORS_MAX vectors of columns. */
SIMD_INLINE void sum_columns(const struct kernel_state *job, const struct entry *run, int64_t count,
                             int64_t column, vf *total)
{
    int64_t width = job->inner - column;
    vf sum[VECTORS_MAX];
    for (int v = 0; v < VECTORS_MAX; v++)
        total[v] = vf_zero();
    for (int64_t first = 0; first < count; first += PIECE) {
        int64_t last = first + PIECE < count ? first + PIECE : count;
        for (int v = 0; v < VECTORS_MAX; v++)
            sum[v] = vf_zero();
        for (int64_t e = first; e < last; e++) {
            const float *dy = source_row(job, run[e].source) + column;
            for (int v = 0; v < VECTORS_MAX && v * VL < width; v++)
                sum[v] = vf_add(sum[v], vf_load_m(dy + v * VL, vm_first(width - v * VL)));
        }
        for (int v = 0; v < VECTORS_MAX && v * VL < width; v++)
            total[v] = vf_add(total[v], sum[v]);
    }
}

/* One vector of the table, in the letters and the order of update_tiles. */
SIMD_INLINE void update_vector(const struct kernel_state *job, int64_t at, vm lanes, vf gradient)
{
    vf weight = vf_load_m(job->table + at, lanes), rate = vf_set1(job->rate);
    gradient = vf_mul(vf_mul(gradient, vf_set1(job->factor)), vf_set1(job->scale));
    vf d = vf_fma(vf_zero(), weight, gradient); /* no decay */
    if (job->adagrad) {
        vf sum = vf_fma(d, d, vf_load_m(job->slot + at, lanes));
        vf divisor = vf_add(vf_sqrt(sum), vf_set1(job->epsilon));
        vf_store_m(job->slot + at, lanes, sum);
        d = vf_div(vf_mul(vf_set1(job->first_factor), d), divisor);
    }
    vf_store_m(job->table + at, lanes, vf_fnma(rate, d, weight));
}

static void update_row(const struct kernel_state *job, const struct entry *run, int64_t count)
{
    for (int64_t column = 0; column < job->inner; column += VECTORS_MAX * VL) {
        vf total[VECTORS_MAX];
        int64_t width = job->inner - column;
        sum_columns(job, run, count, column, total);
        for (int v = 0; v < VECTORS_MAX && v * VL < width; v++)
            update_vector(job, run->row * job->inner + column + v * VL, vm_first(width - v * VL),
                          total[v]);
    }
}

static void update_tile(void *context, int64_t tile, int thread)
{
    (void)thread;
    const struct kernel_state *job = context;
    const struct entry *entries = job->entries;
    int64_t i = tile * TILE, end = i + TILE < job->count ? i + TILE : job->count;
    while (i > 0 && i < end && entries[i].row == entries[i - 1].row)
        i++;
    while (i < end) {
        int64_t stop = i + 1;
        while (stop < job->count && entries[stop].row == entries[i].row)
            stop++;
        update_row(job, entries + i, stop - i);
        i = stop;
    }
}

static void take_numbers(struct kernel_state *job, const struct kernel_args *args)
{
    const float *rate = args->in[UPDATE_RATE], *scale = args->in[UPDATE_SCALE];
    const int64_t *number = args->in[UPDATE_STEP];
    update_step_begin(&job->step, job->optimiser, (double)*rate, scale ? (double)*scale : 1,
                      *number);
    job->rate = (float)job->step.rate;
    job->scale = (float)job->step.scale;
    job->first_factor = (float)job->step.first;
    job->epsilon = job->adagrad ? (float)job->step.parameter[ADAGRAD_EPSILON] : 0;
}

/* Where the state's next contents lie; copied there unless they are there. */
static float *result_of(const struct kernel_state *job, const struct kernel_args *args, int k)
{
    const void *before = args->in[UPDATE_WEIGHTS + k];
    if (args->out[k] != before)
        memcpy(args->out[k], before, (size_t)(job->rows * job->inner) * sizeof(float));
    return args->out[k];
}

static void launch(const struct kernel_state *plan, const struct kernel_args *args)
{
    struct kernel_state job = *plan;
    take_numbers(&job, args);
    job.table = result_of(&job, args, 0);
    job.slot = job.slots ? result_of(&job, args, 1) : NULL;
    for (int k = 0; k < job.reader_count; k++) {
        job.readers[k].dy = args->in[UPDATE_WEIGHTS + 1 + job.slots + 2 * k];
        job.readers[k].indices = args->in[UPDATE_WEIGHTS + 2 + job.slots + 2 * k];
    }
    job.entries = args->workspace;
    job.other = job.entries + job.count;
    job.count = list_entries(&job);
    sort_entries(&job);
    pool_run(args->pool, divide_up(job.count, TILE), update_tile, &job);
}

REGISTER_KERNEL(update_rows_sorted) = {
    NATIVE(update_rows_sorted),
    .ops = OPS("UpdateRows"),
    .state_size = sizeof(struct kernel_state),
    .plan = plan,
    .workspace = workspace,
    .launch = launch,
};
