/* SPDX-License-Identifier: Apache-2.0
 * DetectionOutput (ridge): the end of a single-shot detector. Locations [N,P,4], class
 * probabilities [N,P,C] (class 0: background) and priors [P,4] (centre x, y, width, height) become
 * rows [N,keep,7] of image, class, score, x1, y1, x2, y2 and the number of rows per image [N].
 *
 * Per image and class: the top_k best scores above score_threshold, without those whose box
 * overlaps a better one by more than iou_threshold; then the `keep` best of all classes, best first
 * (ties: lower class, then better in its class). The rest of the rows is zero. Locations are
 * offsets from the prior: centre + variance_xy d size, size exp(variance_size d). */
#include <math.h>
#include <stdlib.h>

#include "engine/graph/op.h"
#include "engine/ops/compute/sort.h"
#include "engine/ops/lib/detection.h"

static const char *const attrs[] = {
    "top_k", "keep", "score_threshold", "iou_threshold", "variance_xy", "variance_size", NULL};

static enum status infer(const struct infer *c, struct error *err)
{
    const struct shape *at = &c->in[DETECTION_LOCATIONS]->shape;
    const struct shape *scores = &c->in[DETECTION_SCORES]->shape;
    const struct shape *priors = &c->in[DETECTION_PRIORS]->shape;
    char text[3][96];
    bool fits = at->rank == 3 && scores->rank == 3 && priors->rank == 2 && at->dim[2] == 4 &&
                priors->dim[1] == 4 && at->dim[0] == scores->dim[0] &&
                at->dim[1] == scores->dim[1] && at->dim[1] == priors->dim[0];
    if (!fits)
        return FAIL(err, STATUS_FAILED,
                    "DetectionOutput takes [N,P,4], [N,P,C] and [P,4], not %s, %s and %s",
                    shape_text(at, text[0]), shape_text(scores, text[1]),
                    shape_text(priors, text[2]));
    struct detection d = detection_of(c->node, scores);
    if (d.top_k < 1 || d.keep < 1 || d.classes < 2 || d.keep > (d.classes - 1) * d.top_k)
        return FAIL(err, STATUS_FAILED,
                    "DetectionOutput: %lld rows of %lld classes with %lld candidates each",
                    (long long)d.keep, (long long)d.classes - 1, (long long)d.top_k);
    if (!(d.score >= 0))
        return FAIL(err, STATUS_FAILED, "DetectionOutput: score_threshold %g is below 0", d.score);
    struct shape rows = shape_of(d.images, d.keep, DETECTION_COLUMNS), counts = shape_of(d.images);
    infer_set(c, 0, c->in[DETECTION_LOCATIONS]->dtype, &rows);
    infer_set(c, 1, DTYPE_I64, &counts);
    return STATUS_OK;
}

/* Decoding every box: a product and a sum or an exponential and two products per coordinate. */
static void cost(const struct infer *c, struct cost *cost)
{
    double boxes = (double)shape_count(&c->in[DETECTION_LOCATIONS]->shape) / 4;
    cost->elementwise = boxes * 4 * 3;
    cost->transcendentals = boxes * 2;
}

struct box {
    double x1, y1, x2, y2;
};

struct found {
    double score;
    int64_t label;
    struct box box;
};

struct search {
    struct detection d;
    const double *locations, *scores, *priors; /* of this image */
    struct box *boxes;                         /* per prior */
    int64_t *order;                            /* room for 2 * priors */
    struct found *found;                       /* room for top_k per class */
    int64_t *best;                             /* places in found: room for two orders */
    int64_t found_count, label;
};

static void decode(const struct search *s)
{
    for (int64_t k = 0; k < s->d.priors; k++) {
        const double *at = s->locations + k * 4, *prior = s->priors + k * 4;
        double x = prior[0] + s->d.variance_xy * at[0] * prior[2];
        double y = prior[1] + s->d.variance_xy * at[1] * prior[3];
        double w = prior[2] * exp(s->d.variance_size * at[2]) / 2;
        double h = prior[3] * exp(s->d.variance_size * at[3]) / 2;
        s->boxes[k] = (struct box){x - w, y - h, x + w, y + h};
    }
}

static double overlap(const struct box *a, const struct box *b)
{
    double width = fmin(a->x2, b->x2) - fmax(a->x1, b->x1);
    double height = fmin(a->y2, b->y2) - fmax(a->y1, b->y1);
    if (width <= 0 || height <= 0)
        return 0;
    double both = width * height;
    return both / ((a->x2 - a->x1) * (a->y2 - a->y1) + (b->x2 - b->x1) * (b->y2 - b->y1) - both);
}

static bool better(const void *context, int64_t a, int64_t b)
{
    const struct search *s = context;
    return s->scores[a * s->d.classes + s->label] > s->scores[b * s->d.classes + s->label];
}

static bool better_found(const void *context, int64_t a, int64_t b)
{
    const struct found *found = context;
    return found[a].score > found[b].score;
}

static bool is_covered(const struct search *s, const struct box *box, int64_t first)
{
    for (int64_t k = first; k < s->found_count; k++)
        if (overlap(box, &s->found[k].box) > s->d.iou)
            return true;
    return false;
}

static void search_class(struct search *s)
{
    int64_t count = 0, first = s->found_count;
    for (int64_t k = 0; k < s->d.priors; k++)
        if (s->scores[k * s->d.classes + s->label] > s->d.score)
            s->order[count++] = k;
    sort_indices(s->order, count, s->order + s->d.priors, better, s);
    for (int64_t k = 0; k < count && k < s->d.top_k; k++) {
        int64_t at = s->order[k];
        struct found f = {s->scores[at * s->d.classes + s->label], s->label, s->boxes[at]};
        if (!is_covered(s, &f.box, first))
            s->found[s->found_count++] = f;
    }
}

/* Writes the best rows of the image; returns how many. */
static int64_t write_rows(const struct search *s, int64_t image, double *rows)
{
    int64_t count = s->found_count < s->d.keep ? s->found_count : s->d.keep;
    for (int64_t k = 0; k < s->found_count; k++)
        s->best[k] = k;
    sort_indices(s->best, s->found_count, s->best + s->found_count, better_found, s->found);
    for (int64_t k = 0; k < count; k++, rows += DETECTION_COLUMNS) {
        const struct found *f = &s->found[s->best[k]];
        const double row[DETECTION_COLUMNS] = {(double)image, (double)f->label, f->score, f->box.x1,
                                               f->box.y1,     f->box.x2,        f->box.y2};
        for (int j = 0; j < DETECTION_COLUMNS; j++)
            rows[j] = row[j];
    }
    return count;
}

static void search_images(struct search *s, const struct ref_call *call)
{
    const struct detection *d = &s->d;
    for (int64_t image = 0; image < d->images; image++) {
        s->locations = call->in[DETECTION_LOCATIONS]->f + image * d->priors * 4;
        s->scores = call->in[DETECTION_SCORES]->f + image * d->priors * d->classes;
        s->found_count = 0;
        decode(s);
        for (s->label = 1; s->label < d->classes; s->label++)
            search_class(s);
        double *rows = call->out[0]->f + image * d->keep * DETECTION_COLUMNS;
        int64_t count = write_rows(s, image, rows);
        if (call->out_count > 1 && call->out[1])
            call->out[1]->i[image] = count;
    }
}

static enum status reference(const struct ref_call *call, struct error *err)
{
    struct search s = {.d = detection_of(call->node, &call->in[DETECTION_SCORES]->shape),
                       .priors = call->in[DETECTION_PRIORS]->f};
    size_t priors = (size_t)s.d.priors, limit = (size_t)((s.d.classes - 1) * s.d.top_k);
    s.boxes = calloc(priors, sizeof(*s.boxes));
    s.order = calloc(2 * priors, sizeof(*s.order));
    s.found = calloc(limit, sizeof(*s.found));
    s.best = calloc(2 * limit, sizeof(*s.best));
    bool enough = s.boxes && s.order && s.found && s.best;
    if (enough)
        search_images(&s, call);
    free(s.boxes);
    free(s.order);
    free(s.found);
    free(s.best);
    return enough ? STATUS_OK : FAIL_NO_MEMORY(err);
}

/* Priors of case "ties" coincide two by two, and so do their scores. */
static const struct op_case cases[] = {
    {.name = "many",
     .inputs = "f32[2,150,4] f32[2,150,6]{0:1} f32[150,4]{0.1:0.9}!",
     .attrs = "top_k=60 keep=40 score_threshold=0.3",
     .outputs = 2},
    {.name = "priors_at_run_time",
     .inputs = "f32[1,70,4]{-3:3} f32[1,70,21]{0:1} f32[70,4]{0.1:0.3}",
     .attrs = "keep=200 iou_threshold=0.3",
     .outputs = 2},
    {.name = "few",
     .inputs = "f32[3,90,4] f32[3,90,3]{0:1} f32[90,4]{0.1:0.9}!",
     .attrs = "score_threshold=0.97 keep=30",
     .outputs = 2},
    {.name = "none",
     .inputs = "f32[2,20,4] f32[2,20,4]{0:0.2} f32[20,4]{0.1:0.9}!",
     .attrs = "score_threshold=0.5 keep=60",
     .outputs = 2},
    {.name = "ties",
     .inputs = "f32[1,4,4]=0 f32[1,4,3]=0,0.5,0.5,0,0.5,0.5,0,0.25,0.5,0,0.25,0.5 "
               "f32[4,4]=0.2,0.2,0.2,0.2,0.2,0.2,0.2,0.2,0.7,0.7,0.2,0.2,0.7,0.7,0.2,0.2",
     .attrs = "keep=8 variance_xy=0.2 variance_size=0.1",
     .outputs = 2},
    {.name = "long",
     .inputs = "f32[1,17000,4] f32[1,17000,3]{0:1} f32[17000,4]{0.1:0.9}!",
     .attrs = "top_k=700 keep=500 iou_threshold=0.8",
     .outputs = 2},
    {.name = "only_rows",
     .inputs = "f32[1,33,4] f32[1,33,2]{0:1} f32[33,4]{0.1:0.9}!",
     .attrs = "keep=1"},
};

REGISTER(op, detection_output) = {
    .name = "DetectionOutput",
    .domain = "ridge",
    .inputs_min = 3,
    .outputs_max = 2,
    .attrs = attrs,
    .infer = infer,
    .cost = cost,
    .reference = reference,
    .no_gradient = "its result is a choice of boxes",
    .row_sets = 1u << 0,
    OP_CASES(cases),
};
