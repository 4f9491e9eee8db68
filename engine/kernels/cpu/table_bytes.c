/* SPDX-License-Identifier: Apache-2.0
 *
 * TableBytes of tensors that lie alike, as one long row. */
#include "base/numbers/integers.h"
#include "engine/graph/kernel.h"

enum { TILE = 32768 };

struct kernel_state {
    int64_t count;
};

struct job {
    const unsigned char *x, *table;
    unsigned char *y;
    int64_t count;
};

static enum status plan(const struct kernel_query *q, int variant, struct kernel_state *s,
                        struct error *why)
{
    (void)variant;
    if (q->node->post_count)
        return UNSUPPORTED(why, "no fused epilogue");
    if (!desc_is_dense(&q->out[0]) || !desc_same_memory(&q->in[0], &q->out[0]))
        return UNSUPPORTED(why, "input and result do not lie alike");
    s->count = shape_count(&q->out[0].shape);
    return STATUS_OK;
}

static void run_tile(void *context, int64_t tile, int thread)
{
    const struct job *job = context;
    const unsigned char *restrict x = job->x, *restrict table = job->table;
    unsigned char *restrict y = job->y;
    int64_t last = smaller((tile + 1) * TILE, job->count);
    (void)thread;
    for (int64_t i = tile * TILE; i < last; i++)
        y[i] = table[x[i]];
}

static void launch(const struct kernel_state *s, const struct kernel_args *args)
{
    struct job job = {args->in[0], args->in[1], args->out[0], s->count};
    pool_run(args->pool, divide_up(s->count, TILE), run_tile, &job);
}

REGISTER_KERNEL(table_bytes) = {
    NATIVE(table_bytes), .ops = OPS("TableBytes"), .state_size = sizeof(struct kernel_state),
    .plan = plan,        .launch = launch,
};
