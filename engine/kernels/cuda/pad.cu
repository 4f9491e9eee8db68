/* SPDX-License-Identifier: Apache-2.0
 *
 * Pad with a constant, any layout: a thread per element of the
 * result, in the order of its memory. */
#include "engine/kernels/cuda/lib/query.h"

struct pad {
    const void *x, *value; /* value NULL: `bits` */
    void *y;
    unsigned count;
    unsigned bits; /* of a value of f32; others are 0 */
    int rank;      /* dimensions in the order of y's memory, the innermost last */
    struct divisor dim[RANK_MAX];
    int begin[RANK_MAX], size[RANK_MAX], stride[RANK_MAX]; /* of x in y; of x */
    int64_t start;                                         /* first element taken of x */
};

/* Where x has the element; -1: it is the constant. */
static __device__ __forceinline__ int64_t source_of(const struct pad &k, unsigned e)
{
    int64_t at = k.start;
    for (int d = k.rank - 1; d >= 0; d--) {
        unsigned next = divide(e, k.dim[d]);
        int i = (int)(e - next * k.dim[d].d) - k.begin[d];
        if (i < 0 || i >= k.size[d])
            return -1;
        at += (int64_t)i * k.stride[d];
        e = next;
    }
    return at;
}

template <class element>
__global__ void __launch_bounds__(BLOCK) pad_elements(const __grid_constant__ struct pad k)
{
    KERNEL_BEGIN();
    unsigned step = gridDim.x * BLOCK;
    element value = k.value ? *(const element *)k.value : (element)k.bits;
    for (unsigned e = blockIdx.x * BLOCK + threadIdx.x; e < k.count; e += step) {
        int64_t from = source_of(k, e);
        ((element *)k.y)[e] = from >= 0 ? ((const element *)k.x)[from] : value;
    }
}

/* ---- channels, for kernels of libraries ---- */

struct channels {
    struct device_channels c;
    unsigned count;
    struct divisor positions;
};

/* A thread per position, whose 16 bytes it writes at once. */
template <class word>
__global__ void __launch_bounds__(BLOCK) pad_channels(const __grid_constant__ struct channels k)
{
    KERNEL_BEGIN();
    constexpr int most = 16 / sizeof(word), each = 4 / sizeof(word);
    for (unsigned e = blockIdx.x * BLOCK + threadIdx.x; e < k.count; e += gridDim.x * BLOCK) {
        unsigned image = divide(e, k.positions), position = e - image * k.positions.d;
        const word *from =
            (const word *)k.c.from + image * k.c.image_at + position * k.c.position_at;
        unsigned row[4] = {0, 0, 0, 0};
#pragma unroll
        for (int c = 0; c < most; c++)
            if (c < k.c.channels)
                row[c / each] |= (unsigned)from[c * k.c.channel_at]
                                 << (c % each * 8 * (int)sizeof(word));
        ((uint4 *)k.c.to)[e] = make_uint4(row[0], row[1], row[2], row[3]);
    }
}

extern "C" enum status cuda_pad_channels(const struct device *device,
                                         const struct device_channels *channels, void *stream,
                                         struct error *err)
{
    struct error refused = {};
    struct kernel_args args = {};
    struct kernel_query q = {};
    int64_t count = channels->images * channels->positions;
    struct channels k = {*channels, (unsigned)count, divisor_of(channels->positions)};
    if (count > INT32_MAX)
        return REFUSE(err, "more than 2^31 positions");
    q.device = device;
    args.stream = stream;
    args.err = &refused;
    if (channels->element == 2)
        LAUNCH(pad_channels<uint16_t>, grid_for(&q, count), cuda_size(BLOCK), 0, &k, &args);
    else
        LAUNCH(pad_channels<uint32_t>, grid_for(&q, count), cuda_size(BLOCK), 0, &k, &args);
    if (refused.code != STATUS_OK && err)
        *err = refused;
    return refused.code;
}

/* ---- hooks ---- */

struct kernel_state {
    struct pad k; /* pointers are left open */
    int bytes;    /* of an element */
    bool given;   /* the value is an input */
    struct cuda_grid grid;
};

static enum status check(const struct kernel_query *q, struct error *why)
{
    const struct desc *x = &q->in[0], *y = &q->out[0];
    bool given = input_given(q, 2);
    if (q->node->post_count)
        return REFUSE(why, "no fused epilogue");
    if (!fits_index(x) || !fits_index(y))
        return REFUSE(why, "more than 2^31 elements");
    if (!cuda_host->desc_is_dense(y))
        return REFUSE(why, "the output is not dense");
    if (given && (q->in[2].dtype != x->dtype || shape_count(&q->in[2].shape) > 1))
        return REFUSE(why, "the value is not one element of the input's type");
    if (!given && x->dtype != DTYPE_F32 && cuda_host->node_float(q->node, "value", 0) != 0)
        return REFUSE(why, "a value attribute for another type than f32");
    return STATUS_OK;
}

static enum status plan(const struct kernel_query *q, int, struct kernel_state *s,
                        struct error *why)
{
    struct move move;
    struct flat_move flat;
    const struct desc *x = &q->in[0], *y = &q->out[0];
    struct pad *k = &s->k;
    int order[RANK_MAX];
    TRY(check(q, why));
    TRY(move_of_query(q, 0, &move, &flat, why));
    memory_order(y, order);
    k->rank = y->shape.rank;
    k->count = (unsigned)shape_count(&y->shape);
    for (int d = 0; d < k->rank && k->count; d++) {
        int axis = order[d];
        k->dim[d] = divisor_of(y->shape.dim[axis]);
        k->begin[d] = (int)move.out_start[axis];
        k->size[d] = (int)move.loops[axis].extent;
        k->stride[d] = (int)x->stride[axis];
        k->start += move.in_start[axis] * x->stride[axis];
    }
    float value = (float)cuda_host->node_float(q->node, "value", 0);
    if (x->dtype == DTYPE_F32)
        memcpy(&k->bits, &value, sizeof(value));
    s->bytes = element_bytes(x->dtype);
    s->given = input_given(q, 2) && shape_count(&q->in[2].shape);
    s->grid = grid_for(q, k->count);
    return STATUS_OK;
}

static void launch(const struct kernel_state *state, const struct kernel_args *args)
{
    struct pad k = state->k;
    k.x = args->in[0];
    k.value = state->given ? args->in[2] : NULL;
    k.y = args->out[0];
    LAUNCH_WORDS(state->bytes, pad_elements<word>, state->grid, cuda_size(BLOCK), 0, &k, args);
}

static const char *const ops[] = {"Pad", NULL};

CUDA_KERNEL(pad) = {CUDA_NAME(pad), .ops = ops, CUDA_PLAN, CUDA_HOOK(launch)};
