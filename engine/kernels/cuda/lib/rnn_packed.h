/* SPDX-License-Identifier: Apache-2.0
 *
 * The weights of a recurrent network as the device keeps them: biases in f32, then W and R of every
 * direction as [depth][gates H] in the type of x, so that the threads of a warp, 32 neighbouring
 * units, read beside each other. */
#ifndef ENGINE_KERNELS_CUDA_LIB_RNN_PACKED_H
#define ENGINE_KERNELS_CUDA_LIB_RNN_PACKED_H

#include "engine/kernels/cuda/lib/rnn.h"

/* [rows, columns] to [columns, rows]. */
template <class word>
static inline void rnn_turn(const word *from, word *to, size_t rows, size_t columns)
{
    for (size_t i = 0; i < rows; i++)
        for (size_t j = 0; j < columns; j++)
            to[j * rows + i] = from[i * columns + j];
}

/* Both halves are added but for the last gate where its product is scaled by the reset gate. */
static inline void rnn_add_bias(const struct rnn *k, const float *given, float *bias, float *apart)
{
    size_t width = (size_t)k->gates * k->hidden;
    for (size_t i = 0; given && i < width; i++) {
        bool is_apart = k->cell == CELL_GRU_LINEAR && i >= width - k->hidden;
        bias[i] = given[i] + (is_apart ? 0 : given[width + i]);
        if (is_apart)
            apart[i - (width - k->hidden)] = given[width + i];
    }
}

/* What is packed, one after the other: biases in f32, then w and r in the type of x. */
struct rnn_parts {
    size_t bias, apart, w, r, count; /* elements; count: in 4 bytes all together */
};

static inline struct rnn_parts rnn_parts_of(const struct rnn *k, size_t size)
{
    size_t width = (size_t)k->gates * k->hidden * k->directions;
    struct rnn_parts p = {width, (size_t)k->directions * k->hidden, width * k->input,
                          width * k->hidden, 0};
    p.count = p.bias + p.apart + (p.w + p.r) * size / sizeof(float) + 1;
    return p;
}

static inline bool rnn_pack_biases(const struct kernel_query *q, const struct rnn *k, float *packed)
{
    size_t width = (size_t)k->gates * k->hidden, count = k->directions * 2 * width;
    if (!input_given(q, BIAS))
        return true;
    float *given = (float *)malloc(count * sizeof(*given)), *apart = packed + count / 2;
    if (!given)
        return false;
    floats_load(q->in[BIAS].dtype, q->fixed[BIAS], given, (int64_t)count);
    for (size_t d = 0; d < k->directions; d++)
        rnn_add_bias(k, given + d * 2 * width, packed + d * width, apart + d * k->hidden);
    free(given);
    return true;
}

template <class word>
static inline void rnn_pack_weights(const struct kernel_query *q, const struct rnn *k, word *packed)
{
    size_t width = (size_t)k->gates * k->hidden, each[] = {width * k->input, width * k->hidden};
    word *r = packed + k->directions * each[0];
    for (size_t d = 0; d < k->directions; d++) {
        rnn_turn((const word *)q->fixed[W] + d * each[0], packed + d * each[0], width, k->input);
        rnn_turn((const word *)q->fixed[R] + d * each[1], r + d * each[1], width, k->hidden);
    }
}

/* NULL: out of memory. */
static inline float *rnn_pack(const struct kernel_query *q, const struct rnn *k,
                              const struct rnn_parts *p)
{
    float *packed = (float *)calloc(p->count, sizeof(float));
    if (!packed || !rnn_pack_biases(q, k, packed)) {
        free(packed);
        return NULL;
    }
    float *weights = packed + p->bias + p->apart;
    if (q->in[X].dtype == DTYPE_F32)
        rnn_pack_weights(q, k, weights);
    else
        rnn_pack_weights(q, k, (uint16_t *)weights);
    return packed;
}

#endif
