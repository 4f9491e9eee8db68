/* SPDX-License-Identifier: Apache-2.0
 *
 * GroupNormalization and InstanceNormalization (a group per channel) of images whose channels lie
 * together; layernorm.cu has plain ones. A thread has 16 bytes of neighbouring channels and walks
 * over positions, so each access is whole sectors however few channels a group has; it keeps the
 * moments of each of its channels (lib/moments.h says how they join). Where an image's groups are
 * small, or many, a block does a few of them in one launch. Else images are split over blocks: one
 * launch writes moments per channel and part, the next joins those of a group, a third one writes.
 */
#include "engine/kernels/cuda/lib/moments.h"

enum {
    POSITIONS_AHEAD = 4,   /* positions that a thread reads before it looks at them */
    SPLIT_COLUMNS = 64,    /* most threads side by side where images are split */
    WHOLE_COLUMNS = 4,     /* least of them where a block does whole groups: 64 bytes */
    WHOLE_BYTES = 1 << 16, /* of an image, that one block may read however few blocks there are */
    WHOLE_GROUPS = 64,     /* more than a block ever does */
};

struct group_norm {
    const void *x, *scale, *bias;
    void *y;
    float2 *parts;      /* [image][split][cell]: mean, sum of squared deviations */
    float2 *statistics; /* [image][group]: mean, 1 / deviation */
    unsigned channels, plane, tasks;
    unsigned rows;  /* positions that a block's threads stand at; columns: groups of channels */
    unsigned chunk; /* positions of a split */
    struct divisor columns, tiles, splits, groups, group_channels, cells;
    unsigned cell; /* channels that a part's moments are of: 1, or all that a thread has */
    int type;
    float epsilon;
    bool scale_of_channel, bias_of_channel; /* else of the group */
};

/* What a thread has: the channels from `channel` on, each `rows`-th position from `first` on. */
struct share {
    unsigned image, split, tile, column, row, channel, first, end;
    bool idle;
};

template <int width>
static __device__ __forceinline__ struct share share_of(const struct group_norm &k, unsigned task)
{
    struct share s;
    unsigned parts = divide(task, k.tiles);
    s.tile = task - parts * k.tiles.d;
    s.image = divide(parts, k.splits);
    s.split = parts - s.image * k.splits.d;
    s.row = divide(threadIdx.x, k.columns);
    s.column = threadIdx.x - s.row * k.columns.d;
    s.channel = (s.tile * k.columns.d + s.column) * width;
    s.end = min((s.split + 1) * k.chunk, k.plane);
    s.first = s.split * k.chunk + s.row;
    s.idle = s.row >= k.rows || s.channel >= k.channels;
    return s;
}

/* Of each of a thread's channels. */
template <int width> struct channel_moments {
    float count, mean[width], square[width];
};

template <int width>
static __device__ __forceinline__ void moments_add(struct channel_moments<width> &to, float count,
                                                   const float *mean, const float *square)
{
    float all = to.count + count, part = all > 0 ? count / all : 0, weight = to.count * part;
#pragma unroll
    for (int e = 0; e < width; e++) {
        float by = mean[e] - to.mean[e];
        to.mean[e] += by * part;
        to.square[e] += square[e] + by * by * weight;
    }
    to.count = all;
}

template <int width, class element>
static __device__ __forceinline__ void
moments_walk(const struct group_norm &k, const struct share &s, struct channel_moments<width> &all)
{
    const element *x = (const element *)k.x + (size_t)s.image * k.plane * k.channels + s.channel;
    for (unsigned p = s.first; p < s.end; p += POSITIONS_AHEAD * k.rows) {
        struct group<width> v[POSITIONS_AHEAD];
        float mean[width] = {}, square[width] = {}, count = 0;
#pragma unroll
        for (unsigned a = 0; a < POSITIONS_AHEAD; a++) {
            bool there = p + a * k.rows < s.end;
            v[a] = {};
            if (there)
                v[a] = group_at(x + (size_t)(p + a * k.rows) * k.channels, v[a]);
            count += there ? 1.0f : 0.0f;
        }
        float inverse = 1 / count;
#pragma unroll
        for (int e = 0; e < width; e++) {
            mean[e] = (v[0].v[e] + v[1].v[e] + v[2].v[e] + v[3].v[e]) * inverse;
#pragma unroll
            for (unsigned a = 0; a < POSITIONS_AHEAD; a++) {
                float by = (float)a < count ? v[a].v[e] - mean[e] : 0;
                square[e] += by * by;
            }
        }
        moments_add<width>(all, count, mean, square);
    }
}

/* Joins what a block's rows have in shared memory, in places [e][thread], for row 0. */
template <int width>
static __device__ __forceinline__ void
moments_of_rows(const struct group_norm &k, const struct share &s, float *count, float *mean,
                float *square, struct channel_moments<width> &m)
{
    unsigned rows = k.rows, t = threadIdx.x;
    count[t] = m.count;
#pragma unroll
    for (int e = 0; e < width; e++) {
        mean[e * BLOCK + t] = m.mean[e];
        square[e * BLOCK + t] = m.square[e];
    }
    while (rows > 1) {
        unsigned half = (rows + 1) / 2;
        __syncthreads();
        if (s.row + half < rows) {
            float other_mean[width], other_square[width];
            unsigned other = t + half * k.columns.d;
#pragma unroll
            for (int e = 0; e < width; e++) {
                other_mean[e] = mean[e * BLOCK + other];
                other_square[e] = square[e * BLOCK + other];
            }
            moments_add<width>(m, count[other], other_mean, other_square);
            count[t] = m.count;
#pragma unroll
            for (int e = 0; e < width; e++) {
                mean[e * BLOCK + t] = m.mean[e];
                square[e * BLOCK + t] = m.square[e];
            }
        }
        rows = half;
    }
    __syncthreads();
}

/* statistics: of the groups from first_group on. */
template <int width, class element>
static __device__ __forceinline__ void write_share(const struct group_norm &k,
                                                   const struct share &s, const float2 *statistics,
                                                   unsigned first_group)
{
    const element *scales = (const element *)k.scale, *biases = (const element *)k.bias;
    size_t at = (size_t)s.image * k.plane * k.channels + s.channel;
    const element *x = (const element *)k.x + at;
    element *y = (element *)k.y + at;
    float mean[width], factor[width], bias[width];
#pragma unroll
    for (int e = 0; e < width; e++) {
        unsigned channel = s.channel + e, group = divide(channel, k.group_channels);
        float2 of_group = statistics[group - first_group];
        mean[e] = of_group.x;
        factor[e] = of_group.y * float_at(scales + (k.scale_of_channel ? channel : group));
        bias[e] = float_at(biases + (k.bias_of_channel ? channel : group));
    }
#pragma unroll 4
    for (unsigned p = s.first; p < s.end; p += k.rows) {
        struct group<width> v = {
        };
        v = group_at(x + (size_t)p * k.channels, v);
#pragma unroll
        for (int e = 0; e < width; e++)
            v.v[e] = (v.v[e] - mean[e]) * factor[e] + bias[e];
        group_store(y + (size_t)p * k.channels, v);
    }
}

/* Of all positions of the block's share, for row 0; the arrays are in shared memory. */
template <int width>
static __device__ __forceinline__ struct channel_moments<width>
moments_of(const struct group_norm &k, const struct share &s, float *count, float *mean,
           float *square) {
    struct channel_moments<width> m = {
    };
    if (!s.idle)
        WITH_ELEMENT(k.type, width, (moments_walk<width, element>(k, s, m)));
    moments_of_rows<width>(k, s, count, mean, square, m);
    return m;
}

template <int width>
__global__ void __launch_bounds__(BLOCK)
    group_norm_parts(const __grid_constant__ struct group_norm k)
{
    KERNEL_BEGIN();
    __shared__ float count[BLOCK], mean[BLOCK * width], square[BLOCK * width];
    for (unsigned task = blockIdx.x; task < k.tasks; task += gridDim.x) {
        struct share s = share_of<width>(k, task);
        struct channel_moments<width> m = moments_of<width>(k, s, count, mean, square);
        float2 *to = k.parts + (size_t)(s.image * k.splits.d + s.split) * k.cells.d;
        if (s.row > 0 || s.idle)
            continue;
        if (k.cell == 1) {
#pragma unroll
            for (int e = 0; e < width; e++)
                to[s.channel + e] = make_float2(m.mean[e], m.square[e]);
            continue;
        }
        float sum = 0, squares = 0;
#pragma unroll
        for (int e = 0; e < width; e++)
            sum += m.mean[e];
#pragma unroll
        for (int e = 0; e < width; e++) {
            float by = m.mean[e] - sum / width;
            squares += m.square[e] + m.count * by * by;
        }
        to[s.channel / width] = make_float2(sum / width, squares);
    }
}

/* A block per group: the mean of all parts, then what they deviate from it. */
__global__ void __launch_bounds__(BLOCK)
    group_norm_join(const __grid_constant__ struct group_norm k)
{
    KERNEL_BEGIN();
    __shared__ float part[WARP];
    unsigned image = divide(blockIdx.x, k.groups), group = blockIdx.x - image * k.groups.d;
    unsigned of_group = k.group_channels.d / k.cell, items = of_group * k.splits.d;
    const float2 *from = k.parts + (size_t)image * k.splits.d * k.cells.d + group * of_group;
    float elements = (float)k.plane * (float)k.group_channels.d, sum = 0, square = 0;
    unsigned split = threadIdx.x / of_group, cell = threadIdx.x % of_group;
    unsigned split_step = BLOCK / of_group, cell_step = BLOCK % of_group;
    for (int sweep = 0; sweep < 2; sweep++) {
        unsigned s = split, c = cell;
#pragma unroll 4
        for (unsigned i = threadIdx.x; i < items; i += BLOCK) {
            float2 m = from[(size_t)s * k.cells.d + c];
            float n = (float)((min((s + 1) * k.chunk, k.plane) - s * k.chunk) * k.cell);
            float by = m.x - sum;
            square += sweep ? m.y + n * by * by : n * m.x;
            c += cell_step;
            s += split_step + (c >= of_group ? 1 : 0);
            c -= c >= of_group ? of_group : 0;
        }
        square = block_sum(square, part) / elements;
        sum = sweep ? sum : square;
        square = sweep ? square : 0;
    }
    if (threadIdx.x == 0)
        k.statistics[blockIdx.x] = make_float2(sum, 1.0f / sqrtf(square + k.epsilon));
}

template <int width>
__global__ void __launch_bounds__(BLOCK)
    group_norm_write(const __grid_constant__ struct group_norm k)
{
    KERNEL_BEGIN();
    for (unsigned task = blockIdx.x; task < k.tasks; task += gridDim.x) {
        struct share s = share_of<width>(k, task);
        const float2 *statistics = k.statistics + (size_t)s.image * k.groups.d;
        if (!s.idle)
            WITH_ELEMENT(k.type, width, (write_share<width, element>(k, s, statistics, 0)));
    }
}

/* One group's mean and deviation, by a warp, from moments of its channels that stand in shared
 * memory as moments_of_rows leaves them; channel: the group's first one in the tile. */
template <int width>
static __device__ __forceinline__ float2 statistics_of(const struct group_norm &k, unsigned channel,
                                                       const float *mean, const float *square)
{
    unsigned lane = threadIdx.x % WARP, size = k.group_channels.d;
    float sum = 0, squares = 0;
    for (unsigned c = channel + lane; c < channel + size; c += WARP)
        sum += mean[c % width * BLOCK + c / width];
    sum = warp_sum(sum) / (float)size;
    for (unsigned c = channel + lane; c < channel + size; c += WARP) {
        float by = mean[c % width * BLOCK + c / width] - sum;
        squares += square[c % width * BLOCK + c / width] / (float)k.plane + by * by;
    }
    return make_float2(sum, 1.0f / sqrtf(warp_sum(squares) / (float)size + k.epsilon));
}

/* A block does whole groups: those whose channels its columns have. */
template <int width>
__global__ void __launch_bounds__(BLOCK)
    group_norm_whole(const __grid_constant__ struct group_norm k)
{
    KERNEL_BEGIN();
    __shared__ float count[BLOCK], mean[BLOCK * width], square[BLOCK * width];
    __shared__ float2 statistics[WHOLE_GROUPS];
    for (unsigned task = blockIdx.x; task < k.tasks; task += gridDim.x) {
        struct share s = share_of<width>(k, task);
        (void)moments_of<width>(k, s, count, mean, square);
        unsigned first = s.tile * k.columns.d * width;
        unsigned channels = min(k.columns.d * width, k.channels - first);
        unsigned first_group = divide(first, k.group_channels);
        unsigned groups = divide(channels, k.group_channels);
        for (unsigned g = threadIdx.x / WARP; g < groups; g += BLOCK / WARP) {
            float2 of_group = statistics_of<width>(k, g * k.group_channels.d, mean, square);
            if (threadIdx.x % WARP == 0)
                statistics[g] = of_group;
        }
        __syncthreads();
        if (!s.idle)
            WITH_ELEMENT(k.type, width,
                         (write_share<width, element>(k, s, statistics, first_group)));
        __syncthreads(); /* the next task writes what this one reads */
    }
}

/* ---- hooks ---- */

struct kernel_state {
    struct group_norm k; /* pointers are left open */
    int width;
    bool whole;
    unsigned images;
    struct cuda_grid grid;
};

static enum status check(const struct kernel_query *q, struct error *why)
{
    TRY(floats_supported(q, 0, q->in_count, why));
    if (q->node->post_count)
        return REFUSE(why, "no fused epilogue");
    if (!cuda_host->desc_is_nhwc(&q->in[0]) || !cuda_host->desc_is_nhwc(&q->out[0]))
        return REFUSE(why, "only images whose channels lie together");
    return fits_index(&q->in[0]) ? STATUS_OK : REFUSE(why, "more than 2^31 elements");
}

static int64_t least_common_multiple(int64_t a, int64_t b)
{
    int64_t multiple = a;
    while (multiple % b)
        multiple += a;
    return multiple;
}

/* Threads side by side where a block does whole groups: the fewest that read whole sectors. */
static int64_t whole_columns(const struct group_norm *k, int width)
{
    int64_t least = least_common_multiple(width, k->group_channels.d) / width;
    return div_up(WHOLE_COLUMNS, least) * least;
}

static void share(const struct kernel_query *q, struct kernel_state *s)
{
    struct group_norm *k = &s->k;
    int64_t all = k->channels / (unsigned)s->width, columns = whole_columns(k, s->width);
    int64_t wave = 2 * (int64_t)q->device->properties.units;
    columns = columns < all ? columns : all;
    int64_t bytes = (int64_t)k->plane * columns * s->width * element_bytes(q->in[0].dtype);
    s->whole =
        columns <= BLOCK && (bytes <= WHOLE_BYTES || s->images * div_up(all, columns) >= wave);
    if (!s->whole)
        columns = div_up(all, div_up(all, SPLIT_COLUMNS));
    k->columns = divisor_of(columns);
    k->tiles = divisor_of(div_up(all, columns));
    k->rows = (unsigned)(BLOCK / columns < k->plane ? BLOCK / columns : k->plane);
    int64_t tasks = (int64_t)s->images * k->tiles.d, least = 2 * POSITIONS_AHEAD * k->rows;
    unsigned splits = s->whole ? 1 : splits_for(q, tasks, k->plane / least);
    k->chunk = (unsigned)div_up(k->plane, splits);
    k->splits = divisor_of(div_up(k->plane, k->chunk));
    k->tasks = (unsigned)tasks * k->splits.d;
    s->grid = s->whole ? grid_in_cache(q, k->tasks, bytes) : grid_for(q, (int64_t)k->tasks * BLOCK);
}

static enum status plan(const struct kernel_query *q, int, struct kernel_state *s,
                        struct error *why)
{
    TRY(check(q, why));
    struct group_norm *k = &s->k;
    const struct shape *x = &q->in[0].shape;
    int64_t count = shape_count(x);
    if (count == 0)
        return STATUS_OK; /* no tasks */
    int64_t groups = cuda_host->node_int(q->node, "num_groups", x->dim[1]);
    int64_t size = x->dim[1] / groups;
    s->images = (unsigned)x->dim[0];
    s->width = group_width(q->in[0].dtype, x->dim[1]);
    k->type = q->in[0].dtype;
    k->channels = (unsigned)x->dim[1];
    k->plane = (unsigned)(count / (x->dim[0] * x->dim[1]));
    k->groups = divisor_of(groups);
    k->group_channels = divisor_of(size);
    k->cell = size % s->width == 0 ? (unsigned)s->width : 1;
    k->cells = divisor_of(x->dim[1] / k->cell);
    k->epsilon = (float)cuda_host->node_float(q->node, "epsilon", 1e-5);
    k->scale_of_channel = shape_count(&q->in[1].shape) == x->dim[1];
    k->bias_of_channel = shape_count(&q->in[2].shape) == x->dim[1];
    share(q, s);
    return STATUS_OK;
}

static size_t parts_bytes(const struct kernel_state *s)
{
    return padded_bytes((int64_t)s->images * s->k.splits.d * s->k.cells.d, sizeof(float2));
}

static size_t workspace(const struct kernel_state *s)
{
    if (s->whole || s->k.tasks == 0)
        return 0;
    return parts_bytes(s) + padded_bytes((int64_t)s->images * s->k.groups.d, sizeof(float2));
}

static void launch(const struct kernel_state *state, const struct kernel_args *args)
{
    struct group_norm k = state->k;
    struct cuda_grid block = cuda_size(BLOCK);
    k.x = args->in[0];
    k.scale = args->in[1];
    k.bias = args->in[2];
    k.y = args->out[0];
    if (state->whole) {
        LAUNCH_WIDTH(state->width, group_norm_whole<width>, state->grid, block, 0, &k, args);
        return;
    }
    k.parts = (float2 *)args->workspace;
    k.statistics = (float2 *)((char *)args->workspace + parts_bytes(state));
    LAUNCH_WIDTH(state->width, group_norm_parts<width>, state->grid, block, 0, &k, args);
    LAUNCH(group_norm_join, cuda_size(state->images * k.groups.d), block, 0, &k, args);
    LAUNCH_WIDTH(state->width, group_norm_write<width>, state->grid, block, 0, &k, args);
}

static const char *const ops[] = {"GroupNormalization", "InstanceNormalization", NULL};

CUDA_KERNEL(group_norm) = {CUDA_NAME(group_norm), .ops = ops, CUDA_PLAN, CUDA_HOOK(workspace),
                           CUDA_HOOK(launch)};
