/* SPDX-License-Identifier: Apache-2.0
 *
 * Reductions over any axes and the global pools, any dense layout. In memory order the dimensions
 * are kept or reduced by turns. When the innermost one is reduced (rows), 1 to 256 neighbouring
 * threads do a result together and read along it; when it is kept (columns), neighbouring threads
 * have neighbouring results and a block's rows of threads share the terms. Both read 16 bytes at a
 * time, four times ahead, where the sizes allow it.
 *
 * Where there are too few results to fill the device, the terms of each are split over blocks; what
 * the parts gave is written as f32, and a second launch joins it in an order that does not depend
 * on how blocks run. Terms are summed by pairs and in pieces, so that the error grows with less
 * than the square root of their number. */
#include "engine/kernels/cuda/lib/fold.h"
#include "engine/kernels/cuda/lib/query.h"

enum finish { FINISH_NONE, FINISH_MEAN, FINISH_ROOT, FINISH_LOG, FINISH_LOG_EXP };
enum {
    AHEAD = 4,  /* groups that a thread reads before it folds them */
    PIECE = 16, /* times AHEAD groups that are summed before they go to the total */
};

struct loops {
    int rank;
    struct divisor dim[RANK_MAX];
    unsigned stride[RANK_MAX];
};

/* Counts and the innermost loop are in groups of `width` elements: of the terms in rows, of the
 * results in columns. */
struct reduction {
    const void *x;
    void *y;
    const float *shift; /* FOLD_EXP: per result, the largest term */
    float *parts;       /* [result][split], unfinished; NULL: results go to y */
    struct loops kept, reduced;
    unsigned out_stride[RANK_MAX]; /* of the kept loops in the result */
    unsigned results, count;       /* count: per result */
    unsigned lanes;                /* rows: threads per result; columns: results in a row */
    unsigned chunk;                /* of the count, per split */
    unsigned tasks;                /* rows: results, columns: tiles of `lanes`; each times splits */
    struct divisor splits;
    float terms; /* elements per result */
    int type, fold, finish;
};

static __device__ __forceinline__ unsigned offset_of(const struct loops &l, unsigned index,
                                                     const unsigned *stride)
{
    unsigned at = 0;
#pragma unroll 1
    for (int d = l.rank - 1; d > 0; d--) {
        unsigned next = divide(index, l.dim[d]);
        at += (index - next * l.dim[d].d) * stride[d];
        index = next;
    }
    return l.rank > 0 ? at + index * stride[0] : 0;
}

/* An infinite shift is the result: among infinite terms there is nothing to add up. */
static __device__ __forceinline__ float finish(const struct reduction &r, unsigned result, float x)
{
    if (r.finish == FINISH_LOG_EXP) {
        float shift = r.shift[result];
        return fabsf(shift) == INFINITY ? shift : shift + logf(x);
    }
    return r.finish == FINISH_MEAN   ? x / r.terms
           : r.finish == FINISH_ROOT ? sqrtf(x)
           : r.finish == FINISH_LOG  ? logf(x)
                                     : x;
}

/* Groups t, t + step ... of terms; beyond `end` are terms that change nothing. */
template <int width, class element>
static __device__ __forceinline__ void read_ahead(const struct reduction &r, const element *x,
                                                  unsigned t, unsigned step, unsigned end, float *v)
{
    float fill = r.fold == FOLD_EXP ? -INFINITY : fold_nothing(r.fold);
#pragma unroll
    for (int a = 0; a < AHEAD; a++, t += step) {
        group<width> g = {};
#pragma unroll
        for (int e = 0; e < width; e++)
            g.v[e] = fill;
        if (t < end)
            g = group_at(x + offset_of(r.reduced, t, r.reduced.stride), g);
#pragma unroll
        for (int e = 0; e < width; e++)
            v[a * width + e] = g.v[e];
    }
}

/* ---- along rows ---- */

/* Threads `lane` of r.lanes: groups of terms first .. end - 1 of the result at `from`. */
template <int width>
static __device__ __forceinline__ float fold_row(const struct reduction &r, unsigned from,
                                                 unsigned lane, unsigned first, unsigned end,
                                                 float shift)
{
    float nothing = fold_nothing(r.fold), total = nothing, piece = nothing;
    unsigned in_piece = 0;
    for (unsigned t = first + lane; t < end; t += AHEAD * r.lanes) {
        float v[AHEAD * width];
        WITH_ELEMENT(r.type, width,
                     read_ahead<width>(r, (const element *)r.x + from, t, r.lanes, end, v));
        fold_in<AHEAD * width, 1>(r.fold, &piece, v, &shift);
        if (++in_piece < PIECE)
            continue;
        total = fold_join(r.fold, total, piece);
        piece = nothing;
        in_piece = 0;
    }
    return fold_join(r.fold, total, piece);
}

static __device__ __forceinline__ void store(const struct reduction &r, unsigned result, float x)
{
    group_store_as<1>(r.type, r.y, offset_of(r.kept, result, r.out_stride),
                      {{finish(r, result, x)}});
}

template <int width>
__global__ void __launch_bounds__(BLOCK) reduce_rows(const __grid_constant__ struct reduction r)
{
    KERNEL_BEGIN();
    __shared__ float part[BLOCK / WARP];
    unsigned each = BLOCK / r.lanes, lane = threadIdx.x % r.lanes, own = threadIdx.x / r.lanes;
    for (unsigned base = blockIdx.x * each; base < r.tasks; base += gridDim.x * each) {
        unsigned task = base + own, k = divide(task, r.splits), split = task - k * r.splits.d;
        float x = fold_nothing(r.fold);
        if (task < r.tasks) {
            unsigned first = split * r.chunk, end = min(first + r.chunk, r.count);
            float shift = r.shift ? r.shift[k] : 0;
            x = fold_row<width>(r, offset_of(r.kept, k, r.kept.stride), lane, first, end, shift);
        }
        x = fold_team(r.fold, x, r.lanes, part);
        if (lane > 0 || task >= r.tasks)
            continue;
        if (r.parts)
            r.parts[task] = x;
        else
            store(r, k, x);
    }
}

/* ---- across columns ---- */

/* Rows first + row, first + row + rows ... of the columns at `from`. */
template <int width>
static __device__ __forceinline__ struct group<width>
fold_columns(const struct reduction &r, unsigned from, unsigned first, unsigned end, unsigned rows,
             const float *shift) {
    float nothing = fold_nothing(r.fold);
    struct group<width> total, piece;
    unsigned in_piece = 0;
#pragma unroll
    for (int e = 0; e < width; e++)
        total.v[e] = piece.v[e] = nothing;
    for (unsigned t = first; t < end; t += AHEAD * rows) {
        float v[AHEAD * width];
        WITH_ELEMENT(r.type, width,
                     read_ahead<width>(r, (const element *)r.x + from, t, rows, end, v));
        fold_in<AHEAD, width>(r.fold, piece.v, v, shift);
        if (++in_piece < PIECE)
            continue;
#pragma unroll
        for (int e = 0; e < width; e++) {
            total.v[e] = fold_join(r.fold, total.v[e], piece.v[e]);
            piece.v[e] = nothing;
        }
        in_piece = 0;
    }
#pragma unroll
    for (int e = 0; e < width; e++)
        total.v[e] = fold_join(r.fold, total.v[e], piece.v[e]);
    return total;
}

/* Over the block's rows of threads; the first row gets the result. part: width floats a thread. */
template <int width>
static __device__ __forceinline__ void fold_rows(const struct reduction &r, unsigned row,
                                                 struct group<width> &x, float *part)
{
#pragma unroll
    for (int e = 0; e < width; e++)
        part[e * BLOCK + threadIdx.x] = x.v[e];
    for (unsigned half = BLOCK / r.lanes / 2; half > 0; half /= 2) {
        __syncthreads();
        if (row >= half)
            continue;
#pragma unroll
        for (int e = 0; e < width; e++) {
            float *own = &part[e * BLOCK + threadIdx.x];
            *own = x.v[e] = fold_join(r.fold, x.v[e], own[half * r.lanes]);
        }
    }
    __syncthreads();
}

template <int width>
static __device__ __forceinline__ void store_columns(const struct reduction &r, unsigned k,
                                                     unsigned split, struct group<width> &x)
{
    if (r.parts) {
        for (int e = 0; e < width; e++)
            r.parts[(k * width + e) * r.splits.d + split] = x.v[e];
        return;
    }
    for (int e = 0; e < width; e++)
        x.v[e] = finish(r, k * width + e, x.v[e]);
    group_store_as<width>(r.type, r.y, offset_of(r.kept, k, r.out_stride), x);
}

template <int width>
__global__ void __launch_bounds__(BLOCK) reduce_columns(const __grid_constant__ struct reduction r)
{
    KERNEL_BEGIN();
    __shared__ float part[BLOCK * width];
    unsigned column = threadIdx.x % r.lanes, row = threadIdx.x / r.lanes;
    for (unsigned task = blockIdx.x; task < r.tasks; task += gridDim.x) {
        unsigned tile = divide(task, r.splits), split = task - tile * r.splits.d;
        unsigned k = tile * r.lanes + column, first = split * r.chunk;
        float shift[width] = {};
        struct group<width> x;
        for (int e = 0; r.shift && k < r.results && e < width; e++)
            shift[e] = r.shift[k * width + e];
        x = fold_columns<width>(r, offset_of(r.kept, k, r.kept.stride), first + row,
                                k < r.results ? min(first + r.chunk, r.count) : 0, BLOCK / r.lanes,
                                shift);
        fold_rows<width>(r, row, x, part);
        if (row == 0 && k < r.results)
            store_columns<width>(r, k, split, x);
    }
}

/* ---- joining parts ---- */

struct joining {
    struct reduction r; /* of single results: loops are not in groups */
    const float *from;  /* [result][split] */
    unsigned lanes;
};

__global__ void __launch_bounds__(BLOCK) reduce_join(const __grid_constant__ struct joining j)
{
    KERNEL_BEGIN();
    __shared__ float part[BLOCK / WARP];
    const struct reduction &r = j.r;
    unsigned each = BLOCK / j.lanes, lane = threadIdx.x % j.lanes, own = threadIdx.x / j.lanes;
    for (unsigned base = blockIdx.x * each; base < r.results; base += gridDim.x * each) {
        unsigned k = base + own, count = k < r.results ? r.splits.d : 0;
        float x = fold_nothing(r.fold);
        for (unsigned s = lane; s < count; s += j.lanes)
            x = fold_join(r.fold, x, j.from[k * r.splits.d + s]);
        x = fold_team(r.fold, x, j.lanes, part);
        if (lane > 0 || k >= r.results)
            continue;
        if (r.parts)
            r.parts[k] = x;
        else
            store(r, k, x);
    }
}

/* ---- hooks ---- */

struct kernel_state {
    struct reduction r; /* pointers are left open */
    struct loops kept;  /* of single results, with their strides in the result */
    unsigned out_stride[RANK_MAX], results;
    int width;
    bool rows;
    unsigned join_lanes;
    struct cuda_grid grid, join;
};

static const struct {
    const char *op;
    enum fold fold;
    enum finish finish;
} reductions[] = {
    {"GlobalAveragePool", FOLD_SUM, FINISH_MEAN}, {"GlobalMaxPool", FOLD_MAX, FINISH_NONE},
    {"ReduceL1", FOLD_ABS, FINISH_NONE},          {"ReduceL2", FOLD_SQUARE, FINISH_ROOT},
    {"ReduceLogSum", FOLD_SUM, FINISH_LOG},       {"ReduceLogSumExp", FOLD_EXP, FINISH_LOG_EXP},
    {"ReduceMax", FOLD_MAX, FINISH_NONE},         {"ReduceMean", FOLD_SUM, FINISH_MEAN},
    {"ReduceMin", FOLD_MIN, FINISH_NONE},         {"ReduceProd", FOLD_PROD, FINISH_NONE},
    {"ReduceSum", FOLD_SUM, FINISH_NONE},         {"ReduceSumSquare", FOLD_SQUARE, FINISH_NONE},
};

static enum status axes_of(const struct kernel_query *q, bool reduced[RANK_MAX], struct error *why)
{
    bool axes = q->in_count > 1 && q->in[1].dtype != DTYPE_NONE;
    if (strncmp(cuda_host->node_op(q->node), "Global", 6) == 0) {
        for (int d = 0; d < RANK_MAX; d++)
            reduced[d] = d >= 2;
        return STATUS_OK;
    }
    if (axes && !q->fixed[1])
        return REFUSE(why, "axes come at run time");
    return reduce_axes(q->node, &q->in[0].shape, axes ? (int)shape_count(&q->in[1].shape) : 0,
                       axes ? (const int64_t *)q->fixed[1] : NULL, reduced, why);
}

/* The output as if all dimensions were kept. */
static struct desc kept_desc(const struct kernel_query *q, const bool *reduced)
{
    const struct desc *x = &q->in[0], *y = &q->out[0];
    struct desc kept = *x;
    bool same_rank = y->shape.rank == x->shape.rank;
    int own = 0;
    for (int d = 0; d < x->shape.rank; d++) {
        if (reduced[d])
            kept.shape.dim[d] = 1;
        else
            kept.stride[d] = y->stride[own];
        own += !reduced[d] || same_rank;
    }
    return kept;
}

static void add_loop(struct loops *l, int64_t dim, int64_t stride)
{
    l->dim[l->rank] = divisor_of(dim);
    l->stride[l->rank++] = (unsigned)stride;
}

/* Elements that are read at a time: all lie at multiples of the widest group, or each alone. */
static int width_of(const struct strided *s, enum dtype type)
{
    int widest = 16 / element_bytes(type), inner = s->rank - 1;
    bool fits = s->dim[inner] % widest == 0 && s->stride[1][inner] <= 1;
    for (int d = 0; d < inner; d++)
        fits = fits && s->stride[0][d] % widest == 0 &&
               (s->stride[1][inner] == 0 || s->stride[1][d] % widest == 0);
    return fits ? widest : 1;
}

/* The reduction walks groups along the innermost loop, which is a kept one in columns. */
static void fill_loops(const struct strided *s, struct kernel_state *state)
{
    struct reduction *r = &state->r;
    r->results = r->count = state->results = 1;
    for (int d = 0; d < s->rank; d++) {
        bool kept = s->stride[1][d] != 0;
        int width = d == s->rank - 1 ? state->width : 1;
        if (kept) {
            state->out_stride[state->kept.rank] = (unsigned)s->stride[1][d];
            r->out_stride[r->kept.rank] = (unsigned)(s->stride[1][d] * width);
            state->results *= (unsigned)s->dim[d];
            add_loop(&state->kept, s->dim[d], s->stride[0][d]);
        }
        add_loop(kept ? &r->kept : &r->reduced, s->dim[d] / width, s->stride[0][d] * width);
        *(kept ? &r->results : &r->count) *= (unsigned)(s->dim[d] / width);
    }
    state->rows = s->stride[1][s->rank - 1] == 0;
    r->terms = (float)r->count * (float)(state->rows ? state->width : 1);
}

static unsigned lowest(unsigned a, unsigned b)
{
    return a < b ? a : b;
}

/* Rows: a few groups a thread, whole sectors of 32 bytes, at most a warp unless that would leave a
 * thread with more than 16 groups. Columns: 128 bytes beside each other, more where there are too
 * few rows for a block's threads. */
static void share(const struct kernel_query *q, struct kernel_state *state)
{
    struct reduction *r = &state->r;
    unsigned group = (unsigned)(state->width * element_bytes(q->in[0].dtype)), splits = 1;
    if (state->rows) {
        unsigned sector = power_of_two_from(lowest(r->count, 32 / group));
        unsigned lanes = power_of_two_from(div_up(r->count, AHEAD));
        lanes = lanes < sector ? sector : lanes;
        r->lanes = r->count > 16 * WARP ? (unsigned)BLOCK : lowest(lanes, WARP);
        r->tasks = r->results;
        if (r->lanes == BLOCK)
            splits = splits_for(q, r->tasks, r->count / ((unsigned)BLOCK * AHEAD));
    } else {
        unsigned lanes = lowest(power_of_two_from(r->results), 128 / group);
        while (lanes < BLOCK && lanes < r->results && r->count * lanes < (unsigned)BLOCK * AHEAD)
            lanes *= 2;
        r->lanes = lanes;
        r->tasks = (unsigned)div_up(r->results, lanes);
        splits = splits_for(q, r->tasks, (int64_t)r->count * lanes / ((unsigned)BLOCK * AHEAD));
    }
    r->chunk = (unsigned)div_up(r->count, splits);
    splits = (unsigned)div_up(r->count, r->chunk);
    r->splits = divisor_of(splits);
    r->tasks *= splits;
    state->join_lanes = splits > 4 * WARP ? (unsigned)BLOCK : (unsigned)WARP;
    state->grid = grid_for(q, (int64_t)r->tasks * (state->rows ? r->lanes : (unsigned)BLOCK));
    state->join = grid_for(q, splits > 1 ? (int64_t)state->results * state->join_lanes : 0);
}

static enum status plan(const struct kernel_query *q, int, struct kernel_state *state,
                        struct error *why)
{
    bool reduced[RANK_MAX];
    struct strided s;
    const struct desc *x = &q->in[0], *y = &q->out[0];
    TRY(floats_supported(q, 0, 1, why));
    if (q->node->post_count)
        return REFUSE(why, "no fused epilogue");
    if (!cuda_host->desc_is_dense(x) || !cuda_host->desc_is_dense(y) ||
        (x->layout != y->layout && !cuda_host->desc_is_plain(x)))
        return REFUSE(why, "input and output lie differently");
    if (shape_count(&x->shape) == 0 || !fits_index(x))
        return REFUSE(why, "no elements, or more than 2^31");
    TRY(axes_of(q, reduced, why));
    struct desc kept = kept_desc(q, reduced);
    const struct desc *descs[2] = {x, &kept};
    strided_init(&s, descs, 2);
    state->r.type = x->dtype;
    state->width = width_of(&s, x->dtype);
    fill_loops(&s, state);
    if (state->r.reduced.rank == 0)
        return REFUSE(why, "no axis is reduced");
    share(q, state);
    for (int k = 0; k < ARRAY_COUNT(reductions); k++)
        if (strcmp(reductions[k].op, cuda_host->node_op(q->node)) == 0) {
            state->r.fold = reductions[k].fold;
            state->r.finish = reductions[k].finish;
        }
    return STATUS_OK;
}

static size_t workspace(const struct kernel_state *state)
{
    const struct reduction *r = &state->r;
    size_t shift = r->fold == FOLD_EXP ? padded_bytes(state->results, sizeof(float)) : 0;
    int64_t parts = r->splits.d > 1 ? (int64_t)state->results * r->splits.d : 0;
    return shift + padded_bytes(parts, sizeof(float));
}

static void launch_parts(const struct kernel_state *s, const struct reduction *r,
                         const struct kernel_args *args)
{
    if (s->rows)
        LAUNCH_WIDTH(s->width, reduce_rows<width>, s->grid, cuda_size(BLOCK), 0, r, args);
    else
        LAUNCH_WIDTH(s->width, reduce_columns<width>, s->grid, cuda_size(BLOCK), 0, r, args);
}

/* One round; raw: where unfinished results go instead of y, or NULL. */
static void launch_round(const struct kernel_state *s, struct reduction r, float *parts, float *raw,
                         const struct kernel_args *args)
{
    r.parts = r.splits.d > 1 ? parts : raw;
    launch_parts(s, &r, args);
    struct joining j = {r, parts, s->join_lanes};
    j.r.parts = raw;
    j.r.kept = s->kept;
    j.r.results = s->results;
    memcpy(j.r.out_stride, s->out_stride, sizeof(j.r.out_stride));
    LAUNCH(reduce_join, s->join, cuda_size(BLOCK), 0, &j, args);
}

/* LogSumExp looks for the largest term first. */
static void launch(const struct kernel_state *state, const struct kernel_args *args)
{
    struct reduction r = state->r;
    float *parts = (float *)args->workspace;
    r.x = args->in[0];
    r.y = args->out[0];
    if (r.fold == FOLD_EXP) {
        struct reduction largest = r;
        largest.fold = FOLD_MAX;
        r.shift = parts;
        parts += padded_bytes(state->results, sizeof(float)) / sizeof(float);
        launch_round(state, largest, parts, (float *)args->workspace, args);
    }
    launch_round(state, r, parts, NULL, args);
}

static const char *const ops[] = {
    "GlobalAveragePool", "GlobalMaxPool",   "ReduceL1",   "ReduceL2",  "ReduceLogSum",
    "ReduceLogSumExp",   "ReduceMax",       "ReduceMean", "ReduceMin", "ReduceProd",
    "ReduceSum",         "ReduceSumSquare", NULL};

CUDA_KERNEL(reduce) = {CUDA_NAME(reduce), .ops = ops, CUDA_PLAN, CUDA_HOOK(workspace),
                       CUDA_HOOK(launch)};
