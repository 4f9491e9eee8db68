/* SPDX-License-Identifier: Apache-2.0
 *
 * HardNegatives of f32: rows side by side; the negatives of a row are sorted by counting passes
 * over the bits of their losses, as suppression of boxes does it. */
#include "base/numbers/integers.h"
#include "engine/graph/kernel.h"
#include "engine/kernels/lib/nms.h"
#include "engine/kernels/lib/row_pitch.h"

/* The plan; a launch completes a copy of it with its addresses. */
struct kernel_state {
    const float *losses;
    const void *classes;
    uint8_t *flags;
    char *memory;
    int64_t rows, count, least;
    double ratio;
    size_t thread_bytes;
    int threads;
    bool wide;
};

static enum status plan(const struct kernel_query *q, int variant, struct kernel_state *s,
                        struct error *why)
{
    (void)variant;
    if (q->node->post_count)
        return UNSUPPORTED(why, "no fused epilogue");
    TRY(query_plain_results(q, why));
    if (q->in[0].dtype != DTYPE_F32 || !desc_is_plain(&q->in[0]) || !desc_is_plain(&q->in[1]))
        return UNSUPPORTED(why, "only plain f32");
    if (q->in[1].dtype != DTYPE_I32 && q->in[1].dtype != DTYPE_I64)
        return UNSUPPORTED(why, "only classes of i32 and i64");
    s->rows = q->in[0].shape.dim[0];
    s->count = q->in[0].shape.dim[1];
    if (s->count > INT32_MAX)
        return UNSUPPORTED(why, "a row longer than 2^31");
    s->wide = q->in[1].dtype == DTYPE_I64;
    s->ratio = node_float(q->node, "ratio", 3);
    s->least = node_int(q->node, "least", 0);
    s->thread_bytes = nms_scratch_bytes(s->count, 0);
    s->threads = q->threads;
    return STATUS_OK;
}

static size_t workspace(const struct kernel_state *s)
{
    return s->thread_bytes * (size_t)s->threads;
}

static void row_work(void *context, int64_t n, int thread)
{
    const struct kernel_state *job = context;
    struct nms_scratch r =
        nms_scratch_at(job->memory + (size_t)thread * job->thread_bytes, job->count, 0);
    const float *losses = job->losses + n * job->count;
    uint8_t *flags = job->flags + n * job->count;
    int64_t positives = 0, negatives = 0;
    for (int64_t p = 0; p < job->count; p++) {
        int64_t at = n * job->count + p;
        int64_t class =
            job->wide ? ((const int64_t *)job->classes)[at] : ((const int32_t *)job->classes)[at];
        flags[p] = class > 0;
        positives += class > 0;
        if (class == 0) {
            r.key[0][negatives] = nms_key(losses[p]);
            r.place[0][negatives++] = (int32_t)p;
        }
    }
    int64_t kept = (int64_t)(job->ratio * (double)positives);
    kept = larger(kept, job->least);
    const int32_t *order = kept ? nms_sort(&r, negatives) : NULL;
    for (int64_t k = 0; k < kept && k < negatives; k++)
        flags[order[k]] = 1;
}

static void launch(const struct kernel_state *plan, const struct kernel_args *args)
{
    struct kernel_state job = *plan;
    job.losses = args->in[0];
    job.classes = args->in[1];
    job.flags = args->out[0];
    job.memory = args->workspace;
    pool_run(args->pool, job.rows, row_work, &job);
}

REGISTER_KERNEL(hard_negatives_rows) = {
    NATIVE(hard_negatives_rows),
    .ops = OPS("HardNegatives"),
    .state_size = sizeof(struct kernel_state),
    .plan = plan,
    .workspace = workspace,
    .launch = launch,
};
