/* SPDX-License-Identifier: Apache-2.0
 *
 * Softmax and LogSoftmax along any axis of plain memory: maximum, sum of exponentials, result; the
 * exponentials are computed twice rather than kept. */
#include "engine/kernels/cuda/lib/lines.h"

struct softmax {
    const void *x;
    void *y;
    unsigned lines, size, lanes; /* size in groups */
    unsigned inner;              /* lines that lie beside each other, and the step along one */
    struct divisor by_inner;
    bool log;
};

template <int width, class element>
static __device__ __forceinline__ struct group<width> load(const element *x, unsigned i,
                                                           unsigned step) {
    struct group<width> r = {
    };
    return group_at(x + (size_t)i * width * step, r);
}

template <int width, class element>
static __device__ __forceinline__ float line_max(const struct softmax &k, const element *x,
                                                 const struct line_team &t)
{
    float most = -INFINITY;
    for (unsigned i = t.lane; i < k.size; i += t.lanes) {
        struct group<width> v = load<width, element>(x, i, k.inner);
        for (int e = 0; e < width; e++)
            most = fmaxf(most, v.v[e]);
    }
    return team_max(t, most);
}

template <int width, class element>
static __device__ __forceinline__ float line_sum(const struct softmax &k, const element *x,
                                                 float most, const struct line_team &t)
{
    float sum = 0;
    for (unsigned i = t.lane; i < k.size; i += t.lanes) {
        struct group<width> v = load<width, element>(x, i, k.inner);
        for (int e = 0; e < width; e++)
            sum += expf(v.v[e] - most);
    }
    return team_sum(t, sum);
}

template <int width, class element>
static __device__ __forceinline__ void line_write(const struct softmax &k, const element *x,
                                                  element *y, float most, float sum,
                                                  const struct line_team &t)
{
    float factor = 1.0f / sum, shift = most + logf(sum);
    for (unsigned i = t.lane; i < k.size; i += t.lanes) {
        struct group<width> v = load<width, element>(x, i, k.inner);
        for (int e = 0; e < width; e++)
            v.v[e] = k.log ? v.v[e] - shift : expf(v.v[e] - most) * factor;
        group_store(y + (size_t)i * width * k.inner, v);
    }
}

template <int width, class element>
__global__ void __launch_bounds__(BLOCK) softmax_lines(const __grid_constant__ struct softmax k)
{
    __shared__ float part[WARP];
    struct line_team t = {threadIdx.x % k.lanes, k.lanes, part};
    struct line_range lines = team_lines(k.lanes);
    for (unsigned l = lines.first; l < k.lines; l += lines.step) {
        unsigned outer = divide(l, k.by_inner);
        size_t at = (size_t)outer * k.size * width * k.inner + (l - outer * k.inner);
        const element *x = (const element *)k.x + at;
        float most = line_max<width>(k, x, t), sum = line_sum<width>(k, x, most, t);
        line_write<width>(k, x, (element *)k.y + at, most, sum, t);
    }
}

/* ---- hooks ---- */

static enum status supports(const struct kernel_query *q, struct error *why)
{
    struct axis axis;
    TRY(lines_supported(q, why));
    return cuda_host->softmax_axis(q->node, &q->in[0].shape, &axis, why);
}

static void launch(const struct kernel_state *state, const struct kernel_query *q,
                   const struct kernel_args *args)
{
    (void)state;
    struct axis axis;
    if (cuda_host->softmax_axis(q->node, &q->in[0].shape, &axis, NULL) != STATUS_OK ||
        axis.outer * axis.size * axis.inner == 0)
        return;
    bool wide = axis.inner == 1 && axis.size % 4 == 0;
    struct softmax k = {args->in[0],
                        args->out[0],
                        (unsigned)(axis.outer * axis.inner),
                        (unsigned)(axis.size / (wide ? 4 : 1)),
                        lanes_for(axis.size),
                        (unsigned)axis.inner,
                        divisor_of(axis.inner),
                        strcmp(cuda_host->node_op(q->node), "LogSoftmax") == 0};
    struct cuda_grid grid = grid_of_lines(q, k.lines, k.lanes);
    if (wide)
        LAUNCH_FLOATS(q->in[0].dtype, (softmax_lines<4, element>), grid, cuda_size(BLOCK), 0, &k,
                      args);
    else
        LAUNCH_FLOATS(q->in[0].dtype, (softmax_lines<1, element>), grid, cuda_size(BLOCK), 0, &k,
                      args);
}

static const char *const ops[] = {"Softmax", "LogSoftmax", NULL};

CUDA_KERNEL(softmax) = {CUDA_NAME(softmax), .ops = ops, .supports = supports, .launch = launch};
