/* SPDX-License-Identifier: Apache-2.0
 *
 * BatchNormalization with given statistics and one activation, for where it is not folded into the
 * operator before: a pass over memory, 16 bytes a thread where they lie so. */
#include "engine/kernels/cuda/lib/math.h"
#include "engine/kernels/cuda/lib/query.h"

struct batch_norm {
    const void *x;
    const float *scale, *bias, *mean, *variance;
    void *y;
    unsigned count;                       /* of groups of `width` */
    struct divisor by_plane, by_channels; /* by_plane: in groups; 1: channels-last, all channels */
    int act;
    float a, b, epsilon;
};

static __device__ __forceinline__ float normal(const struct batch_norm &k, float x, unsigned c)
{
    float factor = k.scale[c] / sqrtf(k.variance[c] + k.epsilon);
    return math_act(k.act, (x - k.mean[c]) * factor + k.bias[c], k.a, k.b);
}

/* along: the elements of a group are neighbouring channels; else they are of one channel. */
template <int width, bool along, class element>
__global__ void __launch_bounds__(BLOCK)
    batch_norm_groups(const __grid_constant__ struct batch_norm k)
{
    unsigned step = gridDim.x * BLOCK;
    for (unsigned g = blockIdx.x * BLOCK + threadIdx.x; g < k.count; g += step) {
        unsigned row = divide(g, k.by_plane), image = divide(row, k.by_channels);
        unsigned c = row - image * k.by_channels.d;
        struct group<width> v = {
        };
        v = group_at((const element *)k.x + (size_t)g * width, v);
        for (int e = 0; e < width; e++)
            v.v[e] = normal(k, v.v[e], along ? c * width + e : c);
        group_store((element *)k.y + (size_t)g * width, v);
    }
}

/* ---- hooks ---- */

static bool is_nhwc(const struct kernel_query *q)
{
    return cuda_host->desc_is_nhwc(&q->in[0]) && cuda_host->desc_is_nhwc(&q->out[0]);
}

static bool is_plain(const struct kernel_query *q)
{
    return cuda_host->desc_is_plain(&q->in[0]) && cuda_host->desc_is_plain(&q->out[0]);
}

static enum status supports(const struct kernel_query *q, struct error *why)
{
    const struct node *node = q->node;
    TRY(floats_supported(q, 0, 1, why));
    for (int k = 1; k < node->op_inputs; k++)
        if (q->in[k].dtype != DTYPE_F32)
            return REFUSE(why, "statistics and factors of another type than f32");
    if (cuda_host->node_int(node, "training_mode", 0) || q->out_count > 1)
        return REFUSE(why, "no training mode");
    if (node->post_count > 1 || (node->post_count == 1 && node->posts[0].kind != POST_ACT))
        return REFUSE(why, "one activation at most as fused epilogue");
    if (!is_plain(q) && !is_nhwc(q))
        return REFUSE(why, "input and output lie differently");
    return fits_index(&q->in[0]) ? STATUS_OK : REFUSE(why, "more than 2^31 elements");
}

static void launch(const struct kernel_state *state, const struct kernel_query *q,
                   const struct kernel_args *args)
{
    (void)state;
    const struct shape *x = &q->in[0].shape;
    int64_t channels = x->rank > 1 ? x->dim[1] : 1, count = shape_count(x), plane = 1;
    for (int d = x->rank > 1 ? 2 : 0; d < x->rank; d++)
        plane *= x->dim[d];
    bool along = !is_plain(q) || plane == 1;
    int by = group_width(q->in[0].dtype, along ? channels : plane);
    const struct post *post = q->node->post_count ? &q->node->posts[0] : NULL;
    if (count == 0)
        return;
    struct batch_norm k = {args->in[0],
                           (const float *)args->in[1],
                           (const float *)args->in[2],
                           (const float *)args->in[3],
                           (const float *)args->in[4],
                           args->out[0],
                           (unsigned)(count / by),
                           divisor_of(along ? 1 : plane / by),
                           divisor_of(along ? channels / by : channels),
                           post ? post->act : ACT_NONE,
                           post ? post->a : 0,
                           post ? post->b : 0,
                           (float)cuda_host->node_float(q->node, "epsilon", 1e-5)};
    enum dtype type = q->in[0].dtype;
    struct cuda_grid grid = grid_for(q, k.count), block = cuda_size(BLOCK);
    if (along)
        LAUNCH_GROUPS(type, by, (batch_norm_groups<width, true, element>), grid, block, 0, &k,
                      args);
    else
        LAUNCH_GROUPS(type, by, (batch_norm_groups<width, false, element>), grid, block, 0, &k,
                      args);
}

static const char *const ops[] = {"BatchNormalization", NULL};

CUDA_KERNEL(batch_norm) = {CUDA_NAME(batch_norm), .ops = ops, .supports = supports,
                           .old_launch = launch};
