/* SPDX-License-Identifier: Apache-2.0
 *
 * GridSample of plain images, nearest and linear. A thread finds where a place reads and by which
 * weights once, then reads some channels there; neighbours have neighbouring places, so that
 * results are whole sectors. Places are computed by the reference's operations, each rounded to
 * f32 by itself, because they decide what is nearest. */
#include "engine/kernels/cuda/lib/query.h"
#include "engine/kernels/cuda/lib/sampler.h"

enum { CHANNELS_LEAST = 8 /* of a thread: they pay for its place */, LONGEST = 1 << 22 };

struct grid_sample {
    const void *x, *grid;
    void *y;
    unsigned tasks, channels, chunk; /* chunk: channels of a thread */
    struct divisor places, chunks;
    int height, width, type, grid_type;
    int sampling, padding; /* enum grid_sampling, enum grid_padding */
    bool align;
};

/* Mirrored at low and high until it is between them; only what is outside. */
static __device__ __forceinline__ float reflect(float at, float low, float high)
{
    bool under = at<low, above = at> high;
    float range = high - low;
    if (!under && !above)
        return at;
    if (range <= 0)
        return 0;
    float over = under ? low - at : at - high, turns = floorf(over / range);
    float rest = fmaf(-turns, range, over);
    bool even = floorf(turns * 0.5f) == turns * 0.5f;
    return under == even ? low + rest : high - rest;
}

/* From [-1, 1] to elements, brought inside as far as the padding does that. */
static __device__ __forceinline__ float place_of(const struct grid_sample &k, float n, int size)
{
    float last = (float)(size - 1), low = k.align ? 0 : -0.5f, high = last - low, from_edge = n + 1;
    float at = k.align ? __fmul_rn(from_edge * 0.5f, last)
                       : (__fmul_rn(from_edge, (float)size) - 1) * 0.5f;
    if (k.sampling == SAMPLING_NEAREST)
        at = rintf(at);
    if (k.padding == PADDING_REFLECTION)
        return reflect(at, low, high);
    if (k.padding == PADDING_BORDER)
        return at < low ? 0 : at > high ? last : at;
    return at;
}

/* An element that may be beside the image: NONE, or what lies there by the padding. */
static __device__ __forceinline__ int settle(const struct grid_sample &k, int at, int size)
{
    int last = size - 1, edge = k.align ? 0 : 1; /* edge: whether edges are repeated */
    if (k.padding == PADDING_ZEROS)
        return at >= 0 && at <= last ? at : NONE;
    if (k.padding == PADDING_REFLECTION)
        at = at < 0 ? -edge - at : at > last ? 2 * last + edge - at : at;
    return at < 0 ? 0 : at > last ? last : at;
}

/* Two elements along one axis, and the weight of the second. */
struct pick {
    int a, b;
    float t;
};

static __device__ __forceinline__ struct pick pick_of(const struct grid_sample &k, float n,
                                                      int size)
{
    float at = place_of(k, n, size), low = floorf(at), end = (float)(size + 1);
    /* Far outside is as good as just outside, and an integer. */
    int first = (int)(low > -2 ? low < end ? low : end : -2);
    return {settle(k, first, size), settle(k, first + 1, size), at - low};
}

static __device__ __forceinline__ float element_at(const struct grid_sample &k, size_t plane,
                                                   int at)
{
    return at < 0 ? 0 : group_as<1>(k.type, k.x, plane + (unsigned)at).v[0];
}

static __device__ __forceinline__ int corner_of(const struct grid_sample &k, int row, int column)
{
    return row < 0 || column < 0 ? NONE : row * k.width + column;
}

template <bool linear>
__global__ void __launch_bounds__(BLOCK)
    grid_sample_places(const __grid_constant__ struct grid_sample k)
{
    KERNEL_BEGIN();
    size_t plane = (size_t)k.height * (unsigned)k.width;
    for (unsigned t = blockIdx.x * BLOCK + threadIdx.x; t < k.tasks; t += gridDim.x * BLOCK) {
        unsigned part = divide(t, k.places), place = t - part * k.places.d;
        unsigned image = divide(part, k.chunks), first = (part - image * k.chunks.d) * k.chunk;
        unsigned end = min(first + k.chunk, k.channels);
        size_t at = ((size_t)image * k.places.d + place) * 2;
        struct pick column = pick_of(k, group_as<1>(k.grid_type, k.grid, at).v[0], k.width);
        struct pick row = pick_of(k, group_as<1>(k.grid_type, k.grid, at + 1).v[0], k.height);
        int a = corner_of(k, row.a, column.a), b = corner_of(k, row.a, column.b);
        int c = corner_of(k, row.b, column.a), d = corner_of(k, row.b, column.b);
        float wa = (1 - row.t) * (1 - column.t), wb = (1 - row.t) * column.t;
        float wc = row.t * (1 - column.t), wd = row.t * column.t;
#pragma unroll 4
        for (unsigned channel = first; channel < end; channel++) {
            size_t from = (size_t)image * k.channels + channel, x = from * plane;
            float sum = element_at(k, x, a);
            if (linear)
                sum = wa * sum + wb * element_at(k, x, b) + wc * element_at(k, x, c) +
                      wd * element_at(k, x, d);
            group_store_as<1>(k.type, k.y, from * k.places.d + place, {{sum}});
        }
    }
}

/* ---- hooks ---- */

struct kernel_state {
    struct grid_sample k; /* pointers are left open */
    struct cuda_grid grid;
};

static enum status check(const struct kernel_query *q, struct grid_sampler *s, struct error *why)
{
    const struct shape *x = &q->in[0].shape;
    TRY(plain_supported(q, why));
    TRY(floats_supported(q, 0, 1, why));
    if (!is_float(q->in[1].dtype))
        return REFUSE(why, "places of another type than f32, f16 and bf16");
    TRY(grid_sampler_of(q->node, x, s, why));
    if (s->sampling == SAMPLING_CUBIC)
        return REFUSE(why, "cubic");
    if (x->dim[2] > LONGEST || x->dim[3] > LONGEST || x->dim[2] * x->dim[3] == 0)
        return REFUSE(why, "images of no elements, or whose places are no integers in f32");
    return STATUS_OK;
}

static enum status plan(const struct kernel_query *q, int, struct kernel_state *s,
                        struct error *why)
{
    struct grid_sample *k = &s->k;
    const struct shape *x = &q->in[0].shape, *y = &q->out[0].shape;
    struct grid_sampler sampler;
    TRY(check(q, &sampler, why));
    if (shape_count(y) == 0)
        return STATUS_OK; /* no tasks */
    int64_t places = y->dim[2] * y->dim[3], units = q->device->properties.units;
    int64_t wanted = 4096 * (units > 0 ? units : 1); /* threads: two for each place on the chip */
    int64_t chunks = div_up(wanted, places * x->dim[0]), most = div_up(x->dim[1], CHANNELS_LEAST);
    k->channels = (unsigned)x->dim[1];
    k->chunk = (unsigned)div_up(x->dim[1], chunks < most ? chunks : most);
    k->places = divisor_of(places);
    k->chunks = divisor_of(div_up(x->dim[1], k->chunk));
    k->tasks = (unsigned)(x->dim[0] * places) * k->chunks.d;
    k->height = (int)x->dim[2];
    k->width = (int)x->dim[3];
    k->type = q->in[0].dtype;
    k->grid_type = q->in[1].dtype;
    k->sampling = sampler.sampling;
    k->padding = sampler.padding;
    k->align = sampler.align;
    s->grid = grid_for(q, k->tasks);
    return STATUS_OK;
}

static void launch(const struct kernel_state *state, const struct kernel_args *args)
{
    struct grid_sample k = state->k;
    k.x = args->in[0];
    k.grid = args->in[1];
    k.y = args->out[0];
    if (k.sampling == SAMPLING_LINEAR)
        LAUNCH(grid_sample_places<true>, state->grid, cuda_size(BLOCK), 0, &k, args);
    else
        LAUNCH(grid_sample_places<false>, state->grid, cuda_size(BLOCK), 0, &k, args);
}

static const char *const ops[] = {"GridSample", NULL};

CUDA_KERNEL(grid_sample) = {CUDA_NAME(grid_sample), .ops = ops, CUDA_PLAN, CUDA_HOOK(launch)};
