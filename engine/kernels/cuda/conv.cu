/* SPDX-License-Identifier: Apache-2.0
 *
 * Conv of images in any layout, one to three dimensions, groups. As a product whose rows are
 * output positions and whose depth is taps times channels, gathered from the image while tiles are
 * loaded (lib/tile.h); or, where a group has too few output channels for a tile (depthwise), a
 * thread per result. Weights are constant and packed as [group, tap, channel, output channel]. */
#include "engine/kernels/cuda/lib/packed.h"
#include "engine/kernels/cuda/lib/tile.h"

struct convolution {
    const void *x, *w;
    void *y;
    int kernel[SPATIAL_MAX], stride[SPATIAL_MAX], dilation[SPATIAL_MAX], pad[SPATIAL_MAX];
    int in[SPATIAL_MAX];
    struct divisor out[SPATIAL_MAX], taps[SPATIAL_MAX], by_channels, by_outputs;
    unsigned rows, channels, outputs, depth, groups; /* channels and outputs of a group */
    int64_t x_image, x_channel, x_at[SPATIAL_MAX], y_image, y_channel, y_at[SPATIAL_MAX];
    struct epilogue epilogue;
};

struct kernel_state {
    struct convolution c; /* pointers are left open */
    const struct device *device;
    void *weights;
    enum dtype type;
    bool direct;
    struct cuda_grid grid;
};

/* ---- on the device ---- */

struct position {
    unsigned image;
    int at[SPATIAL_MAX]; /* of the output */
};

static __device__ __forceinline__ struct position position_of(const struct convolution &c,
                                                              unsigned row)
{
    struct position p = {0, {0, 0, 0}};
    for (int d = SPATIAL_MAX - 1; d >= 0; d--) {
        unsigned next = divide(row, c.out[d]);
        p.at[d] = (int)(row - next * c.out[d].d);
        row = next;
    }
    p.image = row;
    return p;
}

/* The image's element that the position sees through tap and channel of a depth; 0 in the padding.
 */
template <class element>
static __device__ __forceinline__ float
input_at(const struct convolution &c, const struct position &p, unsigned depth, unsigned group)
{
    unsigned tap = divide(depth, c.by_channels), channel = depth - tap * c.channels;
    int64_t at = p.image * c.x_image + (group * c.channels + channel) * c.x_channel;
    for (int d = SPATIAL_MAX - 1; d >= 0; d--) {
        unsigned next = divide(tap, c.taps[d]);
        int t = (int)(tap - next * c.taps[d].d);
        int i = p.at[d] * c.stride[d] - c.pad[d] + t * c.dilation[d];
        if (i < 0 || i >= c.in[d])
            return 0;
        at += i * c.x_at[d];
        tap = next;
    }
    return to_float(((const element *)c.x)[at]);
}

template <class element>
static __device__ __forceinline__ void store(const struct convolution &c, unsigned row,
                                             unsigned channel, float sum)
{
    struct position p = position_of(c, row);
    int64_t at = p.image * c.y_image + channel * c.y_channel;
    for (int d = 0; d < SPATIAL_MAX; d++)
        at += p.at[d] * c.y_at[d];
    float value = epilogue_value(c.epilogue, sum, (size_t)at, row, channel);
    float_put((element *)c.y + at, value);
}

template <int each, class element>
static __device__ __forceinline__ void load_tiles(const struct convolution &c, unsigned depth,
                                                  struct tile_memory<each> &m)
{
    const unsigned side = TILE_SIDE * each;
    unsigned row0 = blockIdx.x * side, column0 = blockIdx.y * side, group = blockIdx.z;
    const element *w = (const element *)c.w + (size_t)group * c.depth * c.outputs;
    for (unsigned t = threadIdx.x; t < side * TILE_DEPTH; t += BLOCK) {
        unsigned i = t / TILE_DEPTH, d = t % TILE_DEPTH;
        bool inside = row0 + i < c.rows && depth + d < c.depth;
        m.a[d][i] =
            inside ? input_at<element>(c, position_of(c, row0 + i), depth + d, group) : 0.0f;
    }
    for (unsigned t = threadIdx.x; t < side * TILE_DEPTH; t += BLOCK) {
        unsigned j = t % side, d = t / side;
        bool inside = column0 + j < c.outputs && depth + d < c.depth;
        m.b[d][j] = inside ? to_float(w[(size_t)(depth + d) * c.outputs + column0 + j]) : 0.0f;
    }
}

template <int each, class element>
__global__ void __launch_bounds__(BLOCK) conv_tile(const __grid_constant__ struct convolution c)
{
    KERNEL_BEGIN();
    __shared__ struct tile_memory<each> m;
    struct tile_sums<each> sums = {
    };
    const unsigned side = TILE_SIDE * each;
    for (unsigned depth = 0; depth < c.depth; depth += TILE_DEPTH) {
        load_tiles<each, element>(c, depth, m);
        __syncthreads();
        tile_multiply<each>(m, sums);
        __syncthreads();
    }
    unsigned row = blockIdx.x * side + threadIdx.x / TILE_SIDE;
    unsigned column = blockIdx.y * side + threadIdx.x % TILE_SIDE;
#pragma unroll 1
    for (int i = 0; i < each && row < c.rows; i++, row += TILE_SIDE) {
#pragma unroll
        for (int j = 0; j < each; j++)
            if (column + TILE_SIDE * j < c.outputs)
                store<element>(c, row, blockIdx.z * c.outputs + column + TILE_SIDE * j,
                               sums.v[0][j]);
        tile_next_row<each>(sums);
    }
}

/* Neighbouring threads have neighbouring channels. */
template <class element>
__global__ void __launch_bounds__(BLOCK) conv_direct(const __grid_constant__ struct convolution c)
{
    KERNEL_BEGIN();
    unsigned all = c.groups * c.outputs;
    unsigned step = gridDim.x * BLOCK, count = c.rows * all;
    for (unsigned e = blockIdx.x * BLOCK + threadIdx.x; e < count; e += step) {
        unsigned row = e / all, channel = e - row * all, group = divide(channel, c.by_outputs);
        struct position p = position_of(c, row);
        const element *w = (const element *)c.w + (size_t)group * c.depth * c.outputs +
                           (channel - group * c.outputs);
        float sum = 0;
        for (unsigned d = 0; d < c.depth; d++)
            sum += input_at<element>(c, p, d, group) * to_float(w[(size_t)d * c.outputs]);
        store<element>(c, row, channel, sum);
    }
}

/* ---- hooks ---- */

enum { DIRECT_OUTPUTS = 16, EACH = 4 };

/* Fewer spatial dimensions become the last ones. */
static void fill_window(const struct kernel_query *q, const struct window *w, struct convolution *c)
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
        c->taps[d] = divisor_of(c->kernel[d]);
        c->x_at[d] = is ? x->stride[own + 2] : 0;
        c->y_at[d] = is ? y->stride[own + 2] : 0;
    }
    c->x_image = x->stride[0];
    c->x_channel = x->stride[1];
    c->y_image = y->stride[0];
    c->y_channel = y->stride[1];
}

static enum status fill_epilogue(const struct kernel_query *q, struct convolution *c,
                                 struct error *why)
{
    if (input_given(q, 2))
        c->epilogue.ops[c->epilogue.count++] = {POST_ADD, 0, OPERAND_COLUMN, 2, 1, 0, NULL};
    return epilogue_add_posts(q, 1, &c->epilogue, why);
}

static enum status plan(const struct kernel_query *q, int, struct kernel_state *s,
                        struct error *why)
{
    struct convolution *c = &s->c;
    const struct shape *x = &q->in[0].shape, *w = &q->in[1].shape, *y = &q->out[0].shape;
    struct window window;
    TRY(floats_supported(q, 0, q->node->op_inputs, why));
    if (!q->fixed[1] || !cuda_host->desc_is_plain(&q->in[1]))
        return REFUSE(why, "weights come at run time");
    if (!fits_index(&q->in[0]) || !fits_index(&q->in[1]) || !fits_index(&q->out[0]))
        return REFUSE(why, "more than 2^31 elements");
    TRY(window_from_node(q->node, x, w->dim + 2, &window, why));
    fill_window(q, &window, c);
    c->groups = (unsigned)window.group;
    c->channels = (unsigned)w->dim[1];
    c->outputs = (unsigned)(w->dim[0] / window.group);
    c->depth = c->channels * (unsigned)(c->kernel[0] * c->kernel[1] * c->kernel[2]);
    c->rows = (unsigned)(y->dim[0] * c->out[0].d * c->out[1].d * c->out[2].d);
    if (c->depth == 0 || c->outputs == 0 || c->groups > GRID_YZ)
        return REFUSE(why, "no channels, or more groups than a grid has");
    c->by_channels = divisor_of(c->channels);
    c->by_outputs = divisor_of(c->outputs);
    int side = (int)TILE_SIDE * EACH;
    s->device = q->device;
    s->type = q->out[0].dtype;
    s->direct = c->outputs < DIRECT_OUTPUTS;
    s->grid = s->direct ? grid_for(q, (int64_t)c->rows * c->groups * c->outputs)
                        : cuda_size((unsigned)div_up(c->rows, side),
                                    (unsigned)div_up(c->outputs, side), c->groups);
    return fill_epilogue(q, c, why);
}

/* [output channel, channel, taps] to [group, tap, channel, output channel of the group]. */
template <class word> static void *pack(const struct convolution *c, const void *from)
{
    const word *w = (const word *)from;
    size_t taps = c->depth / c->channels;
    word *packed = (word *)malloc((size_t)c->groups * c->depth * c->outputs * sizeof(word));
    for (size_t o = 0; packed && o < (size_t)c->groups * c->outputs; o++)
        for (size_t i = 0; i < c->channels; i++)
            for (size_t t = 0; t < taps; t++)
                packed[((o / c->outputs * taps + t) * c->channels + i) * c->outputs +
                       o % c->outputs] = w[(o * c->channels + i) * taps + t];
    return packed;
}

static enum status prepare(const struct kernel_query *q, struct kernel_state *s,
                           size_t *packed_bytes, struct error *err)
{
    const struct convolution *c = &s->c;
    int size = element_bytes(s->type);
    *packed_bytes = (size_t)c->groups * c->depth * c->outputs * (size_t)size;
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
    struct convolution c = state->c;
    c.x = args->in[0];
    c.w = state->weights;
    c.y = args->out[0];
    epilogue_resolve(&c.epilogue, args);
    if (state->direct)
        LAUNCH_FLOATS(state->type, conv_direct<element>, state->grid, cuda_size(BLOCK), 0, &c,
                      args);
    else
        LAUNCH_FLOATS(state->type, (conv_tile<EACH, element>), state->grid, cuda_size(BLOCK), 0, &c,
                      args);
}

static const char *const ops[] = {"Conv", NULL};

CUDA_KERNEL(conv) = {CUDA_NAME(conv),    .ops = ops,        .packs = 1u << 1,   CUDA_PLAN,
                     CUDA_HOOK(prepare), CUDA_HOOK(launch), CUDA_HOOK(release), .general = true};
