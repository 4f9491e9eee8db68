/* SPDX-License-Identifier: Apache-2.0
 *
 * LSTM in 16 bits, all steps in one launch, on tensor cores, from sm_90 on. A cluster of eight
 * blocks has 40 sequences of a direction, or 16; each block has an eighth of the units. Their
 * columns of R are in its registers, those of W in its shared memory, beside the states of all
 * units before and after the step and x of the step. So a step reads x, and sends each block's
 * states to the other seven; clusters never wait for each other. x of the next step comes while
 * the step is computed, and its product fills the time of the cluster's barrier.
 *
 * A warp has four units, whose 16 gates are the rows of the left factor; eight sequences are the
 * columns of the right one. A lane gets two gates of a unit for two sequences, and exchanges with
 * one that has the other two, so that each has all of one. The order of the depth is free if both
 * factors have the same: a lane takes 16 bytes of a line at once, and four lanes' 64 bytes make two
 * steps of the tensor cores.
 *
 * A store into another block's memory costs by the runs of bytes that it touches. So states lie by
 * groups of four units, those of all sequences beside each other: what a warp sends is one run. The
 * sequences begin elsewhere in each group, so that lanes who read several groups of several
 * sequences do not meet in a bank. Lines of x lie at multiples of all banks; those of odd rows have
 * the halves of 128 bytes exchanged for the same reason. */
#include "engine/kernels/cuda/lib/cluster.h"
#include "engine/kernels/cuda/lib/mma.h"
#include "engine/kernels/cuda/lib/packed.h"
#include "engine/kernels/cuda/lib/rnn_packed.h"
#include "engine/kernels/cuda/lib/rnn_query.h"

enum {
    GATES = 4,
    UNITS = 4,     /* of a warp */
    LANES = 8,     /* of a unit */
    STEPS = 2,     /* of the tensor cores, that a lane's 16 bytes of a line are for */
    DEPTH = 32,    /* of both factors, in these steps */
    PIECE = 8,     /* elements of 16 bytes */
    LINE_STEP = 8, /* pieces: 128 bytes */
    FEW = 2,       /* tiles of eight sequences */
    MANY = 5,
    HIDDEN_MOST = CLUSTER_MOST * UNITS * BLOCK / WARP,
    KEPT = HIDDEN_MOST / DEPTH /* of R, in registers */
};

struct lstm {
    struct rnn rnn;                        /* whose w and r are packed for this */
    unsigned weights, kept, states, pitch; /* 16 bytes: of W and R of a block, of the states of its
                                              sequences, of a line of x */
};

/* ---- what a lane has ---- */

/* A unit of one sequence of each tile. */
template <int tiles> struct lane_state {
    unsigned unit, sequence[tiles], length[tiles];
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
        unsigned sequence = min(s.sequence[i], k.batch - 1);
        s.length[i] = rnn_length_of(k, sequence);
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

/* ---- shared memory: W, the states of all units twice, x of a step ---- */

/* Where four units of a sequence lie, in 8 bytes. */
template <int tiles>
static __device__ __forceinline__ unsigned state_at(unsigned row, unsigned group)
{
    const unsigned lines = MMA_COLUMNS * tiles;
    unsigned turned = row + group / 2 % 4 * 4;
    return group * lines + (turned < lines ? turned : turned - lines);
}

static __device__ __forceinline__ unsigned line_at(const struct lstm &k, unsigned row,
                                                   unsigned piece)
{
    return row * k.pitch + (piece ^ row % 2 * (LINE_STEP / 2));
}

template <int tiles, class element>
static __device__ __forceinline__ void fill_memory(const struct lstm &k, unsigned rank,
                                                   uint4 *weights, uint2 *states)
{
    const struct rnn &r = k.rnn;
    const unsigned rows = MMA_COLUMNS * tiles;
    const uint4 *from = (const uint4 *)r.w + (size_t)(blockIdx.z * CLUSTER_MOST + rank) * k.weights;
    const element *h = (const element *)r.initial_h;
    element *to = (element *)states;
#pragma unroll 8
    for (unsigned t = threadIdx.x; t < k.weights; t += blockDim.x)
        weights[t] = from[t];
    for (unsigned t = threadIdx.x; t < rows * r.hidden; t += blockDim.x) {
        unsigned row = t / r.hidden, unit = t - row * r.hidden;
        unsigned sequence = min(blockIdx.x / CLUSTER_MOST * rows + row, r.batch - 1);
        to[state_at<tiles>(row, unit / UNITS) * UNITS + unit % UNITS] =
            h ? h[outer_of(r, sequence, unit)] : element{};
    }
}

/* Begins to copy x of a step, a line by a warp. */
template <int tiles, class element>
static __device__ __forceinline__ void fetch_lines(const struct lstm &k, unsigned step, uint4 *x)
{
    const struct rnn &r = k.rnn;
    const unsigned rows = MMA_COLUMNS * tiles;
    unsigned lane = threadIdx.x % WARP;
    for (unsigned row = threadIdx.x / WARP; row < rows; row += blockDim.x / WARP) {
        unsigned sequence = min(blockIdx.x / CLUSTER_MOST * rows + row, r.batch - 1);
        struct rnn_line l = rnn_line_at(r, sequence, step, rnn_length_of(r, sequence));
        const element *from = (const element *)r.x + (size_t)l.row * r.input;
        for (unsigned piece = lane; piece < r.input / PIECE; piece += WARP)
            copy_later<MMA_CHUNK>(x + line_at(k, row, piece), from + piece * PIECE, MMA_CHUNK);
    }
    copies_end_group();
}

/* ---- products ---- */

/* A lane's weights for DEPTH of the depth. */
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

/* Those of R. */
static __device__ __forceinline__ void keep_weights(const struct lstm &k, unsigned rank,
                                                    struct lane_weights (&kept)[KEPT])
{
    const struct rnn &r = k.rnn;
    const uint4 *from = (const uint4 *)r.r + (size_t)(blockIdx.z * CLUSTER_MOST + rank) * k.kept;
    from += threadIdx.x / WARP * (r.hidden / DEPTH * STEPS * WARP);
#pragma unroll
    for (unsigned d = 0; d < KEPT; d++)
        kept[d] = weights_at(from, d < r.hidden / DEPTH ? d : 0);
}

template <class element>
static __device__ __forceinline__ void add_line(const struct lane_weights &w, const uint2 &first,
                                                const uint2 &second, float sums[4])
{
    const unsigned left[2] = {first.x, first.y}, right[2] = {second.x, second.y};
    mma_step(element{}, sums, w.gates[0], left);
    mma_step(element{}, sums, w.gates[1], right);
}

/* Biases and x W. */
template <int tiles, class element>
static __device__ __forceinline__ void project(const struct lstm &k, unsigned unit, const uint4 *x,
                                               const uint4 *weights, float (&sums)[tiles][4])
{
    const struct rnn &r = k.rnn;
    unsigned gate = threadIdx.x / 4 % 2 * 2, row = threadIdx.x % WARP / 4;
    const float *bias = r.bias + (blockIdx.z * GATES + gate) * r.hidden + unit;
    float low = bias[0], high = bias[r.hidden];
#pragma unroll
    for (int i = 0; i < tiles; i++) {
        sums[i][0] = sums[i][1] = low;
        sums[i][2] = sums[i][3] = high;
    }
#pragma unroll 4
    for (unsigned d = 0; d < r.input / DEPTH; d++) {
        struct lane_weights w = weights_at(weights, d);
        const uint4 *at = x + line_at(k, row, d * (DEPTH / PIECE) + threadIdx.x % 4);
#pragma unroll
        for (int i = 0; i < tiles; i++) {
            uint4 line = at[i * MMA_COLUMNS * k.pitch];
            add_line<element>(w, make_uint2(line.x, line.y), make_uint2(line.z, line.w), sums[i]);
        }
    }
}

template <int tiles, class element>
static __device__ __forceinline__ void recur(const struct lstm &k, const uint2 *states,
                                             const struct lane_weights (&kept)[KEPT],
                                             float (&sums)[tiles][4])
{
    const unsigned lines = MMA_COLUMNS * tiles;
    const uint2 *rows[tiles];
#pragma unroll
    for (int i = 0; i < tiles; i++)
        rows[i] =
            states + state_at<tiles>(i * MMA_COLUMNS + threadIdx.x % WARP / 4, threadIdx.x % 4 * 2);
#pragma unroll
    for (unsigned d = 0; d < KEPT; d++) {
        if (d >= k.rnn.hidden / DEPTH)
            break;
#pragma unroll
        for (int i = 0; i < tiles; i++) {
            const uint2 *at = rows[i] + d * (DEPTH / UNITS) * lines;
            add_line<element>(kept[d], at[0], at[lines], sums[i]);
        }
    }
}

/* ---- cells, and what becomes of the new states ---- */

/* To 16 bits and better, in a third of the instructions of the exact ones. */
static __device__ __forceinline__ float sigmoid_of(float x)
{
    const float log2_e = 1.44269504f;
    float y = 1.0f + exp2f(-log2_e * x);
    PTX(y = 1.0f / y, "rcp.approx.ftz.f32 %0, %0;" : "+f"(y));
    return y;
}

static __device__ __forceinline__ float tanh_of(float x)
{
    return fmaf(2.0f, sigmoid_of(2.0f * x), -1.0f);
}

/* Lane `even` has gates 0 and 1 of two sequences, the one four further gates 2 and 3. */
template <int tiles>
static __device__ __forceinline__ void compute_cells(const float (&sums)[tiles][4], unsigned step,
                                                     struct lane_state<tiles> &s)
{
    bool even = threadIdx.x / 4 % 2 == 0;
#pragma unroll
    for (int i = 0; i < tiles; i++) {
        float low = __shfl_xor_sync(all_lanes, even ? sums[i][1] : sums[i][0], 4);
        float high = __shfl_xor_sync(all_lanes, even ? sums[i][3] : sums[i][2], 4);
        float in = sigmoid_of(even ? sums[i][0] : low), out = sigmoid_of(even ? sums[i][2] : high);
        float forget = sigmoid_of(even ? low : sums[i][1]);
        float c = fmaf(forget, s.c[i], in * tanh_of(even ? high : sums[i][3]));
        bool active = step < s.length[i];
        s.c[i] = active ? c : s.c[i];
        s.h[i] = active ? out * tanh_of(c) : s.h[i];
    }
}

/* Four lanes have the four units of the same sequences, one of each tile. Of `count` tiles from
 * `first` on, 1, 2 or 4, each gets the line of one, all four units of it; two or four lanes have
 * the same where there are fewer tiles than lanes. */
template <int count> static __device__ __forceinline__ unsigned tile_of_lane(void)
{
    return threadIdx.x % WARP / LANES % count;
}

template <int first, int count, int tiles, class element>
static __device__ __forceinline__ uint2 gather_line(const struct lane_state<tiles> &s)
{
    unsigned lane = threadIdx.x % WARP, units[UNITS];
#pragma unroll
    for (int u = 0; u < UNITS; u++) {
        float h = 0;
#pragma unroll
        for (int i = 0; i < count; i++) {
            float other = __shfl_sync(all_lanes, s.h[first + i], (int)(u * LANES + lane % LANES));
            h = tile_of_lane<count>() == (unsigned)i ? other : h;
        }
        element e;
        float_put(&e, h);
        units[u] = e.bits;
    }
    return make_uint2(units[0] | units[1] << 16, units[2] | units[3] << 16);
}

template <int first, int count, int tiles>
static __device__ __forceinline__ void send_line(unsigned group, uint2 line, uint2 *states)
{
    unsigned lane = threadIdx.x % WARP;
    unsigned row = (first + tile_of_lane<count>()) * MMA_COLUMNS + lane % 4 * 2 + lane / 4 % 2;
    uint2 *to = &states[state_at<tiles>(row, group)];
    const unsigned lanes = UNITS / count;
#pragma unroll
    for (unsigned n = 0; n < CLUSTER_MOST / lanes; n++)
        cluster_put(to, n * lanes + lane / LANES / count, line);
}

template <int first, int count, int tiles, class element>
static __device__ __forceinline__ void
store_line(const struct rnn &k, const struct lane_state<tiles> &s, unsigned step, uint2 line)
{
    unsigned sequence = s.sequence[first], length = s.length[first];
#pragma unroll
    for (unsigned i = 1; i < count; i++) {
        sequence = tile_of_lane<count>() == i ? s.sequence[first + i] : sequence;
        length = tile_of_lane<count>() == i ? s.length[first + i] : length;
    }
    if (!k.y || sequence >= k.batch || threadIdx.x % WARP / LANES >= count)
        return;
    struct rnn_line l = rnn_line_at(k, sequence, step, length);
    *(uint2 *)((element *)k.y + l.y + s.unit / UNITS * UNITS) = l.active ? line : make_uint2(0, 0);
}

/* The states after a step, to all blocks of the cluster and to the result. */
template <int first, int count, int tiles, class element>
static __device__ __forceinline__ void
pass_on(const struct rnn &k, const struct lane_state<tiles> &s, unsigned step, uint2 *states)
{
    uint2 line = gather_line<first, count, tiles, element>(s);
    send_line<first, count, tiles>(s.unit / UNITS, line, states);
    store_line<first, count, tiles, element>(k, s, step, line);
}

/* Four tiles at once, and what is left. */
template <int tiles, class element>
static __device__ __forceinline__ void
pass_on_all(const struct rnn &k, const struct lane_state<tiles> &s, unsigned step, uint2 *states)
{
    const int most = UNITS, together = tiles < most ? tiles : most, rest = tiles - together;
    pass_on<0, together, tiles, element>(k, s, step, states);
    if (rest)
        pass_on<tiles - (rest ? rest : 1), rest ? rest : 1, tiles, element>(k, s, step, states);
}

/* Who writes the states after a step has passed a barrier since all read that memory, as those
 * before the last one; who copies x, since all read the x before. */
template <int tiles, class element>
__global__ void __launch_bounds__(BLOCK, 1) lstm_cluster(const __grid_constant__ struct lstm k)
{
    KERNEL_BEGIN();
    if (!HAS_CLUSTERS)
        return;
    SHARED_MEMORY(uint4, weights);
    const struct rnn &r = k.rnn;
    uint2 *states = (uint2 *)(weights + k.weights);
    uint4 *x = weights + k.weights + 2 * k.states;
    unsigned rank = cluster_rank(), warp = threadIdx.x / WARP, stride = 2 * k.states;
    const uint4 *columns = weights + warp * (r.input / DEPTH * STEPS * WARP);
    struct lane_state<tiles> s;
    struct lane_weights kept[KEPT];
    float sums[tiles][4];
    fetch_lines<tiles, element>(k, 0, x);
    begin_lane<tiles, element>(r, rank, s);
    fill_memory<tiles, element>(k, rank, weights, states);
    keep_weights(k, rank, kept);
    copies_wait<0>();
    cluster_arrive();
    cluster_wait();
    project<tiles, element>(k, s.unit, x, columns, sums);
    for (unsigned step = 0; step < r.steps; step++) {
        __syncthreads();
        if (step + 1 < r.steps)
            fetch_lines<tiles, element>(k, step + 1, x);
        recur<tiles, element>(k, states + step % 2 * stride, kept, sums);
        compute_cells<tiles>(sums, step, s);
        pass_on_all<tiles, element>(r, s, step, states + (step + 1) % 2 * stride);
        cluster_arrive();
        copies_wait<0>();
        __syncthreads();
        if (step + 1 < r.steps)
            project<tiles, element>(k, s.unit, x, columns, sums);
        cluster_wait();
    }
    end_lane<tiles, element>(r, s);
}

/* ---- hooks ---- */

struct kernel_state {
    struct lstm k; /* pointers are left open, until prepare those to weights */
    const struct device *device;
    void *weights;
    enum dtype type;
    int tiles;
    unsigned given, wanted;
    size_t shared_bytes;
};

/* Groups of multiprocessors are no multiples of clusters: an H200's 132 run 15 of them at a time,
 * and one more would take a second round. */
static bool are_together(const struct kernel_query *q, const struct rnn *r, int tiles)
{
    int64_t lines = (int64_t)MMA_COLUMNS * tiles, clusters = div_up(r->batch, lines);
    return clusters * r->directions <= q->device->properties.units / (CLUSTER_MOST + 1);
}

/* Sizes in 16 bytes. */
static size_t lay_out(struct lstm *k, int tiles)
{
    const struct rnn *r = &k->rnn;
    unsigned warps = r->hidden / CLUSTER_MOST / UNITS,
             lines = (unsigned)MMA_COLUMNS * (unsigned)tiles;
    k->weights = warps * (r->input / DEPTH) * STEPS * WARP;
    k->kept = warps * (r->hidden / DEPTH) * STEPS * WARP;
    k->states = lines * r->hidden / PIECE;
    k->pitch = (unsigned)div_up(r->input / PIECE, (int64_t)LINE_STEP) * LINE_STEP;
    return ((size_t)k->weights + 2 * (size_t)k->states + (size_t)lines * k->pitch) * sizeof(uint4);
}

static enum status plan(const struct kernel_query *q, int variant, struct kernel_state *s,
                        struct error *why)
{
    struct rnn *r = &s->k.rnn;
    (void)variant;
    TRY(rnn_supported(q, why));
    rnn_read(q, r);
    if (q->device->properties.major < 9)
        return REFUSE(why, "no clusters before sm_90");
    if (element_bytes(q->in[X].dtype) != 2)
        return REFUSE(why, "only f16 and bf16");
    if (r->hidden % DEPTH || r->hidden > HIDDEN_MOST || r->input % DEPTH)
        return REFUSE(why, "units must be a multiple of 32, at most 256, inputs one of 32");
    s->tiles = are_together(q, r, FEW) ? FEW : MANY;
    s->shared_bytes = lay_out(&s->k, s->tiles);
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

/* A lane's 16 bytes of a step, of W or R with so many columns: of both its gates of a unit the two
 * pairs that the step takes of a line. */
static void pack_lane(const uint16_t *from, const struct rnn *k, size_t columns, size_t unit,
                      size_t depth, size_t n, uint16_t *to)
{
    size_t step = n / WARP, lane = n % WARP;
    for (size_t i = 0; i < 4; i++) {
        size_t gate = lane / 4 % 2 * 2 + i % 2, pair = step * 2 + i / 2;
        size_t line = gate * k->hidden + unit + lane / LANES;
        size_t at = depth * DEPTH + lane % 4 * PIECE + pair * 2;
        memcpy(to + i * 2, from + line * columns + at, 2 * sizeof(*to));
    }
}

/* [direction, block, warp, depth, step, lane], all but the first two of a block. */
static uint16_t *pack_matrix(const void *matrix, const struct rnn *k, size_t columns, uint16_t *to)
{
    const uint16_t *from = (const uint16_t *)matrix;
    for (size_t d = 0; d < k->directions; d++, from += GATES * k->hidden * columns)
        for (size_t unit = 0; unit < k->hidden; unit += UNITS)
            for (size_t depth = 0; depth < columns / DEPTH; depth++)
                for (size_t n = 0; n < (size_t)STEPS * WARP; n++, to += PIECE)
                    pack_lane(from, k, columns, unit, depth, n, to);
    return to;
}

static struct cuda_launch launch_of(const struct kernel_state *s, struct lstm *k)
{
    const struct rnn *r = &k->rnn;
    unsigned clusters = (unsigned)div_up(r->batch, (int64_t)MMA_COLUMNS * s->tiles);
    return {"lstm_cluster",
            kernel_of(s),
            cuda_size(clusters * CLUSTER_MOST, 1, r->directions),
            cuda_size(r->hidden / CLUSTER_MOST / UNITS * WARP),
            s->shared_bytes,
            k,
            true,
            CLUSTER_MOST};
}

/* A part of a GPU may have too few multiprocessors beside each other, and the plug-in may have been
 * built for older chips. */
static enum status check_room(struct kernel_state *s, struct error *err)
{
    int code = 0, count = 0;
    struct cuda_launch launch = launch_of(s, &s->k);
    TRY(cuda_check(cuda_api.code_version(launch.kernel, &code), "asking for a kernel's code", err));
    if (code < 90)
        return REFUSE(err, "compiled for sm_%d, which has no clusters", code);
    TRY(cuda_allow_shared(s->device, launch.kernel, err));
    TRY(cuda_check(cuda_api.clusters_at_once(&launch, &count), "asking for room for a cluster",
                   err));
    return count > 0 ? STATUS_OK
                     : REFUSE(err, "no room for a cluster of %d blocks", (int)CLUSTER_MOST);
}

static enum status prepare(const struct kernel_query *q, struct kernel_state *s,
                           size_t *packed_bytes, struct error *err)
{
    struct rnn *k = &s->k.rnn;
    struct rnn_parts p = rnn_parts_of(k, sizeof(uint16_t));
    float *packed = (float *)calloc(p.count, sizeof(float));
    *packed_bytes = p.count * sizeof(float);
    if (packed && rnn_pack_biases(q, k, packed)) {
        uint16_t *w = (uint16_t *)(packed + p.bias + p.apart);
        pack_matrix(q->fixed[R], k, k->hidden, pack_matrix(q->fixed[W], k, k->input, w));
    } else {
        free(packed);
        packed = NULL;
    }
    TRY(upload_packed(q->device, packed, *packed_bytes, &s->weights, err));
    k->bias = (const float *)s->weights;
    k->w = k->bias + p.bias + p.apart;
    k->r = (const uint16_t *)k->w + p.w;
    return check_room(s, err);
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
    struct lstm k = state->k;
    rnn_resolve(&k.rnn, args, state->given, state->wanted);
    struct cuda_launch launch = launch_of(state, &k);
    cuda_launch(&launch, args);
}

static const char *const ops[] = {"LSTM", NULL};

CUDA_KERNEL(lstm_cluster) = {CUDA_NAME(lstm_cluster),
                             .ops = ops,
                             .packs = 1u << W | 1u << R | 1u << BIAS,
                             CUDA_PLAN,
                             CUDA_HOOK(describe),
                             CUDA_HOOK(prepare),
                             CUDA_HOOK(launch),
                             CUDA_HOOK(release)};
