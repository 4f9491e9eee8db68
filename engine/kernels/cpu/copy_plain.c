/* SPDX-License-Identifier: Apache-2.0
 *
 * Operators that change at most the name of memory, where it cannot simply be renamed: all bytes to
 * the same places. Results above 16 MiB are stored past the caches, which saves reading their lines
 * first. This is the smallest kernel, and the template for a new one.
 */
#include "base/numbers/integers.h"
#include "engine/graph/kernel.h"
#include "engine/graph/op.h"
#include "engine/kernels/lib/copy_bytes.h"

enum { TILE_BYTES = 128 << 10 };

struct kernel_state {
    int64_t bytes;
};

static enum status plan(const struct kernel_query *q, int variant, struct kernel_state *state,
                        struct error *why)
{
    (void)variant;
    const struct desc *in = &q->in[0], *out = &q->out[0];
    if (q->node->post_count)
        return UNSUPPORTED(why, "no fused epilogue");
    if (q->out_count > 1 && q->out[1].dtype != DTYPE_NONE)
        return UNSUPPORTED(why, "only one output");
    bool same = desc_is_dense(in) && desc_is_dense(out) && desc_same_memory(in, out);
    if (!same && !(desc_is_plain(in) && desc_is_plain(out)))
        return UNSUPPORTED(why, "input and output differ in memory order");
    state->bytes = (int64_t)desc_bytes(out);
    return STATUS_OK;
}

struct job {
    const char *src;
    char *dst;
    int64_t bytes;
};

static void copy_tile(void *context, int64_t tile, int thread)
{
    (void)thread;
    const struct job *job = context;
    int64_t start = tile * TILE_BYTES, left = job->bytes - start;
    int64_t bytes = left < TILE_BYTES ? left : TILE_BYTES;
    if (job->bytes > STREAM_BYTES)
        copy_run_stream(job->dst + start, job->src + start, bytes);
    else
        copy_run(job->dst + start, job->src + start, bytes);
    simd_fence();
}

static void launch(const struct kernel_state *state, const struct kernel_args *args)
{
    struct job job = {args->in[0], args->out[0], state->bytes};
    pool_run(args->pool, divide_up(job.bytes, TILE_BYTES), copy_tile, &job);
}

REGISTER_KERNEL(copy_plain) = {
    NATIVE(copy_plain),
    .ops = OPS("Identity", "Reorder", "Reshape", "Flatten", "Squeeze", "Unsqueeze", "Dropout"),
    .state_size = sizeof(struct kernel_state),
    .plan = plan,
    .launch = launch,
};
