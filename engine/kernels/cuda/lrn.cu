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
    KERNEL_BEGIN();
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

struct kernel_state {
    struct lrn k; /* pointers are left open */
    enum dtype type;
    struct cuda_grid grid;
};

static enum status plan(const struct kernel_query *q, int, struct kernel_state *s,
                        struct error *why)
{
    const struct desc *x = &q->in[0], *y = &q->out[0];
    bool plain = cuda_host->desc_is_plain(x) && cuda_host->desc_is_plain(y);
    if (q->node->post_count)
        return REFUSE(why, "no fused epilogue");
    TRY(floats_supported(q, 0, 1, why));
    if (!fits_index(x))
        return REFUSE(why, "more than 2^31 elements");
    if (!plain && !(cuda_host->desc_is_nhwc(x) && cuda_host->desc_is_nhwc(y)))
        return REFUSE(why, "input and output lie differently");
    struct axis channels = axis_of(&x->shape, 1);
    int size = (int)cuda_host->node_int(q->node, "size", 1);
    size = size < INT32_MAX / 2 ? size : INT32_MAX / 2;
    struct lrn *k = &s->k;
    k->count = (unsigned)shape_count(&x->shape);
    k->by_channel = divisor_of(plain ? channels.inner : 1);
    k->by_channels = divisor_of(channels.size);
    k->before = (size - 1) / 2;
    k->after = size - 1 - k->before;
    k->alpha = (float)(cuda_host->node_float(q->node, "alpha", 1e-4) / size);
    k->beta = (float)cuda_host->node_float(q->node, "beta", 0.75);
    k->bias = (float)cuda_host->node_float(q->node, "bias", 1);
    s->type = x->dtype;
    s->grid = grid_for(q, k->count);
    return STATUS_OK;
}

static void launch(const struct kernel_state *state, const struct kernel_args *args)
{
    struct lrn k = state->k;
    k.x = args->in[0];
    k.y = args->out[0];
    LAUNCH_FLOATS(state->type, lrn_elements<element>, state->grid, cuda_size(BLOCK), 0, &k, args);
}

static const char *const ops[] = {"LRN", NULL};

CUDA_KERNEL(lrn) = {CUDA_NAME(lrn), .ops = ops, CUDA_PLAN, CUDA_HOOK(launch)};
