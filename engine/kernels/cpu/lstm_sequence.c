/* SPDX-License-Identifier: Apache-2.0
 *
 * LSTM over whole sequences (lib/rnn_run.h): the sums of the four gates of VL units are vectors of
 * one tile, so the cell is computed on them without a store in between.
 */
#include "engine/kernels/lib/rnn_run.h"
#include "engine/kernels/lib/simd_math.h"

enum { GATE_I, GATE_O, GATE_F, GATE_C, GATES };
enum { ROWS = VL == 16 ? 6 : 3 }; /* times 4 sums, and the registers are full */

/* `rows` and `math` are constants. */
SIMD_INLINE void tile(const struct rnn_step_job *step, int64_t block, int64_t first, int rows,
                      enum gemm_math math)
{
    int64_t hidden = step->state->shape.hidden, unit = block * VL, words = step->state->words;
    const struct rnn_line *lines = step->lines + first;
    const float *panel = step->weights->r[0] + unit * words * GATES;
    vm lanes = vm_first(hidden - unit);
    const void *h[ROWS];
    vf sums[ROWS][4];
    for (int r = 0; r < rows; r++) {
        h[r] = rnn_left(math, &lines[r]);
        for (int g = 0; g < GATES; g++)
            sums[r][g] = vf_load_m(lines[r].x + g * hidden + unit, lanes);
    }
    rnn_multiply(math, h, panel, words, sums, rows, GATES);
    for (int r = 0; r < rows; r++) {
        vf kept = vf_mul(vf_sigmoid(sums[r][GATE_F]), vf_load_m(lines[r].c + unit, lanes));
        vf c = vf_fma(vf_sigmoid(sums[r][GATE_I]), vf_tanh(sums[r][GATE_C]), kept);
        vf state = vf_mul(vf_sigmoid(sums[r][GATE_O]), vf_tanh(c));
        vf_store_m(lines[r].c + unit, lanes, c);
        rnn_store_state(math, step, &lines[r], unit, lanes, state);
    }
}

SIMD_INLINE void rows(const struct rnn_step_job *step, int64_t block, int64_t first, int64_t last,
                      enum gemm_math math)
{
    for (; first + ROWS <= last; first += ROWS)
        tile(step, block, first, ROWS, math);
    for (; first + 2 <= last; first += 2)
        tile(step, block, first, 2, math);
    for (; first < last; first++)
        tile(step, block, first, 1, math);
}
RNN_PHASE(phase, rows)

static const char *const activations[] = {"Sigmoid", "Tanh", "Tanh", NULL};

static const struct rnn_kernel lstm = {.gates = GATES,
                                       .phases = 1,
                                       .phase_gates = {{0, GATES}},
                                       .phase = {phase},
                                       .memory = true,
                                       .activations = activations};

static enum status plan(const struct kernel_query *q, int variant, struct kernel_state *state,
                        struct error *why)
{
    return rnn_plan(q, &lstm, variant, state, why);
}

REGISTER_KERNEL(lstm_sequence) = {NATIVE(lstm_sequence), .ops = OPS("LSTM"), .plan = plan,
                                  RNN_HOOKS};
