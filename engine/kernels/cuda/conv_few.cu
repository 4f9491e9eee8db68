/* SPDX-License-Identifier: Apache-2.0
 *
 * The first convolution of a network: images of up to four channels, on tensor cores in 16 bits. A
 * row of the kernel is one stretch of depth, its taps side by side with four channels each, so that
 * 7 taps of 3 channels are 28 of 32 numbers; libraries pad each tap to 8 channels or more.
 *
 * A block has 16 x 16 positions and 64 output channels. The image under them, channels padded with
 * zeros, and the weights lie in shared memory: four channels are 8 bytes, so lanes read what they
 * multiply where it lies, of a stride of 1 or 2 without waiting for each other. A warp has two rows
 * of positions, which share what it reads of the weights. Results go through shared memory, and
 * leave by 16 bytes; what a lane does to its results it does to eight channels at once.
 *
 * Taps beyond a row of the kernel have weights of 0: an infinite pixel in their column makes NaN of
 * results whose window ends before it. */
#include "engine/kernels/cuda/lib/epilogue.h"
#include "engine/kernels/cuda/lib/mma.h"
#include "engine/kernels/cuda/lib/packed.h"

enum {
    CHANNELS = 4,
    TAPS = 4, /* of a step: 16 numbers of depth */
    SIDE = 16,
    ROWS = 2, /* of positions, of a warp */
    OUTPUTS = 64,
    PARTS = OUTPUTS / MMA_COLUMNS,
    LANES = OUTPUTS / MMA_COLUMNS * 32, /* of a step's weights */
    SHARED_MOST = 48 << 10,
    POSITIONS = 6,      /* of the image, that a thread reads before it stores one */
    LINE = OUTPUTS + 8, /* a position's results, and 8 against conflicts */
    RESULTS = SIDE * SIDE / ROWS * LINE * 4 /* bytes: of a row of each warp */
};

struct few {
    const void *x, *bias; /* bias NULL: none */
    const uint2 *weights; /* [outputs / OUTPUTS, steps, PARTS, a warp] */
    void *y;
    struct divisor across, down;  /* blocks of an image */
    struct divisor patch_columns; /* positions of the image under a block */
    unsigned patch, channels, outputs;
    int kernel_rows, row_steps; /* steps of a row of the kernel */
    int row_stride, column_stride, row_pad, column_pad;
    int in_rows, in_columns, out_rows, out_columns;
    int64_t x_image;
    int x_channel, x_row, x_column;
    bool relu, whole;     /* whole: 8 channels are never cut, and begin at 16 bytes */
    struct epilogue rest; /* what is not bias and ReLU */
};

/* Where a block is. */
struct corner {
    unsigned image, output; /* first of its channels */
    int row, column;
};

/* ---- what is multiplied ---- */

static __device__ __forceinline__ struct corner corner_of(const struct few &k)
{
    unsigned line = divide(blockIdx.x, k.across), image = divide(line, k.down);
    return {image, blockIdx.y * OUTPUTS, (int)(line - image * k.down.d) * SIDE,
            (int)(blockIdx.x - line * k.across.d) * SIDE};
}

static __device__ __forceinline__ unsigned weight_count(const struct few &k)
{
    return (unsigned)(k.kernel_rows * k.row_steps) * LANES;
}

static __device__ __forceinline__ void load_weights(const struct few &k, uint2 *weights)
{
    const uint4 *from = (const uint4 *)(k.weights + (size_t)blockIdx.y * weight_count(k));
    for (unsigned i = threadIdx.x; i < weight_count(k) / 2; i += BLOCK)
        copy_later<16>((uint4 *)weights + i, from + i, 16);
    copies_end_group();
}

/* The channels of position i of the image under the block, and which bits of them count: outside
 * the image something is read all the same, for addresses made under a condition took most of the
 * instructions. */
static __device__ __forceinline__ unsigned read_position(const struct few &k,
                                                         const struct corner &at, const uint16_t *x,
                                                         unsigned i, unsigned (&channel)[CHANNELS])
{
    unsigned line = divide(i, k.patch_columns);
    int row = at.row * k.row_stride - k.row_pad + (int)line;
    int column = at.column * k.column_stride - k.column_pad + (int)(i - line * k.patch_columns.d);
    bool inside =
        i < k.patch && row >= 0 && row < k.in_rows && column >= 0 && column < k.in_columns;
    x += inside ? row * k.x_row + column * k.x_column : 0;
#pragma unroll
    for (unsigned c = 0; c < CHANNELS; c++)
        channel[c] = x[c < k.channels ? (int)c * k.x_channel : 0];
    return inside ? 0xffffffffu : 0u;
}

/* Two words of 16 bits a channel each. */
static __device__ __forceinline__ uint2 position_of(const struct few &k,
                                                    const unsigned (&channel)[CHANNELS],
                                                    unsigned mask)
{
    unsigned second = k.channels > 1 ? channel[1] << 16 : 0;
    unsigned third = k.channels > 2 ? channel[2] : 0,
             fourth = k.channels > 3 ? channel[3] << 16 : 0;
    return make_uint2((channel[0] | second) & mask, (third | fourth) & mask);
}

/* Positions are read POSITIONS at a time: one by one, each
 * waited for memory before the next was asked for, and a block spent most of its time here. */
static __device__ __forceinline__ void load_patch(const struct few &k, const struct corner &at,
                                                  uint2 *patch)
{
    const uint16_t *x = (const uint16_t *)k.x + at.image * k.x_image;
#pragma unroll 1
    for (unsigned begin = 0; begin < k.patch; begin += (unsigned)BLOCK * POSITIONS) {
        unsigned channel[POSITIONS][CHANNELS], mask[POSITIONS], first = begin + threadIdx.x;
#pragma unroll
        for (unsigned n = 0; n < POSITIONS; n++)
            mask[n] = read_position(k, at, x, first + n * BLOCK, channel[n]);
        __syncwarp(); /* or the compiler stores the first before it reads the last */
#pragma unroll
        for (unsigned n = 0; n < POSITIONS; n++)
            if (first + n * BLOCK < k.patch)
                patch[first + n * BLOCK] = position_of(k, channel[n], mask[n]);
    }
}

/* Of the lane's channels, as it lies in memory: what is made of it waits until all is here. */
template <class element>
static __device__ __forceinline__ void read_bias(const struct few &k, const struct corner &at,
                                                 element (&bias)[PARTS][2])
{
    const element *from = (const element *)k.bias;
#pragma unroll
    for (int n = 0; n < PARTS * 2; n++) {
        unsigned output = at.output + n / 2 * MMA_COLUMNS + threadIdx.x % 4 * 2 + n % 2;
        bias[n / 2][n % 2] = from && output < k.outputs ? from[output] : element{};
    }
}

template <class element>
static __device__ __forceinline__ void begin_sums(const element (&bias)[PARTS][2],
                                                  float (&sums)[ROWS][PARTS][4])
{
#pragma unroll
    for (int m = 0; m < ROWS; m++)
#pragma unroll
        for (int j = 0; j < PARTS; j++)
#pragma unroll
            for (int n = 0; n < 4; n++)
                sums[m][j][n] = to_float(bias[j][n % 2]);
}

/* ---- multiplying ---- */

template <class element>
static __device__ __forceinline__ void multiply(const struct few &k, const uint2 *weights,
                                                const unsigned *patch,
                                                float (&sums)[ROWS][PARTS][4])
{
    unsigned lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
    unsigned line = k.patch_columns.d * 2, eight = 8 * (unsigned)k.column_stride * 2;
    const unsigned *from =
        patch + warp * ROWS * k.row_stride * line + lane / 4 * k.column_stride * 2 + lane % 4;
    weights += lane;
    for (int r = 0; r < k.kernel_rows; r++)
        for (int s = 0; s < k.row_steps; s++) {
            unsigned a[ROWS][4];
#pragma unroll
            for (int m = 0; m < ROWS; m++) {
                const unsigned *at = from + (m * k.row_stride + r) * line + s * TAPS * 2;
                a[m][0] = at[0];
                a[m][1] = at[eight];
                a[m][2] = at[4];
                a[m][3] = at[eight + 4];
            }
#pragma unroll
            for (int j = 0; j < PARTS; j++) {
                uint2 w = weights[j * WARP];
                const unsigned b[2] = {w.x, w.y};
#pragma unroll
                for (int m = 0; m < ROWS; m++)
                    mma_step(element{}, sums[m][j], a[m], b);
            }
            weights += LANES;
        }
}

/* ---- storing ---- */

template <class element>
static __device__ __forceinline__ void store_row(const struct few &k, const struct corner &at,
                                                 int row, const float *results)
{
    const unsigned groups = (unsigned)OUTPUTS / EPILOGUE_GROUP;
    int64_t line = ((int64_t)at.image * k.out_rows + row) * k.out_columns;
#pragma unroll 1
    for (unsigned i = threadIdx.x % WARP; i < SIDE * groups; i += WARP) {
        unsigned position = i / groups, output = at.output + i % groups * EPILOGUE_GROUP;
        int column = at.column + (int)position;
        if (row >= k.out_rows || column >= k.out_columns || output >= k.outputs)
            continue;
        struct epilogue_place to = {(size_t)((line + column) * k.outputs + output),
                                    1,
                                    0,
                                    output,
                                    k.outputs - output,
                                    k.whole};
        struct group<EPILOGUE_GROUP> x = group_at(
            results + position * LINE + i % groups * EPILOGUE_GROUP, group<EPILOGUE_GROUP>{});
#pragma unroll
        for (int n = 0; n < EPILOGUE_GROUP; n++)
            x.v[n] = k.relu ? max_or_nan(x.v[n], 0.0f) : x.v[n];
        epilogue_group<element>(k.rest, x, to);
        epilogue_store((element *)k.y, x, to);
    }
}

template <class element>
__global__ void __launch_bounds__(BLOCK, 2) conv_few(const __grid_constant__ struct few k)
{
    KERNEL_BEGIN();
    SHARED_MEMORY(uint2, memory);
    uint2 *patch = memory + weight_count(k);
    struct corner at = corner_of(k);
    element bias[PARTS][2];
    float sums[ROWS][PARTS][4];
    load_weights(k, memory);
    read_bias(k, at, bias);
    load_patch(k, at, patch);
    begin_sums(bias, sums);
    copies_wait<0>();
    __syncthreads();
    multiply<element>(k, memory, (const unsigned *)patch, sums);
    __syncthreads();
    unsigned warp = threadIdx.x / WARP;
    float *results = (float *)memory + warp * SIDE * LINE;
#pragma unroll
    for (int m = 0; m < ROWS; m++) {
        mma_put_sums<PARTS>(sums[m], results, LINE); /* a lane finds eight channels there */
        __syncwarp();
        store_row<element>(k, at, at.row + (int)warp * ROWS + m, results);
        __syncwarp();
    }
}

/* ---- hooks ---- */

struct kernel_state {
    struct few k; /* pointers are left open */
    const struct device *device;
    void *weights;
    enum dtype type;
    int bias; /* input, or NONE */
    int kernel_columns;
    size_t shared_bytes;
    struct cuda_grid grid;
};

static enum status check(const struct kernel_query *q, struct error *why)
{
    const struct desc *x = &q->in[0], *y = &q->out[0];
    TRY(floats_supported(q, 0, q->node->op_inputs, why));
    if (y->dtype == DTYPE_F32)
        return REFUSE(why, "f32");
    if (q->device->properties.major < 8)
        return REFUSE(why, "no such tensor cores before sm_80");
    if (!q->fixed[1] || !cuda_host->desc_is_plain(&q->in[1]))
        return REFUSE(why, "weights come at run time");
    if (x->shape.rank != 4 || x->shape.dim[1] > CHANNELS ||
        q->in[1].shape.dim[1] != x->shape.dim[1])
        return REFUSE(why, "no image of up to %d channels", (int)CHANNELS);
    if (!cuda_host->desc_is_nhwc(y))
        return REFUSE(why, "the result's channels are not last");
    if (!fits_index(x) || !fits_index(y) || !shape_count(&x->shape) || !shape_count(&y->shape))
        return REFUSE(why, "no image, no results, or more than 2^31 elements");
    if (!places_fit_index(x))
        return REFUSE(why, "an image's elements lie too far apart");
    return STATUS_OK;
}

static void take_window(const struct kernel_query *q, const struct window *w, struct few *k)
{
    const struct desc *x = &q->in[0];
    k->kernel_rows = (int)w->kernel[0];
    k->row_steps = (int)div_up(w->kernel[1], TAPS);
    k->row_stride = (int)w->stride[0];
    k->column_stride = (int)w->stride[1];
    k->row_pad = (int)w->pad_begin[0];
    k->column_pad = (int)w->pad_begin[1];
    k->in_rows = (int)w->in[0];
    k->in_columns = (int)w->in[1];
    k->out_rows = (int)w->out[0];
    k->out_columns = (int)w->out[1];
    k->x_image = x->stride[0];
    k->x_channel = (int)x->stride[1];
    k->x_row = (int)x->stride[2];
    k->x_column = (int)x->stride[3];
    int columns = (SIDE - 1) * k->column_stride + k->row_steps * TAPS;
    k->patch_columns = divisor_of(columns);
    k->patch = (unsigned)(((SIDE - 1) * k->row_stride + k->kernel_rows) * columns);
    k->across = divisor_of(div_up(k->out_columns, SIDE));
    k->down = divisor_of(div_up(k->out_rows, SIDE));
}

/* Bias and ReLU, which nearly all have, are done without a call. */
static enum status take_epilogue(const struct kernel_query *q, struct kernel_state *s,
                                 struct error *why)
{
    struct epilogue all = {}, *rest = &s->k.rest;
    int taken = 0;
    if (input_given(q, 2))
        all.ops[all.count++] = {POST_ADD, 0, OPERAND_COLUMN, 2, 1, 0, NULL};
    TRY(epilogue_add_posts(q, 1, &all, why));
    const struct epilogue_op *op = all.ops;
    s->bias = NONE;
    if (all.count && op->kind == POST_ADD && op->form == OPERAND_COLUMN && op->a == 1)
        s->bias = all.ops[taken++].input;
    if (taken < all.count && all.ops[taken].kind == POST_ACT && all.ops[taken].act == FN_RELU) {
        s->k.relu = true;
        taken++;
    }
    while (taken < all.count)
        rest->ops[rest->count++] = all.ops[taken++];
    return STATUS_OK;
}

static enum status plan(const struct kernel_query *q, int, struct kernel_state *s,
                        struct error *why)
{
    struct few *k = &s->k;
    struct window window;
    TRY(check(q, why));
    TRY(window_from_node(q->node, &q->in[0].shape, q->in[1].shape.dim + 2, &window, why));
    if (window.group != 1 || window.dilation[0] != 1 || window.dilation[1] != 1)
        return REFUSE(why, "groups, or a dilated kernel");
    take_window(q, &window, k);
    k->channels = (unsigned)q->in[0].shape.dim[1];
    k->outputs = (unsigned)q->out[0].shape.dim[1];
    k->whole = k->outputs % 8 == 0;
    size_t factors = ((size_t)k->kernel_rows * k->row_steps * LANES + k->patch) * sizeof(uint2);
    s->shared_bytes = factors > RESULTS ? factors : (size_t)RESULTS;
    if (s->shared_bytes > SHARED_MOST)
        return REFUSE(why, "a kernel or stride too large for shared memory");
    int64_t blocks = q->in[0].shape.dim[0] * k->across.d * k->down.d;
    int64_t parts = div_up(k->outputs, OUTPUTS);
    if (blocks > INT32_MAX || parts > GRID_YZ)
        return REFUSE(why, "more blocks than a grid has");
    s->device = q->device;
    s->type = q->out[0].dtype;
    s->kernel_columns = (int)window.kernel[1];
    s->grid = cuda_size((unsigned)blocks, (unsigned)parts);
    return take_epilogue(q, s, why);
}

/* What lane `lane` holds of a step's right factor, number n of four: two channels of one tap or of
 * the one after the next. */
static uint16_t weight_at(const struct kernel_state *s, const uint16_t *w, unsigned output,
                          int step, int lane, int n)
{
    const struct few *k = &s->k;
    int row = step / k->row_steps, pair = lane % 4;
    int tap = step % k->row_steps * TAPS + pair / 2 + n / 2 * 2, channel = pair % 2 * 2 + n % 2;
    if (output >= k->outputs || tap >= s->kernel_columns || channel >= (int)k->channels)
        return 0;
    size_t line = ((size_t)output * k->channels + (unsigned)channel) * (unsigned)k->kernel_rows;
    return w[(line + (unsigned)row) * (unsigned)s->kernel_columns + (unsigned)tap];
}

static enum status prepare(const struct kernel_query *q, struct kernel_state *s,
                           size_t *packed_bytes, struct error *err)
{
    const uint16_t *w = (const uint16_t *)q->fixed[1];
    size_t steps = (size_t)s->k.kernel_rows * (size_t)s->k.row_steps;
    size_t lanes = s->grid.y * steps * LANES;
    *packed_bytes = lanes * sizeof(uint2);
    uint16_t *packed = (uint16_t *)malloc(*packed_bytes);
    for (size_t l = 0; packed && l < lanes; l++) {
        int lane = (int)(l % WARP), step = (int)(l / LANES % steps);
        unsigned part = (unsigned)(l / WARP % PARTS), block = (unsigned)(l / LANES / steps);
        unsigned output = block * OUTPUTS + part * MMA_COLUMNS + (unsigned)lane / 4;
        for (int n = 0; n < 4; n++)
            packed[l * 4 + (size_t)n] = weight_at(s, w, output, step, lane, n);
    }
    return upload_packed(q->device, packed, *packed_bytes, &s->weights, err);
}

static void release(struct kernel_state *state)
{
    if (state->weights)
        state->device->kind->free(state->device, state->weights);
}

static void launch(const struct kernel_state *state, const struct kernel_args *args)
{
    struct few k = state->k;
    k.x = args->in[0];
    k.weights = (const uint2 *)state->weights;
    k.bias = state->bias == NONE ? NULL : args->in[state->bias];
    k.y = args->out[0];
    epilogue_resolve(&k.rest, args);
    k.whole = k.whole && (uintptr_t)k.y % 16 == 0 && epilogue_is_aligned(&k.rest);
    if (state->type == DTYPE_F16)
        LAUNCH(conv_few<struct half>, state->grid, cuda_size(BLOCK), state->shared_bytes, &k, args);
    else
        LAUNCH(conv_few<struct bfloat>, state->grid, cuda_size(BLOCK), state->shared_bytes, &k,
               args);
}

static const char *const ops[] = {"Conv", NULL};

CUDA_KERNEL(conv_few) = {CUDA_NAME(conv_few), .ops = ops,        .packs = 1u << 1,  CUDA_PLAN,
                         CUDA_HOOK(prepare),  CUDA_HOOK(launch), CUDA_HOOK(release)};
