/* SPDX-License-Identifier: Apache-2.0
 *
 * What a node between ranks does itself: inputs of AllReduce that were not computed in their place
 * among its outputs are copied there. The rest is the executable's (engine/run/exe_ranks.c), which
 * reads the inputs of the others where they are; where there is one rank they are copied. */
#include "engine/kernels/cuda/lib/query.h"

struct kernel_state {
    const struct kernel_query *q;
    bool nothing; /* is left to do */
};

static enum status plan(const struct kernel_query *q, int, struct kernel_state *s,
                        struct error *why)
{
    if (q->node->post_count)
        return REFUSE(why, "no fused epilogue");
    for (int k = 0; k < q->in_count; k++)
        if (!cuda_host->desc_is_plain(&q->in[k]) || !cuda_host->desc_is_plain(&q->out[k]))
            return REFUSE(why, "only plain tensors");
    s->q = q;
    s->nothing =
        cuda_host->node_int(q->node, "ranks", 1) > 1 && strcmp(q->node->op->name, "AllReduce") != 0;
    return STATUS_OK;
}

static void launch(const struct kernel_state *s, const struct kernel_args *args)
{
    const struct device *device = s->q->device;
    for (int k = 0; k < s->q->in_count && !s->nothing; k++) {
        size_t bytes = desc_bytes(&s->q->out[k]);
        if (bytes && args->in[k] != args->out[k] && (!args->err || args->err->code == STATUS_OK))
            device->kind->copy(device, args->out[k], args->in[k], bytes, COPY_WITHIN, args->stream,
                               args->err);
    }
}

static const char *const ops[] = {"AllGather", "AllReduce",     "AllToAll",
                                  "Broadcast", "ReduceScatter", NULL};

CUDA_KERNEL(unit_copy) = {CUDA_NAME(unit_copy), .ops = ops, CUDA_PLAN, CUDA_HOOK(launch)};
