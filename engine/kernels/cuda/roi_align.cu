/* SPDX-License-Identifier: Apache-2.0
 *
 * RoiAlign, images plain or channels-last: a thread per element of the result, in the order of its
 * memory, so that neighbouring threads read neighbouring channels (channels-last) or samples of
 * neighbouring bins. Images are f32, f16 or bf16; regions may be f32 all the same, since a corner
 * in 16 bits is off by pixels. */
#include "engine/kernels/cuda/lib/query.h"

struct roi_align {
    const void *x, *rois, *image;
    void *y;
    int roi_type;   /* enum dtype */
    unsigned count; /* of the result */
    bool max, half_pixel, wide, nhwc;
    int images, height, width, ratio;
    float scale;
    struct divisor channels, out_h, out_w;
};

/* The two elements round a sample along one axis. */
struct pair {
    int low, high;
    float t; /* weight of the second */
    bool inside;
};

/* One region along one axis: samples at start + step (k + 0.5), k < grid. */
struct side {
    float start, step;
    int grid, size;
};

static __device__ __forceinline__ struct side
side_of(const struct roi_align &k, float low, float high, unsigned bin, unsigned bins, int size)
{
    float length = (high - low) * k.scale;
    if (!k.half_pixel && length < 1)
        length = 1;
    float each = length / (float)bins;
    int grid = k.ratio ? k.ratio : (int)ceilf(each);
    float start = low * k.scale - (k.half_pixel ? 0.5f : 0.0f) + each * (float)bin;
    return {start, grid > 0 ? each / (float)grid : 0.0f, grid, size};
}

static __device__ __forceinline__ struct pair pair_at(const struct side &s, int k)
{
    float at = s.start + s.step * ((float)k + 0.5f);
    if (!(at >= -1 && at <= (float)s.size))
        return {0, 0, 0.0f, false};
    at = at < 0 ? 0 : at;
    int low = (int)at;
    if (low >= s.size - 1)
        return {s.size - 1, s.size - 1, 0.0f, true};
    return {low, low + 1, at - (float)low, true};
}

/* Where an image's element lies: at + row * rows + column * columns. */
template <class element> struct plane {
    const element *at;
    int rows, columns;
};

template <class element>
static __device__ __forceinline__ float sample(const struct plane<element> &p, const struct pair &y,
                                               const struct pair &x, bool max)
{
    const element *top = p.at + y.low * p.rows, *bottom = p.at + y.high * p.rows;
    float a = (1 - y.t) * (1 - x.t) * float_at(top + x.low * p.columns);
    float b = (1 - y.t) * x.t * float_at(top + x.high * p.columns);
    float c = y.t * (1 - x.t) * float_at(bottom + x.low * p.columns);
    float d = y.t * x.t * float_at(bottom + x.high * p.columns);
    return max ? fmaxf(fmaxf(a, b), fmaxf(c, d)) : a + b + c + d;
}

template <class element>
static __device__ __forceinline__ float
bin_value(const struct roi_align &k, const struct plane<element> &p, const struct side &down,
          const struct side &across)
{
    float sum = 0, largest = -INFINITY;
    int samples = down.grid > 0 && across.grid > 0 ? down.grid * across.grid : 0;
    for (int i = 0; samples && i < down.grid; i++) {
        struct pair y = pair_at(down, i);
        for (int j = 0; j < across.grid; j++) {
            struct pair x = pair_at(across, j);
            float value = y.inside && x.inside ? sample(p, y, x, k.max) : 0.0f;
            sum += value;
            largest = fmaxf(largest, value);
        }
    }
    if (!samples)
        return 0;
    return k.max ? largest : sum / (float)samples;
}

struct place {
    unsigned region, channel, row, column;
};

/* Of element e in the result's memory. */
static __device__ __forceinline__ struct place place_of(const struct roi_align &k, unsigned e)
{
    struct place p;
    unsigned rest = e;
    if (k.nhwc) {
        rest = divide(e, k.channels);
        p.channel = e - rest * k.channels.d;
    }
    unsigned line = divide(rest, k.out_w);
    p.column = rest - line * k.out_w.d;
    rest = divide(line, k.out_h);
    p.row = line - rest * k.out_h.d;
    p.region = k.nhwc ? rest : divide(rest, k.channels);
    if (!k.nhwc)
        p.channel = rest - p.region * k.channels.d;
    return p;
}

static __device__ __forceinline__ float corner(const struct roi_align &k, unsigned region, int at)
{
    return group_as<1>(k.roi_type, k.rois, (size_t)region * 4 + at).v[0];
}

template <class element>
__global__ void __launch_bounds__(BLOCK) roi_align_bins(const __grid_constant__ struct roi_align k)
{
    KERNEL_BEGIN();
    element *y = (element *)k.y;
    unsigned step = gridDim.x * BLOCK, channels = k.channels.d;
    for (unsigned e = blockIdx.x * BLOCK + threadIdx.x; e < k.count; e += step) {
        struct place p = place_of(k, e);
        int64_t image = index_at(k.image, k.wide, p.region);
        if (image < 0 || image >= k.images) {
            float_put(y + e, 0);
            continue;
        }
        float left = corner(k, p.region, 0), right = corner(k, p.region, 2);
        float top = corner(k, p.region, 1), bottom = corner(k, p.region, 3);
        struct side down = side_of(k, top, bottom, p.row, k.out_h.d, k.height);
        struct side across = side_of(k, left, right, p.column, k.out_w.d, k.width);
        size_t area = (size_t)k.height * k.width, own = (size_t)image * channels * area;
        struct plane<element> plane = {
            (const element *)k.x + own + (k.nhwc ? p.channel : p.channel * area),
                k.width *(k.nhwc ? (int)channels : 1), k.nhwc ? (int)channels : 1
        };
        float_put(y + e, bin_value(k, plane, down, across));
    }
}

/* ---- hooks ---- */

struct kernel_state {
    struct roi_align k; /* pointers are left open */
    enum dtype type;
    struct cuda_grid grid;
};

static bool is_nhwc(const struct kernel_query *q)
{
    return cuda_host->desc_is_nhwc(&q->in[0]) && cuda_host->desc_is_nhwc(&q->out[0]);
}

static bool is_plain(const struct kernel_query *q)
{
    return cuda_host->desc_is_plain(&q->in[0]) && cuda_host->desc_is_plain(&q->out[0]);
}

static enum status check(const struct kernel_query *q, struct error *why)
{
    if (q->node->post_count)
        return REFUSE(why, "no fused epilogue");
    TRY(floats_supported(q, 0, 1, why));
    if (!is_float(q->in[1].dtype))
        return REFUSE(why, "regions are neither f32, f16 nor bf16");
    if (!is_index(q->in[2].dtype))
        return REFUSE(why, "image numbers are neither i32 nor i64");
    if (!is_nhwc(q) && !is_plain(q))
        return REFUSE(why, "input and output are neither both plain nor both channels-last");
    if (!fits_index(&q->in[0]) || !fits_index(&q->out[0]))
        return REFUSE(why, "more than 2^31 elements");
    return shape_count(&q->in[0].shape) ? STATUS_OK : REFUSE(why, "no elements");
}

static enum status plan(const struct kernel_query *q, int, struct kernel_state *s,
                        struct error *why)
{
    TRY(check(q, why));
    const int64_t *x = q->in[0].shape.dim, *y = q->out[0].shape.dim;
    const char *mode = cuda_host->node_string(q->node, "mode", "avg");
    const char *from =
        cuda_host->node_string(q->node, "coordinate_transformation_mode", "half_pixel");
    struct roi_align *k = &s->k;
    k->roi_type = q->in[1].dtype;
    k->count = (unsigned)shape_count(&q->out[0].shape);
    k->max = strcmp(mode, "max") == 0;
    k->half_pixel = strcmp(from, "half_pixel") == 0;
    k->wide = q->in[2].dtype == DTYPE_I64;
    k->nhwc = is_nhwc(q);
    k->images = (int)x[0];
    k->height = (int)x[2];
    k->width = (int)x[3];
    k->ratio = (int)cuda_host->node_int(q->node, "sampling_ratio", 0);
    k->scale = (float)cuda_host->node_float(q->node, "spatial_scale", 1);
    k->channels = divisor_of(x[1]);
    k->out_h = divisor_of(y[2]);
    k->out_w = divisor_of(y[3]);
    s->type = q->out[0].dtype;
    s->grid = grid_for(q, k->count);
    return STATUS_OK;
}

static void launch(const struct kernel_state *state, const struct kernel_args *args)
{
    struct roi_align k = state->k;
    k.x = args->in[0];
    k.rois = args->in[1];
    k.image = args->in[2];
    k.y = args->out[0];
    LAUNCH_FLOATS(state->type, roi_align_bins<element>, state->grid, cuda_size(BLOCK), 0, &k, args);
}

static const char *const ops[] = {"RoiAlign", NULL};

CUDA_KERNEL(roi_align) = {CUDA_NAME(roi_align), .ops = ops, CUDA_PLAN, CUDA_HOOK(launch)};
