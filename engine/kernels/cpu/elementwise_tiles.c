/* SPDX-License-Identifier: Apache-2.0
 *
 * Every elementwise operator of floats, their fused epilogues and Chain, any layout and broadcast,
 * through one interpreter of vector loops over tiles of the first cache (lib/chain_run.h).
 */
#include "engine/graph/kernel.h"
#include "engine/kernels/lib/chain_run.h"

struct kernel_state {
    struct chain_plan plan;
    size_t workspace;
};

static enum status plan(const struct kernel_query *q, int variant, struct kernel_state *s,
                        struct error *why)
{
    (void)variant;
    TRY(SIMD_FN(chain_plan_make)(q, &s->plan, why));
    s->workspace = SIMD_FN(chain_workspace)(&s->plan, q->threads);
    return STATUS_OK;
}

static size_t workspace(const struct kernel_state *s)
{
    return s->workspace;
}

static void launch(const struct kernel_state *state, const struct kernel_args *args)
{
    SIMD_FN(chain_run)(&state->plan, args);
}

REGISTER_KERNEL(elementwise_tiles) = {
    NATIVE(elementwise_tiles),
    .elementwise = true,
    .state_size = sizeof(struct kernel_state),
    .plan = plan,
    .workspace = workspace,
    .launch = launch,
};
