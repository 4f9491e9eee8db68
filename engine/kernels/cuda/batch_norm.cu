/* SPDX-License-Identifier: Apache-2.0
 *
 * BatchNormalization with given statistics, where it could not be folded into a convolution:
 * y = (x - mean) / sqrt(variance + epsilon) scale + bias per channel, with a fused epilogue. */
#include "engine/kernels/cuda/lib/epilogue.h"

struct batch_norm {
    const float *x, *scale, *bias, *mean, *variance;
    float *y;
    unsigned count;
    struct divisor channels, plane; /* plane: elements from one channel to the next; 1: innermost */
    float epsilon;
    struct epilogue epilogue;
};

__global__ void __launch_bounds__(BLOCK)
    batch_norm_each(const __grid_constant__ struct batch_norm n)
{
    for (unsigned k = blockIdx.x * BLOCK + threadIdx.x; k < n.count; k += gridDim.x * BLOCK) {
        unsigned line = divide(k, n.plane), image = divide(line, n.channels);
        unsigned c = line - image * n.channels.d;
        float factor = n.scale[c] / sqrtf(n.variance[c] + n.epsilon);
        float value = (n.x[k] - n.mean[c]) * factor + n.bias[c];
        n.y[k] = epilogue_value(n.epilogue, value, k, image, c);
    }
}

static enum status plan(const struct kernel_query *q, struct batch_norm *n, struct error *why)
{
    const struct desc *x = &q->in[0], *y = &q->out[0];
    for (int k = 0; k < 5; k++)
        if (k >= q->in_count || q->in[k].dtype != DTYPE_F32)
            return REFUSE(why, "only f32");
    if (cuda_host->node_int(q->node, "training_mode", 0) || q->out_count > 1)
        return REFUSE(why, "no training mode");
    bool last = cuda_host->desc_is_nhwc(x) && cuda_host->desc_is_nhwc(y);
    if (!last && !(cuda_host->desc_is_plain(x) && cuda_host->desc_is_plain(y)))
        return REFUSE(why, "input and output lie differently");
    if (!fits_index(x) || count_of(&q->in[1].shape) == 0)
        return REFUSE(why, "no channels, or more than 2^31 elements");
    int64_t plane = 1;
    for (int d = 2; d < x->shape.rank && !last; d++)
        plane *= x->shape.dim[d];
    n->count = (unsigned)count_of(&x->shape);
    n->channels = divisor_of(count_of(&q->in[1].shape));
    n->plane = divisor_of(plane > 0 ? plane : 1);
    n->epsilon = (float)cuda_host->node_float(q->node, "epsilon", 1e-5);
    return epilogue_add_posts(q, x->shape.rank > 1 ? 1 : 0, &n->epilogue, why);
}

static enum status supports(const struct kernel_query *q, struct error *why)
{
    struct batch_norm n = {};
    return plan(q, &n, why);
}

static void launch(const struct kernel_state *state, const struct kernel_query *q,
                   const struct kernel_args *args)
{
    (void)state;
    struct batch_norm n = {};
    if (plan(q, &n, NULL) != STATUS_OK || n.count == 0)
        return;
    n.x = (const float *)args->in[0];
    n.scale = (const float *)args->in[1];
    n.bias = (const float *)args->in[2];
    n.mean = (const float *)args->in[3];
    n.variance = (const float *)args->in[4];
    n.y = (float *)args->out[0];
    epilogue_resolve(&n.epilogue, args);
    LAUNCH(batch_norm_each, grid_for(q, n.count), cuda_size(BLOCK), 0, &n, args);
}

static const char *const ops[] = {"BatchNormalization", NULL};

CUDA_KERNEL(batch_norm) = {CUDA_NAME(batch_norm), .ops = ops, .supports = supports,
                           .launch = launch};
