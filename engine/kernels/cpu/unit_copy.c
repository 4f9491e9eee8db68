/* SPDX-License-Identifier: Apache-2.0
 *
 * What a node between ranks does itself: inputs of AllReduce that were not computed in their place
 * among its outputs are copied there. The rest is the executable's (engine/run/exe_ranks.c), which
 * reads the inputs of the others where they are; where there is one rank they are copied.
 */
#include <string.h>

#include "base/numbers/integers.h"
#include "engine/graph/kernel.h"
#include "engine/graph/op.h"
#include "engine/kernels/lib/copy_bytes.h"

enum { TILE_BYTES = 128 << 10 };

/* The plan; a launch completes a copy of it. */
struct kernel_state {
    const struct kernel_query *q;
    bool nothing; /* is left to do */
    const char *src;
    char *dst;
    int64_t bytes;
};

static enum status plan(const struct kernel_query *q, int variant, struct kernel_state *s,
                        struct error *why)
{
    (void)variant;
    if (q->node->post_count)
        return UNSUPPORTED(why, "no fused epilogue");
    for (int k = 0; k < q->in_count; k++)
        if (!desc_is_plain(&q->in[k]) || !desc_is_plain(&q->out[k]))
            return UNSUPPORTED(why, "only plain tensors");
    s->q = q;
    s->nothing = node_int(q->node, "ranks", 1) > 1 && strcmp(q->node->op->name, "AllReduce") != 0;
    return STATUS_OK;
}

static void copy_tile(void *context, int64_t tile, int thread)
{
    (void)thread;
    const struct kernel_state *job = context;
    int64_t start = tile * TILE_BYTES, left = job->bytes - start;
    copy_run(job->dst + start, job->src + start, left < TILE_BYTES ? left : TILE_BYTES);
}

static void launch(const struct kernel_state *s, const struct kernel_args *args)
{
    struct kernel_state job = *s;
    if (s->nothing)
        return;
    for (int k = 0; k < s->q->in_count; k++) {
        job.src = args->in[k];
        job.dst = args->out[k];
        job.bytes = (int64_t)desc_bytes(&s->q->out[k]);
        if (job.src != job.dst)
            pool_run(args->pool, divide_up(job.bytes, TILE_BYTES), copy_tile, &job);
    }
}

REGISTER_KERNEL(unit_copy) = {
    NATIVE(unit_copy),
    .ops = OPS("AllReduce", "AllGather", "AllToAll", "Broadcast", "ReduceScatter"),
    .state_size = sizeof(struct kernel_state),
    .plan = plan,
    .launch = launch,
};
