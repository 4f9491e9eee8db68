/* SPDX-License-Identifier: Apache-2.0
 *
 * MergeSegments of f32: images side by side, two passes over the segments, sums in double. Only
 * groups that have a member are touched, and few segments have a group. */
#include <math.h>

#include "engine/graph/kernel.h"
#include "engine/graph/op.h"
#include "engine/kernels/lib/row_pitch.h"
#include "engine/kernels/lib/simd.h"

enum { SEGMENTS, LABELS };
enum { X, Y, WIDTH, HEIGHT, SINE, COSINE, FIELDS, BOX_FIELDS = 5 };

struct group {
    double count, sum[FIELDS], ux, uy, low, high, low_width, high_width;
};

/* The plan; a launch completes a copy of it with its addresses. */
struct kernel_state {
    const float *segments;
    const int64_t *labels;
    struct group *groups; /* S per image */
    float *boxes;
    int64_t *counts; /* NULL: not wanted */
    int64_t images, n;
    bool wants_counts;
};

static enum status plan(const struct kernel_query *q, int variant, struct kernel_state *s,
                        struct error *why)
{
    (void)variant;
    if (q->node->post_count)
        return UNSUPPORTED(why, "no fused epilogue");
    TRY(query_plain_results(q, why));
    if (q->in[SEGMENTS].dtype != DTYPE_F32 || q->in[LABELS].dtype != DTYPE_I64)
        return UNSUPPORTED(why, "only f32 with i64 labels");
    if (!desc_is_plain(&q->in[SEGMENTS]) || !desc_is_plain(&q->in[LABELS]))
        return UNSUPPORTED(why, "inputs are not plain");
    if (q->out[0].dtype == DTYPE_NONE)
        return UNSUPPORTED(why, "boxes are not wanted");
    s->images = q->in[LABELS].shape.dim[0];
    s->n = q->in[LABELS].shape.dim[1];
    s->wants_counts = q->out_count > 1 && q->out[1].dtype != DTYPE_NONE;
    return STATUS_OK;
}

static size_t workspace(const struct kernel_state *s)
{
    return (size_t)(s->images * s->n) * sizeof(struct group) + 64;
}

static void direct(struct group *g)
{
    bool any = g->sum[SINE] != 0 || g->sum[COSINE] != 0;
    double angle = any ? atan(g->sum[SINE] / g->sum[COSINE]) : 0;
    g->ux = cos(angle);
    g->uy = sin(angle);
    for (int f = 0; f < FIELDS; f++)
        g->sum[f] /= g->count;
    g->low = (double)INFINITY;
    g->high = -(double)INFINITY;
}

static void project(struct group *g, const float *segment)
{
    double at = ((double)segment[X] - g->sum[X]) * g->ux + ((double)segment[Y] - g->sum[Y]) * g->uy;
    if (at < g->low) {
        g->low = at;
        g->low_width = (double)segment[WIDTH];
    }
    if (at >= g->high) {
        g->high = at;
        g->high_width = (double)segment[WIDTH];
    }
}

static void write_box(const struct group *g, float *box)
{
    double middle = (g->low + g->high) / 2;
    box[X] = (float)(g->sum[X] + middle * g->ux);
    box[Y] = (float)(g->sum[Y] + middle * g->uy);
    box[WIDTH] = (float)(g->high - g->low + (g->low_width + g->high_width) / 2);
    box[HEIGHT] = (float)g->sum[HEIGHT];
    box[4] = (float)asin(g->uy);
}

static void gather(const struct kernel_state *job, const float *segments, const int64_t *labels,
                   struct group *groups)
{
    int64_t n = job->n;
    for (int64_t k = 0; k < n; k++)
        groups[k].count = 0;
    for (int64_t k = 0; k < n; k++) {
        if (labels[k] < 0 || labels[k] >= n)
            continue;
        struct group *g = &groups[labels[k]];
        if (g->count == 0)
            *g = (struct group){0};
        g->count++;
        for (int f = 0; f < FIELDS; f++)
            g->sum[f] += (double)segments[k * FIELDS + f];
    }
}

static void image(void *context, int64_t i, int thread)
{
    (void)thread;
    const struct kernel_state *job = context;
    int64_t n = job->n, found = 0;
    const float *segments = job->segments + i * n * FIELDS;
    const int64_t *labels = job->labels + i * n;
    struct group *groups = job->groups + i * n;
    float *boxes = job->boxes + i * n * BOX_FIELDS;
    gather(job, segments, labels, groups);
    for (int64_t k = 0; k < n; k++)
        if (groups[k].count > 0)
            direct(&groups[k]);
    for (int64_t k = 0; k < n; k++)
        if (labels[k] >= 0 && labels[k] < n)
            project(&groups[labels[k]], segments + k * FIELDS);
    for (int64_t k = 0; k < n; k++)
        if (groups[k].count > 0)
            write_box(&groups[k], boxes + BOX_FIELDS * found++);
    memset(boxes + BOX_FIELDS * found, 0, (size_t)(BOX_FIELDS * (n - found)) * sizeof(*boxes));
    if (job->counts)
        job->counts[i] = found;
}

static void launch(const struct kernel_state *plan, const struct kernel_args *args)
{
    struct kernel_state job = *plan;
    job.segments = args->in[SEGMENTS];
    job.labels = args->in[LABELS];
    job.groups = args->workspace;
    job.boxes = args->out[0];
    job.counts = job.wants_counts ? args->out[1] : NULL;
    pool_run(args->pool, job.images, image, &job);
}

REGISTER_KERNEL(segments_merge) = {
    NATIVE(segments_merge), .ops = OPS("MergeSegments"), .state_size = sizeof(struct kernel_state),
    .plan = plan,           .workspace = workspace,      .launch = launch,
};
