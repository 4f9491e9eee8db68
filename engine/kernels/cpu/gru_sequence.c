/* SPDX-License-Identifier: Apache-2.0
 *
 * GRU over whole sequences (lib/rnn_run.h). With linear_before_reset all three gates come from one
 * pass over R; else the reset gate must be known for all units before the candidate's product, so
 * that a step has two phases. AUGRU is that GRU with its update gate scaled.
 */
#include "engine/graph/op.h"
#include "engine/kernels/lib/rnn_run.h"
#include "engine/kernels/lib/simd_math.h"

enum { GATE_Z, GATE_R, GATE_H, GATES };
enum { ROWS_3 = VL == 16 ? 8 : 4, ROWS_2 = VL == 16 ? 8 : 6, ROWS_1 = 8 };
enum { ROWS_MAX = 8 }; /* more pointers do not fit the registers */

SIMD_INLINE void mix_states(enum gemm_math math, const struct rnn_step_job *step,
                            const struct rnn_line *line, int64_t unit, vm lanes, vf z, vf candidate)
{
    vf old = vf_load_m(line->h + unit, lanes);
    vf state = vf_fma(z, vf_sub(old, candidate), candidate); /* (1 - z) candidate + z old */
    rnn_store_state(math, step, line, unit, lanes, state);
}

/* ---- linear_before_reset; `rows` and `math` are constants here and below ---- */

SIMD_INLINE void linear_tile(const struct rnn_step_job *step, int64_t block, int64_t first,
                             int rows, enum gemm_math math)
{
    int64_t hidden = step->state->shape.hidden, unit = block * VL, words = step->state->words;
    const struct rnn_line *lines = step->lines + first;
    vm lanes = vm_first(hidden - unit);
    const void *h[ROWS_MAX];
    vf sums[ROWS_MAX][4];
    for (int r = 0; r < rows; r++) {
        h[r] = rnn_left(math, &lines[r]);
        sums[r][GATE_Z] = vf_load_m(lines[r].x + unit, lanes);
        sums[r][GATE_R] = vf_load_m(lines[r].x + hidden + unit, lanes);
        sums[r][GATE_H] = vf_load(step->weights->apart + unit);
    }
    rnn_multiply(math, h, step->weights->r[0] + unit * words * GATES, words, sums, rows, GATES);
    for (int r = 0; r < rows; r++) {
        vf reset = vf_sigmoid(sums[r][GATE_R]);
        vf x = vf_load_m(lines[r].x + 2 * hidden + unit, lanes);
        vf candidate = vf_tanh(vf_fma(reset, sums[r][GATE_H], x));
        mix_states(math, step, &lines[r], unit, lanes, vf_sigmoid(sums[r][GATE_Z]), candidate);
    }
}

SIMD_INLINE void linear_rows(const struct rnn_step_job *step, int64_t block, int64_t first,
                             int64_t last, enum gemm_math math)
{
    for (; first + ROWS_3 <= last; first += ROWS_3)
        linear_tile(step, block, first, ROWS_3, math);
    for (; first + 2 <= last; first += 2)
        linear_tile(step, block, first, 2, math);
    for (; first < last; first++)
        linear_tile(step, block, first, 1, math);
}
RNN_PHASE(linear_phase, linear_rows)

/* ---- reset before the product ---- */

SIMD_INLINE void gates_tile(const struct rnn_step_job *step, int64_t block, int64_t first, int rows,
                            enum gemm_math math)
{
    int64_t hidden = step->state->shape.hidden, unit = block * VL, words = step->state->words;
    const struct rnn_line *lines = step->lines + first;
    vm lanes = vm_first(hidden - unit);
    const void *h[ROWS_MAX];
    vf sums[ROWS_MAX][4];
    for (int r = 0; r < rows; r++) {
        h[r] = rnn_left(math, &lines[r]);
        sums[r][GATE_Z] = vf_load_m(lines[r].x + unit, lanes);
        sums[r][GATE_R] = vf_load_m(lines[r].x + hidden + unit, lanes);
    }
    rnn_multiply(math, h, step->weights->r[0] + unit * words * 2, words, sums, rows, 2);
    for (int r = 0; r < rows; r++) {
        vf old = vf_load_m(lines[r].h + unit, lanes);
        vf z = vf_mul(vf_sigmoid(sums[r][GATE_Z]), vf_set1(lines[r].keep));
        vf_store_m(lines[r].z + unit, lanes, z);
        vf reset = vf_mul(vf_sigmoid(sums[r][GATE_R]), old);
        if (math == GEMM_BF16_DOT)
            vf_store_bf16_m(lines[r].narrow_c + unit, lanes, reset);
        else
            vf_store_m(lines[r].c + unit, lanes, reset);
    }
}

SIMD_INLINE void candidate_tile(const struct rnn_step_job *step, int64_t block, int64_t first,
                                int rows, enum gemm_math math)
{
    int64_t hidden = step->state->shape.hidden, unit = block * VL, words = step->state->words;
    const struct rnn_line *lines = step->lines + first;
    vm lanes = vm_first(hidden - unit);
    const void *reset[ROWS_MAX];
    vf sums[ROWS_MAX][4];
    for (int r = 0; r < rows; r++) {
        reset[r] = math == GEMM_BF16_DOT ? (const void *)lines[r].narrow_c : lines[r].c;
        sums[r][0] = vf_load_m(lines[r].x + 2 * hidden + unit, lanes);
    }
    rnn_multiply(math, reset, step->weights->r[1] + unit * words, words, sums, rows, 1);
    for (int r = 0; r < rows; r++)
        mix_states(math, step, &lines[r], unit, lanes, vf_load_m(lines[r].z + unit, lanes),
                   vf_tanh(sums[r][0]));
}

SIMD_INLINE void gates_rows(const struct rnn_step_job *step, int64_t block, int64_t first,
                            int64_t last, enum gemm_math math)
{
    for (; first + ROWS_2 <= last; first += ROWS_2)
        gates_tile(step, block, first, ROWS_2, math);
    for (; first + 4 <= last; first += 4)
        gates_tile(step, block, first, 4, math);
    for (; first < last; first++)
        gates_tile(step, block, first, 1, math);
}
RNN_PHASE(gates_phase, gates_rows)

SIMD_INLINE void candidate_rows(const struct rnn_step_job *step, int64_t block, int64_t first,
                                int64_t last, enum gemm_math math)
{
    for (; first + ROWS_1 <= last; first += ROWS_1)
        candidate_tile(step, block, first, ROWS_1, math);
    for (; first + 4 <= last; first += 4)
        candidate_tile(step, block, first, 4, math);
    for (; first < last; first++)
        candidate_tile(step, block, first, 1, math);
}
RNN_PHASE(candidate_phase, candidate_rows)

static const char *const activations[] = {"Sigmoid", "Tanh", NULL};

static const struct rnn_kernel linear_gru = {.gates = GATES,
                                             .phases = 1,
                                             .phase_gates = {{0, GATES}},
                                             .phase = {linear_phase},
                                             .apart = true,
                                             .activations = activations};

static const struct rnn_kernel reset_gru = {.gates = GATES,
                                            .phases = 2,
                                            .phase_gates = {{GATE_Z, 2}, {GATE_H, 1}},
                                            .phase = {gates_phase, candidate_phase},
                                            .activations = activations};

static const struct rnn_kernel attention_gru = {.gates = GATES,
                                                .phases = 2,
                                                .phase_gates = {{GATE_Z, 2}, {GATE_H, 1}},
                                                .phase = {gates_phase, candidate_phase},
                                                .attention = true,
                                                .activations = activations};

static const struct rnn_kernel *kernel_for(const struct kernel_query *q)
{
    if (strcmp(q->node->op->name, "AUGRU") == 0)
        return &attention_gru;
    return node_int(q->node, "linear_before_reset", 0) ? &linear_gru : &reset_gru;
}

static enum status plan(const struct kernel_query *q, int variant, struct kernel_state *state,
                        struct error *why)
{
    return rnn_plan(q, kernel_for(q), variant, state, why);
}

REGISTER_KERNEL(gru_sequence) = {NATIVE(gru_sequence), .ops = OPS("GRU", "AUGRU"), .plan = plan,
                                 RNN_HOOKS};
