/* SPDX-License-Identifier: Apache-2.0
 *
 * DetectionOutput of f32 in two regions: every image and class on its own (only candidates above
 * the threshold are decoded), then every image: the best rows of all classes. No array of decoded
 * boxes or of transposed scores is ever written.
 */
#include "base/numbers/integers.h"
#include "engine/graph/kernel.h"
#include "engine/kernels/lib/nms.h"
#include "engine/kernels/lib/row_pitch.h"
#include "engine/ops/lib/detection.h"

struct kernel_state {
    struct detection d;
    int64_t labels, lines; /* classes but the background; images x labels */
    size_t thread_bytes;
    int threads;
    bool wants_counts;
};

static enum status plan(const struct kernel_query *q, int variant, struct kernel_state *s,
                        struct error *why)
{
    (void)variant;
    if (q->node->post_count)
        return UNSUPPORTED(why, "no fused epilogue");
    TRY(query_plain_results(q, why));
    for (int k = 0; k < q->in_count; k++)
        if (q->in[k].dtype != DTYPE_F32 || !desc_is_plain(&q->in[k]))
            return UNSUPPORTED(why, "input %d is not plain f32", k);
    if (q->out[0].dtype == DTYPE_NONE)
        return UNSUPPORTED(why, "output 0 is not wanted");
    if (q->in[DETECTION_SCORES].shape.dim[1] > INT32_MAX / 4)
        return UNSUPPORTED(why, "more than 2^29 priors");
    s->d = detection_of(q->node, &q->in[DETECTION_SCORES].shape);
    s->labels = s->d.classes - 1;
    s->lines = s->d.images * s->labels;
    size_t line = nms_scratch_bytes(s->d.priors, s->d.top_k);
    size_t image = nms_scratch_bytes(s->labels * s->d.top_k, 0);
    s->thread_bytes = line > image ? line : image;
    s->threads = q->threads;
    s->wants_counts = q->out_count > 1 && q->out[1].dtype != DTYPE_NONE;
    return STATUS_OK;
}

/* Kept by each line: number, and up to top_k keys and priors. */
static size_t workspace(const struct kernel_state *s)
{
    return nms_padded(s->lines, sizeof(int64_t)) +
           2 * nms_padded(s->lines * s->d.top_k, sizeof(int32_t)) +
           s->thread_bytes * (size_t)s->threads;
}

struct job {
    const struct kernel_state *state;
    const float *locations, *scores, *priors;
    int64_t *counts; /* per line */
    uint32_t *keys;  /* top_k per line */
    int32_t *kept;   /* top_k per line */
    char *thread_scratch;
    float *rows;
    int64_t *row_counts; /* NULL: not wanted */
};

/* x1, y1, x2, y2 */
static void decode(const struct job *job, int64_t image, int64_t prior, float box[4])
{
    const struct detection *d = &job->state->d;
    const float *at = job->locations + (image * d->priors + prior) * 4;
    const float *p = job->priors + prior * 4;
    for (int k = 0; k < 2; k++) {
        float centre = p[k] + (float)d->variance_xy * at[k] * p[k + 2];
        float half = p[k + 2] * expf((float)d->variance_size * at[k + 2]) * 0.5f;
        box[k] = centre - half;
        box[k + 2] = centre + half;
    }
}

static int64_t collect(const struct job *job, int64_t line, struct nms_scratch *r)
{
    const struct kernel_state *s = job->state;
    const float *scores = job->scores + line / s->labels * s->d.priors * s->d.classes;
    const float *column = scores + line % s->labels + 1;
    float least = (float)s->d.score;
    int64_t count = 0;
    for (int64_t k = 0; k < s->d.priors; k++) {
        float score = column[k * s->d.classes];
        if (score > least) {
            r->key[0][count] = nms_key(score);
            r->place[0][count++] = (int32_t)k;
        }
    }
    return count;
}

static void line_work(void *context, int64_t line, int thread)
{
    const struct job *job = context;
    const struct kernel_state *s = job->state;
    struct nms_scratch r = nms_scratch_at(job->thread_scratch + (size_t)thread * s->thread_bytes,
                                          s->d.priors, s->d.top_k);
    const float *scores = job->scores + line / s->labels * s->d.priors * s->d.classes;
    int64_t count = collect(job, line, &r), kept = 0, base = line * s->d.top_k;
    const int32_t *order = count ? nms_sort(&r, count) : NULL;
    for (int64_t k = 0; k < count && k < s->d.top_k; k++) {
        float box[4];
        decode(job, line / s->labels, order[k], box);
        if (!nms_try(&r, kept, box, (float)s->d.iou))
            continue;
        float score = scores[order[k] * s->d.classes + line % s->labels + 1];
        job->keys[base + kept] = nms_key(score);
        job->kept[base + kept++] = order[k];
    }
    job->counts[line] = kept;
}

static void write_row(const struct job *job, int64_t image, int64_t place, float *row)
{
    const struct detection *d = &job->state->d;
    int64_t label = place / d->top_k + 1;
    int64_t prior = job->kept[image * job->state->labels * d->top_k + place];
    row[0] = (float)image;
    row[1] = (float)label;
    row[2] = job->scores[(image * d->priors + prior) * d->classes + label];
    decode(job, image, prior, row + 3);
}

static void image_work(void *context, int64_t image, int thread)
{
    const struct job *job = context;
    const struct kernel_state *s = job->state;
    struct nms_scratch r = nms_scratch_at(job->thread_scratch + (size_t)thread * s->thread_bytes,
                                          s->labels * s->d.top_k, 0);
    int64_t count = 0, first = image * s->labels;
    for (int64_t label = 0; label < s->labels; label++) {
        for (int64_t k = 0; k < job->counts[first + label]; k++, count++) {
            int64_t place = label * s->d.top_k + k;
            r.key[0][count] = job->keys[first * s->d.top_k + place];
            r.place[0][count] = (int32_t)place;
        }
    }
    const int32_t *order = nms_sort(&r, count);
    float *rows = job->rows + image * s->d.keep * DETECTION_COLUMNS;
    count = smaller(count, s->d.keep);
    for (int64_t k = 0; k < count; k++)
        write_row(job, image, order[k], rows + k * DETECTION_COLUMNS);
    memset(rows + count * DETECTION_COLUMNS, 0,
           (size_t)((s->d.keep - count) * DETECTION_COLUMNS) * sizeof(*rows));
    if (job->row_counts)
        job->row_counts[image] = count;
}

static void launch(const struct kernel_state *s, const struct kernel_args *args)
{
    char *memory = args->workspace;
    size_t counts = nms_padded(s->lines, sizeof(int64_t));
    size_t kept = nms_padded(s->lines * s->d.top_k, sizeof(int32_t));
    struct job job = {.state = s,
                      .locations = args->in[DETECTION_LOCATIONS],
                      .scores = args->in[DETECTION_SCORES],
                      .priors = args->in[DETECTION_PRIORS],
                      .counts = (int64_t *)(void *)memory,
                      .keys = (uint32_t *)(void *)(memory + counts),
                      .kept = (int32_t *)(void *)(memory + counts + kept),
                      .thread_scratch = memory + counts + 2 * kept,
                      .rows = args->out[0],
                      .row_counts = s->wants_counts ? args->out[1] : NULL};
    pool_run(args->pool, s->lines, line_work, &job);
    pool_run(args->pool, s->d.images, image_work, &job);
}

REGISTER_KERNEL(detection_rows) = {
    NATIVE(detection_rows),
    .ops = OPS("DetectionOutput"),
    .state_size = sizeof(struct kernel_state),
    .plan = plan,
    .workspace = workspace,
    .launch = launch,
};
