/* SPDX-License-Identifier: Apache-2.0
 *
 * GRU; the gates have the same order in ONNX (z, r, h) and oneDNN (u, r, o). On some virtual Zen 4
 * machines oneDNN 2.6.3 divides by zero here for batches of 16 and more at 1024 units (the blocking
 * of its packed GEMM): only the trial in a forked child, engine/run/probe.h, makes it fit to offer.
 */
#include "engine/kernels/onednn/lib/rnn.h"

static enum status build(const struct kernel_query *q, struct plan *plan, struct error *why)
{
    bool late = onednn_host->node_int(q->node, "linear_before_reset", 0) != 0;
    struct rnn rnn = {.gates = 3, .order = {0, 1, 2}, .biases = late ? 4 : 3};
    dnnl_rnn_desc_t desc;
    struct plan_step *step;
    TRY(rnn_from_query(q, &rnn, why));
    const dnnl_memory_desc_t *start = rnn.has_state ? &rnn.state : NULL;
    if (late)
        DNNL_TRY(dnnl_lbr_gru_forward_desc_init(&desc, dnnl_forward_inference, rnn.direction,
                                                &rnn.x, start, &rnn.weights, &rnn.recurrent,
                                                &rnn.bias, &rnn.y, &rnn.state, 0),
                 why);
    else
        DNNL_TRY(dnnl_gru_forward_desc_init(&desc, dnnl_forward_inference, rnn.direction, &rnn.x,
                                            start, &rnn.weights, &rnn.recurrent, &rnn.bias, &rnn.y,
                                            &rnn.state, 0),
                 why);
    TRY(plan_attr(plan, why));
    plan->attr.reference = true; /* what it calls so here is built on its packed GEMM */
    TRY(plan_step(plan, &desc, &step, why));
    return rnn_arguments(q, &rnn, plan, step, why);
}

ONEDNN_KERNEL(gru, build, 1, .ops = OPS("GRU"), .packs = 1u << 1 | 1u << 2 | 1u << 3);
