/* SPDX-License-Identifier: Apache-2.0
 *
 * Every elementwise operator of floats, their fused epilogues and Chain, any layout and broadcast,
 * through one interpreter of vector loops over tiles of the first cache (lib/chain_run.h).
 */
#include <stdlib.h>

#include "engine/graph/kernel.h"
#include "engine/kernels/lib/chain_run.h"

struct kernel_state {
    struct chain_plan plan;
};

static enum status supports(const struct kernel_query *q, struct error *why)
{
    struct chain_plan plan;
    return SIMD_FN(chain_plan_make)(q, &plan, why);
}

static size_t workspace(const struct kernel_query *q, int variant)
{
    (void)variant;
    struct chain_plan plan;
    if (SIMD_FN(chain_plan_make)(q, &plan, NULL) != STATUS_OK)
        return 0;
    return SIMD_FN(chain_workspace)(&plan, q->threads);
}

static enum status prepare(const struct kernel_query *q, int variant, struct kernel_state **state,
                           size_t *state_bytes, struct error *err)
{
    (void)variant;
    struct kernel_state *made = calloc(1, sizeof(*made));
    if (!made)
        return FAIL_NO_MEMORY(err);
    *state = made;
    *state_bytes = sizeof(*made);
    return SIMD_FN(chain_plan_make)(q, &made->plan, err);
}

static void launch(const struct kernel_state *state, const struct kernel_query *q,
                   const struct kernel_args *args)
{
    (void)q;
    SIMD_FN(chain_run)(&state->plan, args);
}

static void release(struct kernel_state *state)
{
    free(state);
}

REGISTER_KERNEL(elementwise_tiles) = {
    NATIVE(elementwise_tiles),
    .ops = OPS("Abs", "Add", "Ceil", "Celu", "Chain", "Clip", "Cos", "Div", "Elu", "Erf", "Exp",
               "Floor", "Gelu", "HardSigmoid", "HardSwish", "LeakyRelu", "Log", "Max", "Mean",
               "Min", "Mish", "Mul", "Neg", "PRelu", "Pow", "Reciprocal", "Relu", "Round", "Selu",
               "Shrink", "Sigmoid", "Sign", "Sin", "Softplus", "Softsign", "Sqrt", "Sub", "Sum",
               "Tanh", "ThresholdedRelu"),
    .supports = supports,
    .old_workspace = workspace,
    .old_prepare = prepare,
    .old_launch = launch,
    .release = release,
};
