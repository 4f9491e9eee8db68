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
    int type, act;
    float a, b, epsilon;
};

/* along: the elements of a group are neighbouring channels; else they are of one channel. */
template <int width, bool along>
__global__ void __launch_bounds__(BLOCK)
    batch_norm_groups(const __grid_constant__ struct batch_norm k)
{
    KERNEL_BEGIN();
    unsigned step = gridDim.x * BLOCK;
    for (unsigned g = blockIdx.x * BLOCK + threadIdx.x; g < k.count; g += step) {
        unsigned row = divide(g, k.by_plane), image = divide(row, k.by_channels);
        unsigned first = row - image * k.by_channels.d;
        struct group<width> v = group_as<width>(k.type, k.x, (size_t)g * width);
#pragma unroll
        for (int e = 0; e < width; e++) {
            unsigned c = along ? first * width + e : first;
            float factor = k.scale[c] / sqrtf(k.variance[c] + k.epsilon);
            v.v[e] = (v.v[e] - k.mean[c]) * factor + k.bias[c];
        }
        activate_group(v, k.act, k.a, k.b);
        group_store_as<width>(k.type, k.y, (size_t)g * width, v);
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

struct kernel_state {
    struct batch_norm k; /* pointers are left open */
    int width;
    bool along; /* channels lie together */
    struct cuda_grid grid;
};

static enum status check(const struct kernel_query *q, struct error *why)
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

static enum status plan(const struct kernel_query *q, int, struct kernel_state *s,
                        struct error *why)
{
    TRY(check(q, why));
    const struct shape *x = &q->in[0].shape;
    int64_t channels = x->rank > 1 ? x->dim[1] : 1, plane = 1;
    for (int d = x->rank > 1 ? 2 : 0; d < x->rank; d++)
        plane *= x->dim[d];
    s->along = !is_plain(q) || plane == 1;
    s->width = group_width(q->in[0].dtype, s->along ? channels : plane);
    struct batch_norm *k = &s->k;
    k->type = q->in[0].dtype;
    k->count = (unsigned)(shape_count(x) / s->width);
    k->by_plane = divisor_of(s->along ? 1 : plane / s->width);
    k->by_channels = divisor_of(s->along ? channels / s->width : channels);
    k->act = FN_COPY;
    if (q->node->post_count) {
        k->act = q->node->posts[0].act;
        k->a = q->node->posts[0].a;
        k->b = q->node->posts[0].b;
    }
    k->epsilon = (float)cuda_host->node_float(q->node, "epsilon", 1e-5);
    s->grid = grid_for(q, k->count);
    return STATUS_OK;
}

static void launch(const struct kernel_state *state, const struct kernel_args *args)
{
    struct batch_norm k = state->k;
    k.x = args->in[0];
    k.scale = (const float *)args->in[1];
    k.bias = (const float *)args->in[2];
    k.mean = (const float *)args->in[3];
    k.variance = (const float *)args->in[4];
    k.y = args->out[0];
    if (state->along)
        LAUNCH_WIDTH(state->width, (batch_norm_groups<width, true>), state->grid, cuda_size(BLOCK),
                     0, &k, args);
    else
        LAUNCH_WIDTH(state->width, (batch_norm_groups<width, false>), state->grid, cuda_size(BLOCK),
                     0, &k, args);
}

static const char *const ops[] = {"BatchNormalization", NULL};

CUDA_KERNEL(batch_norm) = {CUDA_NAME(batch_norm), .ops = ops, CUDA_PLAN, CUDA_HOOK(launch)};
