/* SPDX-License-Identifier: Apache-2.0
 *
 * RandomDropout: random words of a block of elements, then the elements that their words keep. The
 * words stay in the first cache; no mask is stored.
 */
#include "base/numbers/integers.h"
#include "engine/graph/kernel.h"
#include "engine/kernels/lib/simd_random.h"
#include "engine/ops/lib/dropout.h"

enum { TILE = 16384, BLOCK = 1024 }; /* elements; both are multiples of the 4 words of a counter */

/* The plan; a launch completes a copy of it with its addresses. */
struct kernel_state {
    const float *x;
    float *y;
    const struct node *node;
    int64_t count;
    struct dropout_runs runs;
    uint64_t seed;
    uint32_t least;
    float factor;
    bool wide; /* the step is an i64 */
};

static enum status plan(const struct kernel_query *q, int variant, struct kernel_state *s,
                        struct error *why)
{
    (void)variant;
    if (q->in[0].dtype != DTYPE_F32 || (q->in[1].dtype != DTYPE_I64 && q->in[1].dtype != DTYPE_I32))
        return UNSUPPORTED(why, "only f32, and a step of i32 or i64");
    if (q->node->post_count)
        return UNSUPPORTED(why, "no fused epilogue");
    if (!desc_is_plain(&q->in[0]) || !desc_is_plain(&q->out[0]))
        return UNSUPPORTED(why, "only plain tensors");
    s->node = q->node;
    s->count = shape_count(&q->in[0].shape);
    s->runs = dropout_runs(q->node);
    s->least = dropout_least(q->node);
    s->factor = (float)dropout_factor(q->node);
    s->wide = q->in[1].dtype == DTYPE_I64;
    return STATUS_OK;
}

/* Elements of one run. */
static void run_block(const struct kernel_state *job, int64_t first, int64_t count)
{
    uint64_t at = dropout_number(&job->runs, first);
    uint32_t all[BLOCK + 4], *words = all + at % 4, least = job->least;
    float factor = job->factor;
    const float *x = job->x + first;
    float *y = job->y + first;
    simd_random_words(job->seed, at / 4, (count + (int64_t)(at % 4) + 3) / 4, all);
    for (int64_t k = 0; k < count; k++)
        y[k] = words[k] >= least ? x[k] * factor : 0;
}

static void run_tile(void *context, int64_t tile, int thread)
{
    (void)thread;
    const struct kernel_state *job = context;
    int64_t first = tile * TILE, last = first + TILE < job->count ? first + TILE : job->count;
    for (int64_t count; first < last; first += count) {
        count = last - first < BLOCK ? last - first : BLOCK;
        int64_t left = job->runs.run ? job->runs.run - first % job->runs.run : count;
        count = smaller(count, left);
        run_block(job, first, count);
    }
}

static void launch(const struct kernel_state *plan, const struct kernel_args *args)
{
    struct kernel_state job = *plan;
    const void *step = args->in[1];
    job.x = args->in[0];
    job.y = args->out[0];
    job.seed = dropout_seed(job.node, job.wide ? *(const int64_t *)step : *(const int32_t *)step);
    pool_run(args->pool, divide_up(job.count, TILE), run_tile, &job);
}

REGISTER_KERNEL(dropout_words) = {
    NATIVE(dropout_words),
    .ops = OPS("RandomDropout"),
    .state_size = sizeof(struct kernel_state),
    .plan = plan,
    .launch = launch,
};
