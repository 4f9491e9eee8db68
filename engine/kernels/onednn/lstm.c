/* SPDX-License-Identifier: Apache-2.0
 *
 * LSTM. ONNX orders the gates i, o, f, c; oneDNN i, f, c, o. */
#include "engine/kernels/onednn/lib/rnn.h"

static enum status build(const struct kernel_query *q, struct plan *plan, struct error *why)
{
    struct rnn rnn = {.gates = 4, .order = {0, 2, 3, 1}, .biases = 4};
    dnnl_rnn_desc_t desc;
    struct plan_step *step;
    TRY(rnn_from_query(q, &rnn, why));
    const dnnl_memory_desc_t *start = rnn.has_state ? &rnn.state : NULL;
    DNNL_TRY(dnnl_lstm_forward_desc_init(&desc, dnnl_forward_inference, rnn.direction, &rnn.x,
                                         start, start, &rnn.weights, &rnn.recurrent, &rnn.bias,
                                         &rnn.y, &rnn.state, &rnn.state, 0),
             why);
    TRY(plan_attr(plan, why));
    plan->attr.reference = true; /* what it calls so here is built on its packed GEMM */
    TRY(plan_step(plan, &desc, &step, why));
    if (rnn.has_state)
        step_io(step, DNNL_ARG_SRC_ITER_C, SOURCE_IN, 6, &rnn.state);
    rnn_final_state(q, &rnn, plan, step, DNNL_ARG_DST_ITER_C, 2);
    return rnn_arguments(q, &rnn, plan, step, why);
}

ONEDNN_KERNEL(lstm, build, PLAN_VARIANTS, .ops = OPS("LSTM"), .packs = 1u << 1 | 1u << 2 | 1u << 3);
