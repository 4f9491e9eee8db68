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

SIMD_INLINE void store_state(const struct rnn_line *line, int64_t unit, vm lanes, vf z,
                             vf candidate)
{
    vf old = vf_load_m(line->h + unit, lanes);
    vf state = vf_fma(z, vf_sub(old, candidate), candidate); /* (1 - z) candidate + z old */
    vf_store_m(line->next + unit, lanes, state);
    if (line->y)
        vf_store_m(line->y + unit, lanes, state);
}

/* ---- linear_before_reset; `rows` is a constant here and below ---- */

SIMD_INLINE void linear_tile(const struct rnn_step_job *step, int64_t block, int64_t first,
                             int rows)
{
    int64_t hidden = step->state->shape.hidden, unit = block * VL;
    const struct rnn_line *lines = step->lines + first;
    vm lanes = vm_first(hidden - unit);
    const float *h[ROWS_MAX];
    vf sums[ROWS_MAX][4];
    for (int r = 0; r < rows; r++) {
        h[r] = lines[r].h;
        sums[r][GATE_Z] = vf_load_m(lines[r].x + unit, lanes);
        sums[r][GATE_R] = vf_load_m(lines[r].x + hidden + unit, lanes);
        sums[r][GATE_H] = vf_load(step->weights->apart + unit);
    }
    rnn_multiply(h, step->weights->r[0] + unit * hidden * GATES, hidden, sums, rows, GATES);
    for (int r = 0; r < rows; r++) {
        vf reset = vf_sigmoid(sums[r][GATE_R]);
        vf x = vf_load_m(lines[r].x + 2 * hidden + unit, lanes);
        vf candidate = vf_tanh(vf_fma(reset, sums[r][GATE_H], x));
        store_state(&lines[r], unit, lanes, vf_sigmoid(sums[r][GATE_Z]), candidate);
    }
}

static void linear_phase(const struct rnn_step_job *step, int64_t block, int64_t first,
                         int64_t last)
{
    for (; first + ROWS_3 <= last; first += ROWS_3)
        linear_tile(step, block, first, ROWS_3);
    for (; first + 2 <= last; first += 2)
        linear_tile(step, block, first, 2);
    for (; first < last; first++)
        linear_tile(step, block, first, 1);
}

/* ---- reset before the product ---- */

SIMD_INLINE void gates_tile(const struct rnn_step_job *step, int64_t block, int64_t first, int rows)
{
    int64_t hidden = step->state->shape.hidden, unit = block * VL;
    const struct rnn_line *lines = step->lines + first;
    vm lanes = vm_first(hidden - unit);
    const float *h[ROWS_MAX];
    vf sums[ROWS_MAX][4];
    for (int r = 0; r < rows; r++) {
        h[r] = lines[r].h;
        sums[r][GATE_Z] = vf_load_m(lines[r].x + unit, lanes);
        sums[r][GATE_R] = vf_load_m(lines[r].x + hidden + unit, lanes);
    }
    rnn_multiply(h, step->weights->r[0] + unit * hidden * 2, hidden, sums, rows, 2);
    for (int r = 0; r < rows; r++) {
        vf old = vf_load_m(lines[r].h + unit, lanes);
        vf z = vf_mul(vf_sigmoid(sums[r][GATE_Z]), vf_set1(lines[r].keep));
        vf_store_m(lines[r].z + unit, lanes, z);
        vf_store_m(lines[r].c + unit, lanes, vf_mul(vf_sigmoid(sums[r][GATE_R]), old));
    }
}

SIMD_INLINE void candidate_tile(const struct rnn_step_job *step, int64_t block, int64_t first,
                                int rows)
{
    int64_t hidden = step->state->shape.hidden, unit = block * VL;
    const struct rnn_line *lines = step->lines + first;
    vm lanes = vm_first(hidden - unit);
    const float *reset[ROWS_MAX];
    vf sums[ROWS_MAX][4];
    for (int r = 0; r < rows; r++) {
        reset[r] = lines[r].c;
        sums[r][0] = vf_load_m(lines[r].x + 2 * hidden + unit, lanes);
    }
    rnn_multiply(reset, step->weights->r[1] + unit * hidden, hidden, sums, rows, 1);
    for (int r = 0; r < rows; r++)
        store_state(&lines[r], unit, lanes, vf_load_m(lines[r].z + unit, lanes),
                    vf_tanh(sums[r][0]));
}

static void gates_phase(const struct rnn_step_job *step, int64_t block, int64_t first, int64_t last)
{
    for (; first + ROWS_2 <= last; first += ROWS_2)
        gates_tile(step, block, first, ROWS_2);
    for (; first + 4 <= last; first += 4)
        gates_tile(step, block, first, 4);
    for (; first < last; first++)
        gates_tile(step, block, first, 1);
}

static void candidate_phase(const struct rnn_step_job *step, int64_t block, int64_t first,
                            int64_t last)
{
    for (; first + ROWS_1 <= last; first += ROWS_1)
        candidate_tile(step, block, first, ROWS_1);
    for (; first + 4 <= last; first += 4)
        candidate_tile(step, block, first, 4);
    for (; first < last; first++)
        candidate_tile(step, block, first, 1);
}

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
    (void)variant;
    return rnn_plan(q, kernel_for(q), state, why);
}

REGISTER_KERNEL(gru_sequence) = {NATIVE(gru_sequence), .ops = OPS("GRU", "AUGRU"), .plan = plan,
                                 RNN_HOOKS};
