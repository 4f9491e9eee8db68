/* SPDX-License-Identifier: Apache-2.0
 *
 * DetectionOutput as operators of opset 17. Everything but the list that NonMaxSuppression gives
 * has a size known before: what it kept is scattered into an array with a place for each candidate
 * of each class, from which TopK takes the rows. */
#include "engine/ops/lib/detection.h"
#include "engine/ops/lib/op_args.h"
#include "workloads/onnx/export/parts.h"

struct plan {
    struct parts *parts;
    struct detection d;
};

static const char *pair(struct plan *p, const char *op, const char *a, const char *b)
{
    return part(p->parts, op, NAMES(a, b), NO_ATTRS);
}

static const char *slice(struct plan *p, const char *x, int64_t from, int64_t to, int64_t axis)
{
    return part(
        p->parts, "Slice",
        NAMES(x, part_list(p->parts, from), part_list(p->parts, to), part_list(p->parts, axis)),
        NO_ATTRS);
}

static const char *reshaped(struct plan *p, const char *x, int rank, const int64_t *dim)
{
    return pair(p, "Reshape", x, part_ints(p->parts, rank, dim));
}

/* Rows of x [N, rows, 4] at places [N, count]. */
static const char *rows_at(struct plan *p, const char *x, const char *places, int64_t count)
{
    places = reshaped(p, places, 3, (int64_t[]){p->d.images, count, 1});
    return part(p->parts, "GatherND", NAMES(x, places), ATTRS(attr_int("batch_dims", 1)));
}

/* [N, P, 4]: x1, y1, x2, y2 */
static const char *boxes(struct plan *p)
{
    const char *at = p->parts->form->inputs[DETECTION_LOCATIONS];
    const char *priors = p->parts->form->inputs[DETECTION_PRIORS];
    const char *sides = slice(p, priors, 2, 4, 1), *middle = slice(p, priors, 0, 2, 1);
    const char *shift = pair(p, "Mul", slice(p, at, 0, 2, 2), part_f32(p->parts, p->d.variance_xy));
    const char *growth =
        pair(p, "Mul", slice(p, at, 2, 4, 2), part_f32(p->parts, p->d.variance_size));
    middle = pair(p, "Add", middle, pair(p, "Mul", shift, sides));
    sides = pair(p, "Mul", sides, part(p->parts, "Exp", NAMES(growth), NO_ATTRS));
    sides = pair(p, "Mul", sides, part_f32(p->parts, 0.5));
    const char *low = pair(p, "Sub", middle, sides), *high = pair(p, "Add", middle, sides);
    return part(p->parts, "Concat", NAMES(low, high), ATTRS(attr_int("axis", 2)));
}

/* One number per candidate, [N, candidates]: its score if it is kept, else 0. */
static const char *kept_scores(struct plan *p, const char *candidates, const char *scores)
{
    const struct detection *d = &p->d;
    int64_t lines = d->images * (d->classes - 1), k = d->top_k, all = lines * k;
    const char *chosen =
        part(p->parts, "NonMaxSuppression",
             NAMES(reshaped(p, candidates, 3, (int64_t[]){lines, k, 4}),
                   reshaped(p, scores, 3, (int64_t[]){lines, 1, k}), part_list(p->parts, k),
                   part_f32(p->parts, d->iou), part_f32(p->parts, d->score)),
             NO_ATTRS);
    /* rows [line, 0, place in line] */
    const char *places = pair(p, "Mul", chosen, part_ints(p->parts, 3, (int64_t[]){k, 0, 1}));
    places = part(p->parts, "ReduceSum", NAMES(places, part_list(p->parts, 1)),
                  ATTRS(attr_int("keepdims", 0)));
    const char *flat = reshaped(p, scores, 1, &all);
    const char *zeros = pair(p, "Mul", flat, part_f32(p->parts, 0));
    const char *kept = part(p->parts, "ScatterElements",
                            NAMES(zeros, places, pair(p, "Gather", flat, places)), NO_ATTRS);
    return reshaped(p, kept, 2, (int64_t[]){d->images, all / d->images});
}

/* [N, keep, 1] each, of images: constants. */
static const char *image_column(struct plan *p)
{
    int64_t count = p->d.images * p->d.keep;
    struct shape shape = shape_of(p->d.images, p->d.keep, 1);
    float *data = arena_array(&p->parts->form->x->arena, (size_t)count, sizeof(*data));
    if (data)
        for (int64_t k = 0; k < count; k++)
            data[k] = (float)(int64_t)(k / p->d.keep); /* the image of row k */
    if (!data && p->parts->status == STATUS_OK)
        p->parts->status = FAIL_NO_MEMORY(p->parts->err);
    return data ? part_const(p->parts, DTYPE_F32, &shape, data) : "";
}

static const char *as_column(struct plan *p, const char *x)
{
    return reshaped(p, x, 3, (int64_t[]){p->d.images, p->d.keep, 1});
}

static const char *cast(struct plan *p, const char *x, enum dtype dtype)
{
    return part(p->parts, "Cast", NAMES(x), ATTRS(attr_int("to", dtype_to_onnx(dtype))));
}

static void result(struct plan *p, const char *candidates, const char *kept)
{
    struct part_pair best =
        part_pair(p->parts, "TopK", NAMES(kept, part_list(p->parts, p->d.keep)), NO_ATTRS);
    const char *real = pair(p, "Greater", best.first, part_f32(p->parts, 0));
    const char *label = pair(p, "Div", best.second, part_list(p->parts, p->d.top_k));
    label = cast(p, pair(p, "Add", label, part_list(p->parts, 1)), DTYPE_F32);
    const char *rows = part(p->parts, "Concat",
                            NAMES(image_column(p), as_column(p, label), as_column(p, best.first),
                                  rows_at(p, candidates, best.second, p->d.keep)),
                            ATTRS(attr_int("axis", 2)));
    const char *mask = as_column(p, cast(p, real, DTYPE_F32));
    part_last(p->parts, 0, "Mul", NAMES(rows, mask), NO_ATTRS);
    part_last(p->parts, 1, "ReduceSum", NAMES(cast(p, real, DTYPE_I64), part_list(p->parts, 1)),
              ATTRS(attr_int("keepdims", 0)));
}

enum status export_detection_output(const struct form *f, struct error *err)
{
    const struct shape *shape = &f->x->g->values[f->node->inputs[DETECTION_SCORES]].shape;
    struct parts parts = {.form = f, .err = err};
    struct plan p = {&parts, detection_of(f->node, shape)};
    const struct detection *d = &p.d;
    int64_t candidates = (d->classes - 1) * d->top_k;
    const char *scores = slice(&p, f->inputs[DETECTION_SCORES], 1, d->classes, 2);
    scores = part(&parts, "Transpose", NAMES(scores), ATTRS(attr_ints_of("perm", 0, 2, 1)));
    struct part_pair top = /* [N, C - 1, top_k] */
        part_pair(&parts, "TopK", NAMES(scores, part_list(&parts, d->top_k)), NO_ATTRS);
    const char *box = rows_at(&p, boxes(&p), top.second, candidates);
    result(&p, box, kept_scores(&p, box, top.first));
    return parts.status;
}
