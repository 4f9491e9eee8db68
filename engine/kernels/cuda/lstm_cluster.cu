/* SPDX-License-Identifier: Apache-2.0
 *
 * LSTM in 16 bits, all steps in one launch, on tensor cores, from sm_90 on. A cluster of eight
 * blocks has 32 sequences of a direction, or 16; each block has an eighth of the units and keeps
 * their columns of W and R in its shared memory, beside the states of all units before and after
 * the step. So a step reads x, and sends each block's states to the other seven; clusters never
 * wait for each other. The product of the next step's x fills the time of the cluster's barrier.
 *
 * A warp has four units, whose 16 gates are the rows of the left factor; eight sequences are the
 * columns of the right one. A lane gets two gates of a unit for two sequences, and exchanges with
 * one that has the other two, so that each has all of one. The order of the depth is free if both
 * factors have the same: a lane takes 16 bytes of a line at once, and four lanes' 64 bytes make two
 * steps of the tensor cores.
 *
 * A store into another block's memory costs by the runs of bytes that it touches. So states lie by
 * groups of four units, those of all sequences beside each other: what a warp sends is one run. The
 * order of the sequences differs by group, so that lanes who read several groups of several
 * sequences do not meet in a bank. */
#include "engine/kernels/cuda/lib/cluster.h"
#include "engine/kernels/cuda/lib/mma.h"
#include "engine/kernels/cuda/lib/packed.h"
#include "engine/kernels/cuda/lib/rnn_packed.h"
#include "engine/kernels/cuda/lib/rnn_query.h"

enum {
    GATES = 4,
    UNITS = 4,  /* of a warp */
    LANES = 8,  /* of a unit */
    STEPS = 2,  /* of the tensor cores, that a lane's 16 bytes of a line are for */
    DEPTH = 32, /* of both factors, in these steps */
    PIECE = 8,  /* elements of 16 bytes */
    FEW = 2,    /* tiles of eight sequences */
    MANY = 4,
    HIDDEN_MOST = CLUSTER_MOST * UNITS * BLOCK / WARP,
    HIDDEN_STEP = 64 /* states of so many units are 128 bytes */
};

/* ---- what a lane has ---- */

/* One sequence of each tile, and the lines that it reads for the products. */
template <int tiles> struct lane_state {
    unsigned unit, sequence[tiles], length[tiles];
    unsigned line[tiles], line_length[tiles];
    float c[tiles], h[tiles];
};

/* The state of a sequence's unit in an input or output. */
static __device__ __forceinline__ unsigned outer_of(const struct rnn &k, unsigned sequence,
                                                    unsigned unit)
{
    return rnn_outer_state(k, (blockIdx.z * k.batch + sequence) * k.hidden + unit);
}

/* Sequences that are not there are the last one again. */
template <int tiles, class element>
static __device__ __forceinline__ void begin_lane(const struct rnn &k, unsigned rank,
                                                  struct lane_state<tiles> &s)
{
    unsigned lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
    unsigned first = blockIdx.x / CLUSTER_MOST * (MMA_COLUMNS * tiles);
    const element *h = (const element *)k.initial_h, *c = (const element *)k.initial_c;
    s.unit = rank * (k.hidden / CLUSTER_MOST) + warp * UNITS + lane / LANES;
#pragma unroll
    for (int i = 0; i < tiles; i++) {
        s.sequence[i] = first + i * MMA_COLUMNS + lane % 4 * 2 + lane / 4 % 2;
        s.line[i] = min(first + i * MMA_COLUMNS + lane / 4, k.batch - 1);
        unsigned sequence = min(s.sequence[i], k.batch - 1);
        s.length[i] = rnn_length_of(k, sequence);
        s.line_length[i] = rnn_length_of(k, s.line[i]);
        s.h[i] = h ? to_float(h[outer_of(k, sequence, s.unit)]) : 0.0f;
        s.c[i] = c ? to_float(c[outer_of(k, sequence, s.unit)]) : 0.0f;
    }
}

template <int tiles, class element>
static __device__ __forceinline__ void end_lane(const struct rnn &k,
                                                const struct lane_state<tiles> &s)
{
    element *h = (element *)k.last_h, *c = (element *)k.last_c;
#pragma unroll
    for (int i = 0; i < tiles; i++) {
        if (s.sequence[i] >= k.batch)
            continue;
        unsigned at = outer_of(k, s.sequence[i], s.unit);
        if (h)
            float_put(&h[at], s.h[i]);
        if (c)
            float_put(&c[at], s.c[i]);
    }
}

/* ---- shared memory: weights, then the states of all units twice, of 16 bits ---- */

static __host__ __device__ __forceinline__ unsigned weight_pieces(const struct rnn &k)
{
    return k.hidden / CLUSTER_MOST / UNITS * ((k.input + k.hidden) / DEPTH) * STEPS * WARP;
}

/* Where four units of a sequence lie, in 8 bytes. */
template <int tiles>
static __device__ __forceinline__ unsigned state_at(unsigned row, unsigned group)
{
    return group * (MMA_COLUMNS * tiles) + (row ^ group / 2 % 4 * 4);
}

template <int tiles, class element>
static __device__ __forceinline__ void fill_memory(const struct rnn &k, unsigned rank,
                                                   uint4 *weights, uint2 *states)
{
    const unsigned rows = MMA_COLUMNS * tiles;
    const uint4 *from =
        (const uint4 *)k.w + (size_t)(blockIdx.z * CLUSTER_MOST + rank) * weight_pieces(k);
    const element *h = (const element *)k.initial_h;
    element *to = (element *)states;
#pragma unroll 8
    for (unsigned t = threadIdx.x; t < weight_pieces(k); t += blockDim.x)
        weights[t] = from[t];
    for (unsigned t = threadIdx.x; t < rows * k.hidden; t += blockDim.x) {
        unsigned row = t / k.hidden, unit = t - row * k.hidden;
        unsigned sequence = min(blockIdx.x / CLUSTER_MOST * rows + row, k.batch - 1);
        to[state_at<tiles>(row, unit / UNITS) * UNITS + unit % UNITS] =
            h ? h[outer_of(k, sequence, unit)] : element{};
    }
}

/* ---- products ---- */

/* What both kinds of lines share: the weights of a lane for DEPTH of the depth. */
struct lane_weights {
    unsigned gates[STEPS][4];
};

static __device__ __forceinline__ struct lane_weights weights_at(const uint4 *weights,
                                                                 unsigned depth)
{
    const uint4 *at = weights + depth * STEPS * WARP + threadIdx.x % WARP;
    uint4 first = at[0], second = at[WARP];
    return {{{first.x, first.y, first.z, first.w}, {second.x, second.y, second.z, second.w}}};
}

template <class element>
static __device__ __forceinline__ void add_line(const struct lane_weights &w, const uint2 &first,
                                                const uint2 &second, float sums[4])
{
    const unsigned left[2] = {first.x, first.y}, right[2] = {second.x, second.y};
    mma_step(element{}, sums, w.gates[0], left);
    mma_step(element{}, sums, w.gates[1], right);
}

/* Biases and x W of a step. */
template <int tiles, class element>
static __device__ __forceinline__ void project(const struct rnn &k,
                                               const struct lane_state<tiles> &s, unsigned step,
                                               const uint4 *weights, float (&sums)[tiles][4])
{
    const uint4 *rows[tiles];
    unsigned gate = threadIdx.x / 4 % 2 * 2;
    const float *bias = k.bias + (blockIdx.z * GATES + gate) * k.hidden + s.unit;
    float low = bias[0], high = bias[k.hidden];
#pragma unroll
    for (int i = 0; i < tiles; i++) {
        size_t row = rnn_line_at(k, s.line[i], step, s.line_length[i]).row;
        rows[i] = (const uint4 *)((const element *)k.x + row * k.input);
        sums[i][0] = sums[i][1] = low;
        sums[i][2] = sums[i][3] = high;
    }
#pragma unroll 8
    for (unsigned d = 0; d < k.input / DEPTH; d++) {
        struct lane_weights w = weights_at(weights, d);
#pragma unroll
        for (int i = 0; i < tiles; i++) {
            uint4 line = rows[i][d * (DEPTH / PIECE) + threadIdx.x % 4];
            add_line<element>(w, make_uint2(line.x, line.y), make_uint2(line.z, line.w), sums[i]);
        }
    }
}

template <int tiles, class element>
static __device__ __forceinline__ void recur(const struct rnn &k, const uint2 *states,
                                             const uint4 *weights, float (&sums)[tiles][4])
{
    const unsigned lines = MMA_COLUMNS * tiles;
    const uint2 *rows[tiles];
#pragma unroll
    for (int i = 0; i < tiles; i++)
        rows[i] =
            states + state_at<tiles>(i * MMA_COLUMNS + threadIdx.x % WARP / 4, threadIdx.x % 4 * 2);
#pragma unroll 4
    for (unsigned d = 0; d < k.hidden / DEPTH; d++) {
        struct lane_weights w = weights_at(weights, k.input / DEPTH + d);
#pragma unroll
        for (int i = 0; i < tiles; i++) {
            const uint2 *at = rows[i] + d * (DEPTH / UNITS) * lines;
            add_line<element>(w, at[0], at[lines], sums[i]);
        }
    }
}

/* ---- cells, and what becomes of the new states ---- */

/* Lane `even` has gates 0 and 1 of two sequences, the one four further gates 2 and 3. */
template <int tiles>
static __device__ __forceinline__ void compute_cells(const float (&sums)[tiles][4], unsigned step,
                                                     struct lane_state<tiles> &s)
{
    const float nothing[GATES] = {};
    bool even = threadIdx.x / 4 % 2 == 0;
#pragma unroll
    for (int i = 0; i < tiles; i++) {
        float low = __shfl_xor_sync(all_lanes, even ? sums[i][1] : sums[i][0], 4);
        float high = __shfl_xor_sync(all_lanes, even ? sums[i][3] : sums[i][2], 4);
        const float x[GATES] = {even ? sums[i][0] : low, even ? sums[i][2] : high,
                                even ? low : sums[i][1], even ? high : sums[i][3]};
        if (step < s.length[i])
            s.h[i] = rnn_lstm(x, 1, nothing, &s.c[i]);
    }
}

static __device__ __forceinline__ unsigned pair_of(uint16_t first, uint16_t second)
{
    return first | (unsigned)second << 16;
}

/* Four lanes have the four units of the same two or four sequences, one of each tile: each lane
 * gets that of the tile of its number, all four units of it. */
template <int tiles, class element>
static __device__ __forceinline__ uint2 gather_line(const struct lane_state<tiles> &s)
{
    unsigned lane = threadIdx.x % WARP, tile = lane / LANES % tiles, units[UNITS];
    unsigned pairs[tiles / 2];
#pragma unroll
    for (int i = 0; i < tiles / 2; i++) {
        element e[2];
        float_put(&e[0], s.h[i * 2]);
        float_put(&e[1], s.h[i * 2 + 1]);
        pairs[i] = pair_of(e[0].bits, e[1].bits);
    }
#pragma unroll
    for (int u = 0; u < UNITS; u++) {
        unsigned pair = 0;
#pragma unroll
        for (int i = 0; i < tiles / 2; i++) {
            unsigned other = __shfl_sync(all_lanes, pairs[i], (int)(u * LANES + lane % LANES));
            pair = tile / 2 == (unsigned)i ? other : pair;
        }
        units[u] = tile % 2 ? pair >> 16 : pair & 0xffff;
    }
    return make_uint2(units[0] | units[1] << 16, units[2] | units[3] << 16);
}

/* To all blocks of the cluster; two lanes of the same line share them. */
template <int tiles>
static __device__ __forceinline__ void send_line(unsigned unit, uint2 line, uint2 *states)
{
    unsigned lane = threadIdx.x % WARP, tile = lane / LANES % tiles;
    unsigned row = tile * MMA_COLUMNS + lane % 4 * 2 + lane / 4 % 2;
    uint2 *to = &states[state_at<tiles>(row, unit / UNITS)];
    const unsigned lanes = UNITS / tiles;
#pragma unroll
    for (unsigned n = 0; n < CLUSTER_MOST / lanes; n++)
        cluster_put(to, n * lanes + lane / LANES / tiles, line);
}

template <int tiles, class element>
static __device__ __forceinline__ void store_line(const struct rnn &k,
                                                  const struct lane_state<tiles> &s, unsigned step,
                                                  unsigned unit, uint2 line)
{
    unsigned number = threadIdx.x % WARP / LANES, tile = number % tiles;
    unsigned sequence = s.sequence[0], length = s.length[0];
#pragma unroll
    for (unsigned i = 1; i < tiles; i++) {
        sequence = tile == i ? s.sequence[i] : sequence;
        length = tile == i ? s.length[i] : length;
    }
    if (!k.y || sequence >= k.batch || number >= tiles)
        return;
    struct rnn_line l = rnn_line_at(k, sequence, step, length);
    *(uint2 *)((element *)k.y + l.y + unit) = l.active ? line : make_uint2(0, 0);
}

/* Who writes the states after a step has passed a barrier since all read that memory, as those
 * before the last one. */
template <int tiles, class element>
__global__ void __launch_bounds__(BLOCK, 1) lstm_cluster(const __grid_constant__ struct rnn k)
{
    KERNEL_BEGIN();
    if (!HAS_CLUSTERS)
        return;
    SHARED_MEMORY(uint4, weights);
    const unsigned lines = MMA_COLUMNS * tiles;
    uint2 *states = (uint2 *)(weights + weight_pieces(k));
    unsigned rank = cluster_rank(), warp = threadIdx.x / WARP;
    const uint4 *columns = weights + warp * ((k.input + k.hidden) / DEPTH * STEPS * WARP);
    struct lane_state<tiles> s;
    float sums[tiles][4];
    begin_lane<tiles, element>(k, rank, s);
    fill_memory<tiles, element>(k, rank, weights, states);
    cluster_arrive();
    cluster_wait();
    project<tiles, element>(k, s, 0, columns, sums);
    for (unsigned step = 0; step < k.steps; step++) {
        unsigned unit = s.unit / UNITS * UNITS, stride = lines * (k.hidden / UNITS);
        recur<tiles, element>(k, states + step % 2 * stride, columns, sums);
        compute_cells<tiles>(sums, step, s);
        uint2 line = gather_line<tiles, element>(s);
        send_line<tiles>(unit, line, states + (step + 1) % 2 * stride);
        cluster_arrive();
        store_line<tiles, element>(k, s, step, unit, line);
        if (step + 1 < k.steps)
            project<tiles, element>(k, s, step + 1, columns, sums);
        cluster_wait();
    }
    end_lane<tiles, element>(k, s);
}

/* ---- hooks ---- */

struct kernel_state {
    struct rnn k; /* pointers are left open, until prepare those to weights */
    const struct device *device;
    void *weights;
    enum dtype type;
    int tiles;
    unsigned given, wanted;
    size_t shared_bytes;
};

static enum status plan(const struct kernel_query *q, int variant, struct kernel_state *s,
                        struct error *why)
{
    struct rnn *k = &s->k;
    (void)variant;
    TRY(rnn_supported(q, why));
    rnn_read(q, k);
    if (q->device->properties.major < 9)
        return REFUSE(why, "no clusters before sm_90");
    if (element_bytes(q->in[X].dtype) != 2)
        return REFUSE(why, "only f16 and bf16");
    if (k->hidden % HIDDEN_STEP || k->hidden > HIDDEN_MOST || k->input % DEPTH)
        return REFUSE(why, "units must be a multiple of 64, at most 256, inputs one of 32");
    unsigned units = (unsigned)q->device->properties.units;
    const int64_t few_lines = (int64_t)MMA_COLUMNS * (int)FEW;
    unsigned few = (unsigned)div_up(k->batch, few_lines) * k->directions * CLUSTER_MOST;
    s->tiles = few <= units ? FEW : MANY;
    s->shared_bytes = ((size_t)weight_pieces(*k) +
                       2 * (size_t)MMA_COLUMNS * (unsigned)s->tiles * k->hidden / PIECE) *
                      sizeof(uint4);
    if (s->shared_bytes > q->device->properties.shared_bytes)
        return REFUSE(why, "an eighth of the weights does not fit into shared memory");
    s->device = q->device;
    s->type = q->in[X].dtype;
    s->given = inputs_given(q);
    s->wanted = outputs_wanted(q);
    return STATUS_OK;
}

static const void *kernel_of(const struct kernel_state *s)
{
    if (s->type == DTYPE_F16)
        return s->tiles == FEW ? KERNEL_ADDRESS(lstm_cluster<FEW, struct half>)
                               : KERNEL_ADDRESS(lstm_cluster<MANY, struct half>);
    return s->tiles == FEW ? KERNEL_ADDRESS(lstm_cluster<FEW, struct bfloat>)
                           : KERNEL_ADDRESS(lstm_cluster<MANY, struct bfloat>);
}

/* Two elements of a gate of a unit, of W and beyond it of R. */
static const uint16_t *pair_in(const struct kernel_query *q, const struct rnn *k, size_t direction,
                               size_t gate, size_t unit, size_t at)
{
    size_t line = (direction * GATES + gate) * k->hidden + unit;
    return at < k->input ? (const uint16_t *)q->fixed[W] + line * k->input + at
                         : (const uint16_t *)q->fixed[R] + line * k->hidden + at - k->input;
}

/* A lane's 16 bytes of a step: of both its gates the two pairs that the step takes of a line. */
static void pack_lane(const struct kernel_query *q, const struct rnn *k, size_t direction,
                      size_t unit, size_t depth, size_t step, size_t lane, uint16_t *to)
{
    for (size_t n = 0; n < 4; n++) {
        size_t gate = lane / 4 % 2 * 2 + n % 2, pair = step * 2 + n / 2;
        size_t at = depth * DEPTH + lane % 4 * PIECE + pair * 2;
        memcpy(to + n * 2, pair_in(q, k, direction, gate, unit + lane / LANES, at),
               2 * sizeof(*to));
    }
}

/* [direction, block, warp, depth, step, lane], all but the first two of a block's memory. */
static void pack_weights(const struct kernel_query *q, const struct rnn *k, uint16_t *to)
{
    size_t depths = (k->input + k->hidden) / DEPTH;
    for (size_t d = 0; d < k->directions; d++)
        for (size_t unit = 0; unit < k->hidden; unit += UNITS)
            for (size_t depth = 0; depth < depths; depth++)
                for (size_t n = 0; n < (size_t)STEPS * WARP; n++, to += PIECE)
                    pack_lane(q, k, d, unit, depth, n / WARP, n % WARP, to);
}

static enum status prepare(const struct kernel_query *q, struct kernel_state *s,
                           size_t *packed_bytes, struct error *err)
{
    struct rnn *k = &s->k;
    struct rnn_parts p = rnn_parts_of(k, sizeof(uint16_t));
    float *packed = (float *)calloc(p.count, sizeof(float));
    *packed_bytes = p.count * sizeof(float);
    if (packed && rnn_pack_biases(q, k, packed)) {
        pack_weights(q, k, (uint16_t *)(packed + p.bias + p.apart));
    } else {
        free(packed);
        packed = NULL;
    }
    TRY(upload_packed(q->device, packed, *packed_bytes, &s->weights, err));
    k->bias = (const float *)s->weights;
    k->w = k->bias + p.bias + p.apart;
    return cuda_check(cuda_api.allow_shared(kernel_of(s), s->shared_bytes),
                      "asking for shared memory", err);
}

static void release(struct kernel_state *state)
{
    if (state->weights)
        state->device->kind->free(state->device, state->weights);
}

static void describe(const struct kernel_state *state, char *text, size_t size)
{
    snprintf(text, size, "%d sequences of a cluster", MMA_COLUMNS * state->tiles);
}

static void launch(const struct kernel_state *state, const struct kernel_args *args)
{
    struct rnn k = state->k;
    rnn_resolve(&k, args, state->given, state->wanted);
    unsigned clusters = (unsigned)div_up(k.batch, (int64_t)MMA_COLUMNS * state->tiles);
    struct cuda_launch launch = {"lstm_cluster",
                                 kernel_of(state),
                                 cuda_size(clusters * CLUSTER_MOST, 1, k.directions),
                                 cuda_size(k.hidden / CLUSTER_MOST / UNITS * WARP),
                                 state->shared_bytes,
                                 &k,
                                 true,
                                 CLUSTER_MOST};
    cuda_launch(&launch, args);
}

static const char *const ops[] = {"LSTM", NULL};

CUDA_KERNEL(lstm_cluster) = {
    CUDA_NAME(lstm_cluster), .ops = ops,           .packs = 1u << W | 1u << R | 1u << BIAS,
    CUDA_PLAN(plan),         .describe = describe, .prepare = prepare,
    .launch = launch,        .release = release};
