/* SPDX-License-Identifier: Apache-2.0
 *
 * LayerNormalization and RMSNormalization over the last axes: mean, mean square of deviations,
 * result, each a sweep over the line. Two sweeps for the variance are as exact as Welford's
 * recurrence and need no exchange of pairs. */
#include "engine/kernels/cuda/lib/lines.h"

struct layernorm {
    const void *x, *scale, *bias; /* bias may be NULL */
    void *y;
    float *mean, *inverse;       /* may be NULL; inverse: of the deviation */
    unsigned lines, size, lanes; /* size in groups */
    float count, epsilon;
    bool centred; /* the mean is taken off */
};

/* Sum over the line of x, or of (x - mean)^2. */
template <int width, class element>
static __device__ __forceinline__ float line_moment(const struct layernorm &k, const element *x,
                                                    float mean, bool square,
                                                    const struct line_team &t)
{
    float sum = 0;
    for (unsigned i = t.lane; i < k.size; i += t.lanes) {
        struct group<width> v = {
        };
        v = group_at(x + (size_t)i * width, v);
        for (int e = 0; e < width; e++) {
            float d = v.v[e] - mean;
            sum += square ? d * d : d;
        }
    }
    return team_sum(t, sum) / k.count;
}

template <int width, class element>
static __device__ __forceinline__ void line_write(const struct layernorm &k, const element *x,
                                                  element *y, float mean, float inverse,
                                                  const struct line_team &t)
{
    const element *scales = (const element *)k.scale, *biases = (const element *)k.bias;
    for (unsigned i = t.lane; i < k.size; i += t.lanes) {
        struct group<width> v = {}, scale = {}, bias = {
        };
        v = group_at(x + (size_t)i * width, v);
        scale = group_at(scales + i * width, scale);
        if (biases)
            bias = group_at(biases + i * width, bias);
        for (int e = 0; e < width; e++)
            v.v[e] = (v.v[e] - mean) * inverse * scale.v[e] + bias.v[e];
        group_store(y + (size_t)i * width, v);
    }
}

template <int width, class element>
__global__ void __launch_bounds__(BLOCK) layernorm_lines(const __grid_constant__ struct layernorm k)
{
    __shared__ float part[WARP];
    struct line_team t = {threadIdx.x % k.lanes, k.lanes, part};
    struct line_range lines = team_lines(k.lanes);
    for (unsigned l = lines.first; l < k.lines; l += lines.step) {
        size_t at = (size_t)l * k.size * width;
        const element *x = (const element *)k.x + at;
        float mean = k.centred ? line_moment<width>(k, x, 0, false, t) : 0;
        float variance = line_moment<width>(k, x, mean, true, t);
        float inverse = 1.0f / sqrtf(variance + k.epsilon);
        line_write<width>(k, x, (element *)k.y + at, mean, inverse, t);
        if (k.mean && t.lane == 0)
            k.mean[l] = mean;
        if (k.inverse && t.lane == 0)
            k.inverse[l] = inverse;
    }
}

/* ---- hooks ---- */

/* Elements of a line: of all dimensions from the axis on. */
static int64_t line_size(const struct kernel_query *q)
{
    const struct shape *x = &q->in[0].shape;
    int64_t axis = cuda_host->node_int(q->node, "axis", -1), size = 1;
    for (int d = (int)(axis < 0 ? axis + x->rank : axis); d < x->rank; d++)
        size *= x->dim[d];
    return size;
}

static enum status supports(const struct kernel_query *q, struct error *why)
{
    TRY(lines_supported(q, why));
    for (int k = 1; k < q->in_count; k++)
        if (input_given(q, k) && shape_count(&q->in[k].shape) != line_size(q))
            return REFUSE(why, "input %d is broadcast within a line", k);
    for (int k = 1; k < q->out_count; k++)
        if (output_wanted(q, k) && q->out[k].dtype != DTYPE_F32)
            return REFUSE(why, "mean or deviation of another type than f32");
    return STATUS_OK;
}

static void launch(const struct kernel_state *state, const struct kernel_query *q,
                   const struct kernel_args *args)
{
    (void)state;
    int64_t size = line_size(q), count = shape_count(&q->in[0].shape);
    if (count == 0)
        return;
    bool wide = size % 4 == 0;
    struct layernorm k = {args->in[0],
                          args->in[1],
                          input_given(q, 2) ? args->in[2] : NULL,
                          args->out[0],
                          output_wanted(q, 1) ? (float *)args->out[1] : NULL,
                          output_wanted(q, 2) ? (float *)args->out[2] : NULL,
                          (unsigned)(count / size),
                          (unsigned)(size / (wide ? 4 : 1)),
                          lanes_for(size),
                          (float)size,
                          (float)cuda_host->node_float(q->node, "epsilon", 1e-5),
                          strcmp(cuda_host->node_op(q->node), "LayerNormalization") == 0};
    struct cuda_grid grid = grid_of_lines(q, k.lines, k.lanes);
    if (wide)
        LAUNCH_FLOATS(q->in[0].dtype, (layernorm_lines<4, element>), grid, cuda_size(BLOCK), 0, &k,
                      args);
    else
        LAUNCH_FLOATS(q->in[0].dtype, (layernorm_lines<1, element>), grid, cuda_size(BLOCK), 0, &k,
                      args);
}

static const char *const ops[] = {"LayerNormalization", "RMSNormalization", NULL};

CUDA_KERNEL(layernorm) = {CUDA_NAME(layernorm), .ops = ops, .supports = supports, .launch = launch};
