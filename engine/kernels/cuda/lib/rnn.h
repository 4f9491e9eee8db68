/* SPDX-License-Identifier: Apache-2.0
 *
 * LSTM, GRU, AUGRU and RNN: what a launch knows, where a sequence's step lies, and the cells. */
#ifndef ENGINE_KERNELS_CUDA_LIB_RNN_H
#define ENGINE_KERNELS_CUDA_LIB_RNN_H

#include "engine/kernels/cuda/lib/math.h"
#include "engine/kernels/cuda/lib/query.h"

enum { X, W, R, BIAS, LENGTHS, H, C, ATTENTION = C, PEEPHOLE }; /* inputs */
enum cell { CELL_LSTM, CELL_GRU_LINEAR, CELL_GRU_RESET, CELL_PLAIN };

struct rnn {
    const void *x, *w, *r; /* w and r packed, of the type of x, as are: */
    const void *initial_h, *initial_c, *attention;
    void *y, *last_h, *last_c; /* may be NULL */
    const float *bias, *apart; /* packed; apart: recurrent bias of the last gate */
    const void *lengths;
    float *projected, *h[2], *c, *update, *reset_h; /* workspace */
    unsigned steps, batch, input, hidden, directions, gates;
    unsigned row_warps;   /* of a block of a step: lib/skinny.h */
    unsigned band, pitch; /* in shared memory, from a gate and a line of R to the next */
    unsigned step;
    int cell, type;
    bool wide_lengths, batch_first, backward;
};

/* ---- places; blockIdx.z is the direction ---- */

/* Where the state at `at` of [directions, batch, hidden] lies in an input or output. */
static __device__ __forceinline__ unsigned rnn_outer_state(const struct rnn &k, unsigned at)
{
    unsigned unit = at % k.hidden, line = at / k.hidden, b = line % k.batch, d = line / k.batch;
    return k.batch_first ? (b * k.directions + d) * k.hidden + unit : at;
}

static __device__ __forceinline__ unsigned rnn_length_of(const struct rnn &k, unsigned b)
{
    int64_t length = k.lengths ? index_at(k.lengths, k.wide_lengths, b) : k.steps;
    return length < 0 ? 0 : length > k.steps ? k.steps : (unsigned)length;
}

/* A step of a sequence in a direction. */
struct rnn_line {
    bool active;  /* it has not ended */
    unsigned row; /* of x and of the projection */
    size_t state, y;
    const float *x; /* projection of its gates */
};

static __device__ __forceinline__ struct rnn_line rnn_line_at(const struct rnn &k, unsigned b,
                                                              unsigned step, unsigned length)
{
    struct rnn_line l;
    unsigned d = blockIdx.z, time = step;
    l.active = step < length;
    if (l.active && (k.backward || d == 1))
        time = length - 1 - step;
    l.row = k.batch_first ? b * k.steps + time : time * k.batch + b;
    l.state = (size_t)(d * k.batch + b) * k.hidden;
    l.y = (size_t)(k.batch_first ? (b * k.steps + time) * k.directions + d
                                 : (time * k.directions + d) * k.batch + b) *
          k.hidden;
    l.x = k.projected + ((size_t)d * k.steps * k.batch + l.row) * k.gates * k.hidden;
    return l;
}

/* What AUGRU leaves of the update gate. */
static __device__ __forceinline__ float rnn_keep(const struct rnn &k, const struct rnn_line &l)
{
    return k.attention && l.active ? 1 - group_as<1>(k.type, k.attention, l.row).v[0] : 1.0f;
}

/* ---- cells: x are a unit's projections, `band` from one gate to the next, sum those of h ---- */

static __device__ __forceinline__ float rnn_lstm(const float *x, unsigned band, const float *sum,
                                                 float *c)
{
    float i = vf_sigmoid(x[0] + sum[0]), o = vf_sigmoid(x[band] + sum[1]);
    float forget = vf_sigmoid(x[2 * band] + sum[2]);
    *c = forget * *c + i * tanhf(x[3 * band] + sum[3]);
    return o * tanhf(*c);
}

/* z: the update gate. */
static __device__ __forceinline__ float rnn_mix(float z, float candidate, float h)
{
    return (1 - z) * tanhf(candidate) + z * h;
}

/* apart: the recurrent bias of the candidate. */
static __device__ __forceinline__ float rnn_linear(const float *x, unsigned band, const float *sum,
                                                   float apart, float h)
{
    float z = vf_sigmoid(x[0] + sum[0]), r = vf_sigmoid(x[band] + sum[1]);
    return rnn_mix(z, x[2 * band] + r * (sum[2] + apart), h);
}

#endif
