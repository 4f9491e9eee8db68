/* SPDX-License-Identifier: Apache-2.0
 *
 * CumSum. Along an inner axis a thread walks over each line, neighbours side by side; along the
 * last one lanes of a warp or a block scan a line together, 16 bytes a thread where lines begin so.
 * Where lines are few they are split over blocks: one launch writes each part's sum, the next adds
 * up those of the parts before its own. Floats are summed in f64: of a long line the error stays
 * that of one rounding. Integers wrap. */
#include "engine/kernels/cuda/lib/lines.h"

enum {
    TERMS_AHEAD = 8,          /* terms of a line that a thread reads before it adds them */
    LEAST_TERMS = 32,         /* of a part, where a thread walks */
    LEAST_GROUPS = 4 * BLOCK, /* of a part, where a block scans */
};

enum { WHOLE_LINES, SUMS_OF_PARTS, FROM_SUMS };

struct cum_sum {
    const void *x;
    void *y, *sums;              /* sums: [split][line] */
    unsigned size, lines, tasks; /* size of a line, in groups of `width` */
    unsigned chunk, lanes;       /* groups of a part; threads that scan a line */
    struct divisor splits, by_inner;
    int phase;
    bool exclusive, reverse;
};

/* Neighbours that are read and written at once, in the order of memory. */
template <class number, int width> struct alignas(sizeof(number) * width) neighbours {
    number v[width];
};

/* ---- a thread walks ---- */

template <class number, class total>
__global__ void __launch_bounds__(BLOCK) cum_sum_columns(const __grid_constant__ struct cum_sum k)
{
    KERNEL_BEGIN();
    total *sums = (total *)k.sums;
    for (unsigned t = blockIdx.x * BLOCK + threadIdx.x; t < k.tasks; t += gridDim.x * BLOCK) {
        unsigned part = divide(t, k.by_inner), column = t - part * k.by_inner.d;
        unsigned outer = divide(part, k.splits), split = part - outer * k.splits.d;
        unsigned first = split * k.chunk, end = min(first + k.chunk, k.size);
        unsigned line = outer * k.by_inner.d + column;
        int step = k.reverse ? -(int)k.by_inner.d : (int)k.by_inner.d;
        size_t start = (size_t)outer * k.size + (k.reverse ? k.size - 1 - first : first);
        const number *x = (const number *)k.x + start * k.by_inner.d + column;
        number *y = (number *)k.y + start * k.by_inner.d + column;
        total sum = 0;
#pragma unroll 4
        for (unsigned s = 0; k.phase == FROM_SUMS && s < split; s++)
            sum += sums[s * k.lines + line];
        for (unsigned i = first; i < end; i += TERMS_AHEAD) {
            number v[TERMS_AHEAD];
#pragma unroll
            for (int a = 0; a < TERMS_AHEAD; a++)
                v[a] = i + (unsigned)a < end ? x[(ptrdiff_t)a * step] : 0;
#pragma unroll
            for (int a = 0; a < TERMS_AHEAD; a++) {
                total before = sum;
                sum += (total)v[a];
                if (k.phase != SUMS_OF_PARTS && i + (unsigned)a < end)
                    y[(ptrdiff_t)a * step] = (number)(k.exclusive ? before : sum);
            }
            x += (ptrdiff_t)TERMS_AHEAD * step;
            y += (ptrdiff_t)TERMS_AHEAD * step;
        }
        if (k.phase == SUMS_OF_PARTS)
            sums[split * k.lines + line] = sum;
    }
}

/* ---- threads scan ---- */

/* What the lanes before this one have, and all of them; part: a total per warp of the block. */
template <class total>
static __device__ __forceinline__ total scan(unsigned lane, unsigned lanes, total own, total *part,
                                             total *all)
{
    unsigned in_warp = lane % WARP, width = lanes < WARP ? lanes : (unsigned)WARP;
    total sum = own;
    for (unsigned by = 1; by < width; by *= 2) {
        total other = __shfl_up_sync(all_lanes, sum, by);
        sum += in_warp >= by ? other : 0;
    }
    total before = __shfl_up_sync(all_lanes, sum, 1);
    before = in_warp > 0 ? before : 0;
    *all = __shfl_sync(all_lanes, sum, (int)(threadIdx.x % WARP | (width - 1)));
    if (lanes <= WARP)
        return before;
    __syncthreads(); /* whoever still reads the last scan's */
    if (in_warp == 0)
        part[lane / WARP] = *all;
    __syncthreads();
    total warps_before = 0;
    *all = 0;
#pragma unroll
    for (unsigned w = 0; w < BLOCK / WARP; w++) {
        warps_before += w < lane / WARP ? part[w] : 0;
        *all += part[w];
    }
    return warps_before + before;
}

template <class number, int width>
static __device__ __forceinline__ void turn_round(struct neighbours<number, width> &group)
{
#pragma unroll
    for (int e = 0; e < width / 2; e++) {
        number last = group.v[width - 1 - e];
        group.v[width - 1 - e] = group.v[e];
        group.v[e] = last;
    }
}

/* Groups from `first` to `end` of the line at `at`, after terms that are `sum` in all; returns what
 * they are with these. All lanes of a warp take as many rounds. */
template <class number, class total, int width>
static __device__ __forceinline__ total scan_part(const struct cum_sum &k, size_t at, unsigned lane,
                                                  unsigned first, unsigned end, total *part,
                                                  total sum)
{
    using group_of = struct neighbours<number, width>;
    const group_of *x = (const group_of *)k.x + at;
    group_of *y = (group_of *)k.y + at;
    for (unsigned base = 0; base < k.chunk; base += k.lanes) {
        unsigned i = first + base + lane, place = k.reverse ? k.size - 1 - i : i;
        group_of group = {};
        total own = 0, all;
        if (i < end)
            group = x[place];
        if (k.reverse)
            turn_round<number, width>(group);
#pragma unroll
        for (int e = 0; e < width; e++)
            own += (total)group.v[e];
        total before = sum + scan<total>(lane, k.lanes, own, part, &all);
        sum += all;
        if (k.phase == SUMS_OF_PARTS || i >= end)
            continue;
#pragma unroll
        for (int e = 0; e < width; e++) {
            total after = before + (total)group.v[e];
            group.v[e] = (number)(k.exclusive ? before : after);
            before = after;
        }
        if (k.reverse)
            turn_round<number, width>(group);
        y[place] = group;
    }
    return sum;
}

template <class number, class total, int width>
__global__ void __launch_bounds__(BLOCK) cum_sum_lines(const __grid_constant__ struct cum_sum k)
{
    KERNEL_BEGIN();
    __shared__ total part[BLOCK / WARP];
    total *sums = (total *)k.sums;
    unsigned lane = threadIdx.x % k.lanes, own = threadIdx.x / k.lanes, each = BLOCK / k.lanes;
    for (unsigned base = blockIdx.x * each; base < k.tasks; base += gridDim.x * each) {
        unsigned task = base + own, line = divide(task, k.splits);
        unsigned split = task - line * k.splits.d, first = split * k.chunk;
        unsigned end = task < k.tasks ? min(first + k.chunk, k.size) : first;
        total sum = 0, before = 0;
        for (unsigned s = lane; k.phase == FROM_SUMS && s < split; s += k.lanes)
            before += sums[s * k.lines + line];
        if (k.phase == FROM_SUMS)
            (void)scan<total>(lane, k.lanes, before, part, &sum);
        size_t at = (size_t)line * k.size;
        sum = scan_part<number, total, width>(k, at, lane, first, end, part, sum);
        if (k.phase == SUMS_OF_PARTS && lane == 0 && task < k.tasks)
            sums[split * k.lines + line] = sum;
    }
}

/* ---- hooks ---- */

struct kernel_state {
    struct cum_sum k; /* pointers and phase are left open */
    enum dtype type;
    bool columns, wide; /* wide: lines begin at multiples of 16 bytes */
    struct cuda_grid grid;
};

static enum status axis_from_input(const struct kernel_query *q, int *axis, struct error *why)
{
    int rank = q->in[0].shape.rank;
    if (!q->fixed[1])
        return REFUSE(why, "the axis comes at run time");
    if (!is_index(q->in[1].dtype) || shape_count(&q->in[1].shape) != 1)
        return REFUSE(why, "an axis that is not one i32 or i64");
    int64_t at =
        q->in[1].dtype == DTYPE_I64 ? *(const int64_t *)q->fixed[1] : *(const int32_t *)q->fixed[1];
    at += at < 0 ? rank : 0;
    *axis = (int)at;
    return at >= 0 && at < rank ? STATUS_OK : REFUSE(why, "no such axis");
}

/* Parts that are worth a launch of their own, and few enough for whoever adds up those before its
 * own, one after the other. */
static int64_t parts_at_most(int64_t size)
{
    int64_t parts = size / LEAST_TERMS;
    if (parts * parts > size)
        parts = (int64_t)sqrt((double)size);
    return parts;
}

/* How lines are shared, and split where they are few. */
static void share(const struct kernel_query *q, const struct axis *axis, struct kernel_state *s)
{
    struct cum_sum *k = &s->k;
    int width = 16 / element_bytes(s->type);
    s->columns = axis->inner > 1;
    s->wide = !s->columns && axis->size % width == 0;
    k->size = (unsigned)(axis->size / (s->wide ? width : 1));
    k->lines = (unsigned)(axis->outer * axis->inner);
    k->by_inner = divisor_of(axis->inner);
    unsigned lanes = power_of_two_from(k->size), warp = WARP;
    k->lanes = k->size > LINE_OF_WARP ? (unsigned)BLOCK : lanes < warp ? lanes : warp;
    unsigned splits = 1;
    if (s->columns)
        splits = splits_for(q, div_up(k->lines, BLOCK), parts_at_most(k->size));
    else if (k->lanes == BLOCK)
        splits = splits_for(q, k->lines, k->size / LEAST_GROUPS);
    k->chunk = (unsigned)div_up(k->size, splits);
    k->splits = divisor_of(div_up(k->size, k->chunk));
    k->tasks = k->lines * k->splits.d;
    s->grid = grid_for(q, (int64_t)k->tasks * (s->columns ? 1 : k->lanes));
}

static enum status plan(const struct kernel_query *q, int, struct kernel_state *s,
                        struct error *why)
{
    int at = 0;
    TRY(plain_supported(q, why));
    s->type = q->in[0].dtype;
    if (q->out[0].dtype != s->type ||
        (s->type != DTYPE_F32 && s->type != DTYPE_I32 && s->type != DTYPE_I64))
        return REFUSE(why, "only f32, i32 and i64");
    TRY(axis_from_input(q, &at, why));
    if (shape_count(&q->in[0].shape) == 0)
        return STATUS_OK; /* no tasks */
    struct axis axis = axis_of(&q->in[0].shape, at);
    s->k.exclusive = cuda_host->node_int(q->node, "exclusive", 0) != 0;
    s->k.reverse = cuda_host->node_int(q->node, "reverse", 0) != 0;
    share(q, &axis, s);
    return STATUS_OK;
}

static size_t workspace(const struct kernel_state *s)
{
    return s->k.splits.d > 1 ? padded_bytes(s->k.tasks, sizeof(double)) : 0;
}

template <class number, class total>
static void launch_as(const struct kernel_state *s, const struct cum_sum *k,
                      const struct kernel_args *args)
{
    struct cuda_grid block = cuda_size(BLOCK);
    if (s->columns)
        LAUNCH((cum_sum_columns<number, total>), s->grid, block, 0, k, args);
    else if (s->wide)
        LAUNCH((cum_sum_lines<number, total, 16 / sizeof(number)>), s->grid, block, 0, k, args);
    else
        LAUNCH((cum_sum_lines<number, total, 1>), s->grid, block, 0, k, args);
}

static void launch(const struct kernel_state *state, const struct kernel_args *args)
{
    struct cum_sum k = state->k;
    bool parts = k.splits.d > 1;
    k.x = args->in[0];
    k.y = args->out[0];
    k.sums = args->workspace;
    for (k.phase = parts ? SUMS_OF_PARTS : WHOLE_LINES;
         k.phase <= (parts ? FROM_SUMS : WHOLE_LINES); k.phase++) {
        if (state->type == DTYPE_F32)
            launch_as<float, double>(state, &k, args);
        else if (state->type == DTYPE_I32)
            launch_as<uint32_t, uint32_t>(state, &k, args);
        else
            launch_as<uint64_t, uint64_t>(state, &k, args);
    }
}

static const char *const ops[] = {"CumSum", NULL};

CUDA_KERNEL(cum_sum) = {CUDA_NAME(cum_sum), .ops = ops, CUDA_PLAN, CUDA_HOOK(workspace),
                        CUDA_HOOK(launch)};
