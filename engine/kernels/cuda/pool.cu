/* SPDX-License-Identifier: Apache-2.0
 *
 * MaxPool and AveragePool of images, one to three dimensions, channels-last or plain: a thread
 * per result, neighbours along the dimension that lies together. */
#include "engine/kernels/cuda/lib/query.h"

struct pool_window {
    const void *x;
    void *y;
    unsigned count;
    bool average, count_pads, channels_last;
    struct divisor channels, out[SPATIAL_MAX];
    int kernel[SPATIAL_MAX], stride[SPATIAL_MAX], dilation[SPATIAL_MAX], pad[SPATIAL_MAX];
    int in[SPATIAL_MAX], end[SPATIAL_MAX]; /* end: of the padded input */
    int64_t x_image, x_channel, x_at[SPATIAL_MAX];
};

struct place {
    int64_t x; /* image and channel */
    int at[SPATIAL_MAX];
};

static __device__ __forceinline__ unsigned take(unsigned *index, const struct divisor &by)
{
    unsigned next = divide(*index, by), rest = *index - next * by.d;
    *index = next;
    return rest;
}

/* Of result k in memory order. */
static __device__ __forceinline__ struct place place_of(const struct pool_window &p, unsigned k)
{
    struct place r = {0, {0, 0, 0}};
    unsigned channel = p.channels_last ? take(&k, p.channels) : 0;
    for (int d = SPATIAL_MAX - 1; d >= 0; d--)
        r.at[d] = (int)take(&k, p.out[d]);
    if (!p.channels_last)
        channel = take(&k, p.channels);
    r.x = k * p.x_image + channel * p.x_channel;
    return r;
}

/* Taps [first, last) inside the input, and how many are inside the padded one. */
struct span {
    int first, last, at, padded;
};

static __device__ __forceinline__ struct span span_of(const struct pool_window &p, int d, int out)
{
    int step = p.dilation[d];
    struct span s = {0, p.kernel[d], out * p.stride[d] - p.pad[d], 0};
    if (s.at < 0)
        s.first = (-s.at + step - 1) / step;
    int left = p.in[d] - s.at, padded = (p.end[d] - s.at + step - 1) / step;
    s.last = min(s.last, left <= 0 ? 0 : (left + step - 1) / step);
    s.last = max(s.last, s.first);
    s.padded = min(p.kernel[d], padded);
    return s;
}

static __device__ __forceinline__ float join(const struct pool_window &p, float a, float b)
{
    if (p.average)
        return a + b;
    return a != a || a > b ? a : b; /* NaN stays */
}

template <class element>
static __device__ __forceinline__ float pool_value(const struct pool_window &p, unsigned k)
{
    struct place at = place_of(p, k);
    struct span s[SPATIAL_MAX];
    int counted = 1;
    const element *x = (const element *)p.x;
    for (int d = 0; d < SPATIAL_MAX; d++) {
        s[d] = span_of(p, d, at.at[d]);
        counted *= p.count_pads ? s[d].padded : s[d].last - s[d].first;
    }
    float value = p.average ? 0.0f : -INFINITY;
    for (int a = s[0].first; a < s[0].last; a++)
        for (int b = s[1].first; b < s[1].last; b++) {
            int64_t line = at.x + (s[0].at + a * p.dilation[0]) * p.x_at[0] +
                           (s[1].at + b * p.dilation[1]) * p.x_at[1];
            for (int c = s[2].first; c < s[2].last; c++)
                value =
                    join(p, value, to_float(x[line + (s[2].at + c * p.dilation[2]) * p.x_at[2]]));
        }
    return p.average ? value / (float)counted : value;
}

template <class element>
__global__ void __launch_bounds__(BLOCK) pool_each(const __grid_constant__ struct pool_window p)
{
    KERNEL_BEGIN();
    for (unsigned k = blockIdx.x * BLOCK + threadIdx.x; k < p.count; k += gridDim.x * BLOCK)
        float_put((element *)p.y + k, pool_value<element>(p, k));
}

/* ---- hooks ---- */

struct kernel_state {
    struct pool_window p; /* pointers are left open */
    enum dtype type;
    struct cuda_grid grid;
};

static enum status plan(const struct kernel_query *q, int, struct kernel_state *s,
                        struct error *why)
{
    struct pool_window *p = &s->p;
    const struct desc *x = &q->in[0], *y = &q->out[0];
    struct window w;
    TRY(floats_supported(q, 0, 1, why));
    if (output_wanted(q, 1))
        return REFUSE(why, "indices are wanted");
    if (q->node->post_count)
        return REFUSE(why, "no fused epilogue");
    p->channels_last = cuda_host->desc_is_nhwc(y);
    if (!p->channels_last && !cuda_host->desc_is_plain(y))
        return REFUSE(why, "the result is neither channels-last nor plain");
    if (!fits_index(x) || !fits_index(y))
        return REFUSE(why, "more than 2^31 elements");
    TRY(window_from_node(q->node, &x->shape, NULL, &w, why));
    for (int d = 0; d < SPATIAL_MAX; d++) {
        int own = d - (SPATIAL_MAX - w.rank);
        bool is = own >= 0;
        p->kernel[d] = is ? (int)w.kernel[own] : 1;
        p->stride[d] = is ? (int)w.stride[own] : 1;
        p->dilation[d] = is ? (int)w.dilation[own] : 1;
        p->pad[d] = is ? (int)w.pad_begin[own] : 0;
        p->in[d] = is ? (int)w.in[own] : 1;
        p->end[d] = is ? (int)(w.in[own] + w.pad_end[own]) : 1;
        p->out[d] = divisor_of(is ? w.out[own] : 1);
        p->x_at[d] = is ? x->stride[own + 2] : 0;
    }
    p->count = (unsigned)shape_count(&y->shape);
    p->channels = divisor_of(x->shape.dim[1]);
    p->x_image = x->stride[0];
    p->x_channel = x->stride[1];
    p->average = strcmp(cuda_host->node_op(q->node), "AveragePool") == 0;
    p->count_pads = cuda_host->node_int(q->node, "count_include_pad", 0) != 0;
    s->type = x->dtype;
    s->grid = grid_for(q, p->count);
    return STATUS_OK;
}

static void launch(const struct kernel_state *state, const struct kernel_args *args)
{
    struct pool_window p = state->p;
    p.x = args->in[0];
    p.y = args->out[0];
    LAUNCH_FLOATS(state->type, pool_each<element>, state->grid, cuda_size(BLOCK), 0, &p, args);
}

static const char *const ops[] = {"MaxPool", "AveragePool", NULL};

CUDA_KERNEL(pool) = {CUDA_NAME(pool), .ops = ops, CUDA_PLAN(plan), .launch = launch};
