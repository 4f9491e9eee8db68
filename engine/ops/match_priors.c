/* SPDX-License-Identifier: Apache-2.0
 * MatchPriors (ridge): what a detector is to say at each of its priors. Boxes [N,B,4] (x1, y1, x2,
 * y2), their classes [N,B] (0 or less: there is no box) and priors [P,4] (centre x, y, width,
 * height) become the classes of the priors [N,P] and the offsets from them to their boxes [N,P,4],
 * encoded as DetectionOutput decodes them. Liu et al., "SSD", ECCV 2016, section 2.2, as Caffe's
 * code does it; with two thresholds the anchors of Ren et al., "Faster R-CNN", NIPS 2015.
 *
 * A prior has the box that it overlaps most (intersection over union), if by `threshold` (0.5) or
 * more; one that overlaps no box by `background` (the threshold) is background, class 0, and those
 * between have class -1. Offsets of priors without a box are 0. Before that, with best = 1 (the
 * default), each box gets a prior of its own whatever the overlap, unless none touches it: the pair
 * of box and free prior that overlaps most, then the next one among the rest. Overlaps that differ
 * by less than one part in 10^4 are equal, and the first box or prior is taken. */
#include <math.h>
#include <stdlib.h>

#include "engine/graph/op.h"
#include "engine/ops/lib/match.h"

static const char *const attrs[] = {"threshold",     "background", "variance_xy",
                                    "variance_size", "best",       NULL};

static enum status infer(const struct infer *c, struct error *err)
{
    const struct shape *boxes = &c->in[MATCH_BOXES]->shape;
    const struct shape *labels = &c->in[MATCH_LABELS]->shape;
    const struct shape *priors = &c->in[MATCH_PRIORS]->shape;
    char text[3][96];
    bool fits = boxes->rank == 3 && labels->rank == 2 && priors->rank == 2 && boxes->dim[2] == 4 &&
                priors->dim[1] == 4 && labels->dim[0] == boxes->dim[0] &&
                labels->dim[1] == boxes->dim[1];
    if (!fits)
        return FAIL(
            err, STATUS_FAILED, "MatchPriors takes [N,B,4], [N,B] and [P,4], not %s, %s and %s",
            shape_text(boxes, text[0]), shape_text(labels, text[1]), shape_text(priors, text[2]));
    struct match m = match_of(c->node, boxes, priors);
    if (!(m.background > 0) || !(m.background <= m.threshold))
        return FAIL(err, STATUS_FAILED, "MatchPriors: background below %g, boxes from %g on",
                    m.background, m.threshold);
    struct shape classes = shape_of(m.images, m.priors), offsets = shape_of(m.images, m.priors, 4);
    infer_set(c, 0, DTYPE_I64, &classes);
    infer_set(c, 1, c->in[MATCH_BOXES]->dtype, &offsets);
    return STATUS_OK;
}

/* The overlap of every pair. */
static void cost(const struct infer *c, struct cost *cost)
{
    double pairs = (double)shape_count(&c->in[MATCH_LABELS]->shape) *
                   (double)c->in[MATCH_PRIORS]->shape.dim[0];
    cost->elementwise = 13 * pairs;
    cost->transcendentals = pairs;
}

struct matching {
    struct match m;
    const double *boxes, *priors; /* of this image */
    const int64_t *labels;
    double *overlap; /* [B, P] */
    int64_t *box;    /* [P]: matched; NONE */
    double *largest; /* [P]: overlap with the box that it overlaps most */
    bool *taken;     /* [P]: matched for the sake of the box */
    bool *served;    /* [B] */
};

static double overlap(const double *box, const double *prior)
{
    double width = fmin(box[2], prior[0] + prior[2] / 2) - fmax(box[0], prior[0] - prior[2] / 2);
    double height = fmin(box[3], prior[1] + prior[3] / 2) - fmax(box[1], prior[1] - prior[3] / 2);
    if (!(width > 0) || !(height > 0))
        return 0;
    double both = width * height;
    return both / ((box[2] - box[0]) * (box[3] - box[1]) + prior[2] * prior[3] - both);
}

static void find_overlaps(const struct matching *s)
{
    for (int64_t p = 0; p < s->m.priors; p++) {
        s->box[p] = NONE;
        s->largest[p] = 0;
        s->taken[p] = false;
        for (int64_t b = 0; b < s->m.boxes; b++) {
            double o = s->labels[b] > 0 ? overlap(s->boxes + b * 4, s->priors + p * 4) : 0;
            s->overlap[b * s->m.priors + p] = o;
            if (o > s->largest[p] * (1 + MATCH_TIE)) {
                s->largest[p] = o;
                s->box[p] = b;
            }
        }
    }
}

static double most_free(const struct matching *s, int64_t b)
{
    double largest = 0;
    for (int64_t p = 0; p < s->m.priors; p++)
        if (!s->taken[p])
            largest = fmax(largest, s->overlap[b * s->m.priors + p]);
    return largest;
}

/* The next pair; false: no free prior touches a box that has none. */
static bool serve_box(const struct matching *s)
{
    double largest = 0;
    int64_t box = NONE;
    for (int64_t b = 0; b < s->m.boxes; b++) {
        double here = s->served[b] ? 0 : most_free(s, b);
        if (here > largest * (1 + MATCH_TIE)) {
            largest = here;
            box = b;
        }
    }
    for (int64_t p = 0; box != NONE && p < s->m.priors; p++)
        if (!s->taken[p] && s->overlap[box * s->m.priors + p] * (1 + MATCH_TIE) >= largest) {
            s->taken[p] = true;
            s->box[p] = box;
            s->served[box] = true;
            return true;
        }
    return false;
}

static void encode(const struct matching *s, int64_t p, double *offset)
{
    const double *box = s->boxes + s->box[p] * 4, *prior = s->priors + p * 4;
    for (int k = 0; k < 2; k++) {
        double centre = (box[k] + box[k + 2]) / 2, size = box[k + 2] - box[k];
        offset[k] = (centre - prior[k]) / prior[k + 2] / s->m.variance_xy;
        offset[k + 2] = log(size / prior[k + 2]) / s->m.variance_size;
    }
}

static void match_image(const struct matching *s, int64_t *classes, double *offsets)
{
    find_overlaps(s);
    for (int64_t b = 0; b < s->m.boxes; b++)
        s->served[b] = s->labels[b] <= 0;
    while (s->m.best && serve_box(s))
        continue;
    for (int64_t p = 0; p < s->m.priors; p++) {
        bool matched = s->taken[p] || s->largest[p] >= s->m.threshold;
        if (classes)
            classes[p] = matched ? s->labels[s->box[p]] : -(s->largest[p] >= s->m.background);
        if (matched && offsets)
            encode(s, p, offsets + p * 4);
    }
}

static void match_images(struct matching *s, const struct ref_call *call)
{
    const struct ref_tensor *classes = call->out[0];
    const struct ref_tensor *offsets = call->out_count > 1 ? call->out[1] : NULL;
    s->priors = call->in[MATCH_PRIORS]->f;
    for (int64_t n = 0; n < s->m.images; n++) {
        s->boxes = call->in[MATCH_BOXES]->f + n * s->m.boxes * 4;
        s->labels = call->in[MATCH_LABELS]->i + n * s->m.boxes;
        match_image(s, classes ? classes->i + n * s->m.priors : NULL,
                    offsets ? offsets->f + n * s->m.priors * 4 : NULL);
    }
}

static enum status reference(const struct ref_call *call, struct error *err)
{
    struct matching s = {
        .m = match_of(call->node, &call->in[MATCH_BOXES]->shape, &call->in[MATCH_PRIORS]->shape)};
    size_t priors = (size_t)s.m.priors + 1, boxes = (size_t)s.m.boxes + 1;
    s.overlap = calloc(priors * boxes, sizeof(*s.overlap));
    s.box = calloc(priors, sizeof(*s.box));
    s.largest = calloc(priors, sizeof(*s.largest));
    s.taken = calloc(priors, sizeof(*s.taken));
    s.served = calloc(boxes, sizeof(*s.served));
    bool enough = s.overlap && s.box && s.largest && s.taken && s.served;
    if (enough)
        match_images(&s, call);
    free(s.overlap);
    free(s.box);
    free(s.largest);
    free(s.taken);
    free(s.served);
    return enough ? STATUS_OK : FAIL_NO_MEMORY(err);
}

/* Boxes of random corners: those with a negative width or height overlap nothing. "ties": a box
 * round four priors alike, two boxes alike, and one that no prior touches. */
static const struct op_case cases[] = {
    {.name = "random",
     .inputs = "f32[5,9,4]{0:1} i64[5,9]{-1:5} f32[333,4]{0.1:0.9}!",
     .attrs = "threshold=0.3",
     .outputs = 2},
    {.name = "anchors",
     .inputs = "f32[2,14,4]{0:1} i32[2,14]{0:2} f32[1000,4]{0.05:0.7}",
     .attrs = "threshold=0.4 background=0.2 variance_xy=1. variance_size=1.",
     .outputs = 2},
    {.name = "not_each_box",
     .inputs = "f32[3,6,4]{0:1} i64[3,6]{0:21} f32[120,4]{0.1:0.6}!",
     .attrs = "best=0",
     .outputs = 2},
    {.name = "ties",
     .inputs = "f32[1,4,4]=0.1,0.1,0.9,0.9,0.2,0.2,0.4,0.4,0.2,0.2,0.4,0.4,5,5,6,6 "
               "i64[1,4]=7,8,9,10 "
               "f32[5,4]=0.3,0.3,0.2,0.2,0.7,0.3,0.2,0.2,0.3,0.7,0.2,0.2,0.7,0.7,0.2,0.2,0.31,0.3,"
               "0.2,0.2",
     .outputs = 2},
    {.name = "more boxes than priors",
     .inputs = "f32[2,20,4]{0:1} i64[2,20]{1:4} f32[3,4]{0.3:0.7}",
     .outputs = 2},
    {.name = "no box", .inputs = "f32[2,3,4] i64[2,3]=0 f32[40,4]{0.1:0.9}!", .outputs = 2},
    {.name = "classes only", .inputs = "f32[1,3,4]{0:1} i64[1,3]{1:3} f32[17,4]{0.1:0.9}"},
};

REGISTER(op, match_priors) = {
    .name = "MatchPriors",
    .domain = "ridge",
    .inputs_min = MATCH_INPUTS,
    .inputs_max = MATCH_INPUTS,
    .int_inputs = 1u << MATCH_LABELS,
    .outputs_max = 2,
    .attrs = attrs,
    .infer = infer,
    .cost = cost,
    .reference = reference,
    .no_gradient = "it chooses targets, which nothing is trained through",
    OP_CASES(cases),
};
