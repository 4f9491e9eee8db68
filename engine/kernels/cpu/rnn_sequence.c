/* SPDX-License-Identifier: Apache-2.0
 * The plain recurrent layer h' = tanh(x W' + h R' + bias) over whole sequences (lib/rnn_run.h). */
#include "engine/kernels/lib/rnn_run.h"
#include "engine/kernels/lib/simd_math.h"

enum { ROWS = 8 };

/* `rows` and `math` are constants. */
SIMD_INLINE void tile(const struct rnn_step_job *step, int64_t block, int64_t first, int rows,
                      enum gemm_math math)
{
    int64_t hidden = step->state->shape.hidden, unit = block * VL, words = step->state->words;
    const struct rnn_line *lines = step->lines + first;
    vm lanes = vm_first(hidden - unit);
    const void *h[ROWS];
    vf sums[ROWS][4];
    for (int r = 0; r < rows; r++) {
        h[r] = rnn_left(math, &lines[r]);
        sums[r][0] = vf_load_m(lines[r].x + unit, lanes);
    }
    rnn_multiply(math, h, step->weights->r[0] + unit * words, words, sums, rows, 1);
    for (int r = 0; r < rows; r++) {
        vf state = vf_tanh(sums[r][0]);
        rnn_store_state(math, step, &lines[r], unit, lanes, state);
    }
}

SIMD_INLINE void rows(const struct rnn_step_job *step, int64_t block, int64_t first, int64_t last,
                      enum gemm_math math)
{
    for (; first + ROWS <= last; first += ROWS)
        tile(step, block, first, ROWS, math);
    for (; first + 4 <= last; first += 4)
        tile(step, block, first, 4, math);
    for (; first < last; first++)
        tile(step, block, first, 1, math);
}
RNN_PHASE(phase, rows)

static const char *const activations[] = {"Tanh", NULL};

static const struct rnn_kernel plain = {.gates = 1,
                                        .phases = 1,
                                        .phase_gates = {{0, 1}},
                                        .phase = {phase},
                                        .delicate = true,
                                        .activations = activations};

static enum status plan(const struct kernel_query *q, int variant, struct kernel_state *state,
                        struct error *why)
{
    return rnn_plan(q, &plain, variant, state, why);
}

REGISTER_KERNEL(rnn_sequence) = {NATIVE(rnn_sequence), .ops = OPS("RNN"), .plan = plan, RNN_HOOKS};
