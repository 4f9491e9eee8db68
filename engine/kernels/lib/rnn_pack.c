/* SPDX-License-Identifier: Apache-2.0
 * Weights of the kernels of rnn_run.h: where they are and how they are packed. */
#include <string.h>

#include "base/memory.h"
#include "engine/kernels/lib/copy_block.h"
#include "engine/kernels/lib/rnn_run.h"
#include "engine/kernels/lib/simd_square.h"
#include "engine/kernels/lib/workspace.h"

/* R of one launch, and where its blocks of units go. */
struct recurrent {
    const struct kernel_state *state;
    const void *r; /* [gates][H][H] */
    const struct rnn_weights *to;
};

/* `units` rows of depth bf16 as columns of words, which are to_row words long. */
static void turn_words(const uint16_t *from, int64_t units, int64_t depth, float *to,
                       int64_t to_row)
{
    uint32_t *words = (uint32_t *)(void *)to;
    for (int64_t w = 0; w < divide_up(depth, 2); w++)
        memset(to + w * to_row, 0, VL * sizeof(float));
    if (depth % 2 == 0) {
        struct copy_block block = {(const char *)from, (char *)to, depth * 2,
                                   to_row * 4,         units,      depth / 2};
        copy_block(&block, sizeof(*words), false);
        return;
    }
    for (int64_t unit = 0; unit < units; unit++)
        for (int64_t k = 0; k < depth; k++)
            words[k / 2 * to_row + unit] |= (uint32_t)from[unit * depth + k] << k % 2 * 16;
}

/* The same as columns of floats. */
static void turn_widened(const uint16_t *from, int64_t units, int64_t depth, float *to,
                         int64_t to_row)
{
    for (int64_t k = 0; k < depth; k++)
        for (int64_t unit = 0; unit < VL; unit++)
            to[k * to_row + unit] = unit < units ? bfloat_to_float(from[unit * depth + k]) : 0;
}

static void pack_block(void *context, int64_t block, int thread)
{
    const struct recurrent *from = context;
    const struct kernel_state *state = from->state;
    const struct rnn_kernel *kernel = state->kernel;
    int64_t hidden = state->shape.hidden, unit = block * VL;
    int64_t units = hidden - unit < VL ? hidden - unit : VL;
    (void)thread;
    for (int p = 0; p < kernel->phases; p++) {
        int first = kernel->phase_gates[p].first, count = kernel->phase_gates[p].count;
        for (int g = 0; g < count; g++) {
            int64_t at = ((first + g) * hidden + unit) * hidden, row = count * VL;
            float *to = from->to->r[p] + (unit * state->words) * count + g * VL;
            const void *r = float_at(from->r, at, state->bf16);
            if (state->bf16 && state->math == GEMM_F32)
                turn_widened(r, units, hidden, to, row);
            else if (state->bf16)
                turn_words(r, units, hidden, to, row);
            else
                turn_rows((struct turn){r, hidden, to, row}, units, hidden, vf_set1(1.0f));
        }
    }
}

/* bias: x's half, then r's. */
static void pack_bias(const struct kernel_state *state, const void *bias, struct rnn_weights *to)
{
    int64_t hidden = state->shape.hidden, width = state->shape.gates * hidden;
    memset(to->bias, 0, (size_t)gemm_bias_floats(&state->projection) * sizeof(float));
    memset(to->apart, 0, (size_t)(state->blocks * VL) * sizeof(float));
    for (int64_t k = 0; bias && k < width; k++) {
        bool apart = state->kernel->apart && k >= width - hidden;
        float second = float_read(bias, width + k, state->bf16);
        to->bias[k] = float_read(bias, k, state->bf16) + (apart ? 0 : second);
        if (apart)
            to->apart[k - (width - hidden)] = second;
    }
}

/* Places all packed weights from base on, NULL: nowhere; returns their bytes. */
static size_t place_weights(const struct kernel_state *state, char *base, struct rnn_weights *to)
{
    const struct rnn_kernel *kernel = state->kernel;
    size_t at = 0, number = sizeof(float);
    for (int d = 0; d < state->shape.directions; d++, to++) {
        to->w = take_bytes(base, &at, (size_t)gemm_packed_floats(&state->projection) * number);
        to->bias = take_bytes(base, &at, (size_t)gemm_bias_floats(&state->projection) * number);
        to->apart = take_bytes(base, &at, (size_t)(state->blocks * VL) * number);
        for (int p = 0; p < kernel->phases; p++) {
            int64_t panel = state->words * kernel->phase_gates[p].count * VL;
            to->r[p] = take_bytes(base, &at, (size_t)(state->blocks * panel) * number);
        }
    }
    return at;
}

static size_t weight_bytes(const struct kernel_state *state)
{
    struct rnn_weights nowhere[RNN_DIRECTIONS];
    return place_weights(state, NULL, nowhere);
}

size_t rnn_workspace(const struct kernel_state *state)
{
    return state->workspace + (state->changing ? weight_bytes(state) : 0);
}

void rnn_release(struct kernel_state *state)
{
    memory_free(state->packed);
}

enum status rnn_prepare(const struct kernel_query *q, struct kernel_state *state,
                        size_t *packed_bytes, struct error *err)
{
    (void)q;
    if (state->changing)
        return STATUS_OK;
    *packed_bytes = weight_bytes(state);
    state->packed = memory_alloc(*packed_bytes);
    return state->packed ? STATUS_OK : FAIL_NO_MEMORY(err);
}

/* W of one launch, [gates H][I]. */
struct inputs_weights {
    const struct kernel_state *state;
    const void *w;
    float *to;
};

static void pack_words(void *context, int64_t panel, int thread)
{
    const struct inputs_weights *from = context;
    int64_t input = from->state->shape.input;
    struct gemm_source_words words = {
        .b = from->w, .k = input, .row = 1, .column = input, .element = sizeof(uint16_t)};
    (void)thread;
    const struct gemm_plan *plan = &from->state->projection;
    if (plan->size.math == GEMM_F32)
        gemm_pack_widened(plan, &words, panel, panel + 1, from->to);
    else
        gemm_pack_words(plan, &words, panel, panel + 1, from->to, NULL);
}

static void pack_panels(struct inputs_weights *from, struct pool *pool)
{
    const struct kernel_state *state = from->state;
    struct gemm_source_b floats = {
        .b = from->w, .row = 1, .column = state->shape.input, .scale = 1};
    if (state->bf16)
        pool_run(pool, state->projection.panels, pack_words, from);
    else
        gemm_pack(&state->projection, &floats, pool, from->to);
}

void rnn_pack(struct kernel_state *state, const struct kernel_args *args)
{
    const struct rnn_shape *s = &state->shape;
    int64_t width = s->gates * s->hidden;
    const void *bias = state->given >> RNN_BIAS & 1 ? args->in[RNN_BIAS] : NULL;
    char *base = state->packed ? state->packed : (char *)args->workspace + state->workspace;
    place_weights(state, base, state->weights);
    for (int d = 0; d < s->directions; d++) {
        struct rnn_weights *to = &state->weights[d];
        const void *w = float_at(args->in[RNN_W], d * width * s->input, state->bf16);
        const void *r = float_at(args->in[RNN_R], d * width * s->hidden, state->bf16);
        struct recurrent recurrent = {state, r, to};
        struct inputs_weights inputs = {state, w, to->w};
        pack_panels(&inputs, args->pool);
        pool_run(args->pool, state->blocks, pack_block, &recurrent);
        pack_bias(state, bias ? float_at(bias, d * 2 * width, state->bf16) : NULL, to);
    }
}
