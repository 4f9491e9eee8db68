/* SPDX-License-Identifier: Apache-2.0
 *
 * LayerNormalization and RMSNormalization over the last axes, and Group- and InstanceNormalization
 * of plain images, whose groups of channels are lines, too (group_norm.cu has them channels-last).
 * Lines that fit into registers are read once: mean, mean square of deviations, result. Longer ones
 * take a sweep that finds mean and deviation together (lib/moments.h) and one that writes. Where
 * few lines are that long they are split over blocks: one launch writes the moments of each part,
 * the next joins those of its line before it writes. */
#include "engine/kernels/cuda/lib/moments.h"

enum {
    AHEAD = 4,                      /* groups that a thread reads before it looks at them */
    LEAST_PART = 4 * AHEAD * BLOCK, /* groups */
    LONG_BLOCK = 512,               /* threads that do a whole line */
};

enum { WHOLE, PARTS, FROM_PARTS };

struct layernorm {
    const void *x, *scale, *bias; /* bias may be NULL */
    void *y;
    float *mean, *inverse;       /* may be NULL; inverse: of the deviation */
    struct moments *parts;       /* [line][split] */
    unsigned lines, size, lanes; /* size in groups */
    struct divisor splits;
    unsigned chunk, tasks; /* of the size, per split; lines times splits */
    int type, phase;
    float count, epsilon;
    bool centred; /* the mean is taken off */
    /* Where lines are groups of channels. */
    unsigned group_channels;
    struct divisor by_groups, by_plane;     /* groups of an image; by_plane: in groups of floats */
    bool scale_of_channel, bias_of_channel; /* else of the group */
};

/* What is done to a line's elements. */
struct shift {
    float mean, inverse;
};

/* variance: about the mean that is taken off, by one of the line's threads or all. */
static __device__ __forceinline__ struct shift shift_of(const struct layernorm &k, unsigned line,
                                                        float mean, float variance, bool notes)
{
    struct shift s = {mean, 1.0f / sqrtf(variance + k.epsilon)};
    if (k.mean && notes)
        k.mean[line] = s.mean;
    if (k.inverse && notes)
        k.inverse[line] = s.inverse;
    return s;
}

/* Factor and summand of group i of a line; all of it lies in one channel, if lines have channels.
 */
template <int width, bool channels, class element>
static __device__ __forceinline__ void parameters(const struct layernorm &k, unsigned line,
                                                  unsigned i, struct group<width> &scale,
                                                  struct group<width> &bias)
{
    const element *scales = (const element *)k.scale, *biases = (const element *)k.bias;
    if (channels) {
        unsigned group = line - divide(line, k.by_groups) * k.by_groups.d;
        unsigned channel = group * k.group_channels + divide(i, k.by_plane);
        float factor = float_at(scales + (k.scale_of_channel ? channel : group));
        float summand = float_at(biases + (k.bias_of_channel ? channel : group));
#pragma unroll
        for (int e = 0; e < width; e++) {
            scale.v[e] = factor;
            bias.v[e] = summand;
        }
        return;
    }
    scale = group_at(scales + i * width, scale);
    if (biases)
        bias = group_at(biases + i * width, bias);
}

/* Group i of a line. */
template <int width, bool channels, class element>
static __device__ __forceinline__ void write(const struct layernorm &k, element *y, unsigned line,
                                             unsigned i, const struct shift &s,
                                             struct group<width> v)
{
    group<width> scale = {}, bias = {};
    parameters<width, channels, element>(k, line, i, scale, bias);
#pragma unroll
    for (int e = 0; e < width; e++)
        v.v[e] = (v.v[e] - s.mean) * s.inverse * scale.v[e] + bias.v[e];
    group_store(y + (size_t)i * width, v);
}

/* ---- lines in registers ---- */

/* `groups` of them stand `step` groups apart; those from `end` on are 0. */
template <int groups, int width, class element>
static __device__ __forceinline__ void read(const element *x, unsigned i, unsigned step,
                                            unsigned end, float *v)
{
#pragma unroll
    for (int p = 0; p < groups; p++, i += step) {
        group<width> g = {};
        if (i < end)
            g = group_at(x + (size_t)i * width, g);
#pragma unroll
        for (int e = 0; e < width; e++)
            v[p * width + e] = g.v[e];
    }
}

template <int kept>
static __device__ __forceinline__ float mean_kept(const struct layernorm &k,
                                                  const struct line_team &t, const float *v)
{
    float sum = 0;
#pragma unroll
    for (int i = 0; i < kept; i++)
        sum += v[i];
    return k.centred ? team_sum(t, sum) / k.count : 0;
}

template <int width, int kept>
static __device__ __forceinline__ float
variance_kept(const struct layernorm &k, const struct line_team &t, const float *v, float mean)
{
    float sum = 0;
#pragma unroll
    for (int i = 0; i < kept; i++) {
        float by = i / width * k.lanes + t.lane < k.size ? v[i] - mean : 0;
        sum += by * by;
    }
    return team_sum(t, sum) / k.count;
}

template <int width, int kept, bool channels, class element>
static __device__ __forceinline__ void write_kept(const struct layernorm &k, element *y,
                                                  unsigned line, unsigned lane, unsigned size,
                                                  const struct shift &s, const float *v)
{
#pragma unroll
    for (int p = 0; p < kept / width; p++) {
        unsigned i = p * k.lanes + lane;
        struct group<width> g;
#pragma unroll
        for (int e = 0; e < width; e++)
            g.v[e] = v[p * width + e];
        if (i < size)
            write<width, channels>(k, y, line, i, s, g);
    }
}

template <int width, int kept, bool channels>
__global__ void __launch_bounds__(kept > KEPT_FEW ? (int)WIDE_BLOCK : (int)BLOCK)
    layernorm_kept(const __grid_constant__ struct layernorm k)
{
    KERNEL_BEGIN();
    __shared__ float part[WARP];
    struct line_team t = {threadIdx.x % k.lanes, k.lanes, part};
    unsigned each = blockDim.x / k.lanes, own = threadIdx.x / k.lanes;
    for (unsigned base = blockIdx.x * each; base < k.lines; base += gridDim.x * each) {
        unsigned line = base + own, size = line < k.lines ? k.size : 0;
        size_t at = (size_t)line * k.size * width;
        float v[kept];
        WITH_ELEMENT(
            k.type, width,
            (read<kept / width, width>((const element *)k.x + at, t.lane, k.lanes, size, v)));
        float mean = mean_kept<kept>(k, t, v), variance = variance_kept<width, kept>(k, t, v, mean);
        struct shift s = shift_of(k, line, mean, variance, t.lane == 0 && size > 0);
        WITH_ELEMENT(
            k.type, width,
            (write_kept<width, kept, channels>(k, (element *)k.y + at, line, t.lane, size, s, v)));
    }
}

/* ---- long lines ---- */

/* at: of the line's first element. */
template <int width>
static __device__ __forceinline__ struct moments
moments_of_line(const struct layernorm &k, size_t at, unsigned first, unsigned end)
{
    struct moments m = {};
    for (unsigned i = first + threadIdx.x; i < end; i += AHEAD * blockDim.x) {
        float v[AHEAD * width];
        unsigned groups = min((end - i + blockDim.x - 1) / blockDim.x, (unsigned)AHEAD);
        WITH_ELEMENT(k.type, width,
                     (read<AHEAD, width>((const element *)k.x + at, i, blockDim.x, end, v)));
        m = moments_join(m, moments_of<AHEAD * width>(v, width * (int)groups));
    }
    return m;
}

template <int width, bool channels, class element>
static __device__ __forceinline__ void write_line(const struct layernorm &k, unsigned line,
                                                  size_t at, unsigned i, unsigned end,
                                                  const struct shift &s)
{
    const element *x = (const element *)k.x + at;
#pragma unroll 4
    for (; i < end; i += blockDim.x) {
        group<width> g = {};
        g = group_at(x + (size_t)i * width, g);
        write<width, channels>(k, (element *)k.y + at, line, i, s, g);
    }
}

template <int width, bool channels>
__global__ void __launch_bounds__(LONG_BLOCK)
    layernorm_long(const __grid_constant__ struct layernorm k)
{
    KERNEL_BEGIN();
    __shared__ float part[WARP];
    struct line_team t = {threadIdx.x, blockDim.x, part};
    for (unsigned task = blockIdx.x; task < k.tasks; task += gridDim.x) {
        unsigned line = divide(task, k.splits), split = task - line * k.splits.d;
        unsigned first = split * k.chunk, end = min(first + k.chunk, k.size);
        size_t at = (size_t)line * k.size * width;
        struct moments m = {};
        if (k.phase != FROM_PARTS)
            m = moments_of_line<width>(k, at, first, end);
        for (unsigned s = t.lane; k.phase == FROM_PARTS && s < k.splits.d; s += t.lanes)
            m = moments_join(m, k.parts[line * k.splits.d + s]);
        m = moments_of_team(t, m, k.phase == PARTS ? (float)((end - first) * width) : k.count);
        if (k.phase == PARTS) {
            if (t.lane == 0)
                k.parts[task] = m;
            continue;
        }
        float variance = m.square / k.count + (k.centred ? 0 : m.mean * m.mean);
        struct shift s = shift_of(k, line, k.centred ? m.mean : 0, variance, first + t.lane == 0);
        WITH_ELEMENT(k.type, width,
                     (write_line<width, channels, element>(k, line, at, first + t.lane, end, s)));
    }
}

/* ---- hooks ---- */

/* Channels lie one after the other, some of them in a line. */
static bool has_groups(const struct kernel_query *q)
{
    const char *op = cuda_host->node_op(q->node);
    return strcmp(op, "GroupNormalization") == 0 || strcmp(op, "InstanceNormalization") == 0;
}

/* Dimensions of a line: all from the axis on. */
static int line_rank(const struct kernel_query *q)
{
    int axis = (int)cuda_host->node_int(q->node, "axis", -1);
    return axis < 0 ? -axis : q->in[0].shape.rank - axis;
}

/* Elements of a line. */
static int64_t line_size(const struct kernel_query *q)
{
    const struct shape *x = &q->in[0].shape;
    int64_t axis = cuda_host->node_int(q->node, "axis", -1), size = 1;
    if (has_groups(q)) {
        int64_t groups = x->dim[0] * cuda_host->node_int(q->node, "num_groups", x->dim[1]);
        return groups > 0 ? shape_count(x) / groups : 0;
    }
    for (int d = (int)(axis < 0 ? axis + x->rank : axis); d < x->rank; d++)
        size *= x->dim[d];
    return size;
}

static enum status check(const struct kernel_query *q, struct error *why)
{
    TRY(lines_supported(q, why));
    if (has_groups(q))
        return STATUS_OK;
    if (line_size(q) == 0)
        return REFUSE(why, "lines without elements, whose mean is not a number");
    for (int k = 1; k < q->in_count; k++)
        if (input_given(q, k) &&
            (shape_count(&q->in[k].shape) != line_size(q) || q->in[k].shape.rank > line_rank(q)))
            return REFUSE(why, "input %d is broadcast within a line, or differs by line", k);
    for (int k = 1; k < q->out_count; k++)
        if (output_wanted(q, k) && q->out[k].dtype != DTYPE_F32)
            return REFUSE(why, "mean or deviation of another type than f32");
    return STATUS_OK;
}

struct kernel_state {
    struct layernorm k; /* pointers and phase are left open */
    int width;
    bool kept, few; /* lines stay in registers, KEPT_FEW floats of a thread */
    bool channels, biased;
    unsigned block, wanted;
    struct cuda_grid grid;
};

/* How lines are split, and what is launched. */
static void share(const struct kernel_query *q, int64_t size, struct kernel_state *s)
{
    struct layernorm *k = &s->k;
    struct keeping keeping = keeping_of(size, s->width);
    unsigned splits = s->kept ? 1 : splits_for(q, k->lines, k->size / LEAST_PART);
    k->lanes = keeping.lanes;
    k->chunk = (unsigned)div_up(k->size, splits);
    k->splits = divisor_of(div_up(k->size, k->chunk));
    k->tasks = k->lines * k->splits.d;
    if (s->kept) {
        s->few = keeping.few;
        s->block = keeping.block;
        s->grid = grid_for(q, (int64_t)k->lines * k->lanes * BLOCK / keeping.block);
    } else {
        s->block = k->splits.d > 1 ? (unsigned)BLOCK : (unsigned)LONG_BLOCK;
        s->grid = grid_in_cache(q, k->tasks,
                                (int64_t)k->chunk * s->width * element_bytes(q->in[0].dtype));
    }
}

static void share_channels(const struct kernel_query *q, struct kernel_state *s)
{
    struct layernorm *k = &s->k;
    const struct shape *x = &q->in[0].shape;
    int64_t groups = cuda_host->node_int(q->node, "num_groups", x->dim[1]);
    int64_t plane = shape_count(x) / (x->dim[0] * x->dim[1]);
    s->width = group_width(q->in[0].dtype, plane);
    k->group_channels = (unsigned)(x->dim[1] / groups);
    k->by_groups = divisor_of(groups);
    k->by_plane = divisor_of(plane / s->width);
    k->scale_of_channel = shape_count(&q->in[1].shape) == x->dim[1];
    k->bias_of_channel = shape_count(&q->in[2].shape) == x->dim[1];
}

static enum status plan(const struct kernel_query *q, int, struct kernel_state *s,
                        struct error *why)
{
    TRY(check(q, why));
    struct layernorm *k = &s->k;
    int64_t size = line_size(q), count = shape_count(&q->in[0].shape);
    if (count == 0)
        return STATUS_OK; /* no lines */
    k->type = q->in[0].dtype;
    s->width = group_width(q->in[0].dtype, size);
    s->channels = has_groups(q);
    if (s->channels)
        share_channels(q, s);
    s->kept = size <= line_kept(s->width);
    s->biased = input_given(q, 2);
    s->wanted = outputs_wanted(q);
    k->lines = (unsigned)(count / size);
    k->size = (unsigned)(size / s->width);
    k->count = (float)size;
    k->epsilon = (float)cuda_host->node_float(q->node, "epsilon", 1e-5);
    k->centred = strcmp(cuda_host->node_op(q->node), "RMSNormalization") != 0;
    share(q, size, s);
    return STATUS_OK;
}

static size_t workspace(const struct kernel_state *state)
{
    const struct layernorm *k = &state->k;
    return k->splits.d > 1 ? padded_bytes(k->tasks, sizeof(struct moments)) : 0;
}

template <bool channels>
static void launch_kept(const struct kernel_state *s, const struct layernorm *k,
                        const struct kernel_args *args)
{
    if (s->few)
        LAUNCH_WIDTH(s->width, (layernorm_kept<width, KEPT_FEW, channels>), s->grid,
                     cuda_size(s->block), 0, k, args);
    else
        LAUNCH_WIDTH(s->width, (layernorm_kept<width, KEPT_MANY(width), channels>), s->grid,
                     cuda_size(s->block), 0, k, args);
}

/* One launch for whole lines, else one for their parts and one that joins these and writes. */
template <bool channels>
static void launch_long(const struct kernel_state *s, struct layernorm *k,
                        const struct kernel_args *args)
{
    bool parts = k->splits.d > 1;
    for (k->phase = parts ? PARTS : WHOLE; k->phase <= (parts ? FROM_PARTS : WHOLE); k->phase++)
        LAUNCH_WIDTH(s->width, (layernorm_long<width, channels>), s->grid, cuda_size(s->block), 0,
                     k, args);
}

template <bool channels>
static void launch_lines(const struct kernel_state *s, struct layernorm *k,
                         const struct kernel_args *args)
{
    if (s->kept)
        launch_kept<channels>(s, k, args);
    else
        launch_long<channels>(s, k, args);
}

static void launch(const struct kernel_state *state, const struct kernel_args *args)
{
    struct layernorm k = state->k;
    k.x = args->in[0];
    k.scale = args->in[1];
    k.bias = state->biased ? args->in[2] : NULL;
    k.y = args->out[0];
    k.mean = (float *)output_of(args, state->wanted, 1);
    k.inverse = (float *)output_of(args, state->wanted, 2);
    k.parts = (struct moments *)args->workspace;
    if (state->channels)
        launch_lines<true>(state, &k, args);
    else
        launch_lines<false>(state, &k, args);
}

static const char *const ops[] = {"GroupNormalization", "InstanceNormalization",
                                  "LayerNormalization", "RMSNormalization", NULL};

CUDA_KERNEL(layernorm) = {CUDA_NAME(layernorm), .ops = ops, CUDA_PLAN, CUDA_HOOK(workspace),
                          CUDA_HOOK(launch)};
