/* SPDX-License-Identifier: Apache-2.0
 * MergeSegments (ridge): segments [N, S, 6] (x, y, width, height, sine, cosine), labels [N, S] i64
 * -> boxes [N, S, 5] (x, y, width, height, angle), how many are real [N] i64. Segments of one label
 * in [0, S) become one box, in the order of labels; others are left out; zeros fill the rest.
 *
 * Shi, Bai, Belongie, CVPR 2017, algorithm 1: a line through the mean centre in the mean direction;
 * centres are projected on it; the extreme ones give the box's centre, and its width with half of
 * the widths of their segments; the height is the mean one. */
#include <math.h>
#include <stdlib.h>

#include "engine/graph/op.h"

enum { SEGMENTS, LABELS };
enum { X, Y, WIDTH, HEIGHT, SINE, COSINE, FIELDS, BOX_FIELDS = 5 };

static enum status infer(const struct infer *c, struct error *err)
{
    const struct shape *segments = &c->in[SEGMENTS]->shape, *labels = &c->in[LABELS]->shape;
    char a[96], b[96];
    if (segments->rank != 3 || segments->dim[2] != FIELDS || labels->rank != 2 ||
        segments->dim[0] != labels->dim[0] || segments->dim[1] != labels->dim[1])
        return FAIL(err, STATUS_FAILED, "MergeSegments takes [N,S,6] and [N,S], not %s and %s",
                    shape_text(segments, a), shape_text(labels, b));
    struct shape boxes = shape_of(labels->dim[0], labels->dim[1], BOX_FIELDS);
    struct shape counts = shape_of(labels->dim[0]);
    infer_set(c, 0, c->in[SEGMENTS]->dtype, &boxes);
    infer_set(c, 1, DTYPE_I64, &counts);
    return STATUS_OK;
}

struct group {
    double count, sum[FIELDS];
    double ux, uy;           /* direction */
    double low, high;        /* projections of the extreme centres on the line, from the mean */
    double low_width, width; /* of their segments */
};

static void direct(struct group *g)
{
    double sine = g->sum[SINE], cosine = g->sum[COSINE];
    double angle = sine == 0 && cosine == 0 ? 0 : atan(sine / cosine);
    g->ux = cos(angle);
    g->uy = sin(angle);
    g->low = INFINITY;
    g->high = -INFINITY;
}

static void project(struct group *g, const double *segment)
{
    double at =
        (segment[X] - g->sum[X] / g->count) * g->ux + (segment[Y] - g->sum[Y] / g->count) * g->uy;
    if (at < g->low) {
        g->low = at;
        g->low_width = segment[WIDTH];
    }
    if (at >= g->high) {
        g->high = at;
        g->width = segment[WIDTH];
    }
}

static void box_of(const struct group *g, double *box)
{
    double middle = (g->low + g->high) / 2;
    box[X] = g->sum[X] / g->count + middle * g->ux;
    box[Y] = g->sum[Y] / g->count + middle * g->uy;
    box[WIDTH] = g->high - g->low + (g->low_width + g->width) / 2;
    box[HEIGHT] = g->sum[HEIGHT] / g->count;
    box[4] = asin(g->uy); /* the direction's cosine is not negative */
}

/* One image; groups: one per label. */
static int64_t merge(const double *segments, const int64_t *labels, int64_t n, struct group *groups,
                     double *boxes)
{
    int64_t found = 0;
    for (int64_t k = 0; k < n; k++)
        groups[k] = (struct group){0};
    for (int64_t k = 0; k < n; k++) {
        if (labels[k] < 0 || labels[k] >= n)
            continue;
        struct group *g = &groups[labels[k]];
        g->count++;
        for (int f = 0; f < FIELDS; f++)
            g->sum[f] += segments[k * FIELDS + f];
    }
    for (int64_t k = 0; k < n; k++)
        direct(&groups[k]);
    for (int64_t k = 0; k < n; k++)
        if (labels[k] >= 0 && labels[k] < n)
            project(&groups[labels[k]], segments + k * FIELDS);
    for (int64_t k = 0; k < n; k++)
        if (groups[k].count > 0)
            box_of(&groups[k], boxes + BOX_FIELDS * found++);
    return found;
}

static enum status reference(const struct ref_call *call, struct error *err)
{
    const struct ref_tensor *labels = call->in[LABELS];
    int64_t images = labels->shape.dim[0], n = labels->shape.dim[1];
    struct group *groups = malloc((size_t)n * sizeof(*groups) + 1);
    double *boxes = calloc((size_t)n * BOX_FIELDS + 1, sizeof(*boxes));
    for (int64_t i = 0; groups && boxes && i < images; i++) {
        double *to = call->out[0] ? call->out[0]->f + i * n * BOX_FIELDS : boxes;
        int64_t found =
            merge(call->in[SEGMENTS]->f + i * n * FIELDS, labels->i + i * n, n, groups, to);
        if (call->out_count > 1 && call->out[1])
            call->out[1]->i[i] = found;
    }
    enum status status = groups && boxes ? STATUS_OK : FAIL_NO_MEMORY(err);
    free(groups);
    free(boxes);
    return status;
}

static const struct op_case cases[] = {
    {.name = "pairs", .inputs = "f32[1,6,6]{0.1:1} i64[1,6]=0,0,2,2,-1,5", .outputs = 2},
    {.name = "lines", .inputs = "f32[3,40,6]{0.1:9} i64[3,40]{0:12}", .outputs = 2},
    {.name = "none", .inputs = "f32[2,5,6] i64[2,5]=-1", .outputs = 2},
    {.name = "boxes_only", .inputs = "f32[1,9,6]{0.5:2} i64[1,9]{0:3}"},
};

REGISTER(op, merge_segments) = {
    .name = "MergeSegments",
    .domain = "ridge",
    .inputs_min = 2,
    .int_inputs = 1u << LABELS,
    .outputs_max = 2,
    .infer = infer,
    .reference = reference,
    .no_gradient = "its result is a choice of boxes",
    OP_CASES(cases),
};
