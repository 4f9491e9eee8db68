/* SPDX-License-Identifier: Apache-2.0
 *
 * Softmax and LogSoftmax along any axis of plain memory, in one of three ways:
 *   - lines of neighbours that fit into registers: read once, written once;
 *   - longer ones: a sweep for the maximum and the sum, which follows the maximum as it grows, and
 *     one that writes;
 *   - along another axis than the last: the same sweeps, where neighbouring threads have
 *     neighbouring lines and a block's rows of threads share the elements.
 * Where few lines are long, those sweeps are split over blocks: one launch writes maximum and sum
 * of each part, the next joins those of its line before it writes. */
#include "engine/kernels/cuda/lib/lines.h"

enum {
    AHEAD = 4,                      /* groups that a thread reads before it looks at them */
    LEAST_PART = 4 * AHEAD * BLOCK, /* groups */
    LONG_BLOCK = 512,               /* threads that do a whole line */
};

enum { WHOLE, PARTS, FROM_PARTS };

struct softmax {
    const void *x;
    void *y;
    float *parts;                /* [line][split]: maximum, sum */
    unsigned lines, size, lanes; /* in groups: size; in columns lines */
    unsigned inner;              /* lines that lie beside each other, and the step along one */
    struct divisor by_inner;     /* in groups */
    struct divisor splits;
    unsigned chunk, tasks; /* of the size, per split; lines or tiles times splits */
    int type, phase;
    bool log;
};

/* ---- maximum and sum of exponentials less it ---- */

struct pair {
    float largest, sum;
};

/* What is taken off before an exponential: nothing has been seen yet where it is -inf. */
static __device__ __forceinline__ float base_of(float largest)
{
    return largest == -INFINITY ? 0 : largest;
}

static __device__ __forceinline__ struct pair pair_join(const struct pair &a, const struct pair &b)
{
    float largest = fmaxf(a.largest, b.largest), base = base_of(largest);
    return {largest, a.sum * expf(a.largest - base) + b.sum * expf(b.largest - base)};
}

/* n values that stand `step` apart. */
template <int n, int step>
static __device__ __forceinline__ void pair_add(struct pair &p, const float *v)
{
    float largest = p.largest, sum = 0;
#pragma unroll
    for (int i = 0; i < n; i++)
        largest = fmaxf(largest, v[i * step]);
    float base = base_of(largest);
#pragma unroll
    for (int i = 0; i < n; i++)
        sum += expf(v[i * step] - base);
    p.sum = p.sum * expf(p.largest - base) + sum;
    p.largest = largest;
}

static __device__ __forceinline__ struct pair pair_of_team(const struct line_team &t,
                                                           const struct pair &p)
{
    float largest = team_max(t, p.largest);
    return {largest, team_sum(t, p.sum * expf(p.largest - base_of(largest)))};
}

static __device__ __forceinline__ struct pair part_at(const struct softmax &k, unsigned line,
                                                      unsigned split)
{
    const float *at = k.parts + 2 * (size_t)(line * k.splits.d + split);
    return {at[0], at[1]};
}

static __device__ __forceinline__ void part_put(const struct softmax &k, unsigned line,
                                                unsigned split, const struct pair &p)
{
    float *at = k.parts + 2 * (size_t)(line * k.splits.d + split);
    at[0] = p.largest;
    at[1] = p.sum;
}

/* What makes results of a line's elements: x - shift, and of Softmax the exponential times factor.
 */
struct scaling {
    float shift, factor;
};

static __device__ __forceinline__ struct scaling scaling_of(bool log, const struct pair &p)
{
    return {log ? p.largest + logf(p.sum) : p.largest, 1 / p.sum};
}

/* Results of one group, of one line or (one: false) of neighbouring ones. */
template <int width, bool one>
static __device__ __forceinline__ void results_of(bool log, struct group<width> &v,
                                                  const struct scaling *s)
{
#pragma unroll
    for (int e = 0; e < width; e++) {
        const struct scaling &own = s[one ? 0 : e];
        float x = v.v[e] - own.shift;
        v.v[e] = log ? x : expf(x) * own.factor;
    }
}

/* AHEAD groups that stand `step` groups of `pitch` elements apart; -inf beyond the end. */
template <int width, class element>
static __device__ __forceinline__ void read_ahead(const element *x, size_t pitch, unsigned i,
                                                  unsigned step, unsigned end, float *v)
{
#pragma unroll
    for (int a = 0; a < AHEAD; a++, i += step) {
        struct group<width> g;
#pragma unroll
        for (int e = 0; e < width; e++)
            g.v[e] = -INFINITY;
        if (i < end)
            g = group_at(x + i * pitch, g);
#pragma unroll
        for (int e = 0; e < width; e++)
            v[a * width + e] = g.v[e];
    }
}

/* ---- lines in registers ---- */

/* v[p * width + e]: element e of the thread's group p; i: the place of the first. */
template <int width, int kept, class element>
static __device__ __forceinline__ void keep_line(const struct softmax &k, const element *x,
                                                 unsigned i, unsigned end, float *v)
{
#pragma unroll
    for (int p = 0; p < kept / width; p++, i += k.lanes) {
        struct group<width> g;
#pragma unroll
        for (int e = 0; e < width; e++)
            g.v[e] = -INFINITY;
        if (i < end)
            g = group_at(x + (size_t)i * width, g);
#pragma unroll
        for (int e = 0; e < width; e++)
            v[p * width + e] = g.v[e];
    }
}

/* Their results; for Softmax the exponentials stay, to be divided. */
template <int width, int kept>
static __device__ __forceinline__ void results_kept(const struct softmax &k,
                                                    const struct line_team &t, float *v)
{
    float largest = -INFINITY, sum = 0;
#pragma unroll
    for (int i = 0; i < kept; i++)
        largest = fmaxf(largest, v[i]);
    largest = team_max(t, largest);
#pragma unroll
    for (int p = 0; p < kept / width; p++) {
        if (p * k.lanes >= k.size)
            continue;
#pragma unroll
        for (int e = 0; e < width; e++) {
            float of = v[p * width + e] - largest, power = expf(of);
            sum += power;
            v[p * width + e] = k.log ? of : power;
        }
    }
    sum = team_sum(t, sum);
    float factor = k.log ? 1 : 1 / sum, shift = k.log ? logf(sum) : 0;
#pragma unroll
    for (int i = 0; i < kept; i++)
        v[i] = v[i] * factor - shift;
}

template <int width, int kept, class element>
static __device__ __forceinline__ void put_line(const struct softmax &k, element *y, unsigned i,
                                                unsigned end, const float *v)
{
#pragma unroll
    for (int p = 0; p < kept / width; p++, i += k.lanes) {
        struct group<width> g;
#pragma unroll
        for (int e = 0; e < width; e++)
            g.v[e] = v[p * width + e];
        if (i < end)
            group_store(y + (size_t)i * width, g);
    }
}

template <int width, int kept>
__global__ void __launch_bounds__(kept > KEPT_FEW ? (int)WIDE_BLOCK : (int)BLOCK)
    softmax_kept(const __grid_constant__ struct softmax k)
{
    KERNEL_BEGIN();
    __shared__ float part[WARP];
    struct line_team t = {threadIdx.x % k.lanes, k.lanes, part};
    unsigned each = blockDim.x / k.lanes, own = threadIdx.x / k.lanes;
    for (unsigned base = blockIdx.x * each; base < k.lines; base += gridDim.x * each) {
        unsigned end = base + own < k.lines ? k.size : 0;
        size_t at = (size_t)(base + own) * k.size * width;
        float v[kept];
        WITH_ELEMENT(k.type, width,
                     (keep_line<width, kept>(k, (const element *)k.x + at, t.lane, end, v)));
        results_kept<width, kept>(k, t, v);
        WITH_ELEMENT(k.type, width,
                     (put_line<width, kept>(k, (element *)k.y + at, t.lane, end, v)));
    }
}

/* ---- long lines ---- */

/* at: of the line's first element. */
template <int width>
static __device__ __forceinline__ struct pair pair_of_line(const struct softmax &k, size_t at,
                                                           unsigned first, unsigned end)
{
    struct pair p = {-INFINITY, 0};
    for (unsigned i = first + threadIdx.x; i < end; i += AHEAD * blockDim.x) {
        float v[AHEAD * width];
        WITH_ELEMENT(k.type, width,
                     read_ahead<width>((const element *)k.x + at, width, i, blockDim.x, end, v));
        pair_add<AHEAD * width, 1>(p, v);
    }
    return p;
}

template <int width>
__global__ void __launch_bounds__(LONG_BLOCK) softmax_long(const __grid_constant__ struct softmax k)
{
    KERNEL_BEGIN();
    __shared__ float part[WARP];
    struct line_team t = {threadIdx.x, blockDim.x, part};
    for (unsigned task = blockIdx.x; task < k.tasks; task += gridDim.x) {
        unsigned line = divide(task, k.splits), split = task - line * k.splits.d;
        unsigned first = split * k.chunk, end = min(first + k.chunk, k.size);
        size_t at = (size_t)line * k.size * width;
        struct pair p = {-INFINITY, 0};
        if (k.phase != FROM_PARTS)
            p = pair_of_line<width>(k, at, first, end);
#pragma unroll 1
        for (unsigned s = t.lane; k.phase == FROM_PARTS && s < k.splits.d; s += t.lanes)
            p = pair_join(p, part_at(k, line, s));
        p = pair_of_team(t, p);
        if (k.phase == PARTS && t.lane == 0)
            part_put(k, line, split, p);
        struct scaling scaling = scaling_of(k.log, p);
#pragma unroll 4
        for (unsigned i = first + t.lane; k.phase != PARTS && i < end; i += t.lanes) {
            struct group<width> g = group_as<width>(k.type, k.x, at + (size_t)i * width);
            results_of<width, true>(k.log, g, &scaling);
            group_store_as<width>(k.type, k.y, at + (size_t)i * width, g);
        }
    }
}

/* ---- along another axis than the last ---- */

/* Over the block's rows of threads; all get the result. memory: two floats a thread and line. */
template <int width>
static __device__ __forceinline__ void join_rows(unsigned lanes, struct pair *p, float *memory)
{
    unsigned row = threadIdx.x / lanes, column = threadIdx.x % lanes;
    float *largest = memory, *sum = memory + BLOCK * width;
#pragma unroll
    for (int e = 0; e < width; e++) {
        largest[e * BLOCK + threadIdx.x] = p[e].largest;
        sum[e * BLOCK + threadIdx.x] = p[e].sum;
    }
    for (unsigned half = BLOCK / lanes / 2; half > 0; half /= 2) {
        __syncthreads();
#pragma unroll
        for (int e = 0; row < half && e < width; e++) {
            unsigned own = e * BLOCK + threadIdx.x, with = own + half * lanes;
            p[e] = pair_join(p[e], {largest[with], sum[with]});
            largest[own] = p[e].largest;
            sum[own] = p[e].sum;
        }
    }
    __syncthreads();
#pragma unroll
    for (int e = 0; e < width; e++)
        p[e] = {largest[e * BLOCK + column], sum[e * BLOCK + column]};
    __syncthreads();
}

template <int width>
static __device__ __forceinline__ void pairs_of_columns(const struct softmax &k, size_t at,
                                                        unsigned first, unsigned end, unsigned rows,
                                                        struct pair *p)
{
    for (unsigned i = first; i < end; i += AHEAD * rows) {
        float v[AHEAD * width];
        WITH_ELEMENT(k.type, width,
                     read_ahead<width>((const element *)k.x + at, k.inner, i, rows, end, v));
#pragma unroll
        for (int e = 0; e < width; e++)
            pair_add<AHEAD, width>(p[e], v + e);
    }
}

/* p: of the lines of group `g`, over all of the axis. */
template <int width>
static __device__ __forceinline__ void write_columns(const struct softmax &k, size_t at,
                                                     unsigned first, unsigned end, unsigned rows,
                                                     const struct pair *p)
{
    enum { TURNS = width > 4 ? 2 : 4 }; /* groups of 8 take many registers */
    struct scaling scaling[width];
#pragma unroll
    for (int e = 0; e < width; e++)
        scaling[e] = scaling_of(k.log, p[e]);
#pragma unroll TURNS
    for (unsigned i = first; i < end; i += rows) {
        size_t to = at + (size_t)i * k.inner;
        struct group<width> v = group_as<width>(k.type, k.x, to);
        results_of<width, false>(k.log, v, scaling);
        group_store_as<width>(k.type, k.y, to, v);
    }
}

template <int width>
__global__ void __launch_bounds__(BLOCK) softmax_columns(const __grid_constant__ struct softmax k)
{
    KERNEL_BEGIN();
    __shared__ float memory[2 * BLOCK * width];
    unsigned column = threadIdx.x % k.lanes, row = threadIdx.x / k.lanes, rows = BLOCK / k.lanes;
    for (unsigned task = blockIdx.x; task < k.tasks; task += gridDim.x) {
        unsigned tile = divide(task, k.splits), split = task - tile * k.splits.d;
        unsigned g = tile * k.lanes + column, outer = divide(g, k.by_inner);
        size_t at = (size_t)outer * k.size * k.inner + (g - outer * k.by_inner.d) * width;
        unsigned first = split * k.chunk, end = g < k.lines ? min(first + k.chunk, k.size) : 0;
        struct pair p[width];
        for (int e = 0; e < width; e++)
            p[e] = {-INFINITY, 0};
        if (k.phase != FROM_PARTS)
            pairs_of_columns<width>(k, at, first + row, end, rows, p);
#pragma unroll 1
        for (unsigned s = row; k.phase == FROM_PARTS && end > 0 && s < k.splits.d; s += rows)
            for (int e = 0; e < width; e++)
                p[e] = pair_join(p[e], part_at(k, g * width + e, s));
        join_rows<width>(k.lanes, p, memory);
        for (int e = 0; k.phase == PARTS && row == 0 && end > 0 && e < width; e++)
            part_put(k, g * width + e, split, p[e]);
        if (k.phase != PARTS)
            write_columns<width>(k, at, first + row, end, rows, p);
    }
}

/* ---- hooks ---- */

enum way { IN_REGISTERS, ALONG, ACROSS };

struct kernel_state {
    struct softmax k; /* pointers and phase are left open */
    enum way way;
    int width;
    bool few; /* KEPT_FEW floats of a thread stay in registers */
    unsigned block;
    struct cuda_grid grid;
};

/* Lines beside each other in a block: 128 bytes, more where the axis is short. */
static unsigned lanes_across(const struct softmax *k, unsigned group_bytes)
{
    unsigned groups = power_of_two_from(k->lines), lanes = 128 / group_bytes;
    lanes = groups < lanes ? groups : lanes;
    while (lanes < BLOCK && lanes < k->lines && k->size * lanes < (unsigned)BLOCK * AHEAD)
        lanes *= 2;
    return lanes;
}

static void split(const struct kernel_query *q, struct softmax *k, int64_t tasks, int64_t groups)
{
    unsigned splits = splits_for(q, tasks, groups / LEAST_PART);
    k->chunk = (unsigned)div_up(k->size, splits);
    k->splits = divisor_of(div_up(k->size, k->chunk));
    k->tasks = (unsigned)tasks * k->splits.d;
}

/* What is launched for the lines. */
static void share(const struct kernel_query *q, int64_t size, struct kernel_state *s)
{
    struct softmax *k = &s->k;
    if (s->way == ACROSS) {
        k->lanes = lanes_across(k, (unsigned)(s->width * element_bytes((enum dtype)k->type)));
        split(q, k, div_up(k->lines, k->lanes), (int64_t)k->size * k->lanes);
    } else {
        k->lanes = keeping_of(size, s->width).lanes;
        split(q, k, k->lines, s->way == ALONG ? k->size : 1);
    }
    int64_t bytes = (int64_t)k->chunk * s->width * element_bytes((enum dtype)k->type);
    if (s->way == IN_REGISTERS) {
        struct keeping keeping = keeping_of(size, s->width);
        s->few = keeping.few;
        s->block = keeping.block;
        s->grid = grid_for(q, (int64_t)k->lines * k->lanes * BLOCK / keeping.block);
    } else {
        s->block = s->way == ACROSS || k->splits.d > 1 ? (unsigned)BLOCK : (unsigned)LONG_BLOCK;
        s->grid = grid_in_cache(q, k->tasks, bytes * (s->way == ACROSS ? k->lanes : 1));
    }
}

static enum status plan(const struct kernel_query *q, int, struct kernel_state *s,
                        struct error *why)
{
    struct axis axis;
    struct softmax *k = &s->k;
    TRY(lines_supported(q, why));
    TRY(axis_of_softmax(q->node, &q->in[0].shape, &axis, why));
    if (axis.outer * axis.size * axis.inner == 0)
        return STATUS_OK; /* no lines */
    k->type = q->in[0].dtype;
    s->width = group_width(q->in[0].dtype, axis.inner > 1 ? axis.inner : axis.size);
    s->way = axis.inner > 1 ? ACROSS : axis.size > line_kept(s->width) ? ALONG : IN_REGISTERS;
    k->log = strcmp(cuda_host->node_op(q->node), "LogSoftmax") == 0;
    k->inner = (unsigned)axis.inner;
    k->by_inner = divisor_of(axis.inner / s->width);
    k->lines = (unsigned)(axis.outer * axis.inner / (s->way == ACROSS ? s->width : 1));
    k->size = (unsigned)(axis.size / (s->way == ACROSS ? 1 : s->width));
    share(q, axis.size, s);
    return STATUS_OK;
}

static size_t workspace(const struct kernel_state *state)
{
    const struct softmax *k = &state->k;
    int64_t lines = (int64_t)k->lines * (state->way == ACROSS ? state->width : 1);
    return k->splits.d > 1 ? padded_bytes(lines * k->splits.d, 2 * sizeof(float)) : 0;
}

static void launch_kept(const struct kernel_state *s, const struct softmax *k,
                        const struct kernel_args *args)
{
    if (s->few)
        LAUNCH_WIDTH(s->width, (softmax_kept<width, KEPT_FEW>), s->grid, cuda_size(s->block), 0, k,
                     args);
    else
        LAUNCH_WIDTH(s->width, (softmax_kept<width, KEPT_MANY(width)>), s->grid,
                     cuda_size(s->block), 0, k, args);
}

/* One launch for whole lines, else one for their parts and one that joins these and writes. */
static void launch_swept(const struct kernel_state *s, struct softmax *k,
                         const struct kernel_args *args)
{
    bool parts = k->splits.d > 1;
    for (k->phase = parts ? PARTS : WHOLE; k->phase <= (parts ? FROM_PARTS : WHOLE); k->phase++) {
        if (s->way == ACROSS)
            LAUNCH_WIDTH(s->width, softmax_columns<width>, s->grid, cuda_size(s->block), 0, k,
                         args);
        else
            LAUNCH_WIDTH(s->width, softmax_long<width>, s->grid, cuda_size(s->block), 0, k, args);
    }
}

static void launch(const struct kernel_state *state, const struct kernel_args *args)
{
    struct softmax k = state->k;
    k.x = args->in[0];
    k.y = args->out[0];
    k.parts = (float *)args->workspace;
    if (state->way == IN_REGISTERS)
        launch_kept(state, &k, args);
    else
        launch_swept(state, &k, args);
}

static const char *const ops[] = {"Softmax", "LogSoftmax", NULL};

CUDA_KERNEL(softmax) = {CUDA_NAME(softmax), .ops = ops, CUDA_PLAN, CUDA_HOOK(workspace),
                        CUDA_HOOK(launch)};
