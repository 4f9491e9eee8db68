/* SPDX-License-Identifier: Apache-2.0
 *
 * NonMaxSuppression of f32: images and classes run side by side (lib/nms.h); the rows of the result
 * are put together at the end.
 */
#include "base/numbers/integers.h"
#include "engine/graph/kernel.h"
#include "engine/graph/op.h"
#include "engine/kernels/lib/nms.h"
#include "engine/kernels/lib/row_pitch.h"

enum { BOXES, SCORES, LIMIT, IOU, LEAST_SCORE };

struct kernel_state {
    int64_t lines, classes, boxes; /* lines: images x classes */
    int64_t rows;                  /* of the result */
    int64_t limit_max;             /* boxes that a line can keep */
    bool center, has_iou, has_least, wants_count;
    size_t thread_bytes, shared_bytes;
    int threads;
};

static bool is_given(const struct kernel_query *q, int input)
{
    return input < q->node->op_inputs && query_in(q, input) && shape_count(&q->in[input].shape);
}

static enum status plan(const struct kernel_query *q, int variant, struct kernel_state *s,
                        struct error *why)
{
    (void)variant;
    if (q->node->post_count)
        return UNSUPPORTED(why, "no fused epilogue");
    TRY(query_plain_results(q, why));
    if (q->in[BOXES].dtype != DTYPE_F32 || q->in[SCORES].dtype != DTYPE_F32)
        return UNSUPPORTED(why, "only f32");
    for (int k = 0; k < 2; k++)
        if (!desc_is_plain(&q->in[k]))
            return UNSUPPORTED(why, "input %d is not plain", k);
    if (!is_given(q, LIMIT) || q->in[LIMIT].dtype != DTYPE_I64)
        return UNSUPPORTED(why, "without an i64 limit of boxes per class");
    if (q->out[0].dtype == DTYPE_NONE)
        return UNSUPPORTED(why, "output 0 is not wanted");
    if (q->in[BOXES].shape.dim[1] > INT32_MAX)
        return UNSUPPORTED(why, "more than 2^31 boxes");
    const struct shape *scores = &q->in[SCORES].shape;
    s->classes = scores->dim[1];
    s->lines = scores->dim[0] * s->classes;
    s->boxes = scores->dim[2];
    s->rows = q->out[0].shape.dim[0];
    /* What a line keeps is at most what the result has room for. */
    s->limit_max = s->lines ? s->rows / s->lines : 0;
    s->center = node_int(q->node, "center_point_box", 0) != 0;
    s->thread_bytes = nms_scratch_bytes(s->boxes, s->limit_max);
    s->shared_bytes = nms_padded(s->lines, sizeof(int64_t)) + nms_padded(s->rows, sizeof(int32_t));
    s->has_iou = is_given(q, IOU);
    s->has_least = is_given(q, LEAST_SCORE);
    s->wants_count = q->out_count > 1 && q->out[1].dtype != DTYPE_NONE;
    s->threads = q->threads;
    return STATUS_OK;
}

static size_t workspace(const struct kernel_state *s)
{
    return s->shared_bytes + s->thread_bytes * (size_t)s->threads;
}

struct job {
    const struct kernel_state *state;
    const float *boxes, *scores;
    int64_t limit;
    float iou, least;
    int64_t *counts;      /* per line */
    int32_t *kept;        /* limit_max per line */
    char *thread_scratch; /* thread_bytes each */
};

/* Returns how many candidates there are. */
static int64_t collect(const struct job *job, const float *scores, struct nms_scratch *r)
{
    int64_t count = 0;
    for (int64_t k = 0; k < job->state->boxes; k++) {
        r->key[0][count] = nms_key(scores[k]);
        r->place[0][count] = (int32_t)k;
        count += !job->state->has_least || scores[k] > job->least;
    }
    return count;
}

static void corners(const float *at, bool center, float box[4])
{
    if (center) { /* x, y, width, height */
        box[0] = at[1] - at[3] / 2;
        box[1] = at[0] - at[2] / 2;
        box[2] = at[1] + at[3] / 2;
        box[3] = at[0] + at[2] / 2;
        return;
    }
    for (int k = 0; k < 2; k++) {
        box[k] = at[k] < at[k + 2] ? at[k] : at[k + 2];
        box[k + 2] = at[k] < at[k + 2] ? at[k + 2] : at[k];
    }
}

static void line_work(void *context, int64_t line, int thread)
{
    const struct job *job = context;
    const struct kernel_state *s = job->state;
    struct nms_scratch r = nms_scratch_at(job->thread_scratch + (size_t)thread * s->thread_bytes,
                                          s->boxes, s->limit_max);
    const float *boxes = job->boxes + line / s->classes * s->boxes * 4;
    int64_t count = collect(job, job->scores + line * s->boxes, &r), kept = 0;
    const int32_t *order = nms_sort(&r, count);
    for (int64_t k = 0; k < count && kept < job->limit; k++) {
        float box[4];
        corners(boxes + order[k] * 4, s->center, box);
        if (nms_try(&r, kept, box, job->iou))
            job->kept[line * s->limit_max + kept++] = order[k];
    }
    job->counts[line] = kept;
}

static void launch(const struct kernel_state *s, const struct kernel_args *args)
{
    char *shared = args->workspace;
    int64_t limit = *(const int64_t *)args->in[LIMIT], row = 0, *y = args->out[0];
    struct job job = {.state = s,
                      .boxes = args->in[BOXES],
                      .scores = args->in[SCORES],
                      .limit = smaller(limit, s->limit_max),
                      .iou = s->has_iou ? *(const float *)args->in[IOU] : 0,
                      .least = s->has_least ? *(const float *)args->in[LEAST_SCORE] : 0,
                      .counts = (int64_t *)(void *)shared,
                      .kept = (int32_t *)(void *)(shared + nms_padded(s->lines, sizeof(int64_t))),
                      .thread_scratch = shared + s->shared_bytes};
    pool_run(args->pool, s->lines, line_work, &job);
    for (int64_t line = 0; line < s->lines; line++) {
        for (int64_t k = 0; k < job.counts[line]; k++, row++) {
            y[row * 3] = line / s->classes;
            y[row * 3 + 1] = line % s->classes;
            y[row * 3 + 2] = job.kept[line * s->limit_max + k];
        }
    }
    memset(y + row * 3, 0, (size_t)(s->rows - row) * 3 * sizeof(*y));
    if (s->wants_count)
        *(int64_t *)args->out[1] = row;
}

REGISTER_KERNEL(nms_greedy) = {
    NATIVE(nms_greedy), .ops = OPS("NonMaxSuppression"), .state_size = sizeof(struct kernel_state),
    .plan = plan,       .workspace = workspace,          .launch = launch,
};
