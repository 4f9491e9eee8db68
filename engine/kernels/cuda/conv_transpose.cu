/* SPDX-License-Identifier: Apache-2.0
 *
 * ConvTranspose of images in any layout, one to three dimensions, groups. A thread has one or
 * four neighbouring output channels of a position and gathers: of each dimension only the taps that
 * meet an input element are visited. Weights are constant and packed as [group, tap, channel,
 * output channel]. */
#include "engine/kernels/cuda/lib/epilogue.h"
#include "engine/kernels/cuda/lib/packed.h"

struct transposed {
    const void *x, *w;
    void *y;
    int kernel[SPATIAL_MAX], stride[SPATIAL_MAX], dilation[SPATIAL_MAX], pad[SPATIAL_MAX];
    int in[SPATIAL_MAX];
    struct divisor out[SPATIAL_MAX], by_groups, by_outputs; /* by_outputs: in groups of `width` */
    unsigned count, channels, outputs;                      /* of a group of the node */
    int64_t x_image, x_channel, x_at[SPATIAL_MAX], y_image, y_channel, y_at[SPATIAL_MAX];
    struct epilogue epilogue;
};

/* ---- on the device ---- */

struct position {
    unsigned image, channel, group; /* channel: first output channel within the group */
    int at[SPATIAL_MAX];
};

template <int width>
static __device__ __forceinline__ struct position position_of(const struct transposed &c,
                                                              unsigned e)
{
    struct position p;
    unsigned rest = divide(e, c.by_outputs);
    p.channel = (e - rest * c.by_outputs.d) * width;
    unsigned row = divide(rest, c.by_groups);
    p.group = rest - row * c.by_groups.d;
    for (int d = SPATIAL_MAX - 1; d >= 0; d--) {
        unsigned next = divide(row, c.out[d]);
        p.at[d] = (int)(row - next * c.out[d].d);
        row = next;
    }
    p.image = row;
    return p;
}

/* The input element that a tap brings to an output one along a dimension; -1: none. */
static __device__ __forceinline__ int source_of(const struct transposed &c, int d, int at, int tap)
{
    int i = at + c.pad[d] - tap * c.dilation[d];
    return i >= 0 && i % c.stride[d] == 0 && i / c.stride[d] < c.in[d] ? i / c.stride[d] : -1;
}

template <int width, class element>
static __device__ __forceinline__ void add_tap(const struct transposed &c, const element *x,
                                               const element *w, struct group<width> &sum)
{
    for (unsigned i = 0; i < c.channels; i++) {
        float value = to_float(x[i * c.x_channel]);
        struct group<width> v = {
        };
        v = group_at(w + (size_t)i * c.outputs, v);
        for (int e = 0; e < width; e++)
            sum.v[e] = fmaf(value, v.v[e], sum.v[e]);
    }
}

template <int width, class element>
static __device__ __forceinline__ struct group<width> gather(const struct transposed &c,
                                                             const struct position &p) {
    struct group<width> sum = {
    };
    unsigned taps = (unsigned)(c.kernel[0] * c.kernel[1] * c.kernel[2]);
    const element *x =
        (const element *)c.x + p.image * c.x_image + (int64_t)(p.group * c.channels) * c.x_channel;
    const element *w =
        (const element *)c.w + (size_t)p.group * taps * c.channels * c.outputs + p.channel;
    for (unsigned tap = 0; tap < taps; tap++) {
        int rest = (int)tap;
        int64_t at = 0;
        bool meets = true;
        for (int d = SPATIAL_MAX - 1; d >= 0; d--) {
            int i = source_of(c, d, p.at[d], rest % c.kernel[d]);
            rest /= c.kernel[d];
            meets = meets && i >= 0;
            at += i * c.x_at[d];
        }
        if (meets)
            add_tap<width>(c, x + at, w + (size_t)tap * c.channels * c.outputs, sum);
    }
    return sum;
}

template <int width, class element>
__global__ void __launch_bounds__(BLOCK)
    conv_transpose_gather(const __grid_constant__ struct transposed c)
{
    KERNEL_BEGIN();
    unsigned step = gridDim.x * BLOCK;
    for (unsigned e = blockIdx.x * BLOCK + threadIdx.x; e < c.count; e += step) {
        struct position p = position_of<width>(c, e);
        struct group<width> sum = gather<width, element>(c, p);
        unsigned channel = p.group * c.outputs + p.channel;
        int64_t at = p.image * c.y_image + channel * c.y_channel;
        for (int d = 0; d < SPATIAL_MAX; d++)
            at += p.at[d] * c.y_at[d];
        for (int i = 0; i < width; i++, at += c.y_channel) {
            float value = epilogue_value(c.epilogue, sum.v[i], (size_t)at, 0, channel + i);
            float_put((element *)c.y + at, value);
        }
    }
}

/* ---- hooks ---- */

struct kernel_state {
    struct transposed c; /* pointers are left open */
    const struct device *device;
    void *weights;
    enum dtype type;
    unsigned width; /* channels of a thread */
    struct cuda_grid grid;
};

/* Fewer spatial dimensions become the last ones. */
static void fill_window(const struct kernel_query *q, const struct window *w, struct transposed *c)
{
    const struct desc *x = &q->in[0], *y = &q->out[0];
    int lead = SPATIAL_MAX - w->rank;
    for (int d = 0; d < SPATIAL_MAX; d++) {
        int own = d - lead;
        bool is = own >= 0;
        c->kernel[d] = is ? (int)w->kernel[own] : 1;
        c->stride[d] = is ? (int)w->stride[own] : 1;
        c->dilation[d] = is ? (int)w->dilation[own] : 1;
        c->pad[d] = is ? (int)w->pad_begin[own] : 0;
        c->in[d] = is ? (int)w->in[own] : 1;
        c->out[d] = divisor_of(is ? w->out[own] : 1);
        c->x_at[d] = is ? x->stride[own + 2] : 0;
        c->y_at[d] = is ? y->stride[own + 2] : 0;
    }
    c->x_image = x->stride[0];
    c->x_channel = x->stride[1];
    c->y_image = y->stride[0];
    c->y_channel = y->stride[1];
}

static enum status plan(const struct kernel_query *q, int, struct kernel_state *s,
                        struct error *why)
{
    struct transposed *c = &s->c;
    const struct shape *x = &q->in[0].shape, *w = &q->in[1].shape;
    struct window window;
    TRY(floats_supported(q, 0, q->node->op_inputs, why));
    if (!q->fixed[1] || !cuda_host->desc_is_plain(&q->in[1]))
        return REFUSE(why, "weights come at run time");
    if (!fits_index(&q->in[0]) || !fits_index(&q->in[1]) || !fits_index(&q->out[0]))
        return REFUSE(why, "more than 2^31 elements");
    if (shape_count(&q->out[0].shape) == 0 || shape_count(x) == 0)
        return REFUSE(why, "no elements");
    TRY(window_transposed_from_node(q->node, x, w->dim + 2, &window, why));
    fill_window(q, &window, c);
    c->channels = (unsigned)(x->dim[1] / window.group);
    c->outputs = (unsigned)w->dim[1];
    s->device = q->device;
    s->type = q->out[0].dtype;
    s->width = c->outputs % 4 == 0 ? 4 : 1;
    c->count = (unsigned)shape_count(&q->out[0].shape) / s->width;
    c->by_groups = divisor_of(window.group);
    c->by_outputs = divisor_of(c->outputs / s->width);
    s->grid = grid_for(q, c->count);
    if (input_given(q, 2))
        c->epilogue.ops[c->epilogue.count++] = {POST_ADD, 0, OPERAND_COLUMN, 2, 1, 0, NULL};
    return epilogue_add_posts(q, 1, &c->epilogue, why);
}

static size_t weight_count(const struct transposed *c)
{
    return (size_t)c->by_groups.d * c->channels * c->outputs * (size_t)c->kernel[0] *
           (size_t)c->kernel[1] * (size_t)c->kernel[2];
}

/* [channel, output channel of the group, taps] to [group, tap, channel of the group, output]. */
template <class word> static void *pack(const struct transposed *c, const void *from)
{
    const word *w = (const word *)from;
    size_t taps = weight_count(c) / ((size_t)c->by_groups.d * c->channels * c->outputs);
    word *packed = (word *)malloc(weight_count(c) * sizeof(word));
    for (size_t i = 0; packed && i < (size_t)c->by_groups.d * c->channels; i++)
        for (size_t o = 0; o < c->outputs; o++)
            for (size_t t = 0; t < taps; t++)
                packed[((i / c->channels * taps + t) * c->channels + i % c->channels) * c->outputs +
                       o] = w[(i * c->outputs + o) * taps + t];
    return packed;
}

static enum status prepare(const struct kernel_query *q, struct kernel_state *s,
                           size_t *packed_bytes, struct error *err)
{
    const struct transposed *c = &s->c;
    int size = element_bytes(s->type);
    *packed_bytes = weight_count(c) * (size_t)size;
    void *packed = size == 4 ? pack<float>(c, q->fixed[1]) : pack<uint16_t>(c, q->fixed[1]);
    return upload_packed(q->device, packed, *packed_bytes, &s->weights, err);
}

static void release(struct kernel_state *state)
{
    if (state->weights)
        state->device->kind->free(state->device, state->weights);
}

static void launch(const struct kernel_state *state, const struct kernel_args *args)
{
    struct transposed c = state->c;
    c.x = args->in[0];
    c.w = state->weights;
    c.y = args->out[0];
    epilogue_resolve(&c.epilogue, args);
    if (state->width == 4)
        LAUNCH_FLOATS(state->type, (conv_transpose_gather<4, element>), state->grid,
                      cuda_size(BLOCK), 0, &c, args);
    else
        LAUNCH_FLOATS(state->type, (conv_transpose_gather<1, element>), state->grid,
                      cuda_size(BLOCK), 0, &c, args);
}

static const char *const ops[] = {"ConvTranspose", NULL};

CUDA_KERNEL(conv_transpose) = {
    CUDA_NAME(conv_transpose), .ops = ops,        .packs = 1u << 1,  CUDA_PLAN,
    CUDA_HOOK(prepare),        CUDA_HOOK(launch), CUDA_HOOK(release)};
