/* SPDX-License-Identifier: Apache-2.0
 *
 * Reductions over any axes and the global pools, any dense layout. In memory order the dimensions
 * join to groups that are kept or reduced by turns. When the innermost group is reduced, a vector
 * runs along it and is folded at its end; when it is kept, vectors of neighbouring results walk
 * down the reduced ones. Sums go up in two stages, so that the error grows with the square root of
 * their length; those of bf16 are floats until the result is rounded.
 */
#include <math.h>
#include <string.h>

#include "base/numbers/integers.h"
#include "engine/graph/kernel.h"
#include "engine/kernels/lib/simd_floats.h"
#include "engine/kernels/lib/simd_math.h"
#include "engine/kernels/lib/tiles.h"
#include "engine/ops/lib/reduce.h"
#include "engine/ops/lib/strided.h"

enum fold { FOLD_SUM, FOLD_ABS, FOLD_SQUARE, FOLD_MAX, FOLD_MIN, FOLD_PROD };
enum finish { FINISH_NONE, FINISH_MEAN, FINISH_ROOT, FINISH_LOG };

enum {
    BLOCK = 8,            /* vectors of results that walk together */
    PIECE = 128,          /* terms per lane that are summed before they join the total */
    TILE_ELEMENTS = 16384 /* inputs that a thread takes at a time, about */
};

static const struct reduction {
    const char *op;
    enum fold fold;
    enum finish finish;
} reductions[] = {
    {"GlobalAveragePool", FOLD_SUM, FINISH_MEAN},  {"GlobalMaxPool", FOLD_MAX, FINISH_NONE},
    {"ReduceL1", FOLD_ABS, FINISH_NONE},           {"ReduceL2", FOLD_SQUARE, FINISH_ROOT},
    {"ReduceLogSum", FOLD_SUM, FINISH_LOG},        {"ReduceMax", FOLD_MAX, FINISH_NONE},
    {"ReduceMean", FOLD_SUM, FINISH_MEAN},         {"ReduceMin", FOLD_MIN, FINISH_NONE},
    {"ReduceProd", FOLD_PROD, FINISH_NONE},        {"ReduceSum", FOLD_SUM, FINISH_NONE},
    {"ReduceSumSquare", FOLD_SQUARE, FINISH_NONE},
};

/* Loops over the reduced groups, outermost first. */
struct loops {
    int rank;
    int64_t dim[RANK_MAX], stride[RANK_MAX];
};

/* The plan; a launch completes a copy of it with its addresses. */
struct kernel_state {
    struct strided space; /* operand 0: input; operand 1: output, stride 0 where reduced */
    struct reduction reduction;
    struct loops kept, reduced;   /* without the innermost group */
    int64_t out_stride[RANK_MAX]; /* of the kept loops */
    int64_t count;                /* elements per result */
    bool inner_reduced, bf16;
    int64_t inner, blocks, results_per_tile, results; /* results: of the kept loops */
    const void *x;
    void *y;
};

/* ---- what is reduced ---- */

static enum status reduced_axes(const struct kernel_query *q, bool reduced[RANK_MAX],
                                struct error *why)
{
    const struct shape *x = &q->in[0].shape;
    const struct desc *axes = query_in(q, 1);
    if (strncmp(q->node->op->name, "Global", 6) == 0) {
        for (int d = 0; d < RANK_MAX; d++)
            reduced[d] = d >= 2;
        return STATUS_OK;
    }
    if (axes && !q->fixed[1])
        return UNSUPPORTED(why, "axes come at run time");
    return reduce_axes(q->node, x, axes ? (int)shape_count(&axes->shape) : 0,
                       axes ? q->fixed[1] : NULL, reduced, why);
}

/* The output as if all dimensions were kept. */
static struct desc kept_desc(const struct kernel_query *q, const bool *reduced)
{
    const struct desc *x = &q->in[0], *y = &q->out[0];
    struct desc kept = {.dtype = y->dtype, .shape = x->shape};
    bool same_rank = y->shape.rank == x->shape.rank;
    int own = 0;
    for (int d = 0; d < x->shape.rank; d++) {
        if (reduced[d]) {
            kept.shape.dim[d] = 1;
            own += same_rank;
        } else {
            kept.stride[d] = y->stride[own++];
        }
    }
    return kept;
}

static void add_loop(struct loops *loops, int64_t dim, int64_t stride)
{
    loops->dim[loops->rank] = dim;
    loops->stride[loops->rank++] = stride;
}

static enum status read_loops(const struct kernel_query *q, struct kernel_state *job,
                              struct error *why)
{
    bool reduced[RANK_MAX];
    job->count = job->results = 1;
    TRY(reduced_axes(q, reduced, why));
    struct desc kept = kept_desc(q, reduced);
    const struct desc *descs[2] = {&q->in[0], &kept};
    strided_init(&job->space, descs, 2);
    const struct strided *s = &job->space;
    job->inner = s->row;
    job->inner_reduced = s->stride[1][s->rank - 1] == 0;
    for (int d = 0; d < s->rank; d++) {
        bool is_kept = s->stride[1][d] != 0;
        job->count *= is_kept ? 1 : s->dim[d];
        if (d == s->rank - 1)
            break;
        if (is_kept) {
            job->out_stride[job->kept.rank] = s->stride[1][d];
            job->results *= s->dim[d];
        }
        add_loop(is_kept ? &job->kept : &job->reduced, s->dim[d], s->stride[0][d]);
    }
    for (int k = 0; k < ARRAY_COUNT(reductions); k++)
        if (strcmp(reductions[k].op, q->node->op->name) == 0)
            job->reduction = reductions[k];
    return STATUS_OK;
}

static enum status plan(const struct kernel_query *q, int variant, struct kernel_state *job,
                        struct error *why)
{
    (void)variant;
    enum dtype dtype = q->in[0].dtype;
    if ((dtype != DTYPE_F32 && dtype != DTYPE_BF16) || q->node->post_count)
        return UNSUPPORTED(why, "only f32 or bf16 without a fused epilogue");
    job->bf16 = dtype == DTYPE_BF16;
    if (!desc_is_dense(&q->in[0]) || !desc_is_dense(&q->out[0]))
        return UNSUPPORTED(why, "a tensor is not dense");
    TRY(read_loops(q, job, why));
    if (job->space.stride[1][job->space.rank - 1] > 1)
        return UNSUPPORTED(why, "input and output lie differently");
    if (job->count == 0 || shape_count(&q->in[0].shape) == 0)
        return UNSUPPORTED(why, "nothing to reduce");
    if (job->reduced.rank == 0 && !job->inner_reduced) /* axes of size 1 at most */
        add_loop(&job->reduced, 1, 0);
    int64_t width = BLOCK * VL;
    job->blocks = job->inner_reduced ? 1 : divide_up(job->inner, width);
    int64_t elements = job->count * (job->inner_reduced ? 1 : width);
    job->results_per_tile =
        rows_of_tile(job->results * job->blocks, elements, TILE_ELEMENTS, q->threads);
    return STATUS_OK;
}

/* ---- folding ---- */

SIMD_INLINE float identity(enum fold fold)
{
    return fold == FOLD_MAX ? -INFINITY : fold == FOLD_MIN ? INFINITY : fold == FOLD_PROD;
}

SIMD_INLINE vf join(vf a, vf x, enum fold fold)
{
    switch (fold) {
    case FOLD_ABS:
        return vf_add(a, vf_abs(x));
    case FOLD_SQUARE:
        return vf_fma(x, x, a);
    case FOLD_MAX: /* NaN stays */
        return vf_select(vf_is_nan(a), a, vf_max(a, x));
    case FOLD_MIN:
        return vf_select(vf_is_nan(a), a, vf_min(a, x));
    case FOLD_PROD:
        return vf_mul(a, x);
    case FOLD_SUM:
        break;
    }
    return vf_add(a, x);
}

/* Of two partial results. */
SIMD_INLINE vf merge(vf a, vf b, enum fold fold)
{
    return join(a, b, fold == FOLD_ABS || fold == FOLD_SQUARE ? FOLD_SUM : fold);
}

static double merge_scalar(double a, double b, enum fold fold)
{
    if (fold == FOLD_MAX)
        return b > a || isnan(b) ? b : a;
    if (fold == FOLD_MIN)
        return b < a || isnan(b) ? b : a;
    return fold == FOLD_PROD ? a * b : a + b;
}

static float finish(double value, const struct kernel_state *job)
{
    switch (job->reduction.finish) {
    case FINISH_MEAN:
        return (float)(value / (double)job->count);
    case FINISH_ROOT:
        return (float)sqrt(value);
    case FINISH_LOG:
        return (float)log(value);
    case FINISH_NONE:
        break;
    }
    return (float)value;
}

/* Once per vector of results: kept out of the blocks, of which there are many. */
static __attribute__((noinline)) vf finish_vector(vf value, const struct kernel_state *job)
{
    switch (job->reduction.finish) {
    case FINISH_MEAN:
        return vf_mul(value, vf_set1(1.0f / (float)job->count));
    case FINISH_ROOT:
        return vf_sqrt(value);
    case FINISH_LOG:
        return vf_log(value);
    case FINISH_NONE:
        break;
    }
    return value;
}

/* n <= 4 PIECE VL elements. */
SIMD_INLINE double fold_piece(const void *x, int64_t n, enum fold fold, bool bf16)
{
    vf none = vf_set1(identity(fold)), a0 = none, a1 = none, a2 = none, a3 = none;
    int64_t i = 0;
    for (; i + 4 * VL <= n; i += 4 * VL) {
        a0 = join(a0, vf_read(x, i, bf16), fold);
        a1 = join(a1, vf_read(x, i + VL, bf16), fold);
        a2 = join(a2, vf_read(x, i + 2 * VL, bf16), fold);
        a3 = join(a3, vf_read(x, i + 3 * VL, bf16), fold);
    }
    for (; i < n; i += VL) {
        vm rest = vm_first(n - i);
        a0 = join(a0, vf_select(rest, vf_read_m(x, i, rest, bf16), none), fold);
    }
    float lanes[VL];
    vf_store(lanes, merge(merge(a0, a1, fold), merge(a2, a3, fold), fold));
    double value = (double)lanes[0];
    for (int k = 1; k < VL; k++)
        value = merge_scalar(value, (double)lanes[k], fold);
    return value;
}

SIMD_INLINE double fold_line(const void *x, int64_t n, enum fold fold, bool bf16)
{
    enum { PIECES = 4 * PIECE * VL };
    double value = (double)identity(fold);
    for (int64_t i = 0; i < n; i += PIECES) {
        int64_t part = n - i < PIECES ? n - i : PIECES;
        value = merge_scalar(value, fold_piece(float_at(x, i, bf16), part, fold, bf16), fold);
    }
    return value;
}

/* Steps to the next index of the loops; false after the last. */
SIMD_INLINE bool advance(const struct loops *loops, int rank, int64_t *index, const void **x,
                         bool bf16)
{
    for (int d = rank - 1; d >= 0; d--) {
        *x = float_at(*x, loops->stride[d], bf16);
        if (++index[d] < loops->dim[d])
            return true;
        *x = float_at(*x, -loops->stride[d] * loops->dim[d], bf16);
        index[d] = 0;
    }
    return false;
}

SIMD_INLINE void reduce_lines(const struct kernel_state *job, const void *x, void *y,
                              enum fold fold, bool bf16)
{
    int64_t index[RANK_MAX] = {0};
    double value = (double)identity(fold);
    do {
        value = merge_scalar(value, fold_line(x, job->inner, fold, bf16), fold);
    } while (advance(&job->reduced, job->reduced.rank, index, &x, bf16));
    float_write(y, 0, finish(value, job), bf16);
}

/* `vectors` (a constant) of results from x on; the last one masked. */
SIMD_INLINE void reduce_block(const struct kernel_state *job, const void *x, void *y, int vectors,
                              vm last, enum fold fold, bool bf16)
{
    const struct loops *loops = &job->reduced;
    int64_t inner_dim = loops->dim[loops->rank - 1], step = loops->stride[loops->rank - 1];
    int64_t index[RANK_MAX] = {0};
    vf total[BLOCK], none = vf_set1(identity(fold));
    for (int v = 0; v < vectors; v++)
        total[v] = none;
    do {
        for (int64_t first = 0; first < inner_dim; first += PIECE) {
            int64_t end = first + PIECE < inner_dim ? first + PIECE : inner_dim;
            vf sum[BLOCK];
            for (int v = 0; v < vectors; v++)
                sum[v] = none;
            for (int64_t k = first; k < end; k++) {
                const void *at = float_at(x, k * step, bf16);
                for (int v = 0; v < vectors - 1; v++)
                    sum[v] = join(sum[v], vf_read(at, v * VL, bf16), fold);
                vf rest = vf_read_m(at, (vectors - 1) * VL, last, bf16);
                sum[vectors - 1] = join(sum[vectors - 1], rest, fold);
            }
            for (int v = 0; v < vectors; v++)
                total[v] = merge(total[v], sum[v], fold);
        }
    } while (advance(loops, loops->rank - 1, index, &x, bf16));
    for (int v = 0; v < vectors; v++)
        vf_write_m(y, v * VL, v == vectors - 1 ? last : vm_first(VL), finish_vector(total[v], job),
                   bf16);
}

SIMD_INLINE void reduce_columns(const struct kernel_state *job, const void *x, void *y,
                                int64_t block, enum fold fold, bool bf16)
{
    int64_t first = block * BLOCK * VL, n = job->inner - first;
    x = float_at(x, first, bf16);
    y = out_at(y, first, bf16);
    if (n >= BLOCK * VL) {
        reduce_block(job, x, y, BLOCK, vm_first(VL), fold, bf16);
        return;
    }
    for (; n > 0; n -= 4 * VL) {
        if (n > 3 * VL)
            reduce_block(job, x, y, 4, vm_first(n - 3 * VL), fold, bf16);
        else if (n > 2 * VL)
            reduce_block(job, x, y, 3, vm_first(n - 2 * VL), fold, bf16);
        else if (n > VL)
            reduce_block(job, x, y, 2, vm_first(n - VL), fold, bf16);
        else
            reduce_block(job, x, y, 1, vm_first(n), fold, bf16);
        x = float_at(x, 4 * VL, bf16);
        y = out_at(y, 4 * VL, bf16);
    }
}

SIMD_INLINE void reduce_tile(const struct kernel_state *job, int64_t tile, enum fold fold,
                             bool bf16)
{
    int64_t units = job->results * job->blocks;
    int64_t first = tile * job->results_per_tile, last = first + job->results_per_tile;
    for (int64_t unit = first; unit < last && unit < units; unit++) {
        int64_t rest = unit / job->blocks, from = 0, to = 0;
        for (int d = job->kept.rank - 1; d >= 0; d--) {
            from += rest % job->kept.dim[d] * job->kept.stride[d];
            to += rest % job->kept.dim[d] * job->out_stride[d];
            rest /= job->kept.dim[d];
        }
        const void *x = float_at(job->x, from, bf16);
        void *y = out_at(job->y, to, bf16);
        if (job->inner_reduced)
            reduce_lines(job, x, y, fold, bf16);
        else
            reduce_columns(job, x, y, unit % job->blocks, fold, bf16);
    }
}

/* A function for each fold: the compiler's time grows faster than a function's length. */
#define TILE_OF(fold)                                                                              \
    static void tile_##fold(const struct kernel_state *job, int64_t tile)                          \
    {                                                                                              \
        reduce_tile(job, tile, fold, false);                                                       \
    }
#define TILE_ENTRY(fold) [fold] = tile_##fold,
#define FOLDS(X)         X(FOLD_SUM) X(FOLD_ABS) X(FOLD_SQUARE) X(FOLD_MAX) X(FOLD_MIN) X(FOLD_PROD)

FOLDS(TILE_OF)
static void (*const tiles[])(const struct kernel_state *job, int64_t tile) = {FOLDS(TILE_ENTRY)};

/* Of bf16 those that networks are made of; the others choose for each vector what to do. */
static void tile_bf16(const struct kernel_state *job, int64_t tile)
{
    if (job->reduction.fold == FOLD_SUM)
        reduce_tile(job, tile, FOLD_SUM, true);
    else
        reduce_tile(job, tile, job->reduction.fold, true);
}

static void run_tile(void *context, int64_t tile, int thread)
{
    (void)thread;
    const struct kernel_state *job = context;
    if (job->bf16)
        tile_bf16(job, tile);
    else
        tiles[job->reduction.fold](job, tile);
}

static void launch(const struct kernel_state *plan, const struct kernel_args *args)
{
    struct kernel_state job = *plan;
    job.x = args->in[0];
    job.y = args->out[0];
    int64_t units = job.results * job.blocks;
    pool_run(args->pool, divide_up(units, job.results_per_tile), run_tile, &job);
}

REGISTER_KERNEL(reduce_axes) = {
    NATIVE(reduce_axes),
    .ops = OPS("GlobalAveragePool", "GlobalMaxPool", "ReduceL1", "ReduceL2", "ReduceLogSum",
               "ReduceMax", "ReduceMean", "ReduceMin", "ReduceProd", "ReduceSum",
               "ReduceSumSquare"),
    .state_size = sizeof(struct kernel_state),
    .plan = plan,
    .launch = launch,
};
