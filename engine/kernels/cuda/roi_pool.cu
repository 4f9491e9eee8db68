/* SPDX-License-Identifier: Apache-2.0
 *
 * MaxRoiPool of plain images: a thread per element of the result walks over the places of its bin;
 * neighbouring threads have neighbouring bins of one channel. Images are f32, f16 or bf16, regions
 * of the same type or f32. */
#include "engine/kernels/cuda/lib/query.h"

struct roi_pool {
    const void *x, *rois;
    void *y;
    int roi_type; /* enum dtype */
    unsigned count;
    int images, height, width;
    float scale;
    struct divisor channels, out_h, out_w;
};

struct part {
    int begin, end;
};

static __device__ __forceinline__ float whole(float corner)
{
    return roundf(fminf(fmaxf(corner, -1e9f), 1e9f));
}

/* Every step is rounded for itself, as in the reference: a bin must not lose or gain a line because
 * a product and a sum were done in one. */
static __device__ __forceinline__ struct part part_of(float low, float high, int limit,
                                                      unsigned bin, unsigned bins)
{
    float begin = whole(low), size = fmaxf(whole(high) - begin + 1, 1);
    float each = __fdiv_rn(size, (float)bins);
    int first = (int)begin + (int)floorf(__fmul_rn((float)bin, each));
    int last = (int)begin + (int)ceilf(__fmul_rn((float)(bin + 1), each));
    return {min(max(first, 0), limit), min(max(last, 0), limit)};
}

/* Number `at` of [image, x1, y1, x2, y2]. */
static __device__ __forceinline__ float number(const struct roi_pool &k, unsigned region, int at)
{
    return group_as<1>(k.roi_type, k.rois, (size_t)region * 5 + at).v[0];
}

static __device__ __forceinline__ float corner(const struct roi_pool &k, unsigned region, int at)
{
    return __fmul_rn(number(k, region, at), k.scale);
}

template <class element>
__global__ void __launch_bounds__(BLOCK) roi_pool_bins(const __grid_constant__ struct roi_pool k)
{
    KERNEL_BEGIN();
    unsigned step = gridDim.x * BLOCK;
    for (unsigned e = blockIdx.x * BLOCK + threadIdx.x; e < k.count; e += step) {
        unsigned line = divide(e, k.out_w), column = e - line * k.out_w.d;
        unsigned map = divide(line, k.out_h), row = line - map * k.out_h.d;
        unsigned region = divide(map, k.channels), channel = map - region * k.channels.d;
        float image = number(k, region, 0);
        bool exists = image >= 0 && image < (float)k.images;
        struct part x =
            part_of(corner(k, region, 1), corner(k, region, 3), k.width, column, k.out_w.d);
        struct part y =
            part_of(corner(k, region, 2), corner(k, region, 4), k.height, row, k.out_h.d);
        bool empty = !exists || x.begin >= x.end || y.begin >= y.end;
        size_t plane = (size_t)(exists ? (unsigned)image : 0) * k.channels.d + channel;
        const element *at = (const element *)k.x + plane * (size_t)k.height * k.width;
        float largest = empty ? 0 : -INFINITY;
        for (int i = y.begin; !empty && i < y.end; i++)
            for (int j = x.begin; j < x.end; j++)
                largest = fmaxf(largest, float_at(at + i * k.width + j));
        float_put((element *)k.y + e, largest);
    }
}

/* ---- hooks ---- */

struct kernel_state {
    struct roi_pool k; /* pointers are left open */
    enum dtype type;
    struct cuda_grid grid;
};

static enum status plan(const struct kernel_query *q, int, struct kernel_state *s,
                        struct error *why)
{
    TRY(plain_supported(q, why));
    TRY(floats_supported(q, 0, 1, why));
    if (!is_float(q->in[1].dtype))
        return REFUSE(why, "regions are neither f32, f16 nor bf16");
    const int64_t *x = q->in[0].shape.dim, *y = q->out[0].shape.dim;
    struct roi_pool *k = &s->k;
    k->roi_type = q->in[1].dtype;
    k->count = (unsigned)shape_count(&q->out[0].shape);
    k->images = (int)x[0];
    k->height = (int)x[2];
    k->width = (int)x[3];
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
    struct roi_pool k = state->k;
    k.x = args->in[0];
    k.rois = args->in[1];
    k.y = args->out[0];
    LAUNCH_FLOATS(state->type, roi_pool_bins<element>, state->grid, cuda_size(BLOCK), 0, &k, args);
}

static const char *const ops[] = {"MaxRoiPool", NULL};

CUDA_KERNEL(roi_pool) = {CUDA_NAME(roi_pool), .ops = ops, CUDA_PLAN, CUDA_HOOK(launch)};
