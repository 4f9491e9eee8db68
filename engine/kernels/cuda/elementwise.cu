/* SPDX-License-Identifier: Apache-2.0
 *
 * Every elementwise operator of floats, fused chains and epilogues, any layout and broadcast. A
 * thread has 16 bytes of neighbouring results: it walks the expression's steps over them with the
 * last result in registers; the branches on a step's code and on the type in memory are the same
 * for all threads. Operands that lie like the output, or along its rows, are read 16 bytes at a
 * time (8 where rows of 16 bits allow no more). Results that a later step than the next one needs
 * wait in slots of shared memory, as many as the chain has: registers have no numbers that are
 * known at run time only.
 */
#include "engine/kernels/cuda/lib/math.h"
#include "engine/kernels/cuda/lib/query.h"

enum { SLOTS = 8, SLOT_BYTES_MOST = 48 << 10 /* of all, without asking for more */ };

/* Where an operand of a step comes from. */
enum source { FROM_LAST, FROM_INPUT, FROM_SLOT };

struct instruction {
    unsigned char code, operands;
    unsigned char a_from, a, b_from, b;
    signed char keep; /* slot for the result; -1 */
    float p, q;
};

/* How an input lies along the innermost dimension. */
enum inner { INNER_VECTOR, INNER_SCALAR, INNER_STRIDED };

struct input {
    const void *at;
    int stride[RANK_MAX]; /* elements, outermost first; 0: broadcast */
    int inner;            /* enum inner */
    int full;             /* lies like the output */
};

struct elementwise {
    void *y;
    int type;       /* of the floats in memory */
    unsigned count; /* of groups of `width` results */
    int rank, inputs, steps, slots;
    struct divisor dim[RANK_MAX]; /* of the space, the innermost in groups */
    struct input in[CHAIN_INPUTS];
    struct instruction step[CHAIN_STEPS];
};

struct kernel_state {
    struct elementwise k; /* pointers are left open */
    int width;
    struct cuda_grid grid;
};

/* Element of input `in` that belongs to group g. */
static __device__ __forceinline__ int place_of(const struct elementwise &k, const struct input &in,
                                               unsigned g, int width)
{
    int at = 0;
    unsigned rest = g;
    if (in.full)
        return (int)g * width;
#pragma unroll 1
    for (int d = k.rank - 1; d >= 0; d--) {
        unsigned next = divide(rest, k.dim[d]);
        int index = (int)(rest - next * k.dim[d].d);
        at += index * in.stride[d] * (d == k.rank - 1 ? width : 1);
        rest = next;
    }
    return at;
}

template <int width, class element>
static __device__ __forceinline__ struct group<width> load_as(const struct elementwise &k,
                                                              const struct input &in, unsigned g) {
    const element *x = (const element *)in.at + place_of(k, in, g, width);
    struct group<width> r = {
    };
    if (in.inner == INNER_SCALAR) {
        float one = to_float(*x);
        for (int i = 0; i < width; i++)
            r.v[i] = one;
    } else if (in.inner == INNER_VECTOR) {
        r = group_at(x, r);
    } else {
        int stride = in.stride[k.rank - 1];
        for (int i = 0; i < width; i++)
            r.v[i] = to_float(x[i * stride]);
    }
    return r;
}

template <int width>
static __device__ __forceinline__ struct group<width> load(const struct elementwise &k,
                                                           unsigned input, unsigned g) {
    const struct input &in = k.in[input];
    if (width < 8 && k.type == DTYPE_F32) /* 8 are 16 bytes of the others */
        return load_as<width, float>(k, in, g);
    return k.type == DTYPE_F16 ? load_as<width, struct half>(k, in, g)
                               : load_as<width, struct bfloat>(k, in, g);
}

/* Where element e of the thread's group in a slot lies: no two lanes meet in a bank. */
template <int width>
static __device__ __forceinline__ unsigned slot_at(unsigned slot, int e)
{
    return (slot * width + (unsigned)e) * BLOCK + threadIdx.x;
}

template <int width>
static __device__ __forceinline__ struct group<width>
operand(const struct elementwise &k, unsigned from, unsigned which, unsigned g,
        const struct group<width> &last, const float *slots) {
    struct group<width> r = last;
    if (from == FROM_INPUT)
        return load<width>(k, which, g);
    for (int e = 0; e < width && from == FROM_SLOT; e++)
        r.v[e] = slots[slot_at<width>(which, e)];
    return r;
}

/* One branch for the whole group. */
#define EACH(code, name, flops, calls, value, vector)                                              \
    case FN_##code:                                                                                \
        _Pragma("unroll") for (int e = 0; e < width; e++)                                          \
        {                                                                                          \
            float x = a.v[e], y = b.v[e];                                                          \
            (void)x, (void)y;                                                                      \
            r.v[e] = vector;                                                                       \
        }                                                                                          \
        break;

template <int width>
static __device__ __forceinline__ struct group<width>
apply(const struct instruction &i, const struct group<width> &a, const struct group<width> &b) {
    struct group<width> r = a;
    float p = i.p, q = i.q;
    switch (i.code) {
        FUNCTIONS(EACH, EACH, EACH)
    }
    return r;
}

template <int width>
__global__ void __launch_bounds__(BLOCK)
    elementwise_chain(const __grid_constant__ struct elementwise k)
{
    KERNEL_BEGIN();
    SHARED_MEMORY(float, slots);
    struct group<width> last = {
    };
    for (unsigned g = blockIdx.x * BLOCK + threadIdx.x; g < k.count; g += gridDim.x * BLOCK) {
        for (int s = 0; s < k.steps; s++) {
            const struct instruction &i = k.step[s];
            struct group<width> a = operand<width>(k, i.a_from, i.a, g, last, slots), b = a;
            if (i.operands == 2)
                b = operand<width>(k, i.b_from, i.b, g, last, slots);
            last = apply<width>(i, a, b);
            for (int e = 0; e < width && i.keep >= 0; e++)
                slots[slot_at<width>((unsigned)i.keep, e)] = last.v[e];
        }
        group_store_as<width>(k.type, k.y, (size_t)g * width, last);
    }
}

struct activation {
    void *y;
    int type, act;
    float a, b;
    int64_t count; /* of groups of `width` */
};

#define NOTHING(...)

template <int width>
static __device__ __forceinline__ struct group<width> activated(const struct activation &k,
                                                                const struct group<width> &a) {
    struct group<width> r = a, b = a;
    float p = k.a, q = k.b;
    switch (k.act) {
        FUNCTIONS(EACH, NOTHING, NOTHING)
    }
    return r;
}

/* In place, after a library's product. */
template <int width>
__global__ void __launch_bounds__(BLOCK)
    activate_values(const __grid_constant__ struct activation k)
{
    KERNEL_BEGIN();
    int64_t step = (int64_t)gridDim.x * BLOCK;
    for (int64_t g = (int64_t)blockIdx.x * BLOCK + threadIdx.x; g < k.count; g += step) {
        struct group<width> r = group_as<width>(k.type, k.y, (size_t)g * width);
        group_store_as<width>(k.type, k.y, (size_t)g * width, activated<width>(k, r));
    }
}

/* ---- planning ---- */

static int last_use(const struct chain *chain, int step)
{
    int last = step;
    for (int s = step + 1; s < chain->count; s++)
        if (chain->steps[s].a == chain->inputs + step || chain->steps[s].b == chain->inputs + step)
            last = s;
    return last;
}

struct slots {
    int of_step[CHAIN_STEPS], free_from[SLOTS];
};

static void source_of(const struct chain *chain, const struct slots *slots, int s, int operand,
                      unsigned char *from, unsigned char *which)
{
    int step = operand - chain->inputs;
    *from = (unsigned char)(step < 0 ? FROM_INPUT : step == s - 1 ? FROM_LAST : FROM_SLOT);
    *which = (unsigned char)(step < 0                    ? operand
                             : slots->of_step[step] >= 0 ? slots->of_step[step]
                                                         : 0);
}

#define ONE(...) 1,
#define TWO(...) 2,
static const unsigned char operands_of[FN_COUNT] = {FUNCTIONS(ONE, ONE, TWO)};

static enum status translate(const struct chain *chain, struct elementwise *k, struct error *why)
{
    struct slots slots = {};
    k->steps = chain->count;
    for (int s = 0; s < chain->count; s++) {
        const struct chain_step *from = &chain->steps[s];
        struct instruction *to = &k->step[s];
        bool two = operands_of[from->code] == 2;
        *to = {(unsigned char)from->code,
               (unsigned char)(two ? 2 : 1),
               0,
               0,
               0,
               0,
               -1,
               from->p,
               from->q};
        source_of(chain, &slots, s, from->a, &to->a_from, &to->a);
        if (two)
            source_of(chain, &slots, s, from->b, &to->b_from, &to->b);
        slots.of_step[s] = -1;
        int last = last_use(chain, s);
        if (last <= s + 1)
            continue;
        int slot = 0;
        while (slot < SLOTS && slots.free_from[slot] > s)
            slot++;
        if (slot == SLOTS)
            return REFUSE(why, "more than %d results wait for their use", (int)SLOTS);
        slots.free_from[slot] = last;
        slots.of_step[s] = slot;
        to->keep = (signed char)slot;
        k->slots = slot < k->slots ? k->slots : slot + 1;
    }
    return STATUS_OK;
}

static enum status check_types(const struct kernel_query *q, struct error *why)
{
    if (q->out_count != 1 || !cuda_host->desc_is_dense(&q->out[0]))
        return REFUSE(why, "only one dense result");
    TRY(floats_supported(q, 0, q->in_count, why));
    if (q->in_count > CHAIN_INPUTS)
        return REFUSE(why, "more than %d inputs", (int)CHAIN_INPUTS);
    for (int k = 0; k < q->in_count; k++)
        if (!fits_index(&q->in[k]))
            return REFUSE(why, "more than 2^31 elements");
    return fits_index(&q->out[0]) ? STATUS_OK : REFUSE(why, "more than 2^31 elements");
}

static size_t slot_bytes(const struct elementwise *k, int width)
{
    return (size_t)(k->slots * width) * BLOCK * sizeof(float);
}

/* Groups need rows of a multiple of their width, places of such wherever one is read, and room for
 * those that wait. */
static bool goes_by(const struct elementwise *k, const struct strided *space, int width)
{
    int inner = space->rank - 1;
    bool fits = space->row % width == 0 && slot_bytes(k, width) <= SLOT_BYTES_MOST;
    for (int i = 1; i < space->operands; i++)
        for (int d = 0; d < inner && space->stride[i][inner] == 1; d++)
            fits = fits && space->stride[i][d] % width == 0;
    return fits;
}

static bool is_full(const struct strided *space, int operand)
{
    int64_t dense = 1;
    bool full = true;
    for (int d = space->rank - 1; d >= 0; d--) {
        full = full && (space->stride[operand][d] == dense || space->dim[d] == 1);
        dense *= space->dim[d];
    }
    return full;
}

static void place_inputs(const struct strided *space, struct kernel_state *s)
{
    struct elementwise *k = &s->k;
    int inner = space->rank - 1;
    s->width = k->type != DTYPE_F32 && goes_by(k, space, 8) ? 8 : goes_by(k, space, 4) ? 4 : 1;
    k->rank = space->rank;
    k->count = (unsigned)(space->rows * space->row / s->width);
    for (int d = 0; d < space->rank; d++)
        k->dim[d] = divisor_of(d == inner ? space->dim[d] / s->width : space->dim[d]);
    for (int i = 0; i < k->inputs; i++) {
        struct input *in = &k->in[i];
        for (int d = 0; d < space->rank; d++)
            in->stride[d] = (int)space->stride[i + 1][d];
        in->full = is_full(space, i + 1);
        in->inner = in->full || in->stride[inner] == 1 ? INNER_VECTOR
                    : in->stride[inner] == 0           ? INNER_SCALAR
                                                       : INNER_STRIDED;
    }
}

static enum status plan(const struct kernel_query *q, int, struct kernel_state *s,
                        struct error *why)
{
    float numbers[CHAIN_INPUTS] = {};
    const float *scalars[CHAIN_INPUTS] = {};
    const struct desc *descs[CHAIN_INPUTS + 1] = {&q->out[0]};
    struct chain chain;
    struct strided space;
    TRY(check_types(q, why));
    for (int k = 0; k < q->in_count; k++) {
        bool one = q->in[k].dtype != DTYPE_NONE && shape_count(&q->in[k].shape) == 1;
        scalars[k] = one && q->fixed[k] ? &numbers[k] : NULL;
        if (scalars[k])
            floats_load(q->in[k].dtype, q->fixed[k], &numbers[k], 1);
        descs[k + 1] = q->in[k].dtype == DTYPE_NONE ? NULL : &q->in[k];
    }
    TRY(chain_from_node(q->node, scalars, &chain, why));
    TRY(translate(&chain, &s->k, why));
    s->k.inputs = q->in_count;
    s->k.type = q->out[0].dtype;
    if (shape_count(&q->out[0].shape) == 0)
        return STATUS_OK; /* k.count stays 0 */
    strided_init(&space, descs, q->in_count + 1);
    place_inputs(&space, s);
    s->grid = grid_for(q, s->k.count);
    return STATUS_OK;
}

static void launch(const struct kernel_state *state, const struct kernel_args *args)
{
    struct elementwise k = state->k;
    size_t bytes = slot_bytes(&k, state->width);
    k.y = args->out[0];
    for (int i = 0; i < k.inputs; i++)
        k.in[i].at = args->in[i];
    if (state->width == 8)
        LAUNCH(elementwise_chain<8>, state->grid, cuda_size(BLOCK), bytes, &k, args);
    else if (state->width == 4)
        LAUNCH(elementwise_chain<4>, state->grid, cuda_size(BLOCK), bytes, &k, args);
    else
        LAUNCH(elementwise_chain<1>, state->grid, cuda_size(BLOCK), bytes, &k, args);
}

extern "C" enum status cuda_activate(const struct device *device, const struct post *post,
                                     enum dtype type, void *y, int64_t count, void *stream,
                                     struct error *err)
{
    struct error refused = {};
    struct kernel_args args = {};
    struct kernel_query q = {};
    int width = group_width(type, count);
    struct activation k = {y, (int)type, (int)post->act, post->a, post->b, count / width};
    q.device = device;
    args.stream = stream;
    args.err = &refused;
    if (width == 8)
        LAUNCH(activate_values<8>, grid_for(&q, k.count), cuda_size(BLOCK), 0, &k, &args);
    else if (width == 4)
        LAUNCH(activate_values<4>, grid_for(&q, k.count), cuda_size(BLOCK), 0, &k, &args);
    else
        LAUNCH(activate_values<1>, grid_for(&q, k.count), cuda_size(BLOCK), 0, &k, &args);
    if (refused.code != STATUS_OK && err)
        *err = refused;
    return refused.code;
}

CUDA_KERNEL(elementwise) = {CUDA_NAME(elementwise), .elementwise = true, CUDA_PLAN,
                            CUDA_HOOK(launch)};
