/* SPDX-License-Identifier: Apache-2.0
 *
 * All steps of a small recurrent network in one launch: a block has four sequences of a direction
 * and keeps the recurrent weights in shared memory, so that a step costs one or two barriers of the
 * block and not a launch or two.
 *
 * A warp has eight units. Its lanes are eight units by four parts of the depth; each sums its part
 * for all four sequences, then the four lanes of a unit exchange, so that each has the whole sums
 * of one sequence, computes its cell, and keeps its state in registers. Lines of the weights are
 * 8 banks further than a multiple of all, so that the four that a warp reads at once do not meet in
 * one. What the input brings to a step is read while the one before is computed. */
#ifndef ENGINE_KERNELS_CUDA_LIB_RNN_SEQUENCE_H
#define ENGINE_KERNELS_CUDA_LIB_RNN_SEQUENCE_H

#include "engine/kernels/cuda/lib/rnn.h"

enum {
    SEQUENCE_ROWS = 4, /* sequences of a block, and parts of the depth */
    SEQUENCE_UNITS = WARP / SEQUENCE_ROWS,
    SEQUENCE_HIDDEN_MAX = 128,
    SEQUENCE_THREADS = SEQUENCE_HIDDEN_MAX / SEQUENCE_UNITS * WARP,
    SEQUENCE_GATES = 4, /* most of a cell */
};

/* What a lane has: a unit of a sequence. */
struct sequence_lane {
    unsigned unit, part, row, length; /* part: of the depth, and its row in the block */
    bool is_there;
};

/* What comes to a lane in a step. */
struct sequence_turn {
    struct rnn_line line;
    float x[SEQUENCE_GATES], keep;
};

struct sequence_memory {
    float4 *h, *other; /* [depth] of four rows; other: h after the step, or r h */
    const void *weights;
};

static __device__ __forceinline__ unsigned sequence_depth(const struct rnn &k)
{
    return (k.hidden + SEQUENCE_ROWS - 1) / SEQUENCE_ROWS * SEQUENCE_ROWS;
}

/* Weights and states where no unit is are 0. */
template <int gates, class element>
static __device__ __forceinline__ void sequence_load(const struct rnn &k, float4 *states,
                                                     element *weights)
{
    unsigned depth = sequence_depth(k), width = gates * k.hidden;
    const element *r = (const element *)k.r + (size_t)blockIdx.z * k.hidden * width;
    for (unsigned t = threadIdx.x; t < 2 * depth; t += blockDim.x)
        states[t] = make_float4(0, 0, 0, 0);
    for (unsigned t = threadIdx.x; t < depth * k.pitch; t += blockDim.x)
        weights[t] = element{};
    __syncthreads();
    for (unsigned t = threadIdx.x; t < k.hidden * width; t += blockDim.x) {
        unsigned d = t / width, column = t - d * width, g = column / k.hidden;
        weights[d * k.pitch + g * k.band + column - g * k.hidden] = r[t];
    }
}

static __device__ __forceinline__ struct sequence_lane sequence_lane_of(const struct rnn &k)
{
    unsigned lane = threadIdx.x % WARP, part = lane / SEQUENCE_UNITS;
    unsigned unit = threadIdx.x / WARP * SEQUENCE_UNITS + lane % SEQUENCE_UNITS;
    unsigned row = blockIdx.x * SEQUENCE_ROWS + part;
    bool is_there = row < k.batch && unit < k.hidden;
    return {unit, part, row, row < k.batch ? rnn_length_of(k, row) : 0, is_there};
}

/* Steps until all sequences of the block have ended. */
static __device__ __forceinline__ unsigned sequence_longest(unsigned length)
{
    for (int with = WARP / 2; with >= SEQUENCE_UNITS; with /= 2)
        length = max(length, __shfl_xor_sync(all_lanes, length, with));
    return length;
}

template <int gates>
static __device__ __forceinline__ struct sequence_turn
sequence_turn_at(const struct rnn &k, const struct sequence_lane &own, unsigned step)
{
    struct sequence_turn t = {};
    t.line = rnn_line_at(k, own.row, step, own.length);
    bool is_needed = own.is_there && t.line.active;
#pragma unroll
    for (int g = 0; g < gates; g++)
        t.x[g] = is_needed ? t.line.x[own.unit + g * k.hidden] : 0.0f;
    t.keep = is_needed ? rnn_keep(k, t.line) : 1.0f;
    return t;
}

/* A lane's part of the sums of `count` gates of all four sequences; w: its first weight. */
template <int count, class element>
static __device__ __forceinline__ void
sequence_add(const struct rnn &k, const struct sequence_lane &own, const float4 *left,
             const element *w, float4 *part)
{
    unsigned rounds = sequence_depth(k) / SEQUENCE_ROWS, by = SEQUENCE_ROWS * k.pitch;
#pragma unroll 4
    for (unsigned i = 0; i < rounds; i++, w += by) {
        float4 h = left[i * SEQUENCE_ROWS + own.part];
#pragma unroll
        for (int g = 0; g < count; g++) {
            float weight = to_float(w[g * k.band]);
            part[g].x = fmaf(h.x, weight, part[g].x);
            part[g].y = fmaf(h.y, weight, part[g].y);
            part[g].z = fmaf(h.z, weight, part[g].z);
            part[g].w = fmaf(h.w, weight, part[g].w);
        }
    }
}

/* Sums of `count` gates from `first` on, for the lane's sequence. */
template <int count>
static __device__ __forceinline__ void
sequence_sum(const struct rnn &k, const struct sequence_lane &own, const float4 *left,
             const void *weights, unsigned first, float *sum)
{
    float4 part[count] = {};
    unsigned at = own.part * k.pitch + first * k.band + own.unit;
    WITH_ELEMENT(k.type, 1, sequence_add<count>(k, own, left, (const element *)weights + at, part));
    bool high = own.part & 2, odd = own.part & 1;
#pragma unroll
    for (int g = 0; g < count; g++) {
        float even = high ? part[g].z : part[g].x, next = high ? part[g].w : part[g].y;
        even += __shfl_xor_sync(all_lanes, high ? part[g].x : part[g].z, 2 * SEQUENCE_UNITS);
        next += __shfl_xor_sync(all_lanes, high ? part[g].y : part[g].w, 2 * SEQUENCE_UNITS);
        sum[g] = odd ? next : even;
        sum[g] += __shfl_xor_sync(all_lanes, odd ? even : next, SEQUENCE_UNITS);
    }
}

/* The state after a step; m.h is the one before it, of all units. */
template <int cell, int gates>
static __device__ __forceinline__ float
sequence_step(const struct rnn &k, const struct sequence_lane &own, const struct sequence_memory &m,
              const struct sequence_turn &turn, float h, float *c)
{
    float sum[SEQUENCE_GATES] = {};
    if (cell == CELL_GRU_RESET) {
        sequence_sum<2>(k, own, m.h, m.weights, 0, sum);
        float z = turn.keep * vf_sigmoid(turn.x[0] + sum[0]);
        float r = vf_sigmoid(turn.x[1] + sum[1]);
        if (own.is_there)
            ((float *)&m.other[own.unit])[own.part] = r * h;
        __syncthreads();
        sequence_sum<1>(k, own, m.other, m.weights, 2, sum);
        return rnn_mix(z, turn.x[2] + sum[0], h);
    }
    sequence_sum<gates>(k, own, m.h, m.weights, 0, sum);
    if (cell == CELL_LSTM)
        return turn.line.active ? rnn_lstm(turn.x, 1, sum, c) : h;
    float apart = own.is_there ? k.apart[blockIdx.z * k.hidden + own.unit] : 0.0f;
    if (cell == CELL_PLAIN)
        return tanhf(turn.x[0] + sum[0]);
    return rnn_linear(turn.x, 1, sum, apart, h);
}

/* A first or last state of the lane. */
static __device__ __forceinline__ unsigned sequence_state(const struct rnn &k,
                                                          const struct sequence_lane &own)
{
    return rnn_outer_state(k, (blockIdx.z * k.batch + own.row) * k.hidden + own.unit);
}

static __device__ __forceinline__ float
sequence_first(const struct rnn &k, const struct sequence_lane &own, const void *states)
{
    return states && own.is_there ? group_as<1>(k.type, states, sequence_state(k, own)).v[0] : 0.0f;
}

static __device__ __forceinline__ void
sequence_last(const struct rnn &k, const struct sequence_lane &own, void *states, float value)
{
    if (states && own.is_there)
        group_store_as<1>(k.type, states, sequence_state(k, own), {{value}});
}

static __device__ __forceinline__ void sequence_put(const struct rnn &k,
                                                    const struct sequence_lane &own,
                                                    const struct rnn_line &line, float h)
{
    if (k.y && own.is_there)
        group_store_as<1>(k.type, k.y, line.y + own.unit, {{line.active ? h : 0.0f}});
}

/* After a step that makes h from h the two memories change places: who writes the next state has
 * passed a barrier after the last reading of the state before. With a reset gate r h has the
 * other memory, and h is written where all have read it. */
template <int cell, int gates>
__global__ void __launch_bounds__(SEQUENCE_THREADS, 1)
    rnn_sequence(const __grid_constant__ struct rnn k)
{
    KERNEL_BEGIN();
    SHARED_MEMORY(float4, memory);
    unsigned depth = sequence_depth(k);
    void *weights = memory + 2 * depth;
    struct sequence_memory m = {memory, memory + depth, weights};
    struct sequence_lane own = sequence_lane_of(k);
    unsigned longest = sequence_longest(own.length), step = 0;
    float h = sequence_first(k, own, k.initial_h);
    float c = sequence_first(k, own, k.initial_c);
    struct sequence_turn turn = sequence_turn_at<gates>(k, own, 0);
    WITH_ELEMENT(k.type, 1, sequence_load<gates>(k, memory, (element *)weights));
    if (own.is_there)
        ((float *)&m.h[own.unit])[own.part] = h;
    __syncthreads();
    for (; step < longest; step++) {
        struct sequence_turn next = sequence_turn_at<gates>(k, own, step + 1);
        float now = sequence_step<cell, gates>(k, own, m, turn, h, &c);
        h = turn.line.active ? now : h;
        float4 *to = cell == CELL_GRU_RESET ? m.h : m.other;
        if (own.is_there)
            ((float *)&to[own.unit])[own.part] = h;
        m.other = cell == CELL_GRU_RESET ? m.other : m.h;
        m.h = to;
        sequence_put(k, own, turn.line, h);
        turn = next;
        __syncthreads();
    }
    for (; step < k.steps; step++)
        sequence_put(k, own, rnn_line_at(k, own.row, step, own.length), h);
    sequence_last(k, own, k.last_h, h);
    sequence_last(k, own, k.last_c, c);
}

/* ---- host: lengths of lines in shared memory ---- */

static inline void sequence_plan(struct rnn *k)
{
    unsigned units = SEQUENCE_UNITS;
    k->band = (k->hidden + units - 1) / units * units;
    k->pitch = (k->gates * k->band + WARP - 1 - units) / WARP * WARP + units;
}

static inline size_t sequence_bytes(const struct rnn *k, int element_size)
{
    size_t depth = (k->hidden + SEQUENCE_ROWS - 1) / SEQUENCE_ROWS * SEQUENCE_ROWS;
    return depth * (2 * sizeof(float) * SEQUENCE_ROWS + k->pitch * (size_t)element_size);
}

static inline bool sequence_fits(const struct rnn *k, const struct kernel_query *q)
{
    return k->hidden <= SEQUENCE_HIDDEN_MAX &&
           sequence_bytes(k, element_bytes(q->in[X].dtype)) <= q->device->properties.shared_bytes;
}

#endif
