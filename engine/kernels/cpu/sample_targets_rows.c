/* SPDX-License-Identifier: Apache-2.0
 *
 * SampleTargets: rows side by side; the lots of a row's candidates are sorted by counting passes
 * over their bits, as suppression of boxes sorts scores. */
#include "engine/graph/kernel.h"
#include "engine/kernels/lib/nms.h"
#include "engine/kernels/lib/row_pitch.h"
#include "engine/ops/lib/sample.h"

/* The plan; a launch completes a copy of it with its addresses. */
struct kernel_state {
    struct sample s;
    const void *classes;
    int64_t *out[2]; /* NULL: not wanted */
    char *memory;
    const struct node *node;
    uint64_t seed;
    size_t thread_bytes;
    int threads;
    bool wide, wide_step, wants[2];
};

static bool is_integer(enum dtype dtype)
{
    return dtype == DTYPE_I32 || dtype == DTYPE_I64;
}

static enum status plan(const struct kernel_query *q, int variant, struct kernel_state *s,
                        struct error *why)
{
    (void)variant;
    if (q->node->post_count)
        return UNSUPPORTED(why, "no fused epilogue");
    TRY(query_plain_results(q, why));
    if (!is_integer(q->in[SAMPLE_CLASSES].dtype) || !is_integer(q->in[SAMPLE_STEP].dtype) ||
        !desc_is_plain(&q->in[SAMPLE_CLASSES]))
        return UNSUPPORTED(why, "only plain i32 and i64");
    s->s = sample_of(q->node, &q->in[SAMPLE_CLASSES].shape);
    if (s->s.places > INT32_MAX)
        return UNSUPPORTED(why, "a row longer than 2^31");
    s->node = q->node;
    s->wide = q->in[SAMPLE_CLASSES].dtype == DTYPE_I64;
    s->wide_step = q->in[SAMPLE_STEP].dtype == DTYPE_I64;
    s->thread_bytes = nms_scratch_bytes(s->s.places, 0);
    s->threads = q->threads;
    for (int k = 0; k < 2; k++)
        s->wants[k] = k < q->out_count && q->out[k].dtype != DTYPE_NONE;
    return STATUS_OK;
}

static size_t workspace(const struct kernel_state *s)
{
    return s->thread_bytes * (size_t)s->threads;
}

static int64_t class_of(const struct kernel_state *job, int64_t at)
{
    return job->wide ? ((const int64_t *)job->classes)[at] : ((const int32_t *)job->classes)[at];
}

/* Puts places [from, from + most) of a row, those of positive classes or of class 0; how many. */
static int64_t choose(const struct kernel_state *job, int64_t n, bool positive, int64_t from,
                      int64_t limit, int thread)
{
    struct nms_scratch r =
        nms_scratch_at(job->memory + (size_t)thread * job->thread_bytes, job->s.places, 0);
    int64_t count = 0, first = n * job->s.places, known = -1;
    int64_t number = (job->s.first + n) * job->s.places;
    uint32_t word[4];
    for (int64_t p = 0; p < job->s.places; p++) {
        int64_t at = number + p, class = class_of(job, first + p);
        if (positive ? class <= 0 : class != 0)
            continue;
        if (at / 4 != known)
            random_words(job->seed, (uint64_t)(known = at / 4), word);
        r.key[0][count] = word[at % 4];
        r.place[0][count++] = (int32_t)p;
    }
    const int32_t *order = count && limit ? nms_sort(&r, count) : NULL;
    int64_t taken = count < limit ? count : limit;
    for (int64_t k = 0; k < taken; k++) {
        int64_t to = n * job->s.count + from + k;
        if (job->out[0])
            job->out[0][to] = order[k];
        if (job->out[1])
            job->out[1][to] = class_of(job, first + order[k]);
    }
    return taken;
}

static void row_work(void *context, int64_t n, int thread)
{
    const struct kernel_state *job = context;
    int64_t positives = choose(job, n, true, 0, job->s.positives, thread);
    int64_t limit = sample_negatives(&job->s, positives);
    int64_t taken = positives + choose(job, n, false, positives, limit, thread);
    for (int64_t k = taken; k < job->s.count; k++)
        for (int out = 0; out < 2; out++)
            if (job->out[out])
                job->out[out][n * job->s.count + k] = -out;
}

static void launch(const struct kernel_state *plan, const struct kernel_args *args)
{
    struct kernel_state job = *plan;
    const void *step = args->in[SAMPLE_STEP];
    job.classes = args->in[SAMPLE_CLASSES];
    job.seed =
        dropout_seed(job.node, job.wide_step ? *(const int64_t *)step : *(const int32_t *)step);
    for (int k = 0; k < 2; k++)
        job.out[k] = job.wants[k] ? args->out[k] : NULL;
    job.memory = args->workspace;
    pool_run(args->pool, job.s.rows, row_work, &job);
}

REGISTER_KERNEL(sample_targets_rows) = {
    NATIVE(sample_targets_rows),
    .ops = OPS("SampleTargets"),
    .state_size = sizeof(struct kernel_state),
    .plan = plan,
    .workspace = workspace,
    .launch = launch,
};
