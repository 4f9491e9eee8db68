/* SPDX-License-Identifier: Apache-2.0
 *
 * Reductions over any axes and the global pools, any dense layout. In memory order the dimensions
 * are kept or reduced by turns. When the innermost one is reduced, a block does a result together
 * and reads along it; when it is kept, neighbouring threads have neighbouring results. Terms are
 * summed in pieces, so that the error grows with the square root of their number. */
#include "engine/kernels/cuda/lib/query.h"

enum fold { FOLD_SUM, FOLD_ABS, FOLD_SQUARE, FOLD_MAX, FOLD_MIN, FOLD_PROD };
enum finish { FINISH_NONE, FINISH_MEAN, FINISH_ROOT, FINISH_LOG };
enum { PIECE = 64 };

struct loops {
    int rank;
    struct divisor dim[RANK_MAX];
    unsigned stride[RANK_MAX];
};

struct reduction {
    const void *x;
    void *y;
    struct loops kept, reduced;
    unsigned out_stride[RANK_MAX]; /* of the kept loops in the result */
    unsigned results, count;       /* count: elements per result */
    int fold, finish;
};

static __device__ __forceinline__ unsigned offset_of(const struct loops &l, unsigned index,
                                                     const unsigned *stride)
{
    unsigned at = 0;
    for (int d = l.rank - 1; d >= 0; d--) {
        unsigned next = divide(index, l.dim[d]);
        at += (index - next * l.dim[d].d) * stride[d];
        index = next;
    }
    return at;
}

static __device__ __forceinline__ float fold_start(int fold)
{
    return fold == FOLD_MAX ? -INFINITY : fold == FOLD_MIN ? INFINITY : fold == FOLD_PROD ? 1 : 0;
}

/* NaN stays: a comparison with it is false. */
static __device__ __forceinline__ float fold_join(int fold, float a, float b)
{
    switch (fold) {
    case FOLD_MAX:
        return a != a || a > b ? a : b;
    case FOLD_MIN:
        return a != a || a < b ? a : b;
    case FOLD_PROD:
        return a * b;
    default:
        return a + b;
    }
}

static __device__ __forceinline__ float fold_term(int fold, float x)
{
    return fold == FOLD_ABS ? fabsf(x) : fold == FOLD_SQUARE ? x * x : x;
}

static __device__ __forceinline__ float finish(const struct reduction &r, float x)
{
    return r.finish == FINISH_MEAN   ? x / (float)r.count
           : r.finish == FINISH_ROOT ? sqrtf(x)
           : r.finish == FINISH_LOG  ? logf(x)
                                     : x;
}

/* Terms first, first + step ... of the result at `from`. */
template <class element>
static __device__ __forceinline__ float fold_terms(const struct reduction &r, unsigned from,
                                                   unsigned first, unsigned step)
{
    float total = fold_start(r.fold), piece = total;
    unsigned in_piece = 0;
    for (unsigned t = first; t < r.count; t += step) {
        unsigned at = from + offset_of(r.reduced, t, r.reduced.stride);
        float x = to_float(((const element *)r.x)[at]);
        piece = fold_join(r.fold, piece, fold_term(r.fold, x));
        if (++in_piece < PIECE)
            continue;
        total = fold_join(r.fold, total, piece);
        piece = fold_start(r.fold);
        in_piece = 0;
    }
    return fold_join(r.fold, total, piece);
}

template <class element>
static __device__ __forceinline__ void store(const struct reduction &r, unsigned result, float x)
{
    float_put((element *)r.y + offset_of(r.kept, result, r.out_stride), finish(r, x));
}

template <class element>
__global__ void __launch_bounds__(BLOCK) reduce_threads(const __grid_constant__ struct reduction r)
{
    for (unsigned k = blockIdx.x * BLOCK + threadIdx.x; k < r.results; k += gridDim.x * BLOCK)
        store<element>(r, k, fold_terms<element>(r, offset_of(r.kept, k, r.kept.stride), 0, 1));
}

template <class element>
__global__ void __launch_bounds__(BLOCK) reduce_blocks(const __grid_constant__ struct reduction r)
{
    __shared__ float part[BLOCK];
    for (unsigned k = blockIdx.x; k < r.results; k += gridDim.x) {
        unsigned from = offset_of(r.kept, k, r.kept.stride);
        part[threadIdx.x] = fold_terms<element>(r, from, threadIdx.x, BLOCK);
        for (unsigned half = BLOCK / 2; half > 0; half /= 2) {
            __syncthreads();
            if (threadIdx.x < half)
                part[threadIdx.x] = fold_join(r.fold, part[threadIdx.x], part[threadIdx.x + half]);
        }
        if (threadIdx.x == 0)
            store<element>(r, k, part[0]);
        __syncthreads();
    }
}

/* ---- hooks ---- */

struct kernel_state {
    struct reduction r;
    bool by_block;
};

static const struct {
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
    return cuda_host->reduced_axes(q->node, &q->in[0].shape,
                                   axes ? (int)shape_count(&q->in[1].shape) : 0,
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

static void fill_loops(const struct strided *s, struct kernel_state *state)
{
    struct reduction *r = &state->r;
    r->results = r->count = 1;
    for (int d = 0; d < s->rank; d++) {
        bool kept = s->stride[1][d] != 0;
        if (kept)
            r->out_stride[r->kept.rank] = (unsigned)s->stride[1][d];
        add_loop(kept ? &r->kept : &r->reduced, s->dim[d], s->stride[0][d]);
        *(kept ? &r->results : &r->count) *= (unsigned)s->dim[d];
    }
    state->by_block = s->stride[1][s->rank - 1] == 0 && r->count > WARP;
}

static enum status plan(const struct kernel_query *q, struct kernel_state *state, struct error *why)
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
    cuda_host->strided(&s, descs, 2);
    fill_loops(&s, state);
    if (state->r.reduced.rank == 0)
        return REFUSE(why, "no axis is reduced");
    for (int k = 0; k < ARRAY_COUNT(reductions); k++)
        if (strcmp(reductions[k].op, cuda_host->node_op(q->node)) == 0) {
            state->r.fold = reductions[k].fold;
            state->r.finish = reductions[k].finish;
        }
    return STATUS_OK;
}

static enum status supports(const struct kernel_query *q, struct error *why)
{
    struct kernel_state s = {};
    return plan(q, &s, why);
}

static enum status prepare(const struct kernel_query *q, int variant, struct kernel_state **state,
                           size_t *state_bytes, struct error *err)
{
    (void)variant;
    struct kernel_state *s = (struct kernel_state *)calloc(1, sizeof(*s));
    if (!s)
        return cuda_host->refuse(err, STATUS_NO_MEMORY, "out of memory");
    enum status status = plan(q, s, err);
    if (status != STATUS_OK) {
        free(s);
        return status;
    }
    *state = s;
    *state_bytes = sizeof(*s);
    return STATUS_OK;
}

static void launch(const struct kernel_state *state, const struct kernel_query *q,
                   const struct kernel_args *args)
{
    struct reduction r = state->r;
    r.x = args->in[0];
    r.y = args->out[0];
    if (state->by_block)
        LAUNCH_FLOATS(q->in[0].dtype, reduce_blocks<element>,
                      grid_for(q, (int64_t)r.results * BLOCK), cuda_size(BLOCK), 0, &r, args);
    else
        LAUNCH_FLOATS(q->in[0].dtype, reduce_threads<element>, grid_for(q, r.results),
                      cuda_size(BLOCK), 0, &r, args);
}

static void release(struct kernel_state *state)
{
    free(state);
}

static const char *const ops[] = {
    "GlobalAveragePool", "GlobalMaxPool", "ReduceL1",   "ReduceL2",  "ReduceLogSum",    "ReduceMax",
    "ReduceMean",        "ReduceMin",     "ReduceProd", "ReduceSum", "ReduceSumSquare", NULL};

CUDA_KERNEL(reduce) = {CUDA_NAME(reduce),  .ops = ops,       .supports = supports,
                       .prepare = prepare, .launch = launch, .release = release};
