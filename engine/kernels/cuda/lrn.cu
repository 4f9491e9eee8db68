/* SPDX-License-Identifier: Apache-2.0
 *
 * LRN, plain or channels-last: a thread per element squares the few channels beside its own;
 * neighbouring threads read nearly the same ones. */
#include "engine/kernels/cuda/lib/query.h"

struct lrn {
    const void *x;
    void *y;
    unsigned count;
    struct divisor by_channel, by_channels; /* by_channel: elements from one channel to the next */
    int before, after;
    float alpha, beta, bias;
};

template <class element>
__global__ void __launch_bounds__(BLOCK) lrn_elements(const __grid_constant__ struct lrn k)
{
    unsigned step = gridDim.x * BLOCK;
    int channels = (int)k.by_channels.d, along = (int)k.by_channel.d;
    for (unsigned e = blockIdx.x * BLOCK + threadIdx.x; e < k.count; e += step) {
        unsigned line = divide(e, k.by_channel), image = divide(line, k.by_channels);
        int channel = (int)(line - image * k.by_channels.d);
        int first = max(channel - k.before, 0), last = min(channel + k.after, channels - 1);
        const element *x = (const element *)k.x + e;
        float sum = 0;
        for (int c = first; c <= last; c++) {
            float value = to_float(x[(c - channel) * along]);
            sum += value * value;
        }
        float_put((element *)k.y + e, to_float(*x) / powf(k.bias + k.alpha * sum, k.beta));
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
    if (q->node->post_count)
        return REFUSE(why, "no fused epilogue");
    TRY(floats_supported(q, 0, 1, why));
    if (!fits_index(&q->in[0]))
        return REFUSE(why, "more than 2^31 elements");
    return is_plain(q) || is_nhwc(q) ? STATUS_OK : REFUSE(why, "input and output lie differently");
}

static void launch(const struct kernel_state *state, const struct kernel_query *q,
                   const struct kernel_args *args)
{
    (void)state;
    const struct shape *x = &q->in[0].shape;
    int size = (int)cuda_host->node_int(q->node, "size", 1);
    int64_t count = shape_count(x);
    if (count == 0)
        return;
    size = size < INT32_MAX / 2 ? size : INT32_MAX / 2;
    struct lrn k = {args->in[0],
                    args->out[0],
                    (unsigned)count,
                    divisor_of(is_plain(q) ? count / (x->dim[0] * x->dim[1]) : 1),
                    divisor_of(x->dim[1]),
                    (size - 1) / 2,
                    size - 1 - (size - 1) / 2,
                    (float)(cuda_host->node_float(q->node, "alpha", 1e-4) / size),
                    (float)cuda_host->node_float(q->node, "beta", 0.75),
                    (float)cuda_host->node_float(q->node, "bias", 1)};
    LAUNCH_FLOATS(q->in[0].dtype, lrn_elements<element>, grid_for(q, count), cuda_size(BLOCK), 0,
                  &k, args);
}

static const char *const ops[] = {"LRN", NULL};

CUDA_KERNEL(lrn) = {CUDA_NAME(lrn), .ops = ops, .supports = supports, .old_launch = launch};
